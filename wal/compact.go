package wal

// Mover is the owner's side of compaction. Its methods are called on the loop, in a
// later turn than Compact.
type Mover interface {
	// Live reports whether ref is live with its record at p. A message that stands in
	// several queues keeps only the live references.
	Live(p Position, ref Ref) bool
	// Moved says that the record now stands at to as well: the owner points ref
	// there, retains it at to and releases it at from. The old place stays readable
	// until the new one is durable. first says that ref is the first of those that
	// the record still has: an owner that counts a body with one of its places counts
	// it there, or a record whose heaviest place is done looks like garbage for ever
	// and is copied for ever.
	Moved(from, to Position, ref Ref, first bool)
}

// Compaction policy.
const (
	// compactLiveMax: a segment is sparse if less than this share of it is live.
	compactLiveMax = 0.5
	// compactIdle: below so many segments there is nothing to gain.
	compactIdle = 4
	// compactBuffer is how much is read at a time; a larger record has its own.
	compactBuffer = 256 << 10
)

// compactor copies the live records of one sparse segment after the other to the
// end of the log, so that the segment dies.
type compactor struct {
	victim  *segment
	off     int64
	buf     []byte // off-heap
	reading bool
	mover   Mover
	record  Record
	live    []Ref
	parts   [1][]byte
	doneFn  func(int, error)
}

func (c *compactor) free() {
	unmapBuffer(c.buf)
	c.buf = nil
}

// Compact reads the next piece of the sparsest segment, at most 256 KiB unless one
// record is larger, and appends what is live in it. The owner's timer sets the pace. It
// returns false if there is nothing to do now.
//
// A segment is worth it if less than half of it is live, and the log as a whole is
// more than twice what is live in it: so a log never takes much more than twice
// its live bytes, and a record is copied rarely.
func (l *Log) Compact(m Mover) bool {
	c := &l.compactor
	if c.reading {
		return true
	}
	if l.stop != nil || l.space != nil {
		return false
	}
	if c.victim == nil {
		if c.victim = l.chooseVictim(); c.victim == nil {
			return false
		}
		c.off = segmentDataAt
	}
	if c.buf == nil {
		buf, err := mapBuffer(compactBuffer)
		if err != nil {
			return false
		}
		c.buf = buf
	}
	if c.doneFn == nil {
		c.doneFn = l.compactRead
	}
	if err := l.openFile(c.victim); err != nil {
		l.compactEnd()
		return false
	}
	c.mover = m
	c.reading = true
	c.victim.pins++
	l.fetches.inFlight++
	n := min(int64(len(c.buf)), int64(c.victim.endAt)-c.off)
	l.dev.Read(c.victim.file, c.off, c.buf[:n], c.doneFn)
	return true
}

// chooseVictim picks the sealed segment with the smallest live share.
func (l *Log) chooseVictim() *segment {
	var total, live int64
	count := 0
	var best *segment
	share := compactLiveMax
	for _, s := range l.segs {
		if s == nil {
			continue
		}
		count++
		total += s.size
		live += s.liveBytes
		if !s.sealed || s.damaged || s.compacted || s.liveCount == 0 || MakePosition(s.id, s.endAt) > l.synced {
			continue
		}
		if part := float64(s.liveBytes) / float64(s.size); part < share {
			best, share = s, part
		}
	}
	if count <= compactIdle || total < 2*live {
		return nil
	}
	return best
}

// compactRead is the completion of a read.
func (l *Log) compactRead(n int, err error) {
	c := &l.compactor
	c.reading = false
	c.victim.pins--
	l.fetches.inFlight--
	if l.closing != nil {
		l.closeProgress()
	}
	if l.stop != nil {
		return
	}
	if err != nil {
		l.compactEnd()
		return
	}
	chunk := Chunk{seg: c.victim, off: c.off, buf: c.buf[:n], refs: c.record.Refs}
	for {
		ok, cause := chunk.next(&c.record)
		if !ok {
			l.compactNext(&chunk, cause)
			return
		}
		if !l.compactRecord(&c.record) {
			return // no room now: the record is read again
		}
		c.off = chunk.off + int64(chunk.at)
	}
}

// compactNext settles where the next read begins.
func (l *Log) compactNext(chunk *Chunk, cause string) {
	c := &l.compactor
	end := int64(c.victim.endAt)
	c.off = chunk.off + int64(chunk.at)
	switch {
	case cause != "" || c.off+int64(chunk.Need) > end:
		// Damage that came after recovery. The next one finds and reports it; the
		// segment is left as it is.
		c.victim.damaged = true
		l.compactEnd()
	case chunk.Need > len(c.buf):
		c.free()
		if buf, err := mapBuffer(chunk.Need); err == nil {
			c.buf = buf
		}
	case chunk.Need > 0:
		// A record that goes on behind the piece.
	case len(chunk.buf)-chunk.at >= recordHeaderSize:
		// Padding: the next group begins on a block behind the piece.
		next := int64(alignUp(int(c.off)))
		if next == c.off || next >= end {
			l.compactEnd()
			return
		}
		c.off = next
	case end-c.off < recordHeaderSize:
		l.compactEnd()
	}
}

// compactEnd is done with a segment. If it is still live, something in it is
// retained that the owner does not know: it is not tried again.
func (l *Log) compactEnd() {
	c := &l.compactor
	c.victim.compacted = true
	c.victim = nil
	if len(c.buf) > compactBuffer {
		c.free()
	}
	l.reclaimDue = true
}

// compactRecord copies one record if any of it is live; false if it has no room.
func (l *Log) compactRecord(r *Record) bool {
	c := &l.compactor
	if r.Kind < KindMessageMin || r.Kind > KindMessageMax {
		return true
	}
	c.live = c.live[:0]
	for _, ref := range r.Refs {
		if c.mover.Live(r.Position, ref) {
			c.live = append(c.live, ref)
		}
	}
	if len(c.live) == 0 {
		return true
	}
	c.parts[0] = r.payload
	flags := r.flags | flagMoved
	to, err := l.appendRecord(r.Kind, flags, classMessage, c.live, c.parts[:])
	if err != nil {
		return false
	}
	l.stats.MovedRecords++
	l.stats.MovedBytes += uint64(r.size)
	for i, ref := range c.live {
		c.mover.Moved(r.Position, to, ref, i == 0)
	}
	return true
}
