package queue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringmq/engine/core"
)

// fakeStore is a log that keeps bodies in a map. What is asked of it is answered by
// answer. It knows each place that is in use.
type fakeStore struct {
	host   *fakeHost
	next   uint64
	bodies map[uint64]uint64 // id by position
	sizes  map[uint64]int
	left   []uint64 // sequence numbers that are done
	leases []uint64
	loads  []uint64 // positions asked for
	again  []uint64 // sequence numbers noted as requeued
	refuse bool     // Spill has no room
}

func newFakeStore(h *fakeHost) *fakeStore {
	s := &fakeStore{host: h, bodies: map[uint64]uint64{}, sizes: map[uint64]int{}}
	h.store = s
	return s
}

// keep stores a message and returns its place.
func (s *fakeStore) keep(m *core.Message) Place {
	s.next++
	s.bodies[s.next], s.sizes[s.next] = idOf(m), m.BodyLen()
	return Place{Pos: s.next, Size: uint32(m.BodyLen()), Logged: true, Carrier: true}
}

func (s *fakeStore) body(pos uint64) *core.Message {
	id, ok := s.bodies[pos]
	if !ok {
		s.host.tb.Fatalf("nothing is stored at %d", pos)
	}
	return s.host.message(id, s.sizes[pos])
}

func (s *fakeStore) Leave(_ *Queue, p Place) {
	s.left = append(s.left, p.Seq)
	s.Drop(p)
}

func (s *fakeStore) Drop(p Place) {
	if _, ok := s.bodies[p.Pos]; !ok {
		s.host.tb.Fatalf("place %d is given back twice", p.Pos)
	}
	delete(s.bodies, p.Pos)
}

func (s *fakeStore) Purged(*Queue, uint64, uint64)         {}
func (s *fakeStore) Lease(_ *Queue, upTo uint64)           { s.leases = append(s.leases, upTo) }
func (s *fakeStore) Load(_ *Queue, _, pos uint64)          { s.loads = append(s.loads, pos) }
func (s *fakeStore) Requeued(_ *Queue, n uint64, _ uint16) { s.again = append(s.again, n) }

func (s *fakeStore) Spill(_ *Queue, _ uint64, m *core.Message) (uint64, bool) {
	if s.refuse {
		return 0, false
	}
	return s.keep(m).Pos, true
}

// answer gives what was asked for; it reports whether anything was.
func (s *fakeStore) answer(q *Queue) bool {
	leases, loads := s.leases, s.loads
	s.leases, s.loads = nil, nil
	for _, upTo := range leases {
		q.Leased(upTo)
	}
	for _, pos := range loads {
		for seq := q.order.base; seq < q.order.tail; seq++ {
			// What follows is read with it, as far as it is stored there.
			if at := q.order.at(seq); at != nil && at.pos >= pos && at.pos < pos+5 && q.Absent(seq, at.pos) {
				q.Fill(seq, s.body(at.pos))
			}
		}
		q.Loaded()
	}
	return len(leases)+len(loads) > 0
}

// stored is a bench with a store.
func stored(t *testing.T) (*bench, *fakeStore) {
	s := defaults()
	s.Durable = true
	b := newBench(t, s)
	st := newFakeStore(b.fakeHost)
	b.SetStore(st)
	return b, st
}

// log publishes n messages that the log keeps.
func (b *bench) log(st *fakeStore, n int) {
	for range n {
		m := b.message(b.next, 8)
		b.next++
		b.BeforeLog()
		b.Put(m, b.now, st.keep(m).Pos, true)
	}
}

// publishOne publishes with or without the log.
func (m *model) publishOne(msg *core.Message) bool {
	if m.store == nil || m.rng.IntN(3) == 0 {
		return m.q.Publish(msg, m.now)
	}
	if !m.q.Admit(msg, m.now) {
		return false
	}
	m.q.BeforeLog()
	m.q.Put(msg, m.now, m.store.keep(msg).Pos, true)
	return true
}

// TestModelStored is TestModel with a log, bodies that leave memory and come back, and
// leases.
func TestModelStored(t *testing.T) {
	for seed := range seeds(t, 1500) {
		m := newModel(t, seed)
		m.store = newFakeStore(m.host)
		m.q.SetStore(m.store)
		for range 120 {
			m.store.refuse = m.rng.IntN(4) == 0
			m.step()
		}
		m.end()
		if n := len(m.store.bodies); n != 0 {
			m.fatalf("%d places are never given back", n)
		}
	}
}

// BAS-15: nothing that the log keeps is handed out before the log knows of it.
func TestLease(t *testing.T) {
	b, st := stored(t)
	b.log(st, 10)
	_, sink := b.consumer(nil)
	b.settle()
	if len(sink.got) != 0 || len(st.leases) != 1 || st.leases[0] < 10 {
		t.Fatalf("%d delivered, leases %v", len(sink.got), st.leases)
	}
	// What stands behind the lease in the log need not wait for it, but for its turn.
	b.log(st, 1)
	b.settle()
	same(t, "before the lease", sink.ids(), []uint64{})
	b.Leased(5)
	b.settle()
	same(t, "half a lease", sink.ids(), upTo(1, 5))
	b.Leased(st.leases[0])
	b.settle()
	same(t, "a lease", sink.ids(), upTo(6, 11))
	st.leases = nil
	b.log(st, leaseAhead)
	b.settle()
	if n := len(sink.ids()); n != leaseAhead || len(st.leases) != 1 {
		t.Errorf("%d delivered, %d more leases", n, len(st.leases))
	}
	b.end()
}

// A message whose lease was asked for before it came is delivered at once.
func TestLeaseGoesFirst(t *testing.T) {
	b, st := stored(t)
	_, sink := b.consumer(nil)
	b.log(st, 3)
	if len(st.leases) != 1 {
		t.Fatalf("leases: %v", st.leases)
	}
	b.settle()
	same(t, "delivered", sink.ids(), upTo(1, 3))
	b.end()
}

func TestGetLater(t *testing.T) {
	b, st := stored(t)
	b.log(st, 200)
	if _, state := b.Get(false, b.now); state != GotLater || b.Ready() != 200 {
		t.Fatalf("state %d, ready %d", state, b.Ready())
	}
	st.answer(b.Queue)
	g, state := b.Get(false, b.now)
	if state != GotOne || idOf(g.Message) != 1 || g.Redelivered {
		t.Fatalf("%+v, state %d", g, state)
	}
	b.Requeue(g.Seq, nil, false)
	if g, state = b.Get(false, b.now); state != GotOne || !g.Redelivered {
		t.Errorf("%+v, state %d", g, state)
	}
	b.end()
}

// Bodies leave memory, those of held messages too, and come back when they are wanted.
func TestPageOut(t *testing.T) {
	b, st := stored(t)
	c, sink := b.consumer(func(c *Consumer) { c.Prefetch = 10 })
	b.log(st, 300)
	b.publish(300) // these are spilled
	b.settle()
	st.answer(b.Queue)
	b.settle()
	held := slices.Clone(sink.got)
	same(t, "held", sink.ids(), upTo(1, 10))
	if bytes, round := b.PageOut(true, false); bytes == 0 || !round || b.absent == 0 {
		t.Fatalf("%d bytes, round %v, %d absent", bytes, round, b.absent)
	}
	b.want(590, 10)
	b.Requeue(held[3].seq, c, false)
	b.Discard(held[4].seq, c)
	for range 1000 {
		b.settle()
		for st.answer(b.Queue) {
			b.settle()
		}
		for _, d := range slices.Clone(sink.got) {
			b.Ack(d.seq, c)
		}
		if b.Ready() == 0 {
			break
		}
	}
	same(t, "dead", b.deaths(), died(core.DiedRejected, 5))
	ids := sink.ids()
	if ids[0] != 4 || !slices.Equal(ids[1:], upTo(11, 600)) || b.absent != 0 || b.ahead != 0 {
		t.Errorf("delivered %d, first %d; absent %d, ahead %d", len(ids), ids[0], b.absent, b.ahead)
	}
	b.end()
	if len(st.bodies) != 0 {
		t.Errorf("%d places are left", len(st.bodies))
	}
}

// What is in the log as well may leave memory for nothing; the rest stays, and the
// tally of such bytes is right all the way.
func TestPageOutWarm(t *testing.T) {
	b, st := stored(t)
	var absent, warm int64
	b.Tally(&absent, &warm)
	b.publish(200)
	if bytes, round := b.PageOut(false, false); bytes != 0 || !round || warm != 0 {
		t.Errorf("without anything in the log %d bytes left, round %v, %d warm", bytes, round, warm)
	}
	b.log(st, 300)
	if per := warm / 300; warm%300 != 0 || per < 8 {
		t.Errorf("%d warm", warm)
	}
	for round := false; !round; {
		_, round = b.PageOut(false, false)
	}
	if b.absent != 300 || absent != 300 || warm != 0 {
		t.Errorf("%d absent, tally %d, %d warm", b.absent, absent, warm)
	}
	c, sink := b.consumer(nil)
	for range 1000 {
		b.settle()
		for st.answer(b.Queue) {
			b.settle()
		}
		for _, d := range slices.Clone(sink.got) {
			b.Ack(d.seq, c)
		}
		if b.Ready() == 0 {
			break
		}
	}
	same(t, "delivered", sink.ids()[:500], upTo(1, 500))
	if absent != 0 || warm != 0 || b.ahead != 0 {
		t.Errorf("%d absent, %d warm, %d ahead", absent, warm, b.ahead)
	}
	b.end()
}

// The next messages to go out stay in memory unless they are large, or nothing else can leave.
func TestPageOutHeads(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		head bool
		want int // that leave, of 100
	}{
		{"small", 100, false, 100 - headEntries},
		{"at the limit", headEntryMax, false, 100 - headEntries},
		{"large", headEntryMax + 1, false, 100},
		{"small, for want of others", 100, true, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := stored(t)
			for range 100 {
				b.publishOne(b.message(b.next, c.size))
				b.next++
			}
			for round := false; !round; {
				_, round = b.PageOut(true, c.head)
			}
			if b.absent != c.want {
				t.Errorf("%d left, want %d", b.absent, c.want)
			}
			b.end()
		})
	}
}

// A body that cannot be read goes alone.
func TestLost(t *testing.T) {
	b, st := stored(t)
	b.log(st, 200)
	b.PageOut(true, false)
	e := b.order.at(150)
	if b.Lost(150, e.pos+1) || b.Lost(3, b.order.at(3).pos) {
		t.Error("lost what is elsewhere, or in memory")
	}
	if !b.Lost(150, e.pos) || b.Ready() != 199 || b.Dropped != 1 || b.Lost(150, e.pos) {
		t.Errorf("ready %d, dropped %d", b.Ready(), b.Dropped)
	}
	b.end()
}

// A spill that is refused leaves the message where it is.
func TestSpillRefused(t *testing.T) {
	b, st := stored(t)
	st.refuse = true
	b.publish(200)
	if bytes, round := b.PageOut(true, false); bytes != 0 || round || b.absent != 0 {
		t.Errorf("%d bytes, round %v, %d absent", bytes, round, b.absent)
	}
	b.end()
}

// TestRecoverRandom: what a log holds comes back as a set says that does the same.
func TestRecoverRandom(t *testing.T) {
	for seed := range seeds(t, 1500) {
		rng := rand.New(rand.NewPCG(seed, 5))
		b, st := stored(t)
		live := map[uint64]uint64{}
		used, lease := uint64(0), uint64(0)
		if rng.IntN(2) == 0 {
			used = uint64(rng.IntN(1000))
			b.RecoverTail(used)
			floor := uint64(rng.IntN(int(used) + 1))
			b.RecoverFloor(floor)
		}
		for range rng.IntN(400) {
			seq := uint64(rng.IntN(1500))
			switch rng.IntN(10) {
			case 0:
				last := seq + uint64(rng.IntN(300))
				b.RecoverAck(seq, last, func(p Place) {
					if live[p.Seq] != p.Pos {
						t.Fatalf("seed %d: %d ended at %d", seed, p.Seq, p.Pos)
					}
					delete(live, p.Seq)
				})
				for s := range live {
					if s >= seq && s <= last {
						t.Fatalf("seed %d: %d is acknowledged and there", seed, s)
					}
				}
				used = max(used, last+1)
			case 1:
				lease = max(lease, seq)
				b.RecoverLease(seq)
			case 2:
				b.RecoverDeliveries(seq, 3) // whether it is there or not
			default:
				st.next++
				p := Place{Seq: seq, Pos: st.next, Size: 8, Logged: true, Carrier: true}
				old, twice := b.Recover(Recovered{Place: p})
				if was, there := live[seq]; twice != there || twice && old.Pos != was {
					t.Fatalf("seed %d: %d twice %v, at %d", seed, seq, twice, old.Pos)
				}
				live[seq] = p.Pos
				used = max(used, seq+1)
			}
		}
		b.RecoverEnd()
		b.recovered(t, seed, live, used, lease)
	}
}

// recovered compares a queue that came back with what must be there.
func (b *bench) recovered(t *testing.T, seed uint64, live map[uint64]uint64, used, lease uint64) {
	t.Helper()
	if b.Ready() != len(live) || b.absent != len(live) || b.NextSeq() < used {
		t.Fatalf("seed %d: %d ready, %d absent, next %d; want %d, %d", seed, b.Ready(), b.absent, b.NextSeq(), len(live), used)
	}
	gone := map[uint64]bool{}
	for from, done := uint64(0), false; !done; {
		from, done = b.EachGap(from, 1, func(first, last uint64) {
			for s := first; s <= last; s++ {
				gone[s] = true
			}
		})
	}
	marked := map[uint64]bool{}
	for from, done := uint64(0), false; !done; {
		from, done = b.EachDelivered(from, 0, 7, func(s uint64, _ uint16) { marked[s] = true })
	}
	for s := range b.NextSeq() {
		pos, there := live[s]
		if there == (gone[s] || s < b.Floor()) || there && (!b.StandsAt(s, pos) || s < lease && !marked[s]) {
			t.Fatalf("seed %d: %d there %v, a gap %v, floor %d, marked %v, lease %d", seed, s, there, gone[s], b.Floor(), marked[s], lease)
		}
	}
}

// TestRecoverPrepend: a message below what was thought to be the beginning.
func TestRecoverPrepend(t *testing.T) {
	for _, floor := range []uint64{1, 127, 128, 130, 1000} {
		for _, seq := range []uint64{0, 1, 100} {
			b, _ := stored(t)
			b.RecoverFloor(floor)
			b.Recover(Recovered{Place: Place{Seq: floor, Pos: 1, Logged: true}})
			b.Recover(Recovered{Place: Place{Seq: seq, Pos: 2, Logged: true}})
			b.RecoverEnd()
			if !b.StandsAt(seq, 2) || seq != floor && !b.StandsAt(floor, 1) {
				t.Errorf("floor %d, message %d: base %d", floor, seq, b.order.base)
			}
		}
	}
}
