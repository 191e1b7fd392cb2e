package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestServerOutputSeesTheReadyLine(t *testing.T) {
	cases := []struct {
		name  string
		parts []string
		want  bool
	}{
		{"alone", []string{"ready amqp=1\n"}, true},
		{"behind log lines", []string{"time=1 level=WARN\nready x\nmore\n"}, true},
		{"in pieces", []string{"log\nre", "ady", " x", "y\n"}, true},
		{"not finished", []string{"ready amqp=1"}, false},
		{"within a line", []string{"not ready yet\n"}, false},
		{"another word", []string{"readyish\n", "ready\n"}, false},
		{"twice", []string{"ready 1\n", "ready 2\n"}, true},
	}
	for _, c := range cases {
		w := newServerOutput()
		for _, part := range c.parts {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("%s: wrote %d, %v", c.name, n, err)
			}
		}
		if got := len(w.ready) == 1; got != c.want {
			t.Errorf("%s: ready %v, want %v", c.name, got, c.want)
		}
	}
}

func TestServerOutputKeepsTheEnd(t *testing.T) {
	w := newServerOutput()
	for range 100 {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100))
	}
	_, _ = w.Write([]byte("last words\n"))
	if tail := w.tail(); len(tail) != outputBytesMax || !strings.HasSuffix(tail, "xlast words\n") {
		t.Errorf("%d octets, ending %q", len(tail), tail[max(0, len(tail)-20):])
	}
}

func TestServerLives(t *testing.T) {
	dir := t.TempDir()
	tg, err := startSelf(context.Background(), &Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s := tg.server
	first := s.pid()
	if first == 0 || tg.pid != first || s.startedIn <= 0 {
		t.Errorf("process %d, target's %d, started in %v", first, tg.pid, s.startedIn)
	}
	journal := s.data + "/journal"
	if err := os.WriteFile(journal, []byte("+q\n+q\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.kill(); err != nil || s.pid() != 0 {
		t.Fatalf("killed: process %d, %v", s.pid(), err)
	}
	if err := tg.start(context.Background(), startLimit); err != nil {
		t.Fatal(err)
	}
	if tg.pid == first || queueCount(t, tg, "q") != 2 {
		t.Errorf("process %d again, or not two messages", tg.pid)
	}
	if err := tg.renew(context.Background()); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(journal); err != nil || len(raw) != 0 {
		t.Errorf("renewed with %q, %v", raw, err)
	}
	if err := tg.stop(); err != nil {
		t.Error(err)
	}
	if err := tg.stop(); err != nil {
		t.Errorf("stopped twice: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func queueCount(t *testing.T, tg *target, name string) int64 {
	t.Helper()
	c, err := tg.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	count, err := c.countQueue(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.countQueue("no-such-queue"); err == nil {
		t.Error("a missing queue was counted")
	}
	c.close()
	return count
}

func TestServerIsGivenUpOn(t *testing.T) {
	s, err := newServer(&Options{DataDir: t.TempDir(), ServerArg: []string{"--mute", "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(context.Background(), 300*time.Millisecond); err == nil || !strings.Contains(err.Error(), "not ready within") {
		t.Errorf("a server that says nothing: %v", err)
	}
	if s.pid() != 0 {
		t.Error("it still runs")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.start(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMemoryWatch(t *testing.T) {
	w := watchMemory(os.Getpid())
	first, err := w.take()
	if err != nil || first < 1000 {
		t.Fatalf("%d KiB, %v", first, err)
	}
	const grown = 64 << 20
	block := make([]byte, grown)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	second, err := w.take()
	if err != nil || second < grown/1024 {
		t.Errorf("%d KiB with %d KiB just touched, %v", second, grown/1024, err)
	}
	if block[4096] != 1 {
		t.Error("the block is to live until here")
	}
	w.end()
	gone := watchMemory(1 << 30)
	if _, err := gone.take(); err == nil {
		t.Error("a process that is not there has memory")
	}
	gone.end()
}
