package wal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// The harness is a broker without a protocol: queues that remember in memory what
// they hold, over a log on a crashing disk; and a model that remembers what was done
// and knows what must be found again. The check behind each crash is an equality: what is
// recovered is exactly what the operations up to the recovered end of the log made,
// and that end is not before anything that was committed.

const (
	kindEvent   = 0x01
	kindMessage = 0x40
	queueCount  = 4
)

var hashTable = crc32.MakeTable(crc32.Castagnoli)

// hashOf tells bodies apart: they are random, and the log's own checksum is salted.
func hashOf(b []byte) uint64 { return uint64(len(b))<<32 | uint64(crc32.Checksum(b, hashTable)) }

// entry is one message in one queue.
type entry struct {
	pos  wal.Position
	size int
	hash uint64
}

// store is the owner of a log: the recoverer, and the mover of compaction.
type store struct {
	log    *wal.Log
	queues [queueCount]map[uint64]entry
	next   [queueCount]uint64
	values map[byte]uint64 // what events set
}

func newStore(l *wal.Log) *store {
	s := &store{log: l, values: map[byte]uint64{}}
	for i := range s.queues {
		s.queues[i] = map[uint64]entry{}
	}
	return s
}

// State decodes what statePiece encoded.
func (s *store) State(piece []byte) error {
	if len(piece) < 1 {
		return errors.New("empty piece of state")
	}
	switch piece[0] {
	case 'n':
		for i := range s.next {
			s.next[i] = max(s.next[i], binary.LittleEndian.Uint64(piece[1+8*i:]))
		}
	case 'v':
		for b := piece[1:]; len(b) > 0; b = b[9:] {
			s.values[b[0]] = binary.LittleEndian.Uint64(b[1:])
		}
	default:
		return fmt.Errorf("unknown piece of state %q", piece[0])
	}
	return nil
}

func (s *store) statePiece(kind byte) []byte {
	b := []byte{kind}
	if kind == 'n' {
		for _, n := range s.next {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	}
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		b = binary.LittleEndian.AppendUint64(append(b, key), s.values[key])
	}
	return b
}

// AckSet has nothing to do: the log leaves out what is in it.
func (s *store) AckSet(queue uint64, set *wal.AckSet) error {
	s.next[queue] = max(s.next[queue], set.Floor())
	return nil
}

// ackSet is what is done in a queue.
func (s *store) ackSet(queue int) *wal.AckSet {
	set := &wal.AckSet{}
	for seq := uint64(0); seq < s.next[queue]; seq++ {
		if _, live := s.queues[queue][seq]; !live {
			set.AddRange(seq, seq)
		}
	}
	return set
}

func (s *store) Record(r *wal.Record) error {
	body, err := r.Body(nil)
	if err != nil {
		return err
	}
	if r.Kind == kindEvent {
		s.values[body[0]] = binary.LittleEndian.Uint64(body[1:])
		return nil
	}
	for _, ref := range r.Refs {
		old, there := s.queues[ref.Queue][ref.Seq]
		if there {
			if !r.Moved {
				return fmt.Errorf("queue %d/%d recovered twice, at %v and %v", ref.Queue, ref.Seq, old.pos, r.Position)
			}
			if old.hash != hashOf(body) {
				return fmt.Errorf("queue %d/%d moved and changed", ref.Queue, ref.Seq)
			}
			s.log.Release(old.pos, old.size)
		}
		s.put(ref, r.Position, r.Size(), hashOf(body))
	}
	return nil
}

func (s *store) put(ref wal.Ref, p wal.Position, size int, hash uint64) {
	s.queues[ref.Queue][ref.Seq] = entry{p, size, hash}
	s.next[ref.Queue] = max(s.next[ref.Queue], ref.Seq+1)
	s.log.Retain(p, size)
}

func (s *store) Ack(queue, first, last uint64) error {
	for seq := first; seq <= last; seq++ {
		if e, ok := s.queues[queue][seq]; ok {
			s.log.Release(e.pos, e.size)
			delete(s.queues[queue], seq)
		}
	}
	s.next[queue] = max(s.next[queue], last+1)
	return nil
}

func (s *store) Live(p wal.Position, ref wal.Ref) bool {
	e, ok := s.queues[ref.Queue][ref.Seq]
	return ok && e.pos == p
}

func (s *store) Moved(from, to wal.Position, ref wal.Ref, _ bool) {
	e := s.queues[ref.Queue][ref.Seq]
	s.log.Retain(to, e.size)
	s.log.Release(from, e.size)
	e.pos = to
	s.queues[ref.Queue][ref.Seq] = e
}

// op is one operation that the model remembers.
type op struct {
	pos         wal.Position
	refs        []wal.Ref // a message
	hash        uint64
	queue       uint64 // an acknowledgement, if refs is nil and key is 0
	first, last uint64
	key         byte // an event
	value       uint64
}

// model is everything that was ever done.
type model struct{ ops []op }

// modelState is what must be found.
type modelState struct {
	queues [queueCount]map[uint64]uint64
	values map[byte]uint64
}

// upTo computes the state after all operations before end.
func (m *model) upTo(end wal.Position) *modelState {
	s := &modelState{values: map[byte]uint64{}}
	for i := range s.queues {
		s.queues[i] = map[uint64]uint64{}
	}
	for _, o := range m.ops {
		switch {
		case o.pos >= end:
		case o.refs != nil:
			for _, ref := range o.refs {
				s.queues[ref.Queue][ref.Seq] = o.hash
			}
		case o.key != 0:
			s.values[o.key] = o.value
		default:
			for seq := o.first; seq <= o.last; seq++ {
				delete(s.queues[o.queue], seq)
			}
		}
	}
	return s
}

// cut forgets what the crash took.
func (m *model) cut(end wal.Position) {
	m.ops = slices.DeleteFunc(m.ops, func(o op) bool { return o.pos >= end })
}

// check compares a recovered store with the model.
func (m *model) check(s *store, end, committed wal.Position) error {
	for _, o := range m.ops {
		if o.pos < committed && o.pos >= end {
			return fmt.Errorf("lost: %+v was committed (up to %v), the log ends at %v", o, committed, end)
		}
	}
	want := m.upTo(end)
	for q := range want.queues {
		for seq, hash := range want.queues[q] {
			e, ok := s.queues[q][seq]
			if !ok {
				return fmt.Errorf("queue %d/%d is lost (log ends at %v, committed %v)", q, seq, end, committed)
			}
			if e.hash != hash {
				return fmt.Errorf("queue %d/%d at %v has another body", q, seq, e.pos)
			}
		}
		for seq, e := range s.queues[q] {
			if _, ok := want.queues[q][seq]; !ok {
				return fmt.Errorf("queue %d/%d at %v came back or was invented", q, seq, e.pos)
			}
		}
	}
	if !maps.Equal(want.values, s.values) {
		return fmt.Errorf("events: got %v, want %v", s.values, want.values)
	}
	return nil
}

// world is a log under test with everything around it.
type world struct {
	rng   *rand.Rand
	fs    *crashfs.FS
	dev   *crashfs.Device
	opts  wal.Options
	log   *wal.Log
	store *store
	model *model

	committed wal.Position
	failed    error
	space     error
	spaces    int   // calls of Space
	problem   error // found by the world while it runs
	piece     int   // of the checkpoint in the making, -1 if none
	report    *wal.Report
	// wrap, if set, stands between the log and the recoverer.
	wrap  func(wal.Recoverer) wal.Recoverer
	total tally
	cause error // what the script injects
	// carry, if set, carries out the log's writes.
	carry func(f wal.File, offset int64, buf []byte, sync bool) error
	// early makes the world believe positions before they are committed.
	early bool
}

// tally says what a run went through: a test that never recycles a segment proves
// nothing about recycling.
type tally struct{ groups, recycled, removed, moved, fetched, refused, checkpoints, cuts, discarded, large uint64 }

func (t *tally) add(o tally) {
	t.groups += o.groups
	t.recycled += o.recycled
	t.removed += o.removed
	t.moved += o.moved
	t.fetched += o.fetched
	t.refused += o.refused
	t.checkpoints += o.checkpoints
	t.cuts += o.cuts
	t.discarded += o.discarded
	t.large += o.large
}

// count adds what the log did since it was opened.
func (w *world) count() {
	s := w.log.Stats()
	w.total.add(tally{groups: s.Groups, recycled: s.Recycled, removed: s.Removed, moved: s.MovedRecords, checkpoints: s.Checkpoints})
}

func newWorld(rng *rand.Rand, fs *crashfs.FS) *world {
	return &world{rng: rng, fs: fs, model: &model{}, piece: -1, opts: wal.Options{
		SegmentSize: 64 << 10, GroupSize: 16 << 10, BacklogMax: 256 << 10,
		CheckpointBytes: 192 << 10, LogID: 0x1234567,
	}}
}

// Committed, Failed and Space are the log's events.
func (w *world) Committed(p wal.Position) {
	if p < w.committed {
		w.problem = fmt.Errorf("committed went back from %v to %v", w.committed, p)
	}
	if w.failed != nil {
		w.problem = fmt.Errorf("committed %v after the log failed with %v", p, w.failed)
	}
	w.committed = p
}

func (w *world) Failed(err error) {
	if w.failed != nil {
		w.problem = fmt.Errorf("failed twice: %v, then %v", w.failed, err)
	}
	w.failed = err
}

func (w *world) Space(err error) {
	w.space = err
	w.spaces++
}

// open opens the log on w.fs.
func (w *world) open() error {
	w.dev = crashfs.NewDevice(w.rng)
	w.dev.Carry = w.carry
	w.opts.Disk, w.opts.Device, w.opts.Events = w.fs, w.dev, w
	w.failed, w.piece = nil, -1
	var err error
	w.log, w.report, err = wal.Open(w.opts, func(l *wal.Log) wal.Recoverer {
		w.store = newStore(l)
		if w.wrap != nil {
			return w.wrap(w.store)
		}
		return w.store
	})
	if err == nil {
		w.space = w.log.Space()
	}
	return err
}

// close ends a world in order.
func (w *world) close() error {
	err := errors.New("close never finished")
	w.log.Close(func(e error) { err = e })
	w.dev.Drain()
	if err == nil {
		w.count()
		w.log.Free()
	}
	return err
}

// crash takes the power away, brings it back, opens the log and checks it.
func (w *world) crash() error {
	promised := w.promised()
	w.count()
	w.log.Free()
	w.fs = w.fs.Crash(w.rng)
	return w.recovered(promised)
}

// kill ends the process only, opens the log and checks it: the kernel has everything that
// was written, whatever the mode is, but the disk may not.
func (w *world) kill() error {
	promised := w.committed
	if w.early {
		promised = w.log.End()
	}
	w.count()
	w.log.Free()
	w.fs = w.fs.Kill()
	return w.recovered(promised)
}

// promised is the end of what must survive a power cut.
func (w *world) promised() wal.Position {
	if w.early {
		return w.log.End()
	}
	if w.opts.Sync == wal.SyncAlways {
		return w.committed
	}
	return w.log.Synced()
}

// recovered opens the log after a crash and checks it.
func (w *world) recovered(promised wal.Position) error {
	if err := w.open(); err != nil {
		return fmt.Errorf("open after the crash: %w", err)
	}
	if err := w.model.check(w.store, w.report.End, promised); err != nil {
		return err
	}
	w.model.cut(w.report.End)
	if w.report.Cut != nil {
		w.total.cuts++
		w.total.discarded += w.report.Cut.Records
	}
	w.committed = w.log.Committed()
	return nil
}

// body makes the content of a message; equal arguments give equal bytes.
func body(id uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(id, uint64(n)))
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
	}
	return b
}

// publish appends a message to some queues.
func (w *world) publish(n int, queues ...int) (wal.Position, error) {
	var refs []wal.Ref
	for _, q := range queues {
		refs = append(refs, wal.Ref{Queue: uint64(q), Seq: w.store.next[q]})
	}
	b := body(uint64(len(w.model.ops))+w.rng.Uint64N(1<<20), n)
	cut := w.rng.IntN(n + 1)
	p, err := w.log.Append(kindMessage, refs, [][]byte{b[:cut/2], b[cut/2 : cut], b[cut:]})
	if err != nil {
		return 0, err
	}
	if n > 60<<10 {
		w.total.large++
	}
	size := (32 + 16*len(refs) + n + 7) &^ 7
	for _, ref := range refs {
		w.store.put(ref, p, size, hashOf(b))
	}
	w.model.ops = append(w.model.ops, op{pos: p, refs: refs, hash: hashOf(b)})
	return p, nil
}

// ack acknowledges a range of a queue.
func (w *world) ack(queue int, first, last uint64) error {
	p, err := w.log.AppendAck(uint64(queue), first, last)
	if err != nil {
		return err
	}
	w.model.ops = append(w.model.ops, op{pos: p, queue: uint64(queue), first: first, last: last})
	return w.store.Ack(uint64(queue), first, last)
}

// event sets a value.
func (w *world) event(key byte, value uint64) error {
	b := binary.LittleEndian.AppendUint64([]byte{key}, value)
	p, err := w.log.Append(kindEvent, nil, [][]byte{b})
	if err != nil {
		return err
	}
	w.model.ops = append(w.model.ops, op{pos: p, key: key, value: value})
	w.store.values[key] = value
	return nil
}
