package queue

// This file is how messages leave a stream: from its oldest on, as the rules say.

const (
	// retainBatch bounds how many messages leave in one Settle.
	retainBatch = 4096
	// sweepMin is the shortest time between two looks at the age of messages,
	// sweepMax the longest: the wall clock may be set meanwhile. Nanoseconds.
	sweepMin = int64(100e6)
	sweepMax = int64(60e9)
)

// streamRules are those of rules that mean something to a stream. A policy may have
// set the others.
func streamRules(r Rules) Rules {
	s := NoRules()
	s.MaxBytes, s.MaxAge, s.ConsumerTimeout = r.MaxBytes, r.MaxAge, r.ConsumerTimeout
	return s
}

// retain drops what is too much or too old (STR-03), a bounded number of messages,
// and reports whether there is more. At least one message stays whatever its size.
func (q *Queue) retain(now int64) (more bool) {
	n := 0
	if limit := q.Rules.MaxBytes; limit >= 0 {
		for ; q.readyBytes > limit && q.order.live > 1; n++ {
			if n == retainBatch {
				return true
			}
			q.Dropped++
			q.drops(q.oldestEntry())
		}
	}
	s := q.stream
	if q.Rules.MaxAge == 0 || now < s.sweepAt {
		return false
	}
	limit := q.host.WallMillis() - q.Rules.MaxAge
	for ; ; n++ {
		seq, e := q.oldestEntry()
		if e == nil {
			s.sweepAt = 0 // the next message starts the clock
			return false
		}
		if e.deadline > limit {
			s.sweepAt = now + min(max((e.deadline-limit)*1e6, sweepMin), sweepMax)
			q.host.Schedule(q, s.sweepAt)
			return false
		}
		if n == retainBatch {
			return true
		}
		q.Expired++
		q.drops(seq, e)
	}
}

// oldestEntry is the oldest entry of a stream, nil for none.
func (q *Queue) oldestEntry() (uint64, *entry) {
	seq, e := q.order.nextLive(max(q.stream.oldest, q.order.base), q.order.tail)
	q.stream.oldest = seq
	return seq, e
}

// nextLive finds the first entry from seq on that is not gone, nil if there is none
// before end.
func (f *fifo) nextLive(seq, end uint64) (uint64, *entry) {
	for seq < end {
		index := seq - f.base
		c := f.chunks[index>>chunkShift]
		if c == nil {
			seq = f.base + (index | chunkMask) + 1
			continue
		}
		if e := &c.entries[index&chunkMask]; e.state() != stateGone {
			return seq, e
		}
		seq++
	}
	return end, nil
}
