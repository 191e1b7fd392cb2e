package queue

import "ringmq/engine/core"

// neverDue is the deadline of a message whose time to live is 0: it may only
// go to a consumer that is ready when it arrives (TTL-03).
const neverDue = int64(1)

// deadlineOf is the smaller of the queue's and the message's own time to live,
// from now (TTL-01).
func (q *Queue) deadlineOf(m *core.Message, now int64) int64 {
	ttl := q.Rules.TTL
	if m.Flags&core.FlagExpires != 0 && (ttl < 0 || m.TTL < ttl) {
		ttl = m.TTL
	}
	if ttl == 0 {
		return neverDue
	}
	return now + ttl*int64(1e6)
}

// arrived remembers when a new entry expires, wherever it stands in the queue.
func (q *Queue) arrived(seq uint64, at int64) {
	if at == neverDue {
		q.zeros = append(q.zeros, seq)
		return
	}
	q.index(seq, q.order.at(seq))
}

// index gives an entry its record in the index of deadlines, unless it has one:
// an entry that goes back and forth between queue and consumers keeps the one it
// has, or the index would grow with every round.
func (q *Queue) index(seq uint64, e *entry) {
	if e.is(entryIndexed) {
		return
	}
	if len(q.deadlines) > 1024 && len(q.deadlines) > 4*q.order.live {
		q.compactDeadlines()
	}
	e.flags |= entryIndexed
	q.deadlines.push(deadline{e.deadline, seq})
	if q.deadlines[0].seq == seq {
		q.host.Schedule(q, e.deadline)
	}
}

// compactDeadlines forgets entries that left in time, so that the index stays
// in proportion to the queue.
func (q *Queue) compactDeadlines() {
	kept := q.deadlines[:0]
	for _, d := range q.deadlines {
		if q.order.at(d.seq) != nil {
			kept = append(kept, d)
		}
	}
	q.deadlines = kept
	q.deadlines.rebuild()
}

// NextDue is when the next message may expire, of a stream when it looks for such
// messages next, 0 if none will.
func (q *Queue) NextDue() int64 {
	if q.stream != nil {
		return q.stream.sweepAt
	}
	if len(q.deadlines) == 0 {
		return 0
	}
	return q.deadlines[0].at
}

// expire removes what is due, at most ExpiryBatch entries; it reports whether
// more is due. An entry that a consumer holds is left alone: it expires when it
// comes back.
func (q *Queue) expire(now int64) (more bool) {
	for n := 0; len(q.deadlines) > 0 && q.deadlines[0].at <= now; n++ {
		if n == core.ExpiryBatch {
			return true
		}
		d := q.deadlines[0]
		q.deadlines.pop()
		e := q.order.at(d.seq)
		if e == nil || e.deadline != d.at {
			continue // it is gone, or has another deadline by now
		}
		if e.state() != stateReady {
			e.flags &^= entryIndexed
			continue
		}
		q.expireEntry(d.seq, e)
	}
	if len(q.deadlines) > 0 {
		q.host.Schedule(q, q.deadlines[0].at)
	}
	return false
}

// overdue reports that some deadline has passed.
func (q *Queue) overdue(now int64) bool {
	return len(q.deadlines) > 0 && q.deadlines[0].at <= now
}

// expireZeros drops what had no time to live and found no consumer.
func (q *Queue) expireZeros() {
	for _, seq := range q.zeros {
		if e := q.order.at(seq); e != nil && e.state() == stateReady && e.deadline == neverDue {
			q.expireEntry(seq, e)
		}
	}
	q.zeros = q.zeros[:0]
}

func (q *Queue) expireEntry(seq uint64, e *entry) {
	q.unready(e)
	q.Expired++
	q.dies(seq, e, core.DiedExpired)
}
