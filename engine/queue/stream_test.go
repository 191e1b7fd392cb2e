package queue

import (
	"testing"

	"ringmq/engine/core"
)

// Safe and Await are of streams; other queues do not ask.
func (s *fakeStore) Safe(uint64) bool { return true }
func (s *fakeStore) Await(*Queue)     { s.host.tb.Fatal("no stream, and it waits for the log") }

// streamStore is a log that becomes safe when the test says so.
type streamStore struct {
	*fakeStore
	unsafe bool // what is written is not safe before commit
	safe   uint64
	awaits int
}

func (s *streamStore) Safe(pos uint64) bool { return !s.unsafe || pos <= s.safe }
func (s *streamStore) Await(*Queue)         { s.awaits++ }

// commit makes all that was written safe.
func (s *streamStore) commit(q *Queue) {
	s.safe = s.next
	n := s.awaits
	s.awaits = 0
	for range n {
		q.Leased(1)
	}
}

// streamBench is a stream with a log.
type streamBench struct {
	*bench
	st *streamStore
}

func newStreamBench(t *testing.T, edit func(*Settings)) *streamBench {
	s := Settings{Rules: NoRules(), Durable: true, Type: Stream}
	if edit != nil {
		edit(&s)
	}
	b := &streamBench{bench: newBench(t, s)}
	b.st = &streamStore{fakeStore: newFakeStore(b.fakeHost)}
	b.SetStore(b.st)
	b.next = 0 // ids are offsets
	return b
}

// log publishes n messages of a body size each.
func (b *streamBench) log(n, size int) {
	for range n {
		m := b.message(b.next, size)
		m.Arrival = b.WallMillis()
		b.next++
		b.BeforeLog()
		b.Put(m, b.clock, b.st.keep(m).Pos, true)
	}
}

// run settles and reads back until nothing is left to do.
func (b *streamBench) run() {
	for {
		b.bench.now = b.clock
		b.settle()
		if !b.st.answer(b.Queue) {
			return
		}
	}
}

// pass lets time pass.
func (b *streamBench) pass(ms int64) { b.clock += ms * millisecond }

// reader subscribes a consumer that starts somewhere.
func (b *streamBench) reader(prefetch uint32, at Start) (*Consumer, *fakeSink) {
	b.T.Helper()
	return b.consumer(func(c *Consumer) { c.Prefetch, c.Cursor = prefetch, &Cursor{Start: at} })
}

// STR-02: where a consumer begins; none takes anything away.
func TestStreamStart(t *testing.T) {
	b := newStreamBench(t, nil)
	for range 3 {
		b.log(200, 8)
		b.pass(1000)
	}
	for _, c := range []struct {
		name string
		at   Start
		want uint64 // first offset
	}{
		{"first", Start{Kind: StartFirst}, 0},
		{"last", Start{Kind: StartLast}, 599},
		{"next", Start{}, 600},
		{"offset 0", Start{StartOffset, 0}, 0},
		{"offset 131", Start{StartOffset, 131}, 131},
		{"offset -5", Start{StartOffset, -5}, 0},
		{"beyond the end", Start{StartOffset, 605}, 605},
		{"before all", Start{StartTime, -1}, 0},
		{"the first time", Start{StartTime, 0}, 0},
		{"in the middle", Start{StartTime, 1}, 200},
		{"the second time", Start{StartTime, 1000}, 200},
		{"the third time", Start{StartTime, 1001}, 400},
		{"after all", Start{StartTime, 2001}, 600},
	} {
		consumer, sink := b.reader(0, c.at)
		b.run()
		same(t, c.name, sink.ids(), upTo(min(c.want, 600), 599)[:600-min(c.want, 600)])
		b.Unsubscribe(consumer, b.clock)
	}
	far, sink := b.reader(0, Start{StartOffset, 605})
	b.log(10, 8)
	b.run()
	same(t, "beyond the end, later", sink.ids(), upTo(605, 609))
	b.Unsubscribe(far, b.clock)
	b.want(610, 0)
	b.end()
}

// STR-02: acks, nacks and rejects give credit, and change nothing else.
func TestStreamCredit(t *testing.T) {
	b := newStreamBench(t, nil)
	b.log(20, 8)
	one, first := b.reader(3, Start{Kind: StartFirst})
	_, second := b.reader(100, Start{StartOffset, 15})
	offsets := 0
	first.onDeliver = func(seq uint64, m *core.Message, f DeliverFlags) {
		if f != Offset || seq != idOf(m) {
			t.Errorf("offset %d, message %d, flags %d", seq, idOf(m), f)
		}
		offsets++
	}
	b.run()
	same(t, "first", first.ids(), upTo(0, 2))
	same(t, "second", second.ids(), upTo(15, 19))
	if one.Unacked() != 3 || offsets != 3 {
		t.Errorf("holds %d, got %d", one.Unacked(), offsets)
	}
	b.Ack(0, one)
	b.run()
	same(t, "after an ack", first.ids(), upTo(3, 3))
	b.Requeue(1, one, false)
	b.Discard(2, one)
	b.run()
	same(t, "after a requeue and a discard", first.ids(), upTo(4, 5))
	b.Unsubscribe(one, b.clock)
	b.Ack(3, one)
	b.log(1, 8)
	b.run()
	same(t, "without a consumer", first.ids(), nil)
	same(t, "second, on", second.ids(), upTo(20, 20))
	b.want(21, 0)
	if len(b.st.left) != 0 || len(b.deaths()) != 0 {
		t.Errorf("%d left the log", len(b.st.left))
	}
	b.end()
}
