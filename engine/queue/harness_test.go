package queue

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"ringmq/engine/core"
)

const millisecond = int64(1e6)

// poison fills memory that nobody may read: fresh blocks and released ones.
const poison = 0xDB

// heapArena is a core.Arena of Go memory that knows its live blocks and
// overwrites what is released. P stands for unsafe.Pointer, which only a few
// files may name: it is inferred.
type heapArena[P comparable] struct {
	tb    testing.TB
	live  map[P][]byte
	freed [][]byte
}

func newHeapArena[P comparable](tb testing.TB, _ func(P) *core.Message) *heapArena[P] {
	return &heapArena[P]{tb: tb, live: map[P][]byte{}}
}

// Alloc implements core.Arena.
func (a *heapArena[P]) Alloc(n int) P {
	block := make([]byte, n+8) // the end of an empty body must lie in the block too
	for i := range block {
		block[i] = poison
	}
	p := any(reflect.ValueOf(&block[0]).UnsafePointer()).(P)
	a.live[p] = block
	return p
}

// Free implements core.Arena.
func (a *heapArena[P]) Free(p P) {
	block, ok := a.live[p]
	if !ok {
		a.tb.Fatal("a block is freed twice, or was never allocated")
	}
	delete(a.live, p)
	for i := range block {
		block[i] = poison
	}
	a.freed = append(a.freed, block)
}

func (a *heapArena[P]) liveBlocks() int { return len(a.live) }

// intact reports that nobody wrote to a block after its release.
func (a *heapArena[P]) intact() bool {
	for _, block := range a.freed {
		if slices.ContainsFunc(block, func(b byte) bool { return b != poison }) {
			return false
		}
	}
	return true
}

// checkedArena is what tests want of an arena.
type checkedArena interface {
	core.Arena
	liveBlocks() int
	intact() bool
}

// fakeHost is a shard that writes down what it is asked for.
type fakeHost struct {
	tb     testing.TB
	arena  checkedArena
	dirty  int
	clock  int64 // what Now says
	timer  int64 // earliest time asked for since the last look, 0 = none
	dead   []deadLetter
	unused int
	graves []*Grave
	// store, if set, has the bodies of dead letters that are not in memory.
	store *fakeStore
	// onDead, if set, sees each dead letter at once.
	onDead func(m *core.Message, why core.DeathReason)
}

type deadLetter struct {
	id  uint64
	why core.DeathReason
}

func newHost(tb testing.TB) *fakeHost {
	return &fakeHost{tb: tb, arena: newHeapArena(tb, core.FromToken)}
}

func (h *fakeHost) Arena() core.Arena { return h.arena }
func (h *fakeHost) MarkDirty(*Queue)  { h.dirty++ }
func (h *fakeHost) Unused(*Queue)     { h.unused++ }
func (h *fakeHost) Now() int64        { return h.clock }
func (h *fakeHost) WallMillis() int64 { return h.clock / 1e6 }
func (h *fakeHost) Store() Store      { return nil }
func (h *fakeHost) Bury(g *Grave)     { h.graves = append(h.graves, g) }

func (h *fakeHost) Schedule(_ *Queue, at int64) {
	if h.timer == 0 || at < h.timer {
		h.timer = at
	}
}

func (h *fakeHost) DeadLetter(q *Queue, d Dead) {
	m, why := d.Msg, d.Why
	if m == nil {
		m = h.store.body(d.Pos)
	}
	if d.Pos != 0 {
		defer h.store.Leave(q, d.Place)
	}
	h.dead = append(h.dead, deadLetter{idOf(m), why})
	if h.onDead != nil {
		h.onDead(m, why)
	}
	m.Release(h.arena)
}

// deaths returns the dead letters since the last call.
func (h *fakeHost) deaths() []deadLetter {
	dead := h.dead
	h.dead = nil
	return dead
}

// died is the list of dead letters that deaths gives when ids died of why.
func died(why core.DeathReason, ids ...uint64) (list []deadLetter) {
	for _, id := range ids {
		list = append(list, deadLetter{id, why})
	}
	return list
}

// dig frees all graves, n entries at a time.
func (h *fakeHost) dig(n int) {
	for _, g := range h.graves {
		for !g.Free(h.arena, n) {
		}
	}
	h.graves = nil
}

// message makes a message that idOf tells from others.
func (h *fakeHost) message(id uint64, bodySize int) *core.Message {
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], id)
	m := core.NewMessage(h.arena, []byte("x"), []byte("k"), head[:], bodySize)
	m.AppendBody(make([]byte, bodySize))
	return m
}

func idOf(m *core.Message) uint64 { return binary.BigEndian.Uint64(m.Head()) }

// handed is one delivery as a sink got it.
type handed struct {
	id          uint64
	seq         uint64
	redelivered bool
}

// fakeSink is a consumer's connection.
type fakeSink struct {
	host      *fakeHost
	full      bool
	got       []handed
	counted   int
	cancelled int
	// onDeliver, if set, sees each delivery at once.
	onDeliver func(seq uint64, m *core.Message, f DeliverFlags)
}

func (s *fakeSink) Full() bool { return s.full }
func (s *fakeSink) Cancelled() { s.cancelled++ }

func (s *fakeSink) Deliver(seq uint64, m *core.Message, f DeliverFlags) {
	s.got = append(s.got, handed{idOf(m), seq, f&Redelivered != 0})
	if f&Counted != 0 {
		s.counted++
	}
	if s.onDeliver != nil {
		s.onDeliver(seq, m, f)
	}
	if f&Owned != 0 {
		m.Release(s.host.arena)
	}
}

// ids returns what the sink got since the last call.
func (s *fakeSink) ids() []uint64 {
	ids := make([]uint64, 0, len(s.got))
	for _, d := range s.got {
		ids = append(ids, d.id)
	}
	s.got = s.got[:0]
	return ids
}

// bench is a queue with its host, and the time.
type bench struct {
	*testing.T
	*fakeHost
	*Queue
	now  int64
	next uint64 // id of the next message
}

// defaults are the settings of a queue declared without arguments.
func defaults() Settings {
	s := Settings{Rules: NoRules()}
	s.DeadLetter = true
	return s
}

func newBench(t *testing.T, s Settings) *bench {
	b := &bench{T: t, fakeHost: newHost(t), Queue: New("q", 1, 0, s), now: int64(1e12), next: 1}
	b.Attach(b.fakeHost, b.now)
	return b
}

// publish appends n messages, numbered on, and returns how many were accepted.
func (b *bench) publish(n int) (accepted int) {
	for range n {
		if b.publishOne(b.message(b.next, 8)) {
			accepted++
		}
		b.next++
	}
	return accepted
}

func (b *bench) publishOne(m *core.Message) bool { return b.Publish(m, b.now) }

// consumer subscribes a consumer; edit sees it before.
func (b *bench) consumer(edit func(*Consumer)) (*Consumer, *fakeSink) {
	b.Helper()
	sink := &fakeSink{host: b.fakeHost}
	c := &Consumer{Sink: sink}
	if edit != nil {
		edit(c)
	}
	if !b.Subscribe(c) {
		b.Fatal("the consumer is refused")
	}
	return c, sink
}

// settle brings the queue to rest.
func (b *bench) settle() {
	for b.Settle(b.now, core.DispatchBatch) {
	}
}

// want checks the queue's two counts.
func (b *bench) want(ready, unacked int) {
	b.Helper()
	if b.Ready() != ready || b.Unacked() != unacked || b.order.live != ready+unacked {
		b.Errorf("ready %d, unacked %d, live %d, want %d and %d", b.Ready(), b.Unacked(), b.order.live, ready, unacked)
	}
}

// same compares two lists.
func same[E comparable](t *testing.T, what string, got, want []E) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// upTo lists from, from+1, ..., to.
func upTo(from, to uint64) (ids []uint64) {
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}

// end deletes the queue and checks that nothing of it is left.
func (b *bench) end() {
	b.Helper()
	b.Delete(b.now)
	b.dig(100)
	if n := b.arena.liveBlocks(); n != 0 {
		b.Errorf("%d blocks are left", n)
	}
	if !b.arena.intact() {
		b.Error("a block was written to after its release")
	}
}

// take is Get for queues without a log, which answer at once.
func (q *Queue) take(noAck bool, now int64) (g Got, ok bool) {
	g, state := q.Get(noAck, now)
	return g, state == GotOne
}
