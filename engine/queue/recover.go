package queue

// This file is how a queue comes back after a restart, and how a checkpoint
// looks at it.

// Recovered is one message that the log brought back.
type Recovered struct {
	Place
	Deadline int64 // monotonic nanoseconds, 0 = never expires
	Arrival  int64 // ms since 1970
	Priority uint8 // of the message
}

// RecoverFloor says that every sequence number below floor is done.
func (q *Queue) RecoverFloor(floor uint64) {
	f := &q.order
	// Whole chunks, so that prepend can always go down to zero.
	if start := floor &^ chunkMask; len(f.chunks) == 0 && start > f.base {
		f.base, f.head = start, start
	}
	f.tail = max(f.tail, floor)
}

// RecoverTail says that every sequence number below next was used.
func (q *Queue) RecoverTail(next uint64) { q.order.tail = max(q.order.tail, next) }

// Recover puts a message in its place; the body stays in the log. If the log
// held it twice, the older place is returned.
func (q *Queue) Recover(r Recovered) (old Place, twice bool) {
	f := &q.order
	if r.Seq < f.base {
		// Only a copy of a message that was older than all that is left.
		q.prepend(r.Seq)
	}
	index := r.Seq - f.base
	for uint64(len(f.chunks)) <= index>>chunkShift {
		f.chunks = append(f.chunks, nil)
	}
	f.tail = max(f.tail, r.Seq+1)
	c := f.chunks[index>>chunkShift]
	if c == nil {
		c = newChunk(q.host.Arena())
		c.entries = [chunkEntries]entry{}
		f.chunks[index>>chunkShift] = c
	}
	e := &c.entries[index&chunkMask]
	if e.state() == stateReady {
		old = placeOf(r.Seq, e)
		e.pos = r.Pos
		e.flags &^= entryCarrier
		e.carry(r.Carrier)
		return old, true
	}
	*e = entry{deadline: r.Deadline, pos: r.Pos, size: r.Size, flags: stateReady | entryLogged}
	e.carry(r.Carrier)
	if f.levels != nil {
		e.priority = f.levels.levelOf(r.Priority)
	}
	if q.stream != nil {
		e.deadline = r.Arrival
	}
	c.live++
	f.live++
	q.ready++
	q.addAbsent(1)
	q.readyBytes += int64(r.Size)
	return Place{}, false
}

func (e *entry) carry(on bool) {
	if on {
		e.flags |= entryCarrier
	}
}

// prepend makes room before the base.
func (q *Queue) prepend(seq uint64) {
	f := &q.order
	n := (f.base - seq + chunkMask) >> chunkShift
	chunks := make([]*chunk, int(n)+len(f.chunks))
	copy(chunks[n:], f.chunks)
	f.chunks = chunks
	f.base -= n << chunkShift
	f.head = f.base
}

// RecoverAck takes out what was done, and tells the places.
func (q *Queue) RecoverAck(first, last uint64, gone func(Place)) {
	f := &q.order
	f.tail = max(f.tail, last+1)
	if f.live == 0 {
		return
	}
	for seq := max(first, f.base); seq <= last && f.live > 0; {
		index := seq - f.base
		if index>>chunkShift >= uint64(len(f.chunks)) {
			return
		}
		c := f.chunks[index>>chunkShift]
		if c == nil {
			seq = f.base + (index | chunkMask) + 1
			continue
		}
		if e := &c.entries[index&chunkMask]; e.state() == stateReady {
			gone(placeOf(seq, e))
			q.ready--
			q.readyBytes -= int64(e.size)
			q.recoverGone(c, e, int(index>>chunkShift))
		}
		seq++
	}
}

// recoverGone takes one entry out without the short cuts of a running queue, which
// would move the base.
func (q *Queue) recoverGone(c *chunk, e *entry, i int) {
	e.setState(stateGone)
	c.live--
	q.order.live--
	q.addAbsent(-1)
	if c.live == 0 {
		freeChunk(q.host.Arena(), c)
		q.order.chunks[i] = nil
	}
}

// RecoverLease says that every message below upTo may have been delivered.
func (q *Queue) RecoverLease(upTo uint64) {
	q.leased = max(q.leased, upTo)
	q.leaseAsked = q.leased
}

// RecoverDeliveries says how often a message had been handed out; 0: perhaps it was, and
// the queue counts.
func (q *Queue) RecoverDeliveries(seq uint64, deliveries uint16) {
	if (seq-q.order.base)>>chunkShift >= uint64(len(q.order.chunks)) {
		return // it is done, and so is everything near it
	}
	if e := q.order.at(seq); e != nil {
		e.deliveries = max(e.deliveries, deliveries)
		if deliveries == 0 {
			e.flags |= entryMaybe
		}
	}
}

// recovered makes the directory and the tail agree, whatever was taken out, and returns
// how many chunks there are.
func (f *fifo) recovered() (n uint64) {
	for len(f.chunks) > 0 && f.chunks[len(f.chunks)-1] == nil {
		f.chunks = f.chunks[:len(f.chunks)-1]
	}
	if f.live == 0 {
		f.chunks = f.chunks[:0]
		f.base = f.tail
		return 0
	}
	f.dropLeading()
	n = (f.tail - f.base + chunkMask) >> chunkShift
	for uint64(len(f.chunks)) < n {
		f.chunks = append(f.chunks, nil)
	}
	return n
}

// RecoverEnd makes the queue ready to run.
func (q *Queue) RecoverEnd() {
	if q.stream != nil {
		q.recoverStream()
		return
	}
	f := &q.order
	if n := f.recovered(); n > 0 {
		// The next message begins a chunk of its own: what follows in the last
		// one are gaps.
		f.tail = f.base + n<<chunkShift
	}
	f.head = f.base
	if f.levels != nil {
		f.head = f.tail
	}
	q.leaseFrom = f.tail
	for i, c := range f.chunks {
		if c == nil || c.live == 0 {
			continue
		}
		for j := range c.entries {
			e := &c.entries[j]
			if e.state() != stateReady {
				continue
			}
			seq := f.base + uint64(i)<<chunkShift + uint64(j)
			switch {
			case seq >= q.leased:
			case q.counting && e.deliveries == 0:
				e.flags |= entryMaybe
			default:
				e.deliveries = max(e.deliveries, 1)
			}
			if e.deliveries > 0 || e.is(entryMaybe) {
				q.deliveredTo = seq + 1
			}
			if f.levels != nil {
				f.levels.push(e.priority, seq)
			}
			if e.deadline != 0 {
				q.index(seq, e)
			}
		}
	}
	if f.live > 0 {
		q.host.MarkDirty(q)
	}
	q.show()
}

// LeaseMark is the end of the last lease.
func (q *Queue) LeaseMark() uint64 { return q.leaseAsked }

// EachDelivered calls f for messages of which a lease does not say enough: handed
// out more than once, or once and not below lease or by a queue that counts. It begins at a sequence number,
// looks at no more than n entries and returns where to go on; done tells that
// there is no more.
func (q *Queue) EachDelivered(from, lease uint64, n int, f func(seq uint64, deliveries uint16)) (next uint64, done bool) {
	o := &q.order
	seq := max(from, o.base)
	end := max(o.head, min(q.deliveredTo, o.tail))
	for ; seq < end; n-- {
		if n == 0 {
			return seq, false
		}
		index := seq - o.base
		c := o.chunks[index>>chunkShift]
		if c == nil {
			seq = o.base + (index | chunkMask) + 1
			continue
		}
		if e := &c.entries[index&chunkMask]; e.state() != stateGone && e.is(entryLogged) && q.tells(seq, lease, e) {
			f(seq, e.deliveries)
		}
		seq++
	}
	return seq, true
}

// tells reports whether a lease says too little about an entry. A count of 0 stands for
// entryMaybe.
func (q *Queue) tells(seq, lease uint64, e *entry) bool {
	switch {
	case e.deliveries > 1, e.deliveries == 1 && q.counting:
		return true
	case e.deliveries == 1, e.is(entryMaybe):
		return seq >= lease
	}
	return false
}

// EachGap calls f for the ranges that hold nothing, from a sequence number on,
// looking at no more than n chunks. Everything below Floor is a gap as well.
func (q *Queue) EachGap(from uint64, n int, f func(first, last uint64)) (next uint64, done bool) {
	o := &q.order
	seq := max(from, o.base)
	for ; seq < o.tail; n-- {
		if n == 0 {
			return seq, false
		}
		index := seq - o.base
		end := min(o.base+(index|chunkMask)+1, o.tail) // behind this chunk
		if c := o.chunks[index>>chunkShift]; c == nil {
			f(seq, end-1)
		} else if uint64(c.live) < end-seq {
			c.gaps(o.base+index&^uint64(chunkMask), seq, end, f)
		}
		seq = end
	}
	return seq, true
}

// gaps calls f for the gaps of a chunk that begins at start.
func (c *chunk) gaps(start, from, end uint64, f func(first, last uint64)) {
	for seq := from; seq < end; seq++ {
		if c.entries[seq-start].state() != stateGone {
			continue
		}
		first := seq
		for seq+1 < end && c.entries[seq+1-start].state() == stateGone {
			seq++
		}
		f(first, seq)
	}
}

// Floor is the sequence number below which everything is done.
func (q *Queue) Floor() uint64 { return q.order.base }
