package queue

import "ringmq/engine/core"

// overLimit reports whether ready messages exceed a limit.
func (q *Queue) overLimit() bool {
	s := &q.Rules
	return (s.MaxLength >= 0 && int64(q.ready) > s.MaxLength) ||
		(s.MaxBytes >= 0 && q.readyBytes > s.MaxBytes)
}

// atLimit reports whether a publish would find the queue full (LEN-03).
func (q *Queue) atLimit() bool {
	s := &q.Rules
	return (s.MaxLength >= 0 && int64(q.ready+q.owed) >= s.MaxLength) ||
		(s.MaxBytes >= 0 && q.readyBytes+q.owedBytes >= s.MaxBytes)
}

// Owe counts a dead letter of size bytes that left the queue and that nobody took yet: it
// counts for what may be published (LEN-03). The queue's loop only.
func (q *Queue) Owe(size uint32) {
	q.owed++
	q.owedBytes += int64(size)
}

// Paid is the end of that.
func (q *Queue) Paid(size uint32) {
	q.owed--
	q.owedBytes -= int64(size)
}

// Owed is how many of those there are.
func (q *Queue) Owed() int { return q.owed }

// refuses decides whether a full queue turns a message away. Consumers get
// their chance first: what they can take does not count.
func (q *Queue) refuses(now int64) bool {
	if q.Rules.Overflow == DropHead {
		return false
	}
	if q.atLimit() {
		q.Settle(now, core.DispatchBatch)
	}
	return q.atLimit()
}

// trim drops from the head until the limits hold (LEN-02).
func (q *Queue) trim() {
	if q.Rules.Overflow != DropHead {
		return
	}
	for q.overLimit() {
		seq, e := q.takeFirst()
		if e == nil {
			return
		}
		q.Dropped++
		q.dies(seq, e, core.DiedMaxLength)
	}
}

// takeFirst takes the first ready entry out of what can be delivered.
func (q *Queue) takeFirst() (uint64, *entry) {
	seq, e := q.order.first()
	if e == nil {
		return 0, nil
	}
	q.order.taken(seq)
	q.unready(e)
	return seq, e
}

// unready takes a ready entry out of the counts.
func (q *Queue) unready(e *entry) {
	q.ready--
	q.readyBytes -= int64(e.size)
}

// exhausted ends an entry that comes back more often than the queue's delivery limit
// allows: it was handed out limit+1 times (DLX-09).
func (q *Queue) exhausted(seq uint64, e *entry, c *Consumer) bool {
	if limit := q.Rules.DeliveryLimit; limit < 0 || int64(e.deliveries) <= limit {
		return false
	}
	q.unacked--
	q.dies(seq, e, core.DiedDeliveryLimit)
	q.settled(c)
	if q.order.live == 0 {
		q.host.MarkDirty(q)
	}
	return true
}

// Discard settles an unacked entry without success: dead letter exchange or
// nothing (basic.reject and nack with requeue off).
func (q *Queue) Discard(seq uint64, c *Consumer) {
	if q.stream != nil {
		q.credit(c)
		return
	}
	e := q.order.at(seq)
	if e == nil || e.state() != stateUnacked {
		return
	}
	q.unacked--
	q.dies(seq, e, core.DiedRejected)
	q.settled(c)
	if q.order.live == 0 {
		q.host.MarkDirty(q)
	}
}
