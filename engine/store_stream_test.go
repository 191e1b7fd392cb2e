package engine

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/wal/crashfs"
)

// streamSim is a broker with one stream through many lives, on a disk that forgets.
// Publishers number their messages; what was confirmed must stay, and an offset that
// anybody saw means the same message for ever.
type streamSim struct {
	*testing.T
	seed   uint64
	rng    *rand.Rand
	w      *world
	disks  map[int]*crashfs.FS
	defs   *simDefs
	q      *queue.Queue
	other  *queue.Queue // classic, purged now and then: it makes room for compaction
	moved  uint64
	home   *Shard // of publisher and consumers
	now    int64
	bytes  int64 // x-max-length-bytes, 0 = none
	next   uint64
	safe   map[uint64]bool // confirmed
	at     map[uint64]uint64
	oldest uint64 // no offset below it may be seen again
	sinks  []*streamSink
}

// streamSink is a consumer of the stream.
type streamSink struct {
	sim  *streamSim
	sub  *Subscription
	want uint64 // lowest offset that may come next
	held []uint64
	full bool
	got  int
}

func (s *streamSim) fatalf(format string, args ...any) {
	s.Helper()
	s.Fatalf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

// Full implements queue.Sink.
func (k *streamSink) Full() bool { return k.full }

// Cancelled implements queue.Sink.
func (k *streamSink) Cancelled() {}

// Deliver implements queue.Sink.
func (k *streamSink) Deliver(seq uint64, m *core.Message, f queue.DeliverFlags) {
	s := k.sim
	id := binary.BigEndian.Uint64(m.Body())
	if was, seen := s.at[seq]; seen && was != id {
		s.fatalf("offset %d was message %d and is %d", seq, was, id)
	}
	s.at[seq] = id
	switch {
	case f&queue.Offset == 0 || f&queue.Redelivered != 0:
		s.fatalf("flags %d", f)
	case seq < k.want, seq > k.want && s.bytes == 0:
		s.fatalf("offset %d after %d", seq, k.want)
	}
	k.want = seq + 1
	k.got++
	k.held = append(k.held, seq)
	if f&queue.Owned != 0 {
		m.Release(s.home.arena)
	}
}

// Settled implements Origin: a message is confirmed.
func (s *streamSim) Settled(id uint64, ok bool) {
	if !ok {
		s.fatalf("message %d is refused", id)
	}
	s.safe[id] = true
}

// open starts a life.
func (s *streamSim) open() {
	w, err := openWorld(1+s.rng.IntN(2), simOptions{sync: "always", segment: 32 << 10}, s.rng.Uint64(), s.now, s.disks, s.defs, nil)
	if err != nil {
		s.fatalf("opening: %v", err)
	}
	s.w, s.sinks = w, nil
	s.home = w.b.Shards[s.rng.IntN(len(w.b.Shards))]
	if s.q = w.v.Queue([]byte("s")); s.q == nil {
		if s.next > 0 {
			s.fatalf("the stream is gone")
		}
		args := core.Args{"x-queue-type": text("stream")}
		if s.bytes > 0 {
			args["x-max-length-bytes"] = long(s.bytes)
		}
		var refused *core.Error
		if s.q, refused = w.v.DeclareQueue("s", queue.Settings{Durable: true, Args: args}, nil, s.home, false); refused != nil {
			s.fatalf("%v", refused)
		}
	}
	var refused *core.Error
	if s.other, refused = w.v.DeclareQueue("c", queue.Settings{Durable: true}, nil, s.home, false); refused != nil {
		s.fatalf("%v", refused)
	}
	s.defs.advance(1000)
}

// clutter publishes to the other queue, or purges it.
func (s *streamSim) clutter() {
	if s.rng.IntN(4) == 0 {
		s.home.On(s.other.Shard, func(at *Shard) {
			at.Observe(s.other)
			s.other.Purge(at.now)
		}, func() {})
		return
	}
	for range 1 + s.rng.IntN(20) {
		m := core.NewMessage(s.home.arena, nil, []byte("c"), nil, 2000)
		m.AppendBody(make([]byte, 2000))
		m.Flags = core.FlagPersistent
		s.home.Publish(s.other, m, nil, 0)
	}
}

func (s *streamSim) publish() {
	for range 1 + s.rng.IntN(30) {
		m := core.NewMessage(s.home.arena, nil, []byte("s"), nil, 8+s.rng.IntN(400))
		m.AppendBody(binary.BigEndian.AppendUint64(nil, s.next))
		m.AppendBody(make([]byte, m.Missing()))
		if s.rng.IntN(2) == 0 {
			m.Flags = core.FlagPersistent
		}
		if s.home.Publish(s.q, m, s, s.next) != Pending {
			s.fatalf("message %d is not stored", s.next)
		}
		s.next++
	}
}

// subscribe adds a consumer at the beginning, or at some offset.
func (s *streamSim) subscribe(from uint64, prefetch int) *streamSink {
	k := &streamSink{sim: s, sub: &Subscription{Queue: s.q}, want: from}
	k.sub.Consumer.Prefetch = uint32(prefetch)
	k.sub.Consumer.Cursor = &queue.Cursor{Start: queue.Start{Kind: queue.StartOffset, Value: int64(from)}}
	s.home.Subscribe(k.sub, k, func(err *core.Error) {
		if err != nil {
			s.fatalf("%v", err)
		}
	})
	s.sinks = append(s.sinks, k)
	return k
}

func (s *streamSim) settle(k *streamSink) {
	for len(k.held) > 0 && s.rng.IntN(10) > 0 {
		if s.rng.IntN(2) == 0 {
			s.home.Ack(s.q, k.held[0], 1, k.sub)
		} else {
			s.home.Requeue(s.q, k.held[0], k.sub, false)
		}
		k.held = k.held[1:]
	}
}

// act is what clients do in one turn.
func (s *streamSim) act() {
	switch s.rng.IntN(10) {
	case 0, 1, 2:
		s.publish()
	case 6, 7:
		s.clutter()
	case 3:
		if len(s.sinks) < 5 {
			s.subscribe(s.rng.Uint64N(s.next+1), 1+s.rng.IntN(50))
		}
	case 4:
		if n := len(s.sinks); n > 0 {
			k := s.sinks[s.rng.IntN(n)]
			s.sinks = slices.DeleteFunc(s.sinks, func(o *streamSink) bool { return o == k })
			s.home.Abandon(k.sub)
			s.home.Unsubscribe(k.sub, nil)
		}
	case 5:
		if s.q.Shard == s.home.Index {
			s.q.PageOut(true, true)
		}
	default:
		for _, k := range s.sinks {
			if was := k.full; was {
				s.home.Resume(k.sub)
			}
			k.full = s.rng.IntN(4) == 0
			s.settle(k)
		}
	}
}

func (s *streamSim) live() {
	for range 60 + s.rng.IntN(60) {
		for _, sh := range s.w.b.Shards {
			work := s.act
			if sh != s.home {
				work = nil
			}
			s.w.turn(sh, work)
			if s.rng.IntN(3) == 0 {
				sh.store.keep(s.w.now)
			}
		}
		s.w.now += s.rng.Int64N(1e7)
		s.w.steps(s.rng.IntN(12))
		if s.w.failed != nil {
			s.fatalf("%v", s.w.failed)
		}
	}
	s.now = s.w.now + 1e6
	for _, sh := range s.w.b.Shards {
		s.moved += sh.store.wal.Stats().MovedRecords
	}
}

// end ends a life in order, or not.
func (s *streamSim) end() {
	take := func(fs *crashfs.FS) *crashfs.FS { return fs.Crash(s.rng) }
	switch s.rng.IntN(3) {
	case 0:
		if err := s.w.close(); err != nil {
			s.fatalf("closing: %v", err)
		}
		take = (*crashfs.FS).Kill
	case 1:
		take = (*crashfs.FS).Kill
	}
	s.w.defs.advance(1 << 30)
	for _, i := range slices.Sorted(maps.Keys(s.disks)) {
		s.disks[i] = take(s.disks[i])
	}
	s.w.free()
	s.defs = s.defs.reborn()
}

// check reads the whole stream and compares it with what is known.
func (s *streamSim) check() {
	k := s.subscribe(0, 1<<30)
	k.want = s.oldest
	first := s.q.NextSeq() - uint64(s.q.Ready())
	if s.bytes == 0 && first != 0 || first < s.oldest {
		s.fatalf("it begins at %d, before at %d", first, s.oldest)
	}
	if !s.w.quiet() {
		s.fatalf("does not come to rest")
	}
	if k.want != s.q.NextSeq() || k.got != s.q.Ready() {
		s.fatalf("read %d messages up to %d of %d up to %d", k.got, k.want, s.q.Ready(), s.q.NextSeq())
	}
	s.oldest = s.q.NextSeq() - uint64(s.q.Ready())
	kept := map[uint64]bool{}
	last := -1
	for seq := s.oldest; seq < s.q.NextSeq(); seq++ {
		id, ok := s.at[seq]
		if !ok || int(id) <= last {
			s.fatalf("message %d at offset %d after %d", id, seq, last)
		}
		last = int(id)
		kept[id] = true
	}
	floor := uint64(0)
	if s.q.Ready() > 0 {
		floor = s.at[s.oldest]
	}
	for id := range s.safe {
		if !kept[id] && id >= floor {
			s.fatalf("message %d was confirmed and is gone", id)
		}
	}
	for seq := range s.at {
		if seq >= s.q.NextSeq() {
			s.fatalf("offset %d was seen and will be given again", seq)
		}
	}
}

// STR-02, STR-03: offsets over crashes of every kind.
func TestSimulatedStream(t *testing.T) {
	from, to := simSeeds(t, 40/seedShare)
	moved := uint64(0)
	for seed := from; seed < to; seed++ {
		s := &streamSim{T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), disks: map[int]*crashfs.FS{}, defs: newSimDefs(), now: 1e12,
			safe: map[uint64]bool{}, at: map[uint64]uint64{}}
		if s.rng.IntN(2) == 0 {
			s.bytes = s.rng.Int64N(40_000) + 1
		}
		s.open()
		for range 6 {
			s.live()
			s.end()
			s.open()
			s.check()
		}
		s.w.free()
		moved += s.moved
	}
	if moved == 0 {
		t.Error("no record was moved by compaction")
	}
	t.Logf("%d records were moved", moved)
}
