package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ringmq/engine/core"
)

// BAS-13, BAS-16: what comes back stands where it stood.
func TestRequeueToOriginalPlace(t *testing.T) {
	for _, c := range []struct {
		name    string
		publish int
		take    int   // delivered first
		back    []int // places in the delivered ones, in the order of their return
		want    []uint64
	}{
		{"the only one", 1, 1, []int{0}, []uint64{1}},
		{"ahead of younger ones", 5, 2, []int{0, 1}, []uint64{1, 2, 3, 4, 5}},
		{"in the wrong order", 6, 4, []int{3, 0, 2, 1}, []uint64{1, 2, 3, 4, 5, 6}},
		{"with a gap", 5, 3, []int{2, 0}, []uint64{1, 3, 4, 5}},
		{"nothing", 4, 2, nil, []uint64{3, 4}},
		{"all of it", 4, 4, []int{2, 3, 1, 0}, []uint64{1, 2, 3, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, defaults())
			first, got := b.consumer(func(c2 *Consumer) { c2.Prefetch = uint32(c.take) })
			b.publish(c.publish)
			b.settle()
			taken := slices.Clone(got.got)
			b.Unsubscribe(first, b.now)
			for _, i := range c.back {
				b.Requeue(taken[i].seq, first, false)
			}
			for i, d := range taken {
				if !slices.Contains(c.back, i) {
					b.Ack(d.seq, first)
				}
			}
			_, again := b.consumer(nil)
			b.settle()
			for _, d := range again.got {
				if want := d.id <= uint64(c.take); d.redelivered != want {
					t.Errorf("message %d: redelivered %v", d.id, d.redelivered)
				}
			}
			same(t, "second delivery", again.ids(), c.want)
			b.want(0, len(c.want))
			b.end()
		})
	}
}

// A message that never reached its consumer is not redelivered (BAS-15), and
// one that was handed out once is, however often it came back unseen.
func TestRequeueUndelivered(t *testing.T) {
	b := newBench(t, defaults())
	b.publish(2)
	c, sink := b.consumer(nil)
	b.settle()
	b.Requeue(sink.got[0].seq, c, true)
	b.Requeue(sink.got[1].seq, c, false)
	sink.got = nil
	b.settle()
	if sink.got[0].redelivered || !sink.got[1].redelivered {
		t.Errorf("redelivered: %v", sink.got)
	}
	b.Requeue(sink.got[1].seq, c, true)
	sink.got = nil
	b.settle()
	if len(sink.got) != 1 || !sink.got[0].redelivered {
		t.Errorf("redelivered: %v", sink.got)
	}
	b.end()
}

// A backlog costs chunks in proportion; a queue that keeps up lives in one.
func TestChunkReuse(t *testing.T) {
	b := newBench(t, defaults())
	c, sink := b.consumer(nil)
	chunks := func() int { return b.arena.liveBlocks() - b.Ready() - b.Unacked() }
	for range 10 * chunkEntries {
		b.publish(1)
		b.settle()
		if chunks() != 1 {
			t.Fatalf("%d chunks for one message", chunks())
		}
		b.Ack(sink.got[0].seq, c)
		sink.got = sink.got[:0]
		if chunks() > 1 || len(b.order.chunks) > 1 {
			t.Fatalf("%d chunks, directory of %d", chunks(), len(b.order.chunks))
		}
	}
	b.settle()
	if chunks() != 0 {
		t.Errorf("%d chunks for an empty queue at rest", chunks())
	}
	sink.full = true
	b.publish(10 * chunkEntries)
	b.settle()
	if got := chunks(); got < 10 || got > 11 {
		t.Errorf("%d chunks for %d messages", got, 10*chunkEntries)
	}
	sink.full = false
	b.Resume(c)
	b.settle()
	for _, d := range sink.got[1:] { // the first is forgotten
		b.Ack(d.seq, c)
	}
	if got := chunks(); got != 2 && got != 1 {
		t.Errorf("%d chunks for one message at the front", got)
	}
	b.want(0, 1)
	b.Ack(sink.got[0].seq, c)
	b.want(0, 0)
	b.end()
}

// One unacked message in front must not keep the memory of those behind it.
func TestForgottenMessageKeepsOneChunk(t *testing.T) {
	b := newBench(t, defaults())
	c, sink := b.consumer(nil)
	b.publish(1)
	b.settle()
	sink.got = nil
	for range 50 * chunkEntries {
		b.publish(1)
		b.settle()
		b.Ack(sink.got[0].seq, c)
		sink.got = sink.got[:0]
	}
	if got := b.arena.liveBlocks(); got > 3 {
		t.Errorf("%d blocks for one message", got)
	}
	b.end()
}

// refOrder is fifo as one would write it without a thought for speed: the state
// of each entry ever pushed.
type refOrder struct {
	states []uint8
	live   int
}

func (r *refOrder) first() (uint64, bool) {
	at := slices.Index(r.states, stateReady)
	return uint64(max(at, 0)), at >= 0
}

// pick chooses an entry in one of the states, by trying.
func (r *refOrder) pick(rng *rand.Rand, states ...uint8) (uint64, bool) {
	for range 20 {
		if len(r.states) == 0 {
			break
		}
		if seq := rng.IntN(len(r.states)); slices.Contains(states, r.states[seq]) {
			return uint64(seq), true
		}
	}
	return 0, false
}

// TestFifoAgainstReference drives the bare order at random.
func TestFifoAgainstReference(t *testing.T) {
	for seed := range seeds(t, 200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := newHost(t)
		var f fifo
		var ref refOrder
		for range 60 {
			if text := stepFifo(rng, h, &f, &ref); text != "" {
				t.Fatalf("seed %d: %s", seed, text)
			}
			if f.live != ref.live {
				t.Fatalf("seed %d: %d live, want %d", seed, f.live, ref.live)
			}
		}
		g := &Grave{order: f, next: f.base}
		for !g.Free(h.arena, 1+rng.IntN(200)) {
		}
		if h.arena.liveBlocks() != 0 || !h.arena.intact() {
			t.Fatalf("seed %d: %d blocks left", seed, h.arena.liveBlocks())
		}
	}
}

// stepFifo does one thing to both and says what differs.
func stepFifo(rng *rand.Rand, h *fakeHost, f *fifo, ref *refOrder) string {
	switch rng.IntN(6) {
	case 0, 1:
		for range 1 + rng.IntN(chunkEntries) {
			if seq := f.push(h.arena, h.message(0, 0), 0, 0, 0); seq != uint64(len(ref.states)) {
				return fmt.Sprintf("pushed as %d, want %d", seq, len(ref.states))
			}
			ref.states = append(ref.states, stateReady)
			ref.live++
		}
	case 2, 3:
		for range 1 + rng.IntN(chunkEntries) {
			seq, e := f.first()
			want, ok := ref.first()
			if (e != nil) != ok || ok && seq != want {
				return fmt.Sprintf("first is %d (%v), want %d (%v)", seq, e != nil, want, ok)
			}
			if !ok {
				break
			}
			f.taken(seq)
			e.setState(stateUnacked)
			ref.states[seq] = stateUnacked
		}
	case 4:
		for range rng.IntN(40) {
			if seq, ok := ref.pick(rng, stateUnacked); ok {
				f.at(seq).setState(stateReady)
				f.giveBack(seq)
				ref.states[seq] = stateReady
			}
		}
	case 5:
		states := [][]uint8{{stateUnacked}, {stateUnacked, stateReady}}[rng.IntN(2)]
		for range rng.IntN(2 * chunkEntries) {
			if seq, ok := ref.pick(rng, states...); ok {
				f.at(seq).msg.Release(h.arena)
				f.remove(h.arena, seq)
				ref.states[seq] = stateGone
				ref.live--
				if f.at(seq) != nil {
					return fmt.Sprintf("%d is still there", seq)
				}
			}
		}
	}
	return ""
}

func TestDeadlineHeap(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var h deadlineHeap
		var ref []int64
		for i := range 200 {
			if rng.IntN(3) > 0 {
				at := int64(rng.IntN(50))
				h.push(deadline{at, uint64(i)})
				ref = append(ref, at)
			} else if len(h) > 0 {
				slices.Sort(ref)
				if h[0].at != ref[0] {
					t.Fatalf("seed %d: %d, want %d", seed, h[0].at, ref[0])
				}
				h.pop()
				ref = ref[1:]
			}
			if rng.IntN(20) == 0 { // as compactDeadlines does
				rng.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
				h.rebuild()
			}
		}
	}
}

// Purge and delete hand their memory over in one piece; it is freed in bounded
// steps (QUE-11, QUE-12).
func TestGrave(t *testing.T) {
	for _, c := range []struct {
		name             string
		publish, take    int
		remove           func(b *bench) int
		removed, unacked int
	}{
		{"purge", 1000, 0, func(b *bench) int { return b.Purge(b.now) }, 1000, 0},
		{"purge with some held", 1000, 300, func(b *bench) int { return b.Purge(b.now) }, 700, 300},
		{"purge of none", 0, 0, func(b *bench) int { return b.Purge(b.now) }, 0, 0},
		{"purge of held ones only", 200, 200, func(b *bench) int { return b.Purge(b.now) }, 0, 200},
		{"delete", 1000, 0, func(b *bench) int { return b.Delete(b.now) }, 1000, 0},
		{"delete with some held", 1000, 300, func(b *bench) int { return b.Delete(b.now) }, 700, 0},
		{"delete of none", 0, 0, func(b *bench) int { return b.Delete(b.now) }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, defaults())
			b.publish(c.publish)
			cons, sink := b.consumer(func(k *Consumer) { k.Prefetch = uint32(max(c.take, 1)) })
			sink.full = c.take == 0
			b.settle()
			if n := c.remove(b); n != c.removed {
				t.Errorf("%d removed, want %d", n, c.removed)
			}
			b.want(0, c.unacked)
			for _, g := range b.graves {
				before := b.arena.liveBlocks()
				if empty := g.Free(b.arena, 100); empty {
					continue
				}
				if freed := before - b.arena.liveBlocks(); freed < 100 || freed > 102 {
					t.Errorf("a step of 100 freed %d blocks", freed)
				}
			}
			b.dig(100)
			if len(b.deaths()) > 0 {
				t.Error("what was purged or deleted is dead-lettered")
			}
			if b.Deleted() {
				if sink.cancelled != 1 {
					t.Errorf("the consumer is told %d times", sink.cancelled)
				}
				if b.arena.liveBlocks() != 0 {
					t.Errorf("%d blocks left", b.arena.liveBlocks())
				}
			}
			for _, d := range sink.got { // acks of what is gone are fine (QUE-11)
				b.Ack(d.seq, cons)
				b.Requeue(d.seq, cons, false)
				b.Discard(d.seq, cons)
			}
			b.want(0, 0)
			b.publish(3) // a deleted queue swallows them, a purged one goes on
			if b.Deleted() {
				b.want(0, 0)
			} else if b.Ready() != 3 {
				t.Errorf("%d ready after a purge", b.Ready())
			}
			b.end()
		})
	}
}

// A deleted queue holds nothing and accepts nothing, and says so to nobody
// twice.
func TestDeletedQueue(t *testing.T) {
	b := newBench(t, defaults())
	c, sink := b.consumer(nil)
	b.publish(3)
	b.settle()
	b.Delete(b.now)
	if !b.Deleted() || b.Consumers() != 0 || c.Queue() != nil {
		t.Errorf("deleted %v, %d consumers", b.Deleted(), b.Consumers())
	}
	if n := b.Delete(b.now); n != 0 || sink.cancelled != 1 || len(b.graves) != 1 {
		t.Errorf("the second delete removed %d, told %d times", n, sink.cancelled)
	}
	if !b.publishOne(b.message(9, 0)) {
		t.Error("a publish to a deleted queue does not count as accepted (CNF-02)")
	}
	b.Unsubscribe(c, b.now)
	b.Resume(c)
	if _, ok := b.take(false, b.now); ok || b.Settle(b.now, 1) {
		t.Error("a deleted queue has messages")
	}
	if b.unused != 0 {
		t.Error("a deleted queue reports its last consumer's end")
	}
	b.end()
}

func TestCountersOfQueue(t *testing.T) {
	s := defaults()
	s.MaxLength = 3
	b := newBench(t, s)
	b.publish(5)
	c, sink := b.consumer(nil)
	b.settle()
	b.Ack(sink.got[0].seq, c)
	b.Discard(sink.got[1].seq, c)
	if b.Published != 5 || b.Dropped != 2 || b.Delivered != 3 || b.Acked != 1 || b.Refused != 0 || b.Expired != 0 {
		t.Errorf("published %d, dropped %d, delivered %d, acked %d, refused %d, expired %d",
			b.Published, b.Dropped, b.Delivered, b.Acked, b.Refused, b.Expired)
	}
	same(t, "dead letters", b.deaths(), append(died(core.DiedMaxLength, 1, 2), died(core.DiedRejected, 4)...))
	b.end()
}
