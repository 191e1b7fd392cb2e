package queue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringmq/engine/core"
)

// streamModel is a stream as a plain list, beside the real one. Offsets are ids.
type streamModel struct {
	*streamBench
	rng     *rand.Rand
	seed    uint64
	arrived []int64 // by offset
	sizes   []int64
	from    uint64 // oldest offset that is kept
	safe    uint64 // no offset from here on may be seen
	readers []*streamReader
}

// streamReader is a consumer with what it is to get next.
type streamReader struct {
	c    *Consumer
	sink *fakeSink
	next uint64
	held []uint64
	odd  bool // it wants odd offsets only
}

func (m *streamModel) fatalf(format string, args ...any) {
	m.T.Helper()
	m.T.Fatalf("seed %d: "+format, append([]any{m.seed}, args...)...)
}

// start is a random place to begin, and the offset that it means.
func (m *streamModel) start() (Start, uint64) {
	tail := uint64(len(m.arrived))
	switch StartKind(m.rng.IntN(5)) {
	case StartFirst:
		return Start{Kind: StartFirst}, m.from
	case StartLast:
		if tail == m.from {
			return Start{Kind: StartLast}, tail
		}
		return Start{Kind: StartLast}, tail - 1
	case StartOffset:
		at := m.rng.Uint64N(tail + 20)
		return Start{StartOffset, int64(at)}, at
	case StartTime:
		ms := m.rng.Int64N(m.WallMillis() + 100)
		at := m.from
		for at < tail && m.arrived[at] < ms {
			at++
		}
		return Start{StartTime, ms}, at
	default:
		return Start{}, tail
	}
}

func (m *streamModel) subscribe() {
	at, next := m.start()
	r := &streamReader{next: next, odd: m.rng.IntN(4) == 0}
	prefetch := uint32(1 + m.rng.IntN(20))
	r.c, r.sink = m.consumer(func(c *Consumer) {
		c.Prefetch, c.Cursor = prefetch, &Cursor{Start: at}
		if r.odd {
			c.Cursor.Match = func(msg *core.Message) bool { return idOf(msg)%2 == 1 }
		}
	})
	r.sink.onDeliver = func(seq uint64, msg *core.Message, f DeliverFlags) { m.delivered(r, seq, msg, f) }
	m.readers = append(m.readers, r)
}

// delivered judges a delivery at the moment it is made.
func (m *streamModel) delivered(r *streamReader, seq uint64, msg *core.Message, f DeliverFlags) {
	want := max(r.next, m.from)
	if r.odd {
		want |= 1
	}
	if seq != want || idOf(msg) != seq || f != Offset || seq >= m.safe {
		m.fatalf("offset %d, message %d, flags %d, want %d, safe to %d", seq, idOf(msg), f, want, m.safe)
	}
	r.next = seq + 1
	r.held = append(r.held, seq)
	if len(r.held) > int(r.c.Prefetch) {
		m.fatalf("%d held, prefetch %d", len(r.held), r.c.Prefetch)
	}
}

// retained moves the oldest offset as the rules say.
func (m *streamModel) retained() {
	bytes, tail := int64(0), uint64(len(m.sizes))
	for _, n := range m.sizes[m.from:] {
		bytes += n
	}
	for m.Rules.MaxBytes >= 0 && bytes > m.Rules.MaxBytes && m.from+1 < tail {
		bytes -= m.sizes[m.from]
		m.from++
	}
}

func (m *streamModel) step() {
	switch m.rng.IntN(12) {
	case 0, 1, 2:
		for range 1 + m.rng.IntN(150) {
			size := m.rng.IntN(3) * 10
			m.arrived = append(m.arrived, m.WallMillis())
			m.sizes = append(m.sizes, int64(size))
			m.log(1, size)
		}
		m.retained()
	case 3, 4:
		m.st.commit(m.Queue)
		m.safe = uint64(len(m.arrived))
	case 5:
		m.pass(m.rng.Int64N(50))
	case 6:
		m.subscribe()
	case 7:
		if len(m.readers) > 0 {
			at := m.rng.IntN(len(m.readers))
			m.Unsubscribe(m.readers[at].c, m.clock)
			m.readers = slices.Delete(m.readers, at, at+1)
		}
	case 8:
		m.PageOut(true, m.rng.IntN(2) == 0)
	case 9:
		m.restart()
	default:
		m.settleSome()
	}
	if m.rng.IntN(2) == 0 {
		m.run()
		m.rested()
	}
}

// settleSome acknowledges some of what is held, in any way and order.
func (m *streamModel) settleSome() {
	for _, r := range m.readers {
		for len(r.held) > 0 && m.rng.IntN(8) > 0 {
			at := m.rng.IntN(len(r.held))
			seq := r.held[at]
			r.held = slices.Delete(r.held, at, at+1)
			switch m.rng.IntN(3) {
			case 0:
				m.Ack(seq, r.c)
			case 1:
				m.Requeue(seq, r.c, m.rng.IntN(2) == 0)
			default:
				m.Discard(seq, r.c)
			}
		}
	}
}

// rested checks that nobody waits who need not.
func (m *streamModel) rested() {
	tail := uint64(len(m.arrived))
	if m.NextSeq() != tail || m.Ready() != int(tail-m.from) || m.Ready() != m.order.live {
		m.fatalf("%d kept, next %d, want %d, %d", m.Ready(), m.NextSeq(), tail-m.from, tail)
	}
	for _, r := range m.readers {
		want := max(r.next, m.from)
		if r.odd {
			want |= 1
		}
		if want < m.safe && len(r.held) < int(r.c.Prefetch) {
			m.fatalf("%d is held back, with %d of %d held", want, len(r.held), r.c.Prefetch)
		}
	}
}

// restart has the log bring the stream back, in any order.
func (m *streamModel) restart() {
	m.st.commit(m.Queue) // what is not safe may be lost; here none is
	m.safe = uint64(len(m.arrived))
	m.readers = nil
	old := m.Queue
	var places []Recovered
	for seq := old.order.base; seq < old.order.tail; seq++ {
		if e := old.order.at(seq); e != nil {
			places = append(places, Recovered{Place: placeOf(seq, e), Arrival: e.deadline})
			if e.msg != nil {
				e.msg.Release(m.arena)
			}
		}
	}
	for _, c := range old.order.chunks {
		if c != nil {
			freeChunk(m.arena, c)
		}
	}
	q := New("q", 1, 0, old.Settings)
	q.Attach(m.fakeHost, m.clock)
	q.SetStore(m.st)
	q.RecoverTail(old.order.tail)
	if m.rng.IntN(2) == 0 {
		q.RecoverFloor(old.Floor())
	}
	m.rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, p := range places {
		q.Recover(p)
	}
	q.RecoverEnd()
	m.Queue, m.st.loads, m.st.awaits = q, nil, 0
}

// TestStreamModel drives a stream and its model at random.
func TestStreamModel(t *testing.T) {
	for seed := range seeds(t, 600) {
		rng := rand.New(rand.NewPCG(seed, 4))
		m := &streamModel{rng: rng, seed: seed, streamBench: newStreamBench(t, func(s *Settings) {
			if rng.IntN(2) == 0 {
				s.MaxBytes = rng.Int64N(5000)
			}
		})}
		m.st.unsafe = true
		for range 150 {
			m.step()
		}
		m.restart()
		m.run()
		m.rested()
		m.end()
		if n := len(m.st.bodies); n != 0 {
			m.fatalf("%d places are never given back", n)
		}
	}
}
