package wal

// fetch is one read of records that were written before.
type fetch struct {
	log    *Log
	seg    *segment
	off    int64
	buf    []byte
	err    error
	done   func(Chunk, error)
	next   *fetch // in a list of those that are ready, or idle
	doneFn func(int, error)
}

// fetchState are the reads of a log.
type fetchState struct {
	inFlight int
	ready    *fetch // those that need no I/O, last one first
	idle     *fetch
}

// Fetch reads records back from position p on: as many whole records of that
// segment as fit in buf, which the caller lends until done is called on the loop,
// in a later turn. Messages that were appended together are read together: a
// reader that goes along a queue asks for hundreds of KiB and takes what it knows
// from the chunk. buf may be of the Go heap if the device allows it.
//
// Errors come through done: ErrGone, ErrShortBuffer (Chunk.Need says what would
// do), a *CorruptionError if there is no valid record at p, the disk's own.
func (l *Log) Fetch(p Position, buf []byte, done func(Chunk, error)) {
	f := l.fetches.idle
	if f != nil {
		l.fetches.idle = f.next
	} else {
		f = &fetch{log: l}
		f.doneFn = f.finish
	}
	f.seg, f.off, f.buf, f.done, f.err = l.segment(p.Segment()), int64(p.Offset()), buf, done, nil
	if f.seg == nil || f.off < segmentDataAt || p >= l.end {
		f.seg, f.err = nil, ErrGone
		l.fetchReady(f)
		return
	}
	if g := l.groupAt(p); g != nil {
		f.buf = buf[:copy(buf, g.buf[f.off-g.off:g.n])]
		l.fetchReady(f)
		return
	}
	// Written, so the file is there; what lies behind the last write is not read.
	limit := f.seg.size
	if l.written.Segment() == f.seg.id {
		limit = int64(l.written.Offset())
	} else if f.seg.sealed {
		limit = int64(f.seg.endAt)
	}
	f.buf = buf[:max(0, min(int64(len(buf)), limit-f.off))]
	if f.err = l.openFile(f.seg); f.err != nil {
		l.fetchReady(f)
		return
	}
	f.seg.pins++
	l.fetches.inFlight++
	l.dev.Read(f.seg.file, f.off, f.buf, f.doneFn)
}

// groupAt finds the group that still holds a position in memory.
func (l *Log) groupAt(p Position) *group {
	if p < l.written {
		return nil
	}
	for g := l.inflight; g != nil; g = nil {
		if inGroup(g, p) {
			return g
		}
	}
	for g := l.head; g != nil; g = g.next {
		if inGroup(g, p) {
			return g
		}
	}
	return nil
}

func inGroup(g *group, p Position) bool {
	off := int64(p.Offset())
	return g.seg.id == p.Segment() && off >= g.off && off < g.off+int64(g.n)
}

// fetchReady queues a fetch that needs no I/O: done is never called from Fetch.
func (l *Log) fetchReady(f *fetch) {
	f.next = l.fetches.ready
	l.fetches.ready = f
}

// runReadyFetches completes those, in the order in which they were asked for.
func (l *Log) runReadyFetches() {
	var list *fetch
	for f := l.fetches.ready; f != nil; {
		next := f.next
		f.next = list
		list, f = f, next
	}
	l.fetches.ready = nil
	for f := list; f != nil; {
		next := f.next
		f.complete()
		f = next
	}
}

// finish is the completion of a read.
func (f *fetch) finish(n int, err error) {
	f.seg.pins--
	f.log.fetches.inFlight--
	f.log.reclaimDue = f.log.reclaimDue || f.seg.pins == 0 && f.seg.liveCount == 0
	if err != nil {
		f.err = err
	}
	f.buf = f.buf[:n]
	f.complete()
	if f.log.closing != nil {
		f.log.closeProgress()
	}
}

// complete checks the first record and calls done.
func (f *fetch) complete() {
	l, done := f.log, f.done
	c, err := Chunk{}, f.err
	if err == nil {
		c = Chunk{seg: f.seg, off: f.off, buf: f.buf}
		err = c.checkFirst()
	}
	f.seg, f.buf, f.done, f.err = nil, nil, nil, nil
	f.next = l.fetches.idle
	l.fetches.idle = f
	done(c, err)
}

// checkFirst looks at the first record without taking it.
func (c *Chunk) checkFirst() error {
	var r Record
	ok, cause := c.next(&r)
	at := c.off
	c.at = 0
	switch {
	case ok:
		return nil
	case c.Need > 0:
		return ErrShortBuffer
	case cause == "" && len(c.buf) < recordHeaderSize:
		c.Need = recordHeaderSize
		return ErrShortBuffer
	case cause == "":
		cause = causeMissing
	}
	return &CorruptionError{File: segmentName(c.seg.id), Segment: c.seg.id, From: at, To: at + recordHeaderSize, Records: 1, Cause: cause}
}

// openFile makes sure that a segment can be read.
func (l *Log) openFile(s *segment) error {
	if s.file != nil {
		if s.sealed {
			l.touchFile(s)
		}
		return nil
	}
	f, err := l.disk.Open(segmentName(s.id))
	if err != nil {
		return err
	}
	s.file = f
	l.parkFile(s)
	return nil
}

// parkFile enters a sealed segment's open file, and closes the one that was not
// used for longest: a log of terabytes must not hold as many descriptors.
func (l *Log) parkFile(s *segment) {
	l.openFiles = append(l.openFiles, s)
	for i := 0; len(l.openFiles) > openFilesMax && i < len(l.openFiles)-1; i++ {
		old := l.openFiles[i]
		if old.pins > 0 || MakePosition(old.id, old.endAt) > l.synced {
			continue
		}
		closeFile(old)
		l.openFiles = append(l.openFiles[:i], l.openFiles[i+1:]...)
		i--
	}
}

// touchFile notes a use.
func (l *Log) touchFile(s *segment) {
	n := len(l.openFiles)
	if n == 0 || l.openFiles[n-1] == s {
		return
	}
	l.unparkFile(s)
	l.openFiles = append(l.openFiles, s)
}

// unparkFile forgets a file without closing it.
func (l *Log) unparkFile(s *segment) {
	for i, open := range l.openFiles {
		if open == s {
			l.openFiles = append(l.openFiles[:i], l.openFiles[i+1:]...)
			return
		}
	}
}
