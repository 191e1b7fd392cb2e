//ringmq:hot

package queue

import "ringmq/engine/core"

// Place is where an entry's message stands in the log of the queue's shard.
type Place struct {
	Seq  uint64
	Pos  uint64 // position of the record, 0 = the message is in memory only
	Size uint32 // bytes of body
	// Logged: a restart brings the message back. Without it the record is only
	// where the body went when memory ran short.
	Logged bool
	// Carrier: the body counts as this place's; other queues' places in the same
	// record count as nothing.
	Carrier bool
}

// Store is the shard's log as its queues see it. It is called on the queue's
// loop.
type Store interface {
	// Leave says that a message is done in this queue: a restart must not bring
	// it back, and its space in the log may be used again.
	Leave(q *Queue, p Place)
	// Drop gives the space back and nothing else: what a restart must not bring
	// back is known already (Purged), or the whole queue is gone.
	Drop(p Place)
	// Purged says that everything from first to last is done, except what
	// consumers hold.
	Purged(q *Queue, first, last uint64)
	// Lease asks that a restart takes every message below upTo for one that may
	// have been delivered. The store calls q.Leased when that is certain.
	Lease(q *Queue, upTo uint64)
	// Requeued notes how often a message was handed out.
	Requeued(q *Queue, seq uint64, deliveries uint16)
	// Load reads bodies back from the entry seq at pos on; q.Fill takes them and
	// q.Loaded ends it, in a later turn.
	Load(q *Queue, seq, pos uint64)
	// Spill writes a message that is in memory only to the log, so that its body
	// may leave memory. It may refuse.
	Spill(q *Queue, seq uint64, m *core.Message) (pos uint64, ok bool)
	// Safe reports whether a crash cannot take back the record at pos.
	Safe(pos uint64) bool
	// Await has the store call q.Leased when all that is in the log now is safe. For
	// streams.
	Await(q *Queue)
}

// Dead is a message on its way out of the queue to the dead letter exchange.
// Whoever takes it owns the reference to Msg, which is nil when the body is in
// the log only, and calls Leave for a place with a position.
type Dead struct {
	Msg *core.Message
	Why core.DeathReason
	Place
}

// SetStore gives the queue its shard's log. Before anything is published.
func (q *Queue) SetStore(st Store) { q.store = st }

// Logs reports that the log keeps what is published with m's persistence.
func (q *Queue) Logs(m *core.Message) bool {
	return q.store != nil && q.Settings.Durable && (m.Persistent() || q.Settings.Type != Classic)
}

func placeOf(seq uint64, e *entry) Place {
	return Place{Seq: seq, Pos: e.pos, Size: e.size, Logged: e.is(entryLogged), Carrier: e.is(entryCarrier)}
}

// over ends an entry for good: its message is done.
func (q *Queue) over(seq uint64, e *entry) {
	a := q.host.Arena()
	if e.pos == 0 {
		// Never met the log: its body is here, and nothing else knows of it.
		e.msg.Release(a)
		q.order.remove(a, seq)
		return
	}
	if e.msg != nil {
		e.msg.Release(a)
	}
	q.store.Leave(q, placeOf(seq, e))
	q.forget(seq, e)
}

// forget takes an entry out whose message and place somebody else looks after.
func (q *Queue) forget(seq uint64, e *entry) {
	switch {
	case e.msg != nil:
		if e.pos != 0 {
			q.addWarm(-e.inMemory())
		}
	case e.state() == stateReady:
		q.addAbsent(-1)
	}
	if e.is(entryAhead) {
		q.ahead -= e.inMemory()
	}
	q.order.remove(q.host.Arena(), seq)
}

// dies ends an entry without success: it goes to the dead letter exchange, or
// nowhere. The caller has taken it out of the counts of ready and unacked.
func (q *Queue) dies(seq uint64, e *entry, why core.DeathReason) {
	if !q.Rules.DeadLetter {
		q.over(seq, e)
		return
	}
	d := Dead{Msg: e.msg, Why: why, Place: placeOf(seq, e)}
	q.forget(seq, e)
	q.host.DeadLetter(q, d)
}

const (
	// leaseAhead is how many messages one lease covers beyond what is asked for;
	// a restart after a crash calls them redelivered.
	leaseAhead = 4096
	// leaseEarly is how long before its end a lease is renewed, so that nobody
	// waits for the disk.
	leaseEarly = 1024
)

// deliverable reports whether the next entry may be handed out. If not, what it
// waits for has been asked for and will mark the queue dirty: its body, or that
// the log knows of its delivery. A client must never see a message twice without
// a sign, whatever happens in between (BAS-15).
func (q *Queue) deliverable(seq uint64, e *entry) bool {
	if e.msg == nil {
		q.load(seq, e)
		return false
	}
	if !e.is(entryLogged) {
		return true
	}
	if seq+leaseEarly >= q.leaseAsked {
		q.lease(seq)
	}
	// Records behind the lease's own need not wait for it: where they survive,
	// the lease does.
	return seq < q.leased || seq >= q.leaseFrom
}

// lease asks for the next lease, unless one that reaches beyond seq is asked for.
func (q *Queue) lease(seq uint64) {
	if seq < q.leaseAsked && q.leaseAsked > q.leased {
		return
	}
	q.leaseFrom = q.order.tail
	q.leaseAsked = max(seq, q.leaseAsked) + leaseAhead
	q.store.Lease(q, q.leaseAsked)
}

// BeforeLog is called before a message of this queue goes into the log: where
// consumers wait, the lease that covers its delivery goes first.
func (q *Queue) BeforeLog() {
	if len(q.members) > 0 && q.stream == nil && q.order.tail+leaseEarly/2 >= q.leaseAsked {
		q.lease(q.order.tail)
	}
}

// Leased implements the answer to Store.Lease, and to Store.Await.
func (q *Queue) Leased(upTo uint64) {
	if q.stream != nil {
		q.becameSafe()
		return
	}
	if upTo > q.leased && q.leaseFrom != frozen {
		q.leased = upTo
		if q.ready > 0 && !q.deleted {
			q.host.MarkDirty(q)
		}
	}
}

// frozen is a leaseFrom that no message reaches.
const frozen = ^uint64(0)

// Freeze ends deliveries of what the log keeps: the checkpoint that says what was
// delivered is being written, and must stay true.
func (q *Queue) Freeze() { q.leased, q.leaseFrom, q.leaseAsked = 0, frozen, frozen }

// NextSeq is the sequence number that the next message will get.
func (q *Queue) NextSeq() uint64 { return q.order.tail }
