//ringmq:hot

package wal

// group is the records of one write: gathered while the write before it is in
// flight, written in one piece, padded with zeros to whole blocks.
type group struct {
	next    *group
	seg     *segment
	buf     []byte // off-heap, whole blocks
	off     int64  // of buf[0] in the segment's file
	n       int    // bytes used
	limit   int    // bytes that may be used by the user's records
	first   int    // offset in buf of the first record
	records int
	opens   bool // begins with the segment's header
	closed  bool // takes no more records
	sync    bool // must be synced whatever the mode is
	barrier bool // leaves after everything before it is durable

	// The last record, if it is an acknowledgement that may still grow.
	ackEnd   int // offset in buf behind it, 0 if there is none
	ackQueue uint64
	ackLast  uint64
}

// closeGroup pads a group; the next one starts behind it on a fresh block.
func (l *Log) closeGroup(g *group) {
	n := alignUp(g.n)
	clear(g.buf[g.n:n])
	g.closed = true
	g.seg.next = g.off + int64(n)
}

// openGroup makes room for a record of size bytes: a new group in the current
// segment, or in the next one.
func (l *Log) openGroup(size int, class recordClass) (*group, error) {
	if l.tail != nil && !l.tail.closed {
		l.closeGroup(l.tail)
	}
	s := l.cur
	if s == nil || s.next+int64(alignUp(size)) > s.size-reserveFor(class) {
		var err error
		if s, err = l.switchSegment(size, class); err != nil {
			return nil, err
		}
	}
	start := 0
	if !s.opened {
		start = segmentDataAt
	}
	g := l.takeGroup(start + size)
	if g == nil {
		return nil, ErrBusy
	}
	g.seg, g.off = s, s.next
	g.n, g.first = start, start
	g.opens = !s.opened
	s.opened = true
	// The reserve is for the record that asked, not for whatever follows it.
	g.limit = max(start+size, int(min(int64(len(g.buf)), s.size-s.next-systemReserve)))
	if len(l.ready) < l.want() {
		l.supply()
	}
	if l.tail == nil {
		l.head = g
	} else {
		l.tail.next = g
	}
	l.tail = g
	return g, nil
}

// takeGroup returns an empty group with at least n bytes of buffer, nil if the
// system refuses memory.
func (l *Log) takeGroup(n int) *group {
	if n <= l.opts.GroupSize && l.poolSize > 0 {
		l.poolSize--
		g := l.pool[l.poolSize]
		*g = group{buf: g.buf}
		return g
	}
	buf, err := mapBuffer(max(n, l.opts.GroupSize))
	if err != nil {
		return nil
	}
	return &group{buf: buf}
}

// putGroup takes a written group back. Buffers of odd sizes go to the system: one
// huge message must not hold its memory for good.
func (l *Log) putGroup(g *group) {
	if len(g.buf) != l.opts.GroupSize || l.poolSize == len(l.pool) {
		unmapBuffer(g.buf)
		g.buf = nil
		return
	}
	g.seg = nil
	l.pool[l.poolSize] = g
	l.poolSize++
}
