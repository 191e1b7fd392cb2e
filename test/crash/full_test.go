package crash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sys/unix"

	"ringmq/test/harness"
)

// smallDisk mounts a file system of some MiB in memory, or skips the test with the reason.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	dir := t.TempDir()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Skipf("cannot mount a small file system here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill takes every byte that is left.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		n, err := f.Write(block)
		switch {
		case errors.Is(err, unix.ENOSPC):
			block = block[:len(block)/2] // until not even a byte goes in
		case err != nil || n != len(block):
			t.Fatalf("filling: %d bytes, %v", n, err)
		}
	}
}

// fullDisk is one broker whose disk fills up, and what its clients know.
type fullDisk struct {
	t    *testing.T
	h    *History
	b    *harness.Broker
	opts harness.Options
	conn *amqp.Connection
	from uint64 // the publisher's last id
}

const (
	fullBody  = 60_000 // bytes of each message that fills
	fullNacks = 5      // as many refusals show that the disk is full
)

func (f *fullDisk) start(passive bool) {
	f.t.Helper()
	var err error
	if f.b, err = harness.Launch(f.opts); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = f.b.Kill() })
	if passive {
		// Nothing is declared on a full disk.
		if f.conn, _, err = dial(f.b); err != nil {
			f.t.Fatal(err)
		}
		return
	}
	if err := declare(f.h, f.b, false); err != nil {
		f.t.Fatal(err)
	}
	if f.conn, _, err = dial(f.b); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fullDisk) channel() *amqp.Channel {
	f.t.Helper()
	ch, err := f.conn.Channel()
	if err != nil {
		f.t.Fatalf("channel: %v\n%s", err, f.b.Output())
	}
	return ch
}

// publish sends one message and reports whether it was confirmed.
func (f *fullDisk) publish(ch *amqp.Channel, to place) bool {
	f.t.Helper()
	r := newRun(f.h, f.b)
	f.from++
	m, event := r.message(f.from, fullBody, to.route, true)
	f.h.Add(event)
	confirm, err := ch.PublishWithDeferredConfirm(to.exchange, to.key, false, false, m)
	if err != nil {
		f.t.Fatalf("publish: %v\n%s", err, f.b.Output())
	}
	select {
	case <-confirm.Done():
	case <-time.After(waitMax):
		f.t.Fatalf("no answer to a publish\n%s", f.b.Output())
	}
	kind := Nacked
	if confirm.Acked() {
		kind = Confirmed
	}
	f.h.Add(Event{Kind: kind, ID: f.from})
	return confirm.Acked()
}

// fillUp publishes until nothing more is taken, or n were, and returns how many were.
func (f *fullDisk) fillUp(to place, n int) (confirmed int) {
	f.t.Helper()
	ch := f.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		f.t.Fatal(err)
	}
	for nacks := 0; nacks < fullNacks && confirmed != n; {
		if f.publish(ch, to) {
			confirmed++
			nacks = 0
		} else {
			nacks++
		}
	}
	return confirmed
}

// take acknowledges n messages of a queue, or all with n = -1, and returns how many there were.
func (f *fullDisk) take(queue, n int) int {
	f.t.Helper()
	ch := f.channel()
	r := newRun(f.h, f.b)
	client := f.h.NewClient()
	taken := 0
	for ; taken != n; taken++ {
		d, ok, err := ch.Get(f.h.Queues[queue].Name, false)
		if err != nil {
			f.t.Fatalf("get: %v\n%s", err, f.b.Output())
		}
		if !ok {
			break
		}
		id := r.delivered(queue, client, &d)
		f.h.Add(Event{Kind: Acked, ID: id, Queue: uint16(queue), Client: client})
		if err := d.Ack(false); err != nil {
			f.t.Fatalf("ack: %v\n%s", err, f.b.Output())
		}
	}
	if err := r.leave(ch, queue, client); err != nil {
		f.t.Fatalf("%v\n%s", err, f.b.Output())
	}
	return taken
}

// unconfirmed wants a publish without confirms to be refused by the end of its channel.
func (f *fullDisk) unconfirmed(to place) {
	f.t.Helper()
	ch := f.channel()
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	m := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: make([]byte, fullBody)}
	if err := ch.Publish(to.exchange, to.key, false, false, m); err != nil {
		f.t.Fatal(err)
	}
	select {
	case err := <-closed:
		if err == nil || err.Code != 506 {
			f.t.Errorf("publish without confirms on a full disk: %v, want 506", err)
		}
	case <-time.After(waitMax):
		f.t.Errorf("publish without confirms on a full disk: no answer\n%s", f.b.Output())
	}
}

// resumes waits until messages are taken again.
func (f *fullDisk) resumes(to place) {
	f.t.Helper()
	ch := f.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		f.t.Fatal(err)
	}
	for deadline := time.Now().Add(waitMax); !f.publish(ch, to); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("still refused, with space on the disk\n%s", f.b.Output())
		}
	}
}

func (f *fullDisk) restart(kind Kind) {
	f.t.Helper()
	_ = f.conn.Close()
	if kind == Killed {
		_ = f.b.Kill()
	} else if err := f.b.Stop(); err != nil {
		f.t.Fatalf("stopping on a full disk: %v\n%s", err, f.b.Output())
	}
	f.h.Add(Event{Kind: kind})
	f.start(true)
}

// TestFullDisk is test 10: a full disk refuses messages, takes acknowledgements, deletions and purges, starts again, and
// serves again when there is space.
func TestFullDisk(t *testing.T) {
	for _, backend := range harness.Backends() {
		t.Run(backend, func(t *testing.T) {
			if why := harness.Refused(backend); why != "" {
				t.Skip(why)
			}
			dir := smallDisk(t, 128)
			h := topology(firstSeed(t))
			f := &fullDisk{t: t, h: h, from: h.NewPublisher(), opts: harness.Options{Backend: backend, Cores: "0,1", HTTP: "off",
				Data: filepath.Join(dir, "data"), Args: []string{"--disk-free-limit", "0", "--wal-segment-size", "2MiB"}}}
			reserve := filepath.Join(dir, "reserve")
			if err := os.WriteFile(reserve, make([]byte, 32<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			f.start(false)
			// Each loop has a queue that fills, whichever it is.
			taken := f.fillUp(to(h, rGet), 250) + f.fillUp(to(h, rSource), 250) + f.fillUp(to(h, rFan), 250)
			taken += f.fillUp(to(h, rDirect), -1) + f.fillUp(to(h, rFan), -1)
			if taken < 500 {
				t.Errorf("full after %d messages of %d bytes", taken, fullBody)
			}
			fill(t, dir)
			f.unconfirmed(to(h, rDirect))
			if got := f.take(qDirect, 20); got != 20 {
				t.Errorf("took %d of a full disk", got)
			}
			for _, kind := range []Kind{Stopped, Killed} {
				f.restart(kind)
				if got := f.take(qDirect, 20); got != 20 {
					t.Errorf("took %d after a start on a full disk", got)
				}
			}
			// Space that the broker makes itself: the rest of the disk stays full.
			ch := f.channel()
			purged, err := ch.QueuePurge(h.Queues[qSource].Name, false)
			if err != nil {
				t.Fatalf("purge on a full disk: %v\n%s", err, f.b.Output())
			}
			t.Logf("%d messages filled the disk, %d purged", taken, purged)
			f.take(qDirect, -1)
			f.take(qGet, -1)
			f.resumes(to(h, rDirect))
			f.resumes(to(h, rGet))
			f.fillUp(to(h, rDirect), -1)
			if _, err := f.channel().QueueDelete(h.Queues[qFan3].Name, false, false, false); err != nil {
				t.Errorf("delete on a full disk: %v\n%s", err, f.b.Output())
			}
			// Space that somebody else makes.
			if err := os.Remove(reserve); err != nil {
				t.Fatal(err)
			}
			f.resumes(to(h, rDirect))
			f.restart(Killed)
			drain(t, h, f.b, qFan3)
			if err := f.b.Stop(); err != nil {
				t.Errorf("stopping: %v\n%s", err, f.b.Output())
			}
			// What was purged, or went with its queue, is not missed; and it must not come.
			h.Routes[rSource], h.Routes[rFan] = nil, []int{qFan1, qFan2}
			report := h.Check()
			if text := h.Error(report); text != "" {
				t.Fatal(text)
			}
		})
	}
}

// flip changes one bit of a file.
func flip(t *testing.T, name string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], offset); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], offset); err != nil {
		t.Fatal(err)
	}
}
