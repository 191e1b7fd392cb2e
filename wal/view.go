package wal

// Record is one record as it is read. Refs and everything behind the methods are
// valid until the next record, unless the method says otherwise.
type Record struct {
	Position Position
	Seq      uint64
	Kind     uint8
	// Moved says that compaction copied it: the same references may have been seen
	// at an older position, and this one replaces it. It need not stand in the
	// order of its queue.
	Moved bool
	// Refs is where a message stands. Recovery leaves out what was acknowledged.
	Refs []Ref

	flags   uint8
	size    int
	payload []byte // behind the references, as stored
}

// Size is what the record occupies in its segment, in bytes. It is the natural
// measure for Retain.
func (r *Record) Size() int { return r.size }

// Compressed reports whether Body has work to do.
func (r *Record) Compressed() bool { return r.flags&(flagS2|flagZstd) != 0 }

// Prefix returns payload bytes that begin with the first part that was appended.
// If the record is not compressed, everything else follows.
func (r *Record) Prefix() ([]byte, error) {
	if !r.Compressed() {
		return r.payload, nil
	}
	first, _, _, err := splitCompressed(r.payload)
	return first, err
}

// Body returns the whole payload: a view if it is stored as it is, else appended
// to dst.
func (r *Record) Body(dst []byte) ([]byte, error) {
	if !r.Compressed() {
		return r.payload, nil
	}
	return decompress(dst, r.payload, r.flags)
}

// Causes of damage, as reported.
const (
	causeHeader   = "record header does not match its checksum"
	causeBody     = "record does not match its checksum"
	causeSegment  = "record of another segment"
	causeLength   = "record goes beyond its segment"
	causeRefs     = "more references than payload"
	causeClaim    = "record claims a sync behind itself"
	causeMissing  = "record missing"
	causePadding  = "padding is not zero"
	causeSequence = "records missing by their sequence numbers"
	causeFirst    = "segment header damaged"
	causeTorn     = "segment header incomplete"
	causeGone     = "segment missing, and no record says that it was retired"
	causeShort    = "segment file is shorter than its header says"
	causeForeign  = "segment of another log"
	causeCheckpnt = "checkpoint cannot be read"
)

// fillRecord makes the view of a whole and valid record b.
func fillRecord(r *Record, refs []Ref, h *header, p Position, b []byte) {
	body := b[recordHeaderSize : recordHeaderSize+int(h.length)]
	*r = Record{
		Position: p, Seq: h.seq, Kind: h.kind, Moved: h.flags&flagMoved != 0,
		Refs: appendRefs(refs[:0], body, int(h.refs)), flags: h.flags, size: h.size(),
		payload: body[int(h.refs)*refSize:],
	}
}

// checkHeader says what is wrong with a header whose own checksum holds, for a
// record at off with room bytes behind its beginning; "" if nothing.
func checkHeader(h *header, segment uint32, off, room int64) string {
	switch {
	case h.segment != segment:
		return causeSegment
	case int64(h.length) > RecordBytesMax || int64(h.size()) > room:
		return causeLength
	case int(h.refs)*refSize > int(h.length):
		return causeRefs
	case int64(h.synced) > off:
		return causeClaim
	}
	return ""
}

// Chunk iterates over the records in a piece of a segment.
type Chunk struct {
	seg  *segment
	off  int64 // of buf[0]
	buf  []byte
	at   int
	refs []Ref
	// Need is the size that the buffer must have for the next record, after
	// ErrShortBuffer.
	Need int
}

// Next reads the next whole record. It returns false at the end of the piece, and
// at anything that is not a record.
func (c *Chunk) Next(r *Record) bool {
	ok, _ := c.next(r)
	return ok
}

// next also says why there is no further record; "" at an end.
func (c *Chunk) next(r *Record) (ok bool, cause string) {
	for {
		b := c.buf[c.at:]
		if len(b) < recordHeaderSize {
			return false, ""
		}
		if isPadding(b, c.off+int64(c.at)) {
			// Padding up to the next block, where the next group may begin.
			at := alignUp(int(c.off)+c.at) - int(c.off)
			if at == c.at || at >= len(c.buf) {
				return false, ""
			}
			c.at = at
			continue
		}
		var h header
		if !parseHeader(b, c.seg.salt, &h) {
			return false, causeHeader
		}
		off := c.off + int64(c.at)
		if cause := checkHeader(&h, c.seg.id, off, c.seg.size-off); cause != "" {
			return false, cause
		}
		n := h.size()
		if n > len(b) {
			c.Need = n
			return false, ""
		}
		if !checkBody(b[:n], c.seg.salt) {
			return false, causeBody
		}
		fillRecord(r, c.refs, &h, MakePosition(c.seg.id, uint32(off)), b[:n])
		c.refs = r.Refs
		c.at += n
		return true, ""
	}
}
