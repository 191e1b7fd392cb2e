package crash

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// ctl runs "ringmq ctl" and returns its exit status and output.
func ctl(t *testing.T, args ...string) (int, string) {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, append([]string{"ctl"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// findInSegments returns the segment file, and the offset in it, where content lies.
func findInSegments(t *testing.T, data string, content []byte) (string, int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(data, "wal", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		all, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(all, content); at >= 0 {
			return name, int64(at)
		}
	}
	t.Fatalf("the body is in none of %d files", len(names))
	return "", 0
}

const (
	damageMessages = 400
	damageBody     = 10_000
)

// TestDamage: a bit of a stopped broker's log flips. The start refuses and says where, "ctl wal check" finds it,
// "ctl wal repair" gives up what it hit and nothing else, and then the broker starts.
func TestDamage(t *testing.T) {
	for _, backend := range harness.Backends() {
		for _, c := range []struct {
			name   string
			victim uint64 // number of the message that is hit
		}{{"sealed segment", 50}, {"last segment", damageMessages - 5}} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				if why := harness.Refused(backend); why != "" {
					t.Skip(why)
				}
				damage(t, harness.Options{Backend: backend, Cores: "0,1", Data: folder(t), HTTP: "off",
					Args: []string{"--wal-segment-size", "1MiB"}}, c.victim)
			})
		}
	}
}

// damaged fills a broker, stops it, and flips a bit of one message: its file and offset are returned.
func damaged(t *testing.T, h *History, opts harness.Options, victim uint64) (file string, offset int64, first uint64) {
	t.Helper()
	b, err := harness.Launch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Kill() })
	if err := declare(h, b, false); err != nil {
		t.Fatal(err)
	}
	conn, ch, err := dial(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	r := newRun(h, b)
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, damageMessages))
	first = h.NewPublisher()
	for i := range uint64(damageMessages) {
		m, event := r.message(first+i+1, damageBody, rDirect, true)
		h.Add(event)
		if err := ch.Publish("", h.Queues[qDirect].Name, false, false, m); err != nil {
			t.Fatal(err)
		}
	}
	for range damageMessages {
		c, open := <-confirms
		if !open || !c.Ack {
			t.Fatalf("confirm %+v, channel open: %v", c, open)
		}
		h.Add(Event{Kind: Confirmed, ID: first + c.DeliveryTag})
	}
	_ = conn.Close()
	if err := b.Stop(); err != nil {
		t.Fatalf("stopping: %v\n%s", err, b.Output())
	}
	h.Add(Event{Kind: Stopped})
	file, offset = findInSegments(t, opts.Data, h.Body(first+victim, damageBody)[:64])
	flip(t, file, offset+damageBody/2)
	return file, offset, first
}

func damage(t *testing.T, opts harness.Options, victim uint64) {
	t.Helper()
	h := topology(firstSeed(t))
	file, offset, first := damaged(t, h, opts, victim)
	name := filepath.Base(file)
	if b, err := harness.Launch(opts); err == nil {
		_ = b.Kill()
		t.Fatalf("started on a damaged log\n%s", b.Output())
	} else {
		wantPlace(t, "the refusal to start", err.Error(), name, offset)
		if !strings.Contains(err.Error(), "ctl wal check") {
			t.Errorf("the refusal to start names no cure: %v", err)
		}
	}
	code, out := ctl(t, "wal", "check", "--data", opts.Data)
	if code != 1 {
		t.Errorf("ctl wal check: exit status %d, want 1\n%s", code, out)
	}
	wantPlace(t, "ctl wal check", out, name, offset)
	if code, out := ctl(t, "wal", "repair", "--data", opts.Data); code != 0 {
		t.Fatalf("ctl wal repair: exit status %d\n%s", code, out)
	}
	b, err := harness.Launch(opts)
	if err != nil {
		t.Fatalf("start after the repair: %v", err)
	}
	t.Cleanup(func() { _ = b.Kill() })
	drain(t, h, b)
	if err := b.Stop(); err != nil {
		t.Errorf("stopping: %v\n%s", err, b.Output())
	}
	// Exactly the message that was hit is gone.
	report := h.Check()
	if len(report.Faults) != 1 || report.Faults[0].Rule != RuleLost || report.Faults[0].ID != first+victim {
		t.Errorf("want one message lost, %x: %s", first+victim, h.Error(report))
	}
}

// wantPlace wants a text to name the segment, and an offset at most a record's head before the body.
func wantPlace(t *testing.T, what, text, name string, body int64) {
	t.Helper()
	if !strings.Contains(text, name) {
		t.Errorf("%s does not name %s:\n%s", what, name, text)
	}
	for back := int64(0); back < 4096; back++ {
		for _, form := range []string{strconv.FormatInt(body-back, 10), fmt.Sprintf("%#x", body-back)} {
			if strings.Contains(text, "offset "+form) || strings.Contains(text, "offset="+form) {
				return
			}
		}
	}
	t.Errorf("%s names no offset at or just before %d:\n%s", what, body, text)
}
