//ringmq:hot

package queue

import "ringmq/engine/core"

// fifo is first-in, first-out order with a place kept for what comes back. It
// is a concrete type on purpose: the compiler sees through it on the message
// path.
type fifo struct {
	chunks   []*chunk // directory; nil where every entry is gone
	base     uint64   // sequence number of the first slot of chunks[0]
	head     uint64   // next entry that was never delivered
	tail     uint64   // next sequence number
	live     int      // entries that are not gone
	returned seqHeap  // ready entries before head
	last     []late   // ready entries before head that come behind others, see giveBackLast
	lastAt   int      // of last: those before are done
	levels   *levels  // order by priority; then head and returned mean nothing
}

// push appends a ready entry and returns its sequence number.
func (f *fifo) push(a core.Arena, m *core.Message, deadline int64, pos uint64, flags uint8) uint64 {
	index := f.tail - f.base
	if int(index>>chunkShift) == len(f.chunks) {
		f.chunks = append(f.chunks, newChunk(a))
	}
	c := f.chunks[index>>chunkShift]
	c.entries[index&chunkMask] = entry{msg: m, deadline: deadline, pos: pos, size: uint32(m.BodyLen()), flags: stateReady | flags}
	c.live++
	c.resident++
	f.live++
	seq := f.tail
	f.tail++
	if f.levels != nil {
		f.pushLevel(m.Priority, seq)
	}
	return seq
}

// at finds an entry that is not gone, nil otherwise.
func (f *fifo) at(seq uint64) *entry {
	index := seq - f.base
	if seq < f.base || seq >= f.tail {
		return nil
	}
	c := f.chunks[index>>chunkShift]
	if c == nil {
		return nil
	}
	e := &c.entries[index&chunkMask]
	if e.state() == stateGone {
		return nil
	}
	return e
}

// first returns the next ready entry in order without taking it.
func (f *fifo) first() (uint64, *entry) {
	if f.levels != nil {
		return f.levels.first(f)
	}
	for len(f.returned) > 0 {
		seq := f.returned[0]
		if e := f.at(seq); e != nil && e.state() == stateReady {
			return seq, e
		}
		f.returned.pop()
	}
	e := f.fresh()
	if f.lastAt < len(f.last) {
		if seq, late := f.firstLast(); late != nil {
			return seq, late
		}
	}
	if e == nil {
		return 0, nil
	}
	return f.head, e
}

// fresh moves head to the next ready entry that was never delivered, nil if there is
// none.
func (f *fifo) fresh() *entry {
	for f.head < f.tail {
		index := f.head - f.base
		c := f.chunks[index>>chunkShift]
		if c == nil {
			f.head = f.base + (index | chunkMask + 1)
			continue
		}
		if e := &c.entries[index&chunkMask]; e.state() == stateReady {
			return e
		}
		f.head++
	}
	if f.head > f.tail {
		f.head = f.tail
	}
	return nil
}

// taken moves order past an entry that first returned.
func (f *fifo) taken(seq uint64) {
	if f.levels != nil {
		f.levels.taken(f.at(seq).priority, seq)
		return
	}
	if seq == f.head {
		f.head++
		return
	}
	if len(f.returned) > 0 && f.returned[0] == seq {
		f.returned.pop()
		return
	}
	if f.lastAt < len(f.last) && f.last[f.lastAt].seq == seq {
		f.popLast()
	}
}

// giveBack puts a delivered entry back in its original place.
func (f *fifo) giveBack(seq uint64) {
	if f.levels != nil {
		f.levels.giveBack(f.at(seq).priority, seq)
		return
	}
	if seq < f.head {
		f.returned.push(seq)
	}
}

// remove forgets an entry. The caller has taken care of its message.
func (f *fifo) remove(a core.Arena, seq uint64) {
	i := int((seq - f.base) >> chunkShift)
	c := f.chunks[i]
	e := &c.entries[(seq-f.base)&chunkMask]
	e.setState(stateGone)
	if e.msg != nil {
		e.msg = nil
		c.resident--
	}
	c.live--
	f.live--
	if f.live == 0 {
		f.reset(a)
		return
	}
	if c.live == 0 && f.base+uint64(i+1)<<chunkShift <= f.tail {
		freeChunk(a, c)
		f.chunks[i] = nil
		if i == 0 {
			f.dropLeading()
		}
	}
}

// dropLeading gives up directory slots before the first chunk that is left.
func (f *fifo) dropLeading() {
	n := 0
	for n < len(f.chunks) && f.chunks[n] == nil {
		n++
	}
	f.base += uint64(n) << chunkShift
	if f.head < f.base {
		f.head = f.base
	}
	// Moving the directory down costs one word for each 128 entries and
	// happens once for each of them.
	if n == 1 && len(f.chunks) > 1024 {
		f.chunks = f.chunks[1:]
		return
	}
	f.chunks = f.chunks[:copy(f.chunks, f.chunks[n:])]
}

// reset is the empty queue: the last chunk serves again from its first slot,
// so that a queue whose consumers keep up lives in one hot chunk.
func (f *fifo) reset(a core.Arena) {
	var keep *chunk
	for _, c := range f.chunks {
		if c == nil {
			continue
		}
		if keep != nil {
			freeChunk(a, keep)
		}
		keep = c
	}
	if keep != nil {
		keep.live, keep.resident = 0, 0
		f.chunks = append(f.chunks[:0], keep)
	} else {
		f.chunks = f.chunks[:0]
	}
	f.base, f.head = f.tail, f.tail
	f.returned = f.returned[:0]
	f.last, f.lastAt = f.last[:0], 0
	if f.levels != nil {
		f.levels.clear()
	}
}

// pushLevel enters a new entry into its level. Everything may have been delivered
// as far as head is concerned.
func (f *fifo) pushLevel(priority uint8, seq uint64) {
	level := f.levels.levelOf(priority)
	f.at(seq).priority = level
	f.levels.push(level, seq)
	f.head = f.tail
}

// release gives the kept chunk back, for a queue that went idle.
func (f *fifo) release(a core.Arena) {
	if f.live == 0 && len(f.chunks) > 0 {
		for _, c := range f.chunks {
			if c != nil {
				freeChunk(a, c)
			}
		}
		f.chunks = f.chunks[:0]
		if cap(f.chunks) > 1024 {
			f.chunks = nil
		}
		f.base, f.head = f.tail, f.tail
	}
}
