//ringmq:hot

package queue

import "ringmq/engine/core"

// Publish appends a message, taking over one reference. It returns false when
// the queue's overflow policy turns it away (LEN-03); the reference is consumed
// all the same. A deleted queue swallows it, which counts as accepted (QUE-11).
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
	var at int64
	if q.Settings.TTL >= 0 || m.Flags&core.FlagExpires != 0 {
		at = q.deadlineOf(m, now)
	}
	seq := q.order.push(q.host.Arena(), m, at)
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
	return true
}

func (q *Queue) refuse(m *core.Message) {
	q.Refused++
	if q.Settings.Overflow == RejectPublishDLX {
		q.host.DeadLetter(q, m, core.DiedMaxLength)
		return
	}
	m.Release(q.host.Arena())
}
