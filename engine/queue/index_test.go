package queue

import (
	"testing"

	"ringmq/engine/core"
)

// TestIndexStaysSmall: a message that goes back and forth between queue and
// consumer has one record in the index of deadlines, not one for each round.
func TestIndexStaysSmall(t *testing.T) {
	s := defaults()
	s.TTL = 3_600_000
	b := newBench(t, s)
	b.publish(3)
	c, sink := b.consumer(nil)
	for range 5000 {
		b.settle()
		got := sink.got
		sink.got = nil
		for _, d := range got {
			b.Requeue(d.seq, c, false)
		}
	}
	if n := len(b.deadlines); n != 3 {
		t.Errorf("%d records for 3 messages", n)
	}
	b.end()
}

// TestIndexAfterHolding: what was due while it was held expires when it comes
// back; what is not due yet expires in time, also after compaction.
func TestIndexAfterHolding(t *testing.T) {
	s := defaults()
	s.TTL = 1000
	b := newBench(t, s)
	b.publish(2)
	c, sink := b.consumer(func(c *Consumer) { c.Prefetch = 1 })
	b.settle()
	b.Unsubscribe(c, b.now)
	held := sink.got[0].seq
	b.compactDeadlines()
	b.now += 1500 * millisecond
	b.settle()
	b.want(0, 1)
	same(t, "expired while one is held", died(core.DiedExpired, 2), b.deaths())
	b.Requeue(held, c, false)
	b.settle()
	b.want(0, 0)
	same(t, "expired on its return", died(core.DiedExpired, 1), b.deaths())
	b.end()
}

// TestTouchKeepsMessageTimer: using a queue that has consumers asks for no
// timer, and NextDue tells whoever was woken too early.
func TestTouchKeepsMessageTimer(t *testing.T) {
	s := defaults()
	s.TTL, s.Expires = 1000, 5000
	b := newBench(t, s)
	b.consumer(func(c *Consumer) { c.Prefetch = 1 })
	b.publish(2)
	b.settle()
	b.timer = 0
	b.Touch(b.now)
	if b.timer != 0 {
		t.Errorf("a queue in use asks to be looked at in %d ns", b.timer-b.now)
	}
	if got, want := b.NextDue(), b.now+1000*millisecond; got != want {
		t.Errorf("next message due in %d ns, want %d", got-b.now, want-b.now)
	}
	b.end()
}
