package queue

import "ringmq/engine/core"

const (
	// aheadBytes is how much a queue has read back before its consumers ask.
	aheadBytes = 512 << 10
	// aheadScan bounds the search for the next body to read back.
	aheadScan = 4096
	// headEntries stay in memory at the head of a queue, the next to go out, unless
	// they are large.
	headEntries  = 64
	headEntryMax = 4 << 10
	// pageScan bounds the entries that one call of PageOut looks at.
	pageScan = 8192
)

// load asks for a body and those behind it.
func (q *Queue) load(seq uint64, e *entry) {
	if !q.loading {
		q.loading = true
		q.store.Load(q, seq, e.pos)
	}
}

// readAhead asks for the bodies that the consumers will want next.
func (q *Queue) readAhead() {
	if q.loading || q.ahead >= aheadBytes {
		return
	}
	seq := max(q.order.head, q.aheadAt)
	for n := 0; n < aheadScan && seq < q.order.tail; n++ {
		index := seq - q.order.base
		c := q.order.chunks[index>>chunkShift]
		if c == nil {
			seq = q.order.base + (index | chunkMask) + 1
			continue
		}
		if e := &c.entries[index&chunkMask]; e.state() == stateReady && e.msg == nil {
			q.aheadAt = seq
			q.load(seq, e)
			return
		}
		seq++
	}
	q.aheadAt = seq
}

// Absent reports whether the entry seq waits for its body, which stands at pos.
func (q *Queue) Absent(seq, pos uint64) bool {
	e := q.order.at(seq)
	return e != nil && e.msg == nil && e.pos == pos && e.state() == stateReady && !q.deleted
}

// Tally makes absent count the queue's ready messages whose body is on the disk
// only, and warm the bytes of those that are in memory as well as in the log.
func (q *Queue) Tally(absent, warm *int64) {
	q.absentTally, q.warmTally = absent, warm
	*absent += int64(q.absent)
	*warm += q.warm
}

// addWarm counts bytes of bodies that could leave memory for nothing.
func (q *Queue) addWarm(n int) {
	q.warm += int64(n)
	if q.warmTally != nil {
		*q.warmTally += int64(n)
	}
}

// addAbsent counts ready messages whose body is on the disk only.
func (q *Queue) addAbsent(n int) {
	q.absent += n
	if q.absentTally != nil {
		*q.absentTally += int64(n)
	}
}

// StandsAt reports whether the message seq is live with its record at pos.
func (q *Queue) StandsAt(seq, pos uint64) bool {
	e := q.order.at(seq)
	return e != nil && e.pos == pos
}

// Move says that the record of a live message now stands at pos, with the body
// counted here or not. It returns the places before and after.
func (q *Queue) Move(seq, pos uint64, carrier bool) (was, is Place) {
	e := q.order.at(seq)
	was = placeOf(seq, e)
	e.pos = pos
	e.flags &^= entryCarrier
	e.carry(carrier)
	return was, placeOf(seq, e)
}

// Fill gives the body back to an entry that waits for it (Absent). It takes over
// the reference.
func (q *Queue) Fill(seq uint64, m *core.Message) {
	e := q.order.at(seq)
	e.msg = m
	if q.stream != nil {
		q.stream.back.push(seq, e.inMemory())
	} else {
		e.flags |= entryAhead
		q.ahead += e.inMemory()
	}
	q.addWarm(e.inMemory())
	q.addAbsent(-1)
	q.order.chunks[(seq-q.order.base)>>chunkShift].resident++
	q.aheadAt = seq + 1
	if q.Rules.TTL != q.Settings.TTL || q.retimeEnd > seq {
		q.retimeEntry(seq, e, q.host.Now(), q.host.WallMillis())
	}
}

// Loaded ends a Load.
func (q *Queue) Loaded() {
	q.loading = false
	if q.stream != nil {
		q.stream.thirsty.wake()
	}
	if q.ready > 0 && !q.deleted {
		q.host.MarkDirty(q)
	}
}

// Lost removes an entry whose body cannot be read any more, and reports whether
// it was there.
func (q *Queue) Lost(seq, pos uint64) bool {
	if !q.Absent(seq, pos) {
		return false
	}
	e := q.order.at(seq)
	q.ready--
	q.readyBytes -= int64(e.size)
	q.Dropped++
	if q.stream != nil {
		q.stream.gone(seq, e)
	}
	q.over(seq, e)
	return true
}

// pageOut lets the body of an entry leave memory; it reports false when the
// entry has no place in the log and gets none.
func (q *Queue) pageOut(c *chunk, seq uint64, e *entry) bool {
	if e.pos == 0 {
		pos, ok := q.store.Spill(q, seq, e.msg)
		if !ok {
			return false
		}
		e.pos = pos
		e.flags |= entryCarrier
	} else {
		q.addWarm(-e.inMemory())
	}
	if e.is(entryAhead) {
		e.flags &^= entryAhead
		q.ahead -= e.inMemory()
	}
	e.msg.Release(q.host.Arena())
	e.msg = nil
	c.resident--
	if e.state() == stateReady {
		q.addAbsent(1)
	}
	return true
}

// PageOut lets bodies leave memory, from where the last call stopped towards the
// tail and round again, a bounded number of them; with spill also those that have
// to be written to the log for it, and with head also those that go out next. It
// returns the bytes that left and reports
// whether it came round: then nothing is left that it could take.
func (q *Queue) PageOut(spill, head bool) (bytes int64, round bool) {
	f := &q.order
	if f.live == 0 || !spill && q.warm == 0 {
		return 0, true
	}
	seq := max(q.pageAt, f.base)
	for n := 0; n < pageScan; n++ {
		if seq >= f.tail {
			q.pageAt = f.base
			return bytes, true
		}
		index := seq - f.base
		c := f.chunks[index>>chunkShift]
		if c == nil || c.resident == 0 {
			seq = f.base + (index | chunkMask) + 1
			continue
		}
		e := &c.entries[index&chunkMask]
		if q.mayLeave(seq, e, head) && (spill || e.pos != 0) {
			size := int64(e.msg.Size())
			if !q.pageOut(c, seq, e) {
				break // the log takes no more now
			}
			bytes += size
		}
		seq++
	}
	q.pageAt = seq
	return bytes, false
}

// mayLeave leaves alone what was just read back, and what goes out next.
func (q *Queue) mayLeave(seq uint64, e *entry, head bool) bool {
	atHead := !head && e.size <= headEntryMax && seq >= q.order.head && seq < q.order.head+headEntries
	return e.state() != stateGone && e.msg != nil && !e.is(entryAhead) && !atHead
}
