//ringmq:hot

package engine

import (
	"sync/atomic"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// store is a shard's log and what hangs on it: the answers that wait for the
// disk, the messages that wait for room, the bodies that left memory. It belongs
// to the shard's loop. It implements queue.Store.
//
//	publish ─ Admit ─ append ─ Put ─▶ queue
//	                    │
//	                    └ waiter ── committed ──▶ confirm
type store struct {
	shard *Shard
	opts  *StorageOptions
	wal   *walLog
	dev   *logDevice

	queues map[uint64]*queue.Queue // all that have or had something in the log
	// goneAt is the last change of the catalog that took one of them away. Until it is
	// durable the queue may come back, and no checkpoint may forget what was done in it.
	goneAt uint64

	waiters waiterList
	parked  []batch  // publishes that came while the log had no room
	batch   batch    // publishes of one message that another loop sent
	owed    []owed   // acknowledgements and events that came while it had none for them either
	paid    []func() // what to do after those are safe
	targets []target

	head   [core.StoredHeadBytes]byte
	parts  [2][]byte
	refs   []walRef
	small  [24]byte
	lists  targetPool
	loads  loadPool
	dying  map[dyingKey]struct{} // left their queue and are not done yet
	mourns *bodyFetch            // a dead letter's body that is being read
	alone  *scatteredReads       // made when they are needed

	checkpoint checkpointWalk
	keeper     keeper

	behind  atomic.Bool // publishers to this shard should pause
	noSpace atomic.Bool // persistent messages are refused
	tight   atomic.Bool // memory is short, and bodies leave it slower than they come

	paged   pagedCounts
	absent  int64       // ready messages whose body is on the disk only
	warm    int64       // bytes of bodies that are in memory as well as in the log
	quiet   func()      // to be told when nothing is on its way any more, see whenQuiet
	quietBy int64       // or at this time, monotonic nanoseconds
	closing func(error) // the log is being closed; to be told
	closed  bool        // nothing more may be given to it
}

// target is one queue that a message goes to, and who asks what became of it.
type target struct {
	q      *queue.Queue
	origin Origin
	token  uint64
	from   int // shard of the origin
}

// batch is one message for several queues of this shard: it is stored once.
type batch struct {
	m        *core.Message
	targets  []target
	admitted bool // the queues' limits were asked
}

// targetPool keeps slices of targets.
type targetPool struct{ free [][]target }

func (p *targetPool) get() []target {
	n := len(p.free)
	if n == 0 {
		return nil
	}
	l := p.free[n-1]
	p.free[n-1] = nil
	p.free = p.free[:n-1]
	return l[:0]
}

func (p *targetPool) put(l []target) {
	if len(p.free) < 64 {
		clear(l)
		p.free = append(p.free, l[:0])
	}
}

// behindBytes is the backlog of the disk above which publishers pause.
const behindBytes = 4 << 20

// cost is what a place counts for in its segment.
func cost(p queue.Place) int {
	if !p.Carrier {
		return 1
	}
	return int(p.Size) + storedOverhead
}

// storedOverhead is about what a record takes beside the body.
const storedOverhead = 128

// know remembers a queue that gets something into the log.
func (st *store) know(q *queue.Queue) {
	if !q.Known {
		q.Known = true
		q.Tally(&st.absent, &st.warm)
		st.queues[q.ID] = q
	}
}

// publish stores one message for one queue and puts it there. It takes over the
// reference.
func (st *store) publish(m *core.Message, t target) Outcome {
	st.targets = append(st.targets[:0], t)
	_, _, out := st.publishAll(m, st.targets)
	return out
}

// publishAll stores one message once for all its queues and puts it there. It
// takes over one reference for each. out is the outcome of the last one that did
// not simply succeed, for callers with one target; pending and refused count.
func (st *store) publishAll(m *core.Message, targets []target) (pending uint32, refused bool, out Outcome) {
	if len(st.parked) > 0 {
		return st.park(m, targets, false)
	}
	s := st.shard
	n := 0
	for _, t := range targets {
		switch {
		case t.q.Deleted():
			m.Release(s.arena) // swallowed, which counts as accepted (QUE-11)
			pending += st.tell(t, true, &out)
		case !t.q.Admit(m, s.now):
			refused = true
			out = Refused
			pending += st.tell(t, false, &out)
		default:
			targets[n] = t
			n++
		}
	}
	if n == 0 {
		return pending, refused, out
	}
	p, r, o := st.store(m, targets[:n])
	if o != Accepted {
		out = o
	}
	return pending + p, refused || r, out
}

// tell answers for a target that needs no disk: at once to another loop, by the
// outcome to our own.
func (st *store) tell(t target, ok bool, out *Outcome) (pending uint32) {
	if t.origin == nil || t.from == st.shard.Index {
		if !ok {
			*out = Refused
		}
		return 0
	}
	st.shard.send(t.from, &Command{op: opConfirm, origin: t.origin, seq: t.token, ok: ok})
	return 0
}

// store appends the record of admitted targets and puts the message into their
// queues.
func (st *store) store(m *core.Message, targets []target) (pending uint32, refused bool, out Outcome) {
	if len(targets) > walRefsMax {
		p, r, o := st.store(m, targets[walRefsMax:])
		pending, refused, out = st.store(m, targets[:walRefsMax])
		return pending + p, refused || r, max(out, o)
	}
	st.refs = st.refs[:0]
	for i := range targets {
		q := targets[i].q
		q.BeforeLog()
		st.know(q)
		st.refs = append(st.refs, walRef{Queue: q.ID, Seq: q.NextSeq()})
	}
	pos, err := st.append(kindMessage, m)
	if err != nil {
		if isBusy(err) {
			return st.park(m, targets, true)
		}
		return st.refuseAll(m, targets, err)
	}
	return st.place(m, targets, pos), false, st.outcome(targets)
}

// outcome is what the publisher of a stored message is told at once.
func (st *store) outcome(targets []target) Outcome {
	if targets[0].origin != nil {
		return Pending
	}
	return Accepted
}

// place puts a message that stands in the log at pos into its queues, and counts
// those that wait for the disk.
func (st *store) place(m *core.Message, targets []target, pos walPosition) (pending uint32) {
	end := st.wal.End()
	for i := range targets {
		t := &targets[i]
		p := queue.Place{Pos: uint64(pos), Size: uint32(m.BodyLen()), Logged: true, Carrier: i == 0}
		st.wal.Retain(pos, cost(p))
		if t.origin != nil {
			st.waiters.push(waiter{end: end, origin: t.origin, token: t.token, from: int32(t.from), q: t.q})
			pending++
		}
		t.q.Put(m, st.shard.now, p.Pos, p.Carrier)
	}
	st.keeper.active = true
	return pending
}

// append writes a message's record with the references in st.refs.
func (st *store) append(kind uint8, m *core.Message) (walPosition, error) {
	if len(st.owed) > 0 && !st.pay() {
		return 0, errBusy // a lease may be owed that is to stand before the message
	}
	m.PutStoredHead(st.head[:])
	st.parts[0], st.parts[1] = st.head[:], m.Stored()
	pos, err := st.wal.Append(kind, st.refs, st.parts[:])
	st.parts[1] = nil
	return pos, err
}

// unstored is what a refusal says of its reason: 1 if it is the log's and may pass.
func unstored(err error) uint32 {
	if isSpace(err) || isEnded(err) {
		return 1
	}
	return 0
}

// refuseAll turns an admitted message away because the log does not take it.
func (st *store) refuseAll(m *core.Message, targets []target, err error) (pending uint32, refused bool, out Outcome) {
	out = Refused
	if isSpace(err) {
		out = NoSpace
	}
	for i := range targets {
		m.Release(st.shard.arena)
		targets[i].q.Refused++
		st.shard.Stats.Unstored++
		if t := &targets[i]; t.origin != nil && t.from != st.shard.Index {
			st.shard.send(t.from, &Command{op: opConfirm, origin: t.origin, seq: t.token, n: unstored(err)})
		}
	}
	return 0, true, out
}

// park keeps a publish until the log has room again. Everything behind it waits
// as well, so that order is kept. Publishers are paused meanwhile, which bounds
// it to what had been received.
func (st *store) park(m *core.Message, targets []target, admitted bool) (pending uint32, refused bool, out Outcome) {
	list := append(st.lists.get(), targets...)
	for i := range list {
		if list[i].origin != nil {
			pending++
			out = Pending
		}
	}
	st.parked = append(st.parked, batch{m: m, targets: list, admitted: admitted})
	st.press(&st.behind, true)
	return pending, false, out
}

// unpark tries what is parked again.
func (st *store) unpark() {
	n := 0
	for n < len(st.parked) {
		b := &st.parked[n]
		if st.wal.Space() == nil && st.wal.Backlog() > behindBytes {
			break
		}
		if !st.retry(b) {
			break
		}
		st.lists.put(b.targets)
		st.parked[n] = batch{}
		n++
	}
	if n > 0 {
		rest := copy(st.parked, st.parked[n:])
		clear(st.parked[rest:])
		st.parked = st.parked[:rest]
	}
}

// retry does a parked publish; it reports false when the log still has no room.
// Those that ask are told as they were promised: later.
func (st *store) retry(b *batch) bool {
	s := st.shard
	n := 0
	for _, t := range b.targets {
		w := waiter{origin: t.origin, token: t.token, from: int32(t.from)}
		switch {
		case t.q.Deleted() || !t.q.Logs(b.m):
			st.answer(&w, t.q.Publish(b.m, s.now))
		case !b.admitted && !t.q.Admit(b.m, s.now):
			st.answer(&w, false)
		default:
			b.targets[n] = t
			n++
		}
	}
	b.targets, b.admitted = b.targets[:n], true
	if n == 0 {
		return true
	}
	st.refs = st.refs[:0]
	for i := range b.targets {
		q := b.targets[i].q
		q.BeforeLog()
		st.know(q)
		st.refs = append(st.refs, walRef{Queue: q.ID, Seq: q.NextSeq()})
	}
	pos, err := st.append(kindMessage, b.m)
	if err == nil {
		st.place(b.m, b.targets, pos)
		return true
	}
	if isBusy(err) {
		return false
	}
	for _, t := range b.targets {
		b.m.Release(s.arena)
		t.q.Refused++
		s.Stats.Unstored++
		switch {
		case t.origin == nil:
		case t.from == s.Index:
			if unstored(err) != 0 {
				noteUnstored(t.origin)
			}
			t.origin.Settled(t.token, false)
		default:
			s.send(t.from, &Command{op: opConfirm, origin: t.origin, seq: t.token, n: unstored(err)})
		}
	}
	return true
}

// add collects a publish that another loop sent: those of one message follow one
// another and become one record.
func (st *store) add(c *Command, from int) {
	if st.batch.m != c.m && st.batch.m != nil {
		st.flushBatch()
	}
	st.batch.m = c.m
	st.batch.targets = append(st.batch.targets, target{q: c.q, origin: c.origin, token: c.seq, from: from})
}

// flushBatch publishes what add collected.
func (st *store) flushBatch() {
	m := st.batch.m
	if m == nil {
		return
	}
	st.batch.m = nil
	st.publishAll(m, st.batch.targets)
	clear(st.batch.targets)
	st.batch.targets = st.batch.targets[:0]
}
