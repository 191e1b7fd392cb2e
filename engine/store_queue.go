//ringmq:hot

package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// This file is the store as its queues see it: queue.Store.

// Leave implements queue.Store.
func (st *store) Leave(q *queue.Queue, p queue.Place) {
	if p.Pos == 0 {
		return
	}
	if p.Logged {
		st.note(owed{queue: q.ID, first: p.Seq, last: p.Seq})
	}
	st.wal.Release(walPosition(p.Pos), cost(p))
}

// Drop implements queue.Store.
func (st *store) Drop(p queue.Place) { st.wal.Release(walPosition(p.Pos), cost(p)) }

// Lease implements queue.Store.
func (st *store) Lease(q *queue.Queue, upTo uint64) {
	st.know(q)
	st.note(owed{kind: kindLease, queue: q.ID, first: upTo, leased: q})
}

// Requeued implements queue.Store.
func (st *store) Requeued(q *queue.Queue, seq uint64, deliveries uint16) {
	st.note(owed{kind: kindRequeued, queue: q.ID, first: seq, deliveries: deliveries})
}

// spillBacklog bounds what waits for the disk while bodies are written out.
const spillBacklog = 2 << 20

// Spill implements queue.Store.
func (st *store) Spill(q *queue.Queue, seq uint64, m *core.Message) (pos uint64, ok bool) {
	if st.wal.Backlog() > spillBacklog {
		return 0, false
	}
	st.know(q)
	st.refs = append(st.refs[:0], walRef{Queue: q.ID, Seq: seq})
	at, err := st.append(kindSpill, m)
	if err != nil {
		return 0, false
	}
	st.wal.Retain(at, cost(queue.Place{Size: uint32(m.BodyLen()), Carrier: true}))
	st.keeper.active = true
	return uint64(at), true
}

// waiter is an answer that waits until the log is safe up to end: to a publisher,
// to a queue that asked for a lease, or whatever fn does.
type waiter struct {
	end    walPosition
	origin Origin
	token  uint64
	q      *queue.Queue
	lease  uint64
	fn     func()
	from   int32
}

// waiterList is a queue of waiters in the order of their positions.
type waiterList struct {
	list []waiter
	head int
}

func (w *waiterList) push(x waiter) {
	if w.head == len(w.list) {
		w.list, w.head = w.list[:0], 0
	} else if w.head > 1024 && w.head > len(w.list)/2 {
		n := copy(w.list, w.list[w.head:])
		clear(w.list[n:])
		w.list, w.head = w.list[:n], 0
	}
	w.list = append(w.list, x)
}

func (w *waiterList) empty() bool { return w.head == len(w.list) }

// release answers everything that is safe.
func (st *store) release() {
	w := &st.waiters
	committed := st.wal.Committed()
	for w.head < len(w.list) && w.list[w.head].end <= committed {
		x := w.list[w.head]
		if x.q != nil && !st.shard.defined(x.q) {
			// The queue itself is not durable yet: a message in it is not either.
			return
		}
		w.list[w.head] = waiter{}
		w.head++
		st.answer(&x, true)
	}
}

// answer tells one waiter.
func (st *store) answer(x *waiter, ok bool) {
	switch {
	case x.lease != 0:
		x.q.Leased(x.lease)
	case x.fn != nil:
		x.fn()
	case x.origin == nil:
	case int(x.from) == st.shard.Index:
		x.origin.Settled(x.token, ok)
	default:
		st.shard.send(int(x.from), &Command{op: opConfirm, origin: x.origin, seq: x.token, ok: ok})
	}
}

// afterCommit calls fn once everything that was appended so far is safe, at once
// if it is.
func (st *store) afterCommit(fn func()) {
	if st.closed {
		return // nothing can be promised any more, and the process ends
	}
	if len(st.owed) > 0 && !st.pay() {
		st.paid = append(st.paid, fn)
		return
	}
	if st.waiters.empty() && st.wal.End() <= st.wal.Committed() {
		fn()
		return
	}
	st.waiters.push(waiter{end: st.wal.End(), fn: fn})
}

// Committed implements wal.Events.
func (st *store) Committed(walPosition) { st.release() }

// Space implements wal.Events.
func (st *store) Space(err error) { st.spaceChanged(err) }
