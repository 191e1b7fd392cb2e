package queue

import (
	"testing"

	"ringmq/engine/core"
)

// drain lists what a consumer that begins with the oldest message gets.
func (b *streamBench) drain() []uint64 {
	b.T.Helper()
	c, sink := b.reader(0, Start{Kind: StartFirst})
	b.run()
	b.Unsubscribe(c, b.clock)
	return sink.ids()
}

// STR-03: x-max-length-bytes drops the oldest, and never the last message.
func TestStreamMaxBytes(t *testing.T) {
	b := newStreamBench(t, func(s *Settings) { s.MaxBytes = 1000 })
	b.log(20, 100)
	b.run()
	same(t, "kept", b.drain(), upTo(10, 19))
	same(t, "left the log", b.st.left, upTo(0, 9))
	b.log(1, 1500)
	b.run()
	same(t, "one above the limit", b.drain(), upTo(20, 20))
	b.log(1, 10)
	b.run()
	same(t, "the next one", b.drain(), upTo(21, 21))
	if b.Dropped != 21 || b.readyBytes != 10 {
		t.Errorf("%d dropped, %d bytes", b.Dropped, b.readyBytes)
	}
	b.log(2*retainBatch, 1000)
	if !b.Settle(b.clock, core.DispatchBatch) {
		t.Error("one step dropped more than a batch")
	}
	if got := b.Ready(); got != retainBatch+1 {
		t.Errorf("%d are left after one step", got)
	}
	b.run()
	b.want(1, 0)
	b.end()
}

// STR-03: x-max-age drops what is older, when messages come and by the timer.
func TestStreamMaxAge(t *testing.T) {
	b := newStreamBench(t, func(s *Settings) { s.MaxAge = 3000 })
	b.log(5, 8)
	b.run()
	if b.timer != 3000*millisecond || b.NextDue() != b.timer {
		t.Errorf("the timer is set to %d", b.timer)
	}
	b.pass(2000)
	b.log(300, 8)
	b.pass(999)
	b.run()
	b.want(305, 0)
	b.pass(1)
	b.run()
	same(t, "after 3 s", b.drain(), upTo(5, 304))
	b.timer = 0
	b.pass(2000)
	b.run()
	b.want(0, 0)
	if b.timer != 0 || b.NextDue() != 0 {
		t.Errorf("an empty stream has a timer at %d", b.timer)
	}
	b.log(1, 8)
	b.run()
	same(t, "offsets go on", b.drain(), upTo(305, 305))
	if b.Expired != 305 {
		t.Errorf("%d expired", b.Expired)
	}
	b.end()
}

// POL-04: rules that change while the stream lives; those that mean nothing to a
// stream do nothing.
func TestStreamRules(t *testing.T) {
	b := newStreamBench(t, nil)
	b.log(10, 100)
	b.pass(5000)
	b.log(10, 100)
	b.run()
	b.want(20, 0)
	r := NoRules()
	r.TTL, r.MaxLength, r.Expires, r.Overflow, r.DeadLetter = 1, 1, 1, RejectPublish, true
	r.MaxAge = 5000
	b.SetRules(r, b.clock)
	b.run()
	same(t, "by age", b.drain(), upTo(10, 19))
	r.MaxAge, r.MaxBytes = 0, 300
	b.SetRules(r, b.clock)
	b.run()
	same(t, "by size", b.drain(), upTo(17, 19))
	m := b.message(b.next, 8)
	if !b.Admit(m, b.clock) {
		t.Error("refused")
	}
	m.Release(b.arena)
	if b.ExpiresAt() != 0 || len(b.deaths()) != 0 {
		t.Errorf("expires at %d", b.ExpiresAt())
	}
	b.end()
}

// STR-03: a consumer whose place was dropped goes on with the oldest message left.
func TestStreamOvertaken(t *testing.T) {
	b := newStreamBench(t, func(s *Settings) { s.MaxBytes = 8 * 300 })
	b.log(10, 8)
	c, sink := b.reader(5, Start{Kind: StartFirst})
	b.run()
	same(t, "before", sink.ids(), upTo(0, 4))
	b.log(1000, 8)
	b.run()
	for seq := range uint64(5) {
		b.Ack(seq, c)
	}
	b.run()
	same(t, "after", sink.ids(), upTo(710, 714))
	b.end()
}
