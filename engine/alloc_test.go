package engine

import (
	"fmt"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// ackSink takes everything; the test acknowledges.
type ackSink struct {
	seq uint64
	n   int
}

func (*ackSink) Full() bool { return false }
func (*ackSink) Cancelled() {}
func (s *ackSink) Deliver(seq uint64, _ *core.Message, _ queue.DeliverFlags) {
	s.seq = seq
	s.n++
}

// hotPath is a shard with one queue, its consumer, and exchanges that lead to it.
type hotPath struct {
	*house
	q       *queue.Queue
	sub     *Subscription
	sink    *ackSink
	headers core.Fields
	keys    [][]byte
	i       int
}

func newHotPath(tb testing.TB) *hotPath {
	h := &hotPath{house: newHouse(tb), sink: &ackSink{}, headers: textFields{"a": "1"}}
	h.q = h.queue("q", nil)
	h.sub = &Subscription{Queue: h.q}
	h.Subscribe(h.sub, h.sink, func(err *core.Error) {
		if err != nil {
			tb.Fatal(err)
		}
	})
	for i := range 1000 {
		key := fmt.Sprintf("eu.%d.orders", i)
		h.keys = append(h.keys, []byte(key))
		h.bind(h.v.Exchange([]byte("amq.topic")), h.q, key, nil)
		h.bind(h.v.Exchange([]byte("amq.direct")), h.q, key, nil)
	}
	h.bind(h.v.Exchange([]byte("amq.headers")), h.q, "", core.Args{"a": text("1")})
	far := h.exchange("far", "fanout", nil)
	h.bind(h.v.Exchange([]byte("amq.fanout")), far, "", nil)
	h.bind(far, h.q, "", nil)
	return h
}

// routed looks a route up and checks that it leads somewhere.
func (h *hotPath) routed(x *Exchange, key []byte) {
	if queues, _ := h.Route(h.v, x, key, h.headers); len(queues) != 1 {
		h.Fatalf("%d queues", len(queues))
	}
}

// hotStep is one step of a message's way through the engine.
type hotStep struct {
	name string
	run  func(h *hotPath) func()
}

func hotSteps() []hotStep {
	route := func(exchange string, keys int) func(h *hotPath) func() {
		return func(h *hotPath) func() {
			x := h.v.Exchange([]byte(exchange))
			return func() {
				h.i++
				h.routed(x, h.keys[h.i%keys])
			}
		}
	}
	return []hotStep{
		{"route/cached", route("amq.topic", 1)},
		{"route/cached, 1000 keys", route("amq.topic", 1000)},
		{"route/cached, through two exchanges", route("amq.fanout", 1)},
		{"route/headers, never cached", route("amq.headers", 1)},
		{"route/default exchange", func(h *hotPath) func() {
			x, key := h.v.Exchange(nil), []byte("q")
			return func() { h.routed(x, key) }
		}},
		{"route/not cached", func(h *hotPath) func() {
			x := h.v.Exchange([]byte("amq.topic"))
			return func() {
				h.v.epoch.Add(1)
				h.routed(x, h.keys[0])
			}
		}},
		{"publish, settle, ack", func(h *hotPath) func() {
			key, head, body := []byte("q"), []byte("a=1\n"), make([]byte, 16)
			return func() {
				m := core.NewMessage(h.arena, nil, key, head, len(body))
				m.AppendBody(body)
				h.Shard.Publish(h.q, m, nil, 0)
				h.Settle()
				h.Ack(h.q, h.sink.seq, 1, h.sub)
			}
		}},
		{"begin, settle, end of an idle turn", func(h *hotPath) func() {
			return func() {
				h.Begin(h.now + 1)
				h.Settle()
				h.End()
			}
		}},
	}
}

// TestAllocsEngine: no step allocates in steady state.
func TestAllocsEngine(t *testing.T) {
	for _, s := range hotSteps() {
		h := newHotPath(t)
		run := s.run(h)
		for range 2000 {
			run()
		}
		if n := testing.AllocsPerRun(1000, run); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
		h.rest()
		h.end()
	}
}

func BenchmarkEngine(b *testing.B) {
	for _, s := range hotSteps() {
		b.Run(s.name, func(b *testing.B) {
			run := s.run(newHotPath(b))
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
