package bench

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestLoopback(t *testing.T) {
	works := 0
	b, err := newLoopback(context.Background(), 1100, func() error { works++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	h := newHistogram()
	for range 3 {
		if err := b.run(context.Background(), 0, h); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.run(ctx, time.Hour, h); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	b.close()
	if h.count() != 4 || works != 4 {
		t.Errorf("%d round trips, %d times work, want 4", h.count(), works)
	}
}

func TestLoopbackWorkFails(t *testing.T) {
	b, err := newLoopback(context.Background(), 10, func() error { return errors.New("no disk") })
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if err := b.run(context.Background(), time.Hour, newHistogram()); err == nil {
		t.Error("round trips go on without an answer")
	}
}

// TestConfirmSize holds the loopback's answer against the real frame.
func TestConfirmSize(t *testing.T) {
	if got := len(appendAck(nil, 1, 1, false)); got != confirmSize {
		t.Errorf("a confirm has %d octets, the loop sends %d", got, confirmSize)
	}
}
