//ringmq:hot

package queue

import "ringmq/engine/core"

// Publish appends a message that is kept in memory only, taking over one
// reference. It returns false when the queue turns it away (Admit); the reference
// is consumed all the same. A deleted queue swallows it, which counts as accepted
// (QUE-11).
func (q *Queue) Publish(m *core.Message, now int64) (accepted bool) {
	if q.deleted {
		m.Release(q.host.Arena())
		return true
	}
	q.Published++
	if q.limited && q.refuses(now) {
		q.refuse(m)
		return false
	}
	q.enqueue(m, now, 0, 0)
	return true
}

// Admit asks the queue's overflow policy whether a message may come (LEN-03). If
// not, the reference is consumed. REQUIRES: the queue is not deleted.
func (q *Queue) Admit(m *core.Message, now int64) bool {
	q.Published++
	if q.limited && q.refuses(now) {
		q.refuse(m)
		return false
	}
	return true
}

// Put appends an admitted message that stands in the log at pos; carrier as in
// Place. It takes over one reference. The message gets NextSeq.
func (q *Queue) Put(m *core.Message, now int64, pos uint64, carrier bool) {
	flags := entryLogged
	if carrier {
		flags |= entryCarrier
	}
	q.enqueue(m, now, pos, flags)
}

func (q *Queue) enqueue(m *core.Message, now int64, pos uint64, flags uint8) {
	if q.stream != nil {
		q.add(m, pos, flags)
		return
	}
	var at int64
	if q.Rules.TTL >= 0 || m.Flags&core.FlagExpires != 0 {
		at = q.deadlineOf(m, now)
	}
	seq := q.order.push(q.host.Arena(), m, at, pos, flags)
	if pos != 0 {
		q.addWarm(m.BodyLen() + core.MessageOverheadBytes)
	}
	q.ready++
	q.readyBytes += int64(m.BodyLen())
	if at != 0 {
		q.arrived(seq, at)
	}
	if !q.Dirty {
		q.host.MarkDirty(q)
	}
	if q.limited && q.overLimit() {
		// Consumers first, then the head goes: the queue never holds much
		// more than its limit, however large the turn.
		q.Settle(now, core.DispatchBatch)
	}
}

// refuse turns a message away. One that nobody keeps has no place in the log.
func (q *Queue) refuse(m *core.Message) {
	q.Refused++
	if q.Rules.Overflow == RejectPublishDLX && q.Rules.DeadLetter {
		q.host.DeadLetter(q, Dead{Msg: m, Why: core.DiedMaxLength})
		return
	}
	m.Release(q.host.Arena())
}
