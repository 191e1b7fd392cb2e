package queue

import (
	"testing"

	"ringmq/engine/core"
)

// LEN-01 to LEN-03: limits in messages and in bytes of body, with each policy.
func TestLimits(t *testing.T) {
	limit := func(messages, bytes int64, o Overflow) Settings {
		s := defaults()
		s.MaxLength, s.MaxBytes, s.Overflow = messages, bytes, o
		return s
	}
	maxlen := func(ids ...uint64) []deadLetter { return died(core.DiedMaxLength, ids...) }
	for _, c := range []struct {
		name     string
		s        Settings
		bodies   []int // of messages 1, 2, ...
		accepted []bool
		left     []uint64
		dead     []deadLetter
	}{
		{"below", limit(3, -1, DropHead), []int{1, 1}, []bool{true, true}, upTo(1, 2), nil},
		{"drop head", limit(2, -1, DropHead), []int{1, 1, 1, 1}, []bool{true, true, true, true}, upTo(3, 4), maxlen(1, 2)},
		{"drop head at zero", limit(0, -1, DropHead), []int{1, 1}, []bool{true, true}, nil, maxlen(1, 2)},
		{"drop head by bytes", limit(-1, 10, DropHead), []int{4, 4, 4}, []bool{true, true, true}, upTo(2, 3), maxlen(1)},
		{"one too large for all", limit(-1, 10, DropHead), []int{4, 11}, []bool{true, true}, nil, maxlen(1, 2)},
		{"exactly the bytes", limit(-1, 8, DropHead), []int{4, 4}, []bool{true, true}, upTo(1, 2), nil},
		{"empty bodies cost nothing", limit(-1, 0, DropHead), []int{0, 0, 0}, []bool{true, true, true}, upTo(1, 3), nil},
		{"both", limit(2, 10, DropHead), []int{6, 6, 1, 1}, []bool{true, true, true, true}, upTo(3, 4), maxlen(1, 2)},
		{"reject", limit(2, -1, RejectPublish), []int{1, 1, 1}, []bool{true, true, false}, upTo(1, 2), nil},
		{"reject at zero", limit(0, -1, RejectPublish), []int{1}, []bool{false}, nil, nil},
		{"reject by bytes", limit(-1, 8, RejectPublish), []int{4, 3, 99, 1}, []bool{true, true, true, false}, upTo(1, 3), nil},
		{"reject to dead letters", limit(1, -1, RejectPublishDLX), []int{1, 1}, []bool{true, false}, upTo(1, 1), maxlen(2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.s)
			refused := uint64(0)
			for i, size := range c.bodies {
				accepted := b.publishOne(b.message(uint64(i+1), size))
				if accepted != c.accepted[i] {
					t.Errorf("message %d: accepted %v", i+1, accepted)
				}
				if !accepted {
					refused++
				}
			}
			b.settle()
			same(t, "dead letters", b.deaths(), c.dead)
			if b.Refused != refused {
				t.Errorf("%d refused, want %d", b.Refused, refused)
			}
			_, sink := b.consumer(nil)
			b.settle()
			same(t, "left", sink.ids(), c.left)
			b.end()
		})
	}
}

// Consumers get their chance before a limit is applied: what they can take does
// not count.
func TestLimitAfterConsumers(t *testing.T) {
	for _, o := range []Overflow{DropHead, RejectPublish, RejectPublishDLX} {
		s := defaults()
		s.MaxLength, s.Overflow = 1, o
		b := newBench(t, s)
		_, sink := b.consumer(func(k *Consumer) { k.Prefetch = 5 })
		if n := b.publish(6); n != 6 {
			t.Errorf("policy %d: %d of 6 accepted", o, n)
		}
		b.settle()
		same(t, "delivered", sink.ids(), upTo(1, 5))
		b.want(1, 5) // LEN-01: what is held does not count
		same(t, "dead letters", b.deaths(), nil)
		b.end()
	}
}

// LEN-04: what comes back into a full queue may push the head out, itself too.
func TestRequeueIntoFullQueue(t *testing.T) {
	s := defaults()
	s.MaxLength = 2
	b := newBench(t, s)
	b.publish(1)
	g, _ := b.take(false, b.now)
	b.publish(2)
	b.Requeue(g.Seq, nil, false)
	b.settle()
	same(t, "dropped", b.deaths(), died(core.DiedMaxLength, 1))
	b.want(2, 0)
	b.end()

	s.Overflow = RejectPublish
	b = newBench(t, s)
	b.publish(1)
	g, _ = b.take(false, b.now)
	b.publish(2)
	b.Requeue(g.Seq, nil, false) // nothing to reject: it is over the limit for once
	b.settle()
	b.want(3, 0)
	if b.publish(1) != 0 {
		t.Error("a publish into a queue above its limit")
	}
	b.end()
}

// What has expired makes room before a publish is refused.
func TestExpiryMakesRoom(t *testing.T) {
	s := defaults()
	s.MaxLength, s.Overflow, s.TTL = 2, RejectPublish, 10
	b := newBench(t, s)
	b.publish(2)
	b.now += 10 * millisecond
	if b.publish(1) != 1 {
		t.Error("refused for what is overdue")
	}
	same(t, "dead letters", b.deaths(), died(core.DiedExpired, 1, 2))
	b.want(1, 0)
	b.end()
}

// LEN-03, DLX-08: dead letters that nobody took count for both limits until they are taken.
func TestOwedCounts(t *testing.T) {
	for name, set := range map[string]func(s *Settings){
		"messages": func(s *Settings) { s.MaxLength = 2 },
		"bytes":    func(s *Settings) { s.MaxBytes = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			s := defaults()
			s.Overflow = RejectPublish
			set(&s)
			b := newBench(t, s)
			b.Owe(4)
			for i, want := range []bool{true, false} {
				if got := b.publishOne(b.message(uint64(i+1), 4)); got != want {
					t.Errorf("message %d beside one that is owed: accepted %v", i+1, got)
				}
			}
			b.Paid(4)
			if !b.publishOne(b.message(3, 4)) {
				t.Error("refused although nothing is owed any more")
			}
			_, sink := b.consumer(nil)
			b.settle()
			same(t, "left", sink.ids(), []uint64{1, 3})
			b.end()
		})
	}
}
