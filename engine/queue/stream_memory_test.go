package queue

import (
	"testing"

	"ringmq/engine/core"
)

// resident is the number of entries whose body is in memory.
func (b *streamBench) resident() (n int) {
	for _, c := range b.order.chunks {
		if c != nil {
			n += int(c.resident)
		}
	}
	return n
}

// The bodies of a stream leave memory but for the newest, and come back for those
// who want them, within bounds and without starving anybody.
func TestStreamMemory(t *testing.T) {
	const size, count = 64 << 10, 1200
	b := newStreamBench(t, nil)
	for range count {
		b.log(1, size)
		b.run()
	}
	each := size + core.MessageOverheadBytes
	hot := hotBytesMax / each
	if n := b.resident(); n != hot {
		t.Errorf("%d bodies are in memory, want %d", n, hot)
	}
	if b.absent != count-hot {
		t.Errorf("%d are absent", b.absent)
	}
	_, first := b.reader(0, Start{Kind: StartFirst})
	_, middle := b.reader(0, Start{StartOffset, 500})
	// One read after the other, each of a few messages: both come forward.
	for b.now = b.clock; len(middle.got) < count-500; {
		b.settle()
		if a, c := len(first.got), len(middle.got); a > c+10 || c < 700-hot && c > a+10 {
			t.Fatalf("one is at %d, the other at %d", a, c)
		}
		if n := b.resident(); n > hot+backBytesMin/each+6 {
			t.Fatalf("%d bodies are in memory", n)
		}
		b.st.answer(b.Queue)
	}
	b.run()
	same(t, "first", first.ids(), upTo(0, count-1))
	same(t, "middle", middle.ids(), upTo(500, count-1))
	// Those who are gone keep nothing in memory.
	for len(b.members) > 0 {
		b.Unsubscribe(b.members[0], b.clock)
	}
	b.run()
	if n := b.resident(); n != hot {
		t.Errorf("%d bodies stayed in memory, want %d", n, hot)
	}
	b.end()
	if b.warm != 0 || b.absent != 0 {
		t.Errorf("%d bytes warm, %d absent in a deleted stream", b.warm, b.absent)
	}
}

// What PageOut takes under pressure comes back as well.
func TestStreamPageOut(t *testing.T) {
	b := newStreamBench(t, nil)
	b.log(1000, 8)
	b.run()
	for {
		if _, round := b.PageOut(true, true); round {
			break
		}
	}
	if n := b.resident(); n != 0 {
		t.Fatalf("%d bodies stayed", n)
	}
	same(t, "read back", b.drain(), upTo(0, 999))
	b.end()
}

// A body that cannot be read back is passed by, and its offset is not given again.
func TestStreamLost(t *testing.T) {
	b := newStreamBench(t, nil)
	b.log(3, 8)
	b.run()
	b.PageOut(true, true)
	_, sink := b.reader(0, Start{Kind: StartFirst})
	b.settle()
	e := b.order.at(0)
	b.st.loads = nil
	if !b.Lost(0, e.pos) {
		t.Error("it is there")
	}
	b.Loaded()
	b.run()
	same(t, "the others", sink.ids(), upTo(1, 2))
	b.want(2, 0)
	b.end()
}

// A consumer of a stream sees nothing that a crash could take back.
func TestStreamUnsafe(t *testing.T) {
	b := newStreamBench(t, nil)
	b.st.unsafe = true
	_, first := b.reader(0, Start{Kind: StartFirst})
	_, last := b.reader(0, Start{Kind: StartLast})
	b.run()
	for n := range uint64(3) {
		b.log(2, 8)
		b.run()
		b.log(1, 8)
		b.run()
		if b.st.awaits != 1 {
			t.Errorf("%d calls of Await", b.st.awaits)
		}
		same(t, "too early", first.ids(), nil)
		b.st.commit(b.Queue)
		b.run()
		same(t, "safe", first.ids(), upTo(3*n, 3*n+2))
		same(t, "safe, the other", last.ids(), upTo(3*n, 3*n+2))
	}
	// Half of it.
	b.log(1, 8)
	b.run()
	b.log(1, 8)
	b.st.safe = b.st.next - 1
	b.st.awaits = 0
	b.Leased(1)
	b.run()
	same(t, "half", first.ids(), upTo(9, 9))
	b.st.commit(b.Queue)
	b.run()
	same(t, "the other half", first.ids(), upTo(10, 10))
	b.log(1, 8)
	b.settle()
	b.end()
	b.st.commit(b.Queue) // of a stream that is gone
}

// STR-03: a consumer gets what its filter lets through, and holds nothing else.
func TestStreamMatch(t *testing.T) {
	b := newStreamBench(t, nil)
	b.log(500, 8)
	odd := func(m *core.Message) bool { return idOf(m)%100 == 99 }
	c, sink := b.consumer(func(c *Consumer) {
		c.Prefetch = 2
		c.Cursor = &Cursor{Start: Start{Kind: StartFirst}, Match: odd}
	})
	b.run()
	same(t, "two", sink.ids(), []uint64{99, 199})
	b.Ack(99, c)
	b.Ack(199, c)
	b.run()
	same(t, "two more", sink.ids(), []uint64{299, 399})
	b.Unsubscribe(c, b.clock)
	b.end()
}

// Consumers come and go whatever they wait for; nothing remembers them.
func TestStreamLeave(t *testing.T) {
	b := newStreamBench(t, nil)
	b.log(100, 8)
	b.run()
	b.PageOut(true, true)
	var all []*Consumer
	for n := range 20 {
		c, _ := b.reader(1, Start{StartOffset, int64(n * 10)})
		all = append(all, c)
	}
	b.settle()
	if len(b.stream.idle) == 0 || len(b.stream.thirsty) == 0 {
		t.Fatalf("%d wait for messages, %d for bodies", len(b.stream.idle), len(b.stream.thirsty))
	}
	for n, c := range all {
		b.Unsubscribe(all[(n*7)%20], b.clock)
		if c.Cursor.list != nil && c.Queue() == nil {
			t.Fatal("a consumer that left waits")
		}
	}
	if len(b.stream.idle)+len(b.stream.thirsty) != 0 {
		t.Errorf("%d and %d wait", len(b.stream.idle), len(b.stream.thirsty))
	}
	b.run()
	b.end()
}

// A stream costs nothing per message on the Go heap, in steady state.
func TestAllocsStream(t *testing.T) {
	s := Settings{Rules: NoRules(), Durable: true, Type: Stream}
	s.MaxBytes = 16 * 1000
	h := newHotQueue(t, s, &Consumer{Prefetch: 10})
	run := func() {
		h.Publish(h.message(), h.now)
		h.Settle(h.now, core.DispatchBatch)
		h.Ack(h.sink.seq, h.c)
	}
	for range 20 * chunkEntries {
		run()
	}
	if n := testing.AllocsPerRun(4*chunkEntries, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if h.sink.n < 24*chunkEntries || h.Ready() != 1000 {
		t.Errorf("%d delivered, %d kept", h.sink.n, h.Ready())
	}
}

func BenchmarkStream(b *testing.B) {
	s := Settings{Rules: NoRules(), Durable: true, Type: Stream}
	s.MaxBytes = 16 * 1000
	h := newHotQueue(b, s, &Consumer{Prefetch: 10})
	b.ReportAllocs()
	for b.Loop() {
		h.Publish(h.message(), h.now)
		h.Settle(h.now, core.DispatchBatch)
		h.Ack(h.sink.seq, h.c)
	}
}
