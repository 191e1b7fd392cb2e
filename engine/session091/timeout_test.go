package session091

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
	"ringmq/ring"
)

func msArgument(ms int64) amqp091.Table {
	return amqp091.AppendInt64(nil, "x-consumer-timeout", ms)
}

// consumeFor consumes with x-consumer-timeout, without it if ms is negative.
func (c *client) consumeFor(ch uint16, name, tag string, ms int64) {
	c.w.Helper()
	m := amqp091.BasicConsume{Queue: []byte(name), ConsumerTag: []byte(tag)}
	if ms >= 0 {
		m.Arguments = msArgument(ms)
	}
	c.send(ch, &m)
	c.w.rest()
	if _, ok := c.take(ch, amqp091.MethodBasicConsumeOk); !ok {
		c.fatalf("no consume-ok; got %s", c.story())
	}
}

// timedOut checks that a channel was closed for a timeout of so many ms, and answers.
func (c *client) timedOut(ch uint16, ms int64) {
	c.w.Helper()
	m := c.wait(ch, amqp091.MethodChannelClose).m.(*amqp091.ChannelClose)
	want := fmt.Sprintf("PRECONDITION_FAILED - delivery acknowledgement on channel %d timed out. Timeout value used: %d ms. "+
		"This timeout value can be configured, see consumers doc guide to learn more", ch, ms)
	if m.ReplyCode != 406 || string(m.ReplyText) != want || m.FailedClass != 0 || m.FailedMethod != 0 {
		c.fatalf("closed with %d %q, %d.%d", m.ReplyCode, m.ReplyText, m.FailedClass, m.FailedMethod)
	}
	c.send(ch, &amqp091.ChannelCloseOk{})
	c.w.rest()
}

// open checks that none of the client's channels was closed.
func (c *client) open() {
	c.w.Helper()
	c.w.rest()
	for _, e := range c.got {
		if e.m.ID() == amqp091.MethodChannelClose {
			c.fatalf("a channel was closed: %s", c.story())
		}
	}
}

// run lets time pass in steps that are finer than any period.
func (w *world) run(d time.Duration) {
	w.Run(d, 50*time.Millisecond)
	w.rest()
}

func (w *world) setTimeout(name string, ms int64) {
	q := w.queue(name)
	r := q.Rules
	r.ConsumerTimeout = ms
	q.SetRules(r, w.Now())
	w.rest()
}

// CSM-03, V4-10: which timeout is in force, and that it is neither early nor more
// than a tenth and a tick late, or a minute.
func TestConsumerTimeout(t *testing.T) {
	for _, c := range []struct {
		name              string
		usual             time.Duration
		queue, consumer   int64 // ms, -1 = not set
		get, noAck, other bool  // other: the queue lives on the other loop
		want              int64 // 0 = for ever
	}{
		{name: "broker's", usual: 30 * time.Minute, queue: -1, consumer: -1, want: 1_800_000},
		{name: "broker's, off", queue: -1, consumer: -1},
		{name: "queue's", usual: time.Second, queue: 5000, consumer: -1, want: 5000},
		{name: "queue's, off", usual: time.Second, queue: 0, consumer: -1},
		{name: "queue's, broker's off", queue: 5000, consumer: -1, want: 5000},
		{name: "consumer's", usual: time.Second, queue: 2000, consumer: 7000, want: 7000},
		{name: "consumer's, off", usual: time.Second, queue: 2000, consumer: 0},
		{name: "consumer's, others off", queue: 0, consumer: 200, want: 200},
		{name: "consumer's, short", usual: time.Second, queue: -1, consumer: 1, want: 1},
		{name: "consumer's, huge", usual: time.Second, queue: -1, consumer: 1<<63 - 1},
		{name: "without ack", usual: time.Second, queue: 1000, consumer: 1000, noAck: true},
		{name: "get", usual: 3 * time.Second, queue: -1, get: true, want: 3000},
		{name: "get, queue's", usual: time.Second, queue: 3000, get: true, want: 3000},
		{name: "get, off", usual: time.Second, queue: 0, get: true},
		{name: "other loop", usual: time.Minute, queue: 4000, consumer: -1, other: true, want: 4000},
		{name: "get, other loop", usual: time.Minute, queue: 4000, get: true, other: true, want: 4000},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldWith(t, 1, 2, Options{ConsumerTimeout: c.usual}, ring.Options{})
			at := 0
			if c.other {
				at = 1
			}
			owner, cl := w.dial(at), w.dial(0)
			owner.channel(1)
			owner.declare(1, "q", nil)
			w.setTimeout("q", c.queue)
			cl.channel(1)
			cl.channel(2)
			owner.publish(1, "", "q", numbered(1, 8))
			w.rest()
			switch {
			case c.get:
				cl.send(1, &amqp091.BasicGet{Queue: []byte("q")})
				cl.wait(1, amqp091.MethodBasicGetOk)
			case c.noAck:
				cl.send(1, &amqp091.BasicConsume{Queue: []byte("q"), NoAck: true, Arguments: msArgument(c.consumer)})
			default:
				cl.consumeFor(1, "q", "t", c.consumer)
			}
			w.rest()
			if c.want == 0 {
				w.Run(2*time.Hour, time.Minute)
				cl.open()
				w.finish()
				return
			}
			w.run(time.Duration(c.want) * time.Millisecond)
			cl.open()
			w.run(min(max(time.Duration(c.want)*time.Millisecond/10, 100*time.Millisecond), time.Minute) + 10*time.Millisecond)
			cl.timedOut(1, c.want)
			if ready, unacked := w.counts("q"); ready != 1 || unacked != 0 {
				w.fatalf("%d ready and %d unacked after the timeout", ready, unacked)
			}
			cl.send(2, &amqp091.BasicGet{Queue: []byte("q")})
			if m := cl.wait(2, amqp091.MethodBasicGetOk).m.(*amqp091.BasicGetOk); !m.Redelivered {
				w.fatalf("the message came back as a new one")
			}
			cl.ack(2, 1, false)
			w.rest()
			w.finish()
		})
	}
}

// x-consumer-timeout is a number of milliseconds.
func TestConsumerTimeoutArgument(t *testing.T) {
	for want, args := range map[string]amqp091.Table{
		`"expected integer, got longstr"`: amqp091.AppendString(nil, "x-consumer-timeout", "200"),
		`"expected integer, got bool"`:    amqp091.AppendBool(nil, "x-consumer-timeout", true),
		"{value_negative,-1}":             amqp091.AppendInt32(nil, "x-consumer-timeout", -1),
	} {
		w := newWorld(t, 1, 1)
		c := w.dial(0)
		c.channel(1)
		c.declare(1, "q", nil)
		c.send(1, &amqp091.BasicConsume{Queue: []byte("q"), Arguments: args})
		m := c.wait(1, amqp091.MethodChannelClose).m.(*amqp091.ChannelClose)
		want = "PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue 'q' in vhost '/': " + want
		if m.ReplyCode != 406 || string(m.ReplyText) != want || m.FailedClass != 60 || m.FailedMethod != 20 {
			t.Errorf("got %d %q %d.%d, want %s", m.ReplyCode, m.ReplyText, m.FailedClass, m.FailedMethod, want)
		}
		w.finish()
	}
}

// A delivery counts for itself: what was settled in time, in a transaction too, and
// what came later, end nothing; and a channel ends for its own only.
func TestConsumerTimeoutEach(t *testing.T) {
	w := newWorldWith(t, 2, 2, Options{}, ring.Options{})
	c, other := w.dial(0), w.dial(1)
	for ch := range uint16(4) {
		c.channel(ch + 1)
	}
	other.channel(1)
	for n, name := range []string{"a", "b", "tx"} {
		c.declare(uint16(n+1), name, nil)
		c.consumeFor(uint16(n+1), name, "t", 1000)
	}
	other.consumeFor(1, "b", "u", 0)
	c.send(3, &amqp091.TxSelect{})
	c.wait(3, amqp091.MethodTxSelectOk)

	for range 4 { // channel 1 is never without one, and none is old
		c.publish(4, "", "a", numbered(1, 8))
		w.run(600 * time.Millisecond)
		held := c.deliveries(1)
		if len(held) != 1 {
			w.fatalf("%d deliveries", len(held))
		}
		c.publish(4, "", "a", numbered(2, 8))
		w.run(300 * time.Millisecond)
		c.ack(1, held[0].m.(*amqp091.BasicDeliver).DeliveryTag, false)
		w.run(300 * time.Millisecond)
		c.open()
		c.ack(1, 0, true)
		c.deliveries(1)
	}

	c.publish(4, "", "tx", numbered(3, 8))
	w.rest()
	c.ack(3, 1, false)
	w.run(5 * time.Second)
	c.open()

	c.publish(4, "", "b", numbered(4, 8))
	c.publish(4, "", "b", numbered(5, 8))
	w.run(700 * time.Millisecond)
	other.open()
	w.run(500 * time.Millisecond)
	c.timedOut(2, 1000)
	if got := other.deliveries(1); len(got) != 2 || !got[1].m.(*amqp091.BasicDeliver).Redelivered {
		w.fatalf("the other consumer has %d deliveries", len(got))
	}
	c.send(3, &amqp091.TxCommit{})
	c.wait(3, amqp091.MethodTxCommitOk)
	w.Run(time.Hour, time.Minute)
	c.open()
	other.open()
	w.finish()
}

// A timeout that changes is in force for what is held already.
func TestConsumerTimeoutChanged(t *testing.T) {
	w := newWorldWith(t, 3, 2, Options{ConsumerTimeout: 30 * time.Minute}, ring.Options{})
	c := w.dial(0)
	for ch := range uint16(3) {
		c.channel(ch + 1)
	}
	for n, name := range []string{"a", "b"} {
		ch := uint16(n + 1)
		c.declare(ch, name, nil)
		c.consumeFor(ch, name, "t", -1)
		c.publish(3, "", name, numbered(1, 8))
	}
	w.run(10 * time.Second)
	c.open()
	w.setTimeout("a", 5000) // seen in the next round
	w.run(time.Minute)
	c.timedOut(1, 5000)
	c.open()
	w.srv.SetConsumerTimeout(time.Minute)
	w.run(time.Second)
	c.timedOut(2, 60_000)
	w.finish()
}

// An answer that is under way does not come after the end of its channel.
func TestConsumerTimeoutWaits(t *testing.T) {
	h := newHotConn(t, declareMethod("q", nil),
		&amqp091.BasicConsume{Queue: []byte("q"), Arguments: msArgument(100)}).publishing(1, "", "q", nil, 16)
	h.round()
	pass := func(d time.Duration) {
		for range d / (10 * time.Millisecond) {
			h.now += int64(10 * time.Millisecond)
			h.turn()
		}
	}
	for _, wait := range []*bool{&h.c.waiting, &h.c.stalled, &h.c.behind} {
		*wait = true
		pass(5 * time.Second)
		if h.c.channel(1).closing {
			t.Fatal("the channel is closed while something is awaited")
		}
		*wait = false
	}
	pass(110 * time.Millisecond)
	if !h.c.channel(1).closing {
		t.Error("the channel is not closed")
	}
	if n := len(h.lp.holders.list); n != 0 {
		t.Errorf("%d channels are still looked at", n)
	}
}

// Channels that hold nothing are not looked at, and without any no timer is armed.
func TestConsumerTimeoutIdle(t *testing.T) {
	w := newWorldWith(t, 4, 1, Options{ConsumerTimeout: time.Second}, ring.Options{})
	h := &w.srv.loops[0].holders
	state := func(listed int, armed bool) {
		t.Helper()
		w.rest()
		if len(h.list) != listed || h.timer.Armed() != armed {
			t.Fatalf("%d channels, timer %v", len(h.list), h.timer.Armed())
		}
	}
	c := w.dial(0)
	for ch := range uint16(3) {
		c.channel(ch + 1)
		c.declare(ch+1, fmt.Sprint("q", ch+1), nil)
		c.consumeFor(ch+1, fmt.Sprint("q", ch+1), "t", -1)
	}
	state(0, false)
	for n := range 3 {
		c.publish(1, "", fmt.Sprint("q", n+1), numbered(1, 8))
		state(n+1, true)
	}
	c.ack(1, 1, false)
	state(3, true)
	w.run(210 * time.Millisecond)
	state(2, true)
	c.send(2, &amqp091.ChannelClose{})
	state(1, true)
	c.peer.Close()
	state(0, true)
	w.run(210 * time.Millisecond)
	state(0, false)
	w.finish()
}

// A turn looks at a bounded number of deliveries, and the round comes to all. After a
// long round there is a long rest.
func TestConsumerTimeoutShares(t *testing.T) {
	const many = 50 * inspectBatch
	h := newHotConn(t, declareMethod("slow", nil), declareMethod("q", nil))
	slow, q := h.Broker.VHost("/").Queue([]byte("slow")), h.Broker.VHost("/").Queue([]byte("q"))
	ch := h.c.channel(1)
	set := func(q *queue.Queue, ms int64) {
		r := q.Rules
		r.ConsumerTimeout = ms
		q.SetRules(r, h.now)
	}
	set(slow, 1<<40)
	set(q, 1000)
	n := ch.newSlot(slot{queue: slow})
	ch.newSlot(slot{queue: q, consumer: &consumer{ch: ch, timeout: -1}})
	for tag := range uint64(many) {
		ch.hold(tag+1, tag, n, false)
	}
	ch.nextTag = many + 1
	h.now += 2 * int64(time.Second)
	h.turn()
	for h.lp.holders.running {
		h.now += 10 * int64(time.Millisecond)
		h.turn()
	}
	took := h.now - h.lp.holders.began
	if rest := h.lp.holders.at - h.now; took < 300*int64(time.Millisecond) || rest < inspectShare*took {
		t.Errorf("a rest of %d after a round of %d", rest, took)
	}
	h.now = h.lp.holders.at - int64(time.Second)
	h.give(h.c, publishFrames(nil, 1, "", "q", false, nil, []byte("last"), 131072))
	h.give(h.c, (&amqp091.BasicGet{Queue: []byte("q")}).Append(nil, 1))
	h.now += 2 * int64(time.Second)
	turns, at := 0, uint64(0)
	for h.turn(); !ch.closing && h.lp.holders.running; h.turn() {
		turns++
		to := ch.holding.round.tag
		if to-at > inspectBatch+unackedChunk || to <= at {
			t.Fatalf("a turn went from %d to %d", at, to)
		}
		at = to
	}
	if turns < many/inspectBatch-1 {
		t.Errorf("%d deliveries were looked at in %d turns", many, turns)
	}
	if !ch.closing {
		t.Error("the last delivery was not found")
	}
	ch.unacked.reset(&h.lp.chunks)
}

// tooLong reports that a delivery which is held for so many ns is overdue.
func tooLong(ch *channel, tag uint64, held int64) bool {
	ms := ch.slots[ch.unacked.find(tag).slot].timeout(0)
	return ms != 0 && held/int64(time.Millisecond) > ms
}

// The search finds what is overdue and nothing else, however it is cut into turns.
func TestConsumerTimeoutSearch(t *testing.T) {
	found, missed := 0, 0
	for seed := range seeds(t, 200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h := newHotConn(t, declareMethod("q", nil))
		q := h.Broker.VHost("/").Queue([]byte("q"))
		ch := h.c.channel(1)
		for range 1 + rng.IntN(4) {
			k := &consumer{ch: ch, timeout: int64(rng.IntN(3) * rng.IntN(20_000))}
			ch.newSlot(slot{queue: q, consumer: k})
		}
		at := map[uint64]int64{}
		tag, now := uint64(1), h.now
		for range 100 {
			for range rng.IntN(20) {
				h.lp.shard.Tick(now)
				ch.hold(tag, tag, uint32(rng.IntN(len(ch.slots))), false)
				at[tag] = now
				tag += 1 + uint64(rng.IntN(100)/98*rng.IntN(500))
				now += rng.Int64N(int64(50 * time.Millisecond))
			}
			for held := ch.unacked.next(0); held != 0; held = ch.unacked.next(held + 1) {
				if rng.IntN(8) == 0 {
					ch.unhold(held, ch.unacked.find(held))
				}
			}
			now += rng.Int64N(int64(time.Second))
			h.lp.shard.Tick(now)
			ch.holding.shortest, ch.holding.round = 0, inspection{}
			for i := range ch.slots {
				ch.holding.shortest = shorter(ch.holding.shortest, ch.slots[i].timeout(0))
			}
			overdue, left := uint64(0), 0
			for left == 0 && ch.holding.shortest != 0 {
				left, overdue = ch.overdue(2+rng.IntN(200), 0)
			}
			switch {
			case overdue != 0:
				found++
				if !tooLong(ch, overdue, now-at[overdue]) {
					t.Fatalf("seed %d: tag %d is found and not overdue", seed, overdue)
				}
			default:
				missed++
				for held := ch.unacked.next(0); held != 0; held = ch.unacked.next(held + 1) {
					if tooLong(ch, held, now-at[held]-ageError(now-at[1])) {
						t.Fatalf("seed %d: tag %d is overdue and not found", seed, held)
					}
				}
			}
		}
		for held := ch.unacked.next(0); held != 0; held = ch.unacked.next(held + 1) {
			ch.unhold(held, ch.unacked.find(held))
		}
	}
	if found == 0 || missed == 0 {
		t.Errorf("found %d times, not found %d times", found, missed)
	}
}

// BenchmarkInspect is a turn's part of a round that finds nothing.
func BenchmarkInspect(b *testing.B) {
	h := newHotConn(b, declareMethod("q", nil))
	ch := h.c.channel(1)
	q := h.Broker.VHost("/").Queue([]byte("q"))
	ch.newSlot(slot{queue: q, consumer: &consumer{ch: ch, timeout: 1000}})
	n := ch.newSlot(slot{queue: q, consumer: &consumer{ch: ch, timeout: 1 << 40}})
	for tag := range uint64(1_000_000) {
		ch.hold(tag+1, tag, n, false)
	}
	h.now += int64(time.Minute)
	h.turn()
	for b.Loop() {
		h.lp.beginInspection()
		h.lp.inspect()
	}
	ch.unacked.reset(&h.lp.chunks)
}

// BenchmarkHold is what it costs to remember a delivery and to forget it.
func BenchmarkHold(b *testing.B) {
	h := newHotConn(b, declareMethod("q", nil))
	ch := h.c.channel(1)
	n := ch.newSlot(slot{queue: h.Broker.VHost("/").Queue([]byte("q")), consumer: &consumer{ch: ch, timeout: -1}})
	tag := uint64(1)
	for b.Loop() {
		for i := range uint64(100) {
			ch.hold(tag+i, i, n, false)
		}
		for i := range uint64(100) {
			ch.unhold(tag+i, ch.unacked.find(tag+i))
		}
		tag += 100
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tag), "ns/delivery")
}
