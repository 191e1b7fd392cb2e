package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringmq/test/rawamqp"
)

// TestFailedStartIsOneLine shows that what is wrong with an address is all that the operator reads.
func TestFailedStartIsOneLine(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, c := range []struct{ flag, addr, want string }{
		{"--listen", busy.Addr().String(), "the address is in use; stop the program that holds it or choose another with --listen"},
		{"--http", busy.Addr().String(), "the address is in use; stop the program that holds it or choose another with --http"},
		{"--listen", "no-such-host.invalid:5672", "the host no-such-host.invalid cannot be resolved; write an address of this machine or a name that it knows with --listen"},
		{"--http", "no-such-host.invalid:5672", "the host no-such-host.invalid cannot be resolved; write an address of this machine or a name that it knows with --http"},
	} {
		args := []string{"serve", "--data", t.TempDir(), "--log-level", "warn", c.flag, c.addr}
		if c.flag == "--listen" {
			args = append(args, "--http", "off")
		} else {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		code, stdout, stderr := runOnce(t, args...)
		want := fmt.Sprintf("ringmq: cannot listen on %s: %s\n", c.addr, c.want)
		if code != exitWorld || stdout != "" || stderr != want {
			t.Errorf("%s %s: exit %d, %q\n got %s\nwant %s", c.flag, c.addr, code, stdout, stderr, want)
		}
	}
}

// TestDoubledAddress shows that --check-config finds it, as the start does.
func TestDoubledAddress(t *testing.T) {
	want := "ringmq: --listen :7777 and --http [::]:7777 are the same address; give each only once\n"
	for _, extra := range [][]string{nil, {"--check-config"}} {
		args := append([]string{"serve", "--listen", ":7777", "--http", "[::]:7777", "--data", t.TempDir()}, extra...)
		code, stdout, stderr := runOnce(t, args...)
		if code != exitUsage || stdout != "" || stderr != want {
			t.Errorf("%v: exit %d %q\n got %s\nwant %s", extra, code, stdout, stderr, want)
		}
	}
}

// TestWarnsOfOpenAddresses shows that whoever opens the broker to the network reads why nobody
// gets in, and that nobody else does.
func TestWarnsOfOpenAddresses(t *testing.T) {
	const words = "the only user, guest, may log in from loopback only"
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--listen", "0.0.0.0:0"}, true},
		{[]string{"--http", "0.0.0.0:0"}, true},
	} {
		p := startProcess(t, c.args...)
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		p.wait(t, exitOK)
		if got := strings.Count(p.stderr.String(), words); got > 1 || (got == 1) != c.want {
			t.Errorf("%v: %d such lines, want one: %v\n%s", c.args, got, c.want, p.stderr)
		}
	}
}

// TestDrainNamesTheCutOff shows that the log counts and names the clients that did not answer.
func TestDrainNamesTheCutOff(t *testing.T) {
	p := startProcess(t)
	c := rawamqp.New(t, p.amqp, rawamqp.Options{}) // answers nothing: the test reads nothing
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait(t, exitOK)
	log := p.stderr.String()
	name := fmt.Sprintf("level=WARN msg=\"client cut off\" connection=\"%s -> %s\" user=guest",
		c.NetConn().LocalAddr(), c.NetConn().RemoteAddr())
	named, counted := strings.Index(log, name), strings.Index(log, "clients=1 ")
	stopped := strings.Index(log, "msg=stopped")
	if named < 0 || counted < named || stopped < counted {
		t.Errorf("places in the log: name %d, count %d, stopped %d; want them in this order; name is %s", named, counted, stopped, name)
	}
}

func TestFileLimitReport(t *testing.T) {
	for _, c := range []struct {
		limit uint64
		want  string
	}{{1024, "WARN"}, {4095, "WARN"}, {4096, "INFO"}, {65535, "INFO"}, {65536, ""}} {
		var log bytes.Buffer
		fileLimit{limit: c.limit}.report(slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("limit %d: %q, want level %q", c.limit, got, c.want)
		}
	}
}

// TestOverviewOfProcess holds what the HTTP listener tells about the process against the process.
func TestOverviewOfProcess(t *testing.T) {
	before := time.Now()
	p := startProcess(t)
	var got struct {
		Version string `json:"rabbitmq_version"`
		Uptime  int64  `json:"uptime"`
		Stats   struct {
			Publish uint64 `json:"publish"`
		} `json:"message_stats"`
	}
	c := rawamqp.New(t, p.amqp, rawamqp.Options{})
	c.OpenChannel(1)
	c.Publish(1, "", "nowhere", nil, "x")
	c.Sync(1)
	if err := json.Unmarshal(api(t, p, "GET", "/api/overview", "", 200), &got); err != nil {
		t.Fatal(err)
	}
	if got.Stats.Publish != 1 {
		t.Errorf("%d messages published, want 1", got.Stats.Publish)
	}
	if got.Uptime < 0 || got.Uptime > time.Since(before).Milliseconds() {
		t.Errorf("uptime %d ms", got.Uptime)
	}
	raw, err := net.Dial("tcp", p.amqp)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		t.Fatal(err)
	}
	start := make([]byte, 1024)
	n, err := raw.Read(start)
	if err != nil || !bytes.Contains(start[:n], []byte("\x07versionS\x00\x00\x00\x06"+got.Version)) {
		t.Errorf("connection.start does not name version %q: %q, %v", got.Version, start[:n], err)
	}
	m := regexp.MustCompile(`(?m)^process_start_time_seconds (\d+)`).FindStringSubmatch(get(t, "http://"+p.http+"/metrics"))
	if m == nil {
		t.Fatal("no process_start_time_seconds")
	}
	if at := m[1]; at < fmt.Sprint(before.Unix()) || at > fmt.Sprint(time.Now().Unix()) {
		t.Errorf("process_start_time_seconds %s", at)
	}
	if page := get(t, "http://"+p.http+"/"); !strings.Contains(page, `"/metrics"`) {
		t.Errorf("the root page: %s", page)
	}
}

// TestNotify shows the two states that a supervisor is told.
func TestNotify(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "n")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", socket)
	p := startProcess(t)
	next := func() string {
		buf := make([]byte, 256)
		for {
			n, err := l.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if state := string(buf[:n]); !strings.HasPrefix(state, "EXTEND_TIMEOUT_USEC=") { // of a slow disk
				return state
			}
		}
	}
	if got := next(); got != "READY=1" {
		t.Fatalf("first %q", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "STOPPING=1" {
		t.Fatalf("then %q", got)
	}
	p.wait(t, exitOK)

	var log bytes.Buffer
	n := newNotifier([]string{"NOTIFY_SOCKET=" + socket + "-gone"}, slog.New(slog.NewTextHandler(&log, nil)))
	n.send("READY=1")
	if !strings.Contains(log.String(), "the supervisor cannot be told") {
		t.Errorf("a failure is not logged: %q", &log)
	}
}

// TestSignalDuringStart shows that a start which takes long can be ended, and not by SIGHUP.
func TestSignalDuringStart(t *testing.T) {
	var log, dump bytes.Buffer
	notify := notifier{log: slog.New(slog.NewTextHandler(&log, nil))}
	signals := make(chan os.Signal, 3)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTERM} {
		signals <- sig
	}
	forever := make(chan struct{})
	defer close(forever)
	_, err := startOrSignal(func() (*broker, error) { <-forever; return nil, nil }, signals, notify, &dump)
	if !errors.Is(err, errSignal) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(log.String(), "ended during the start") || !strings.Contains(dump.String(), "goroutine ") {
		t.Errorf("log %s\ndump %s", &log, &dump)
	}
	failed := errors.New("no")
	if _, err := startOrSignal(func() (*broker, error) { return nil, failed }, signals, notify, &dump); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}
