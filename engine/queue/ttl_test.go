package queue

import (
	"testing"

	"ringmq/engine/core"
)

// own is a message with its own time to live in ms, -1 for none.
func (b *bench) own(id uint64, ttl int64) *core.Message {
	m := b.message(id, 8)
	if ttl >= 0 {
		m.Flags |= core.FlagExpires
		m.TTL = ttl
	}
	return m
}

// TTL-01: the smaller of the queue's and the message's own time to live.
func TestTimeToLive(t *testing.T) {
	for _, c := range []struct {
		name       string
		queue, own int64
		lives      int64 // ms; -1 for ever
	}{
		{"none", -1, -1, -1},
		{"the queue's", 100, -1, 100},
		{"its own", -1, 70, 70},
		{"its own is smaller", 100, 70, 70},
		{"the queue's is smaller", 50, 70, 50},
		{"the longest", -1, core.TTLMillisMax, core.TTLMillisMax},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := defaults()
			s.TTL = c.queue
			b := newBench(t, s)
			b.publishOne(b.own(1, c.own))
			published := b.now
			if c.lives < 0 {
				if b.timer != 0 {
					t.Errorf("a timer for %d", b.timer)
				}
				b.now += 1 << 60
				b.settle()
				b.want(1, 0)
				b.end()
				return
			}
			if want := published + c.lives*millisecond; b.timer != want {
				t.Errorf("asked for a Settle at %d, want %d", b.timer, want)
			}
			b.now = published + c.lives*millisecond - 1
			b.settle()
			b.want(1, 0)
			b.now++
			b.settle()
			b.want(0, 0)
			same(t, "dead letters", b.deaths(), died(core.DiedExpired, 1))
			b.end()
		})
	}
}

// TTL-02: what has expired is never delivered, whoever comes first in a turn.
func TestExpiredIsNeverDelivered(t *testing.T) {
	s := defaults()
	s.TTL = 10
	b := newBench(t, s)
	b.publish(3)
	b.now += 5 * millisecond
	b.publish(3)
	b.now += 5 * millisecond
	_, sink := b.consumer(nil)
	b.settle()
	same(t, "delivered", sink.ids(), upTo(4, 6))
	same(t, "dead letters", b.deaths(), died(core.DiedExpired, 1, 2, 3))
	b.end()
}

// More may be due at once than one turn expires: the rest waits, unseen.
func TestExpiryOfManyAtOnce(t *testing.T) {
	const many = 2*core.ExpiryBatch + 100
	for _, c := range []struct {
		name string
		look func(b *bench) // something that could see what is overdue
	}{
		{"consumer", func(b *bench) {
			_, sink := b.consumer(nil)
			b.Settle(b.now, core.DispatchBatch)
			if len(sink.got) > 0 {
				t.Errorf("message %d was delivered, overdue", sink.got[0].id)
			}
		}},
		{"get", func(b *bench) {
			if g, ok := b.take(false, b.now); ok {
				t.Errorf("message %d was got, overdue", idOf(g.Message))
			}
		}},
		{"get without ack", func(b *bench) {
			if g, ok := b.take(true, b.now); ok {
				t.Errorf("message %d was got, overdue", idOf(g.Message))
				g.Message.Release(b.arena)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := defaults()
			s.TTL = 10
			b := newBench(t, s)
			b.publish(many)
			b.now += 20 * millisecond
			c.look(b)
			turns := 0
			for b.Settle(b.now, core.DispatchBatch) {
				turns++
			}
			b.want(0, 0)
			if turns > 3 {
				t.Errorf("%d turns more", turns)
			}
			same(t, "dead letters", b.deaths(), died(core.DiedExpired, upTo(1, many)...))
			b.end()
		})
	}
}

// TTL-03: without any time to live only a consumer that is ready gets it.
func TestTimeToLiveZero(t *testing.T) {
	s := defaults()
	s.TTL = 0
	b := newBench(t, s)
	b.publish(2)
	if _, ok := b.take(false, b.now); ok {
		t.Error("basic.get finds a message without time to live")
	}
	same(t, "nobody there", b.deaths(), died(core.DiedExpired, 1, 2))
	k, sink := b.consumer(func(k *Consumer) { k.Prefetch = 2 })
	b.publish(3)
	b.settle()
	same(t, "delivered", sink.ids(), []uint64{3, 4})
	same(t, "no credit", b.deaths(), died(core.DiedExpired, 5))
	b.Requeue(2, k, false) // TTL-04
	b.settle()
	same(t, "came back", b.deaths(), died(core.DiedExpired, 3))
	b.want(0, 1)
	b.end()
}

// A consumer that is ready gets them all, also more than a turn delivers.
func TestTimeToLiveZeroBurst(t *testing.T) {
	s := defaults()
	s.TTL = 0
	b := newBench(t, s)
	_, sink := b.consumer(nil)
	b.publish(10)
	for b.Settle(b.now, 4) {
	}
	same(t, "delivered", sink.ids(), upTo(1, 10))
	same(t, "dead letters", b.deaths(), nil)
	b.end()
}

// TTL-04: the clock runs from the first enqueue.
func TestRequeueKeepsDeadline(t *testing.T) {
	s := defaults()
	s.TTL = 10
	b := newBench(t, s)
	k, sink := b.consumer(func(k *Consumer) { k.Prefetch = 2 })
	b.publish(2)
	b.settle()
	b.now += 20 * millisecond
	b.settle() // what a consumer holds does not expire
	b.want(0, 2)
	b.Requeue(sink.got[0].seq, k, false)
	b.settle()
	same(t, "overdue", b.deaths(), died(core.DiedExpired, 1))
	b.now -= 15 * millisecond
	b.timer = 0
	b.Unsubscribe(k, b.now)
	b.Requeue(sink.got[1].seq, k, false)
	b.settle()
	if b.timer == 0 {
		t.Error("no timer for what came back in time")
	}
	b.want(1, 0)
	b.now += 5 * millisecond
	b.settle()
	same(t, "overdue later", b.deaths(), died(core.DiedExpired, 2))
	b.end()
}

// A deadline of its own counts wherever the message stands, and the index keeps
// in proportion to the queue.
func TestExpiryIndex(t *testing.T) {
	b := newBench(t, defaults())
	for id, ttl := range []int64{50, 10, -1, 30, 10} {
		b.publishOne(b.own(uint64(id), ttl))
	}
	for _, c := range []struct {
		after int64
		want  []deadLetter
		timer int64
	}{
		{9, nil, 0},
		{10, died(core.DiedExpired, 1, 4), 30},
		{40, died(core.DiedExpired, 3), 50},
		{50, died(core.DiedExpired, 0), 0},
	} {
		start := int64(1e12)
		b.now, b.timer = start+c.after*millisecond, 0
		b.settle()
		same(t, "dead letters", b.deaths(), c.want)
		if want := c.timer * millisecond; b.timer != 0 && b.timer-start != want || b.timer == 0 && want != 0 {
			t.Errorf("after %d ms the next timer is for %d", c.after, b.timer-start)
		}
	}
	b.want(1, 0)
	k, sink := b.consumer(nil)
	b.settle()
	for range 20_000 {
		b.publishOne(b.own(9, 1e6))
		b.settle()
		b.Ack(sink.got[len(sink.got)-1].seq, k)
	}
	if len(b.deadlines) > 2048 {
		t.Errorf("%d deadlines of one message", len(b.deadlines))
	}
	b.end()
}

// NextDue tells whoever has only one timer for a queue when to look again.
func TestNextDue(t *testing.T) {
	s := defaults()
	s.TTL = 10
	b := newBench(t, s)
	if at := b.NextDue(); at != 0 {
		t.Errorf("a deadline of nothing: %d", at)
	}
	b.publish(1)
	if at := b.NextDue(); at != b.now+10*millisecond {
		t.Errorf("%d", at)
	}
	b.end()
}

// TTL-05: when an unused queue is to be deleted.
func TestExpiresAt(t *testing.T) {
	s := defaults()
	s.Expires = 100
	b := newBench(t, s)
	start := b.now
	due := func(want int64) {
		t.Helper()
		if want != 0 {
			want = start + want*millisecond
		}
		if got := b.ExpiresAt(); got != want {
			t.Errorf("expires at %d, want %d", got, want)
		}
	}
	due(100)
	b.now += 50 * millisecond
	b.publish(1) // does not count as use
	due(100)
	b.take(true, b.now)
	due(150)
	b.timer = 0
	b.now += 10 * millisecond
	b.Touch(b.now)
	due(160)
	if b.timer != b.ExpiresAt() {
		t.Errorf("asked for a Settle at %d", b.timer)
	}
	k, _ := b.consumer(nil)
	due(0)
	b.now += 500 * millisecond
	b.Unsubscribe(k, b.now)
	due(660)
	b.Rules.Expires = 0
	due(0)
}
