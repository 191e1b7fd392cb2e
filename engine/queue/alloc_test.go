package queue

import (
	"testing"
	"time"

	"ringmq/engine/core"
)

// poolArena is a core.Arena that hands freed blocks out again and allocates
// nothing once it is warm. P is inferred, see heapArena.
type poolArena[P comparable] struct {
	from   *heapArena[P]
	chunks []P
	rest   []P
	sizes  map[P]int
}

func newPoolArena[P comparable](tb testing.TB, f func(P) *core.Message) *poolArena[P] {
	return &poolArena[P]{from: newHeapArena(tb, f), sizes: map[P]int{}}
}

func (a *poolArena[P]) list(n int) *[]P {
	if n == chunkBytes {
		return &a.chunks
	}
	return &a.rest
}

// Alloc implements core.Arena.
func (a *poolArena[P]) Alloc(n int) P {
	list := a.list(n)
	if last := len(*list) - 1; last >= 0 {
		p := (*list)[last]
		*list = (*list)[:last]
		return p
	}
	p := a.from.Alloc(n)
	a.sizes[p] = n
	return p
}

// Free implements core.Arena.
func (a *poolArena[P]) Free(p P) {
	list := a.list(a.sizes[p])
	*list = append(*list, p)
}

func (a *poolArena[P]) liveBlocks() int { return 0 }
func (a *poolArena[P]) intact() bool    { return true }

// countSink takes everything and remembers the last delivery.
type countSink struct {
	arena core.Arena
	seq   uint64
	n     int
}

func (s *countSink) Full() bool { return false }
func (s *countSink) Cancelled() {}

func (s *countSink) Deliver(seq uint64, m *core.Message, f DeliverFlags) {
	s.seq = seq
	s.n++
	if f&Owned != 0 {
		m.Release(s.arena)
	}
}

// quietHost is a fakeHost that writes nothing down.
type quietHost struct{ arena core.Arena }

func (h *quietHost) Arena() core.Arena      { return h.arena }
func (h *quietHost) MarkDirty(*Queue)       {}
func (h *quietHost) Schedule(*Queue, int64) {}
func (h *quietHost) Unused(*Queue)          {}
func (h *quietHost) Now() int64             { return 0 }
func (h *quietHost) WallMillis() int64      { return 0 }
func (h *quietHost) Store() Store           { return nil }
func (h *quietHost) Bury(*Grave)            {}
func (h *quietHost) DeadLetter(_ *Queue, d Dead) {
	m := d.Msg
	m.Release(h.arena)
}

// hotQueue is a queue with its surroundings for the tests of cost.
type hotQueue struct {
	*Queue
	host *quietHost
	sink *countSink
	c    *Consumer
	body [16]byte
	head [14]byte
	now  int64
}

func newHotQueue(tb testing.TB, s Settings, consumer *Consumer) *hotQueue {
	host := &quietHost{arena: newPoolArena(tb, core.FromToken)}
	h := &hotQueue{Queue: New("q", 1, 0, s), host: host, sink: &countSink{arena: host.arena}, c: consumer, now: 1e12}
	h.Attach(host, h.now)
	if consumer != nil {
		consumer.Sink = h.sink
		if !h.Subscribe(consumer) {
			tb.Fatal("refused")
		}
	}
	return h
}

func (h *hotQueue) message() *core.Message {
	m := core.NewMessage(h.host.arena, nil, []byte("q"), h.head[:], len(h.body))
	m.AppendBody(h.body[:])
	return m
}

// hotCase is one step of a message's way, or a few of them together.
type hotCase struct {
	name  string
	queue func(tb testing.TB) *hotQueue
	run   func(h *hotQueue)
}

func hotCases() []hotCase {
	timed := defaults()
	timed.TTL = 60_000
	bounded := defaults()
	bounded.MaxLength = 100
	counted := defaults()
	counted.Type = Quorum // without a limit: messages go round for ever
	with := func(s Settings, c *Consumer) func(testing.TB) *hotQueue {
		return func(tb testing.TB) *hotQueue { return newHotQueue(tb, s, c) }
	}
	publish := func(h *hotQueue) { h.Publish(h.message(), h.now) }
	deliver := func(h *hotQueue) {
		publish(h)
		h.Settle(h.now, core.DispatchBatch)
	}
	return []hotCase{
		{"enqueue and purge", with(defaults(), nil), func(h *hotQueue) {
			publish(h)
			if h.Ready() == 4*chunkEntries {
				for h.Ready() > 0 {
					h.over(h.takeFirst())
				}
			}
		}},
		{"enqueue above the limit", with(bounded, nil), publish},
		{"enqueue, deliver, no ack", with(defaults(), &Consumer{NoAck: true}), deliver},
		{"enqueue, deliver, ack", with(defaults(), &Consumer{Prefetch: 10}), func(h *hotQueue) {
			deliver(h)
			h.Ack(h.sink.seq, h.c)
		}},
		{"the same with a time to live", with(timed, &Consumer{Prefetch: 10}), func(h *hotQueue) {
			h.now += 100
			deliver(h)
			h.Ack(h.sink.seq, h.c)
		}},
		{"the same with a shared window", func(tb testing.TB) *hotQueue {
			w := &Window{}
			w.SetLimit(10)
			return newHotQueue(tb, defaults(), &Consumer{Window: w})
		}, func(h *hotQueue) {
			deliver(h)
			h.c.Window.Give(1)
			h.Ack(h.sink.seq, h.c)
			h.Resume(h.c)
		}},
		{"deliver and requeue", with(defaults(), &Consumer{Prefetch: 10}), func(h *hotQueue) {
			if h.order.live == 0 {
				publish(h)
			}
			h.Settle(h.now, core.DispatchBatch)
			h.Requeue(h.sink.seq, h.c, false)
		}},
		{"deliver and requeue, counted", with(counted, &Consumer{Prefetch: 10}), func(h *hotQueue) {
			for h.order.live < 3 {
				publish(h)
			}
			h.Settle(h.now, 1)
			h.Requeue(h.sink.seq, h.c, false)
		}},
		{"get and ack", with(defaults(), nil), func(h *hotQueue) {
			publish(h)
			g, _ := h.take(false, h.now)
			h.Ack(g.Seq, nil)
		}},
	}
}

// TestAllocsQueue: no step allocates in steady state.
func TestAllocsQueue(t *testing.T) {
	for _, c := range hotCases() {
		h := c.queue(t)
		for range 20 * chunkEntries {
			c.run(h)
		}
		if n := testing.AllocsPerRun(2*chunkEntries, func() { c.run(h) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, c := range hotCases() {
		b.Run(c.name, func(b *testing.B) {
			h := c.queue(b)
			b.ReportAllocs()
			for b.Loop() {
				c.run(h)
			}
		})
	}
}

// BenchmarkSteps tells the steps apart, in batches.
func BenchmarkSteps(b *testing.B) {
	const batch = 1000
	c := &Consumer{}
	h := newHotQueue(b, defaults(), c)
	messages := make([]*core.Message, batch)
	var spent [3]time.Duration
	rounds := 0
	for b.Loop() {
		for i := range messages {
			messages[i] = h.message()
		}
		first := h.order.tail
		start := time.Now()
		for _, m := range messages {
			h.Publish(m, h.now)
		}
		enqueued := time.Now()
		h.Settle(h.now, batch)
		delivered := time.Now()
		for i := range uint64(batch) {
			h.Ack(first+i, c)
		}
		spent[0] += enqueued.Sub(start)
		spent[1] += delivered.Sub(enqueued)
		spent[2] += time.Since(delivered)
		rounds++
	}
	for i, name := range []string{"ns/enqueue", "ns/deliver", "ns/ack"} {
		b.ReportMetric(float64(spent[i].Nanoseconds())/float64(rounds*batch), name)
	}
}
