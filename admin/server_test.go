package admin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestServe starts a real listener, asks it, and shuts it down.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(newFake(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()

	resp, err := http.Get("http://" + l.Addr().String() + "/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s.Shutdown(ctx)
	if err := <-done; err != nil {
		t.Fatalf("Serve after Shutdown: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Fatal("still listening after Shutdown")
	}
}

// TestLimitListener shows that a third connection waits until one of two is closed, and that
// Close frees an Accept that waits for a slot.
func TestLimitListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitListener(inner, 2)
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	accept := func() { _, err := l.Accept(); accepted <- err }
	go accept()
	select {
	case err := <-accepted:
		t.Fatalf("a third connection passed a limit of two (err %v)", err)
	default:
	}
	slots := l.(*limitedListener).slots
	if len(slots) != 2 {
		t.Fatalf("%d slots taken by two connections", len(slots))
	}
	first.Close()
	first.Close() // gives one slot back, not two: the waiting Accept takes it again
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if len(slots) != 2 {
		t.Fatalf("%d slots taken after a double close and an accept, want 2", len(slots))
	}
	go accept()
	l.Close()
	if err := <-accepted; err == nil {
		t.Fatal("Accept succeeded on a closed listener")
	}
}
