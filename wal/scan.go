package wal

import (
	"encoding/binary"
	"errors"
)

// scanBuffer is how much a scan reads at a time: large enough for a disk's full
// speed, small enough for the second-level cache.
const scanBuffer = 1 << 20

// scanner reads the records of one segment in order, and finds its way behind
// damage. It decides nothing: whether a bad record is damage or a torn tail is for
// those who know what else the log holds.
type scanner struct {
	file  File
	id    uint32
	salt  uint32
	limit int64 // the file's bytes that are the segment's

	own   []byte // off-heap
	ahead *ahead // what was read ahead, or nil
	buf   []byte // own, or a piece that was read ahead
	bufAt int64  // offset of buf[0]
	bufN  int    // valid bytes in buf
	// readErr is the last error of the disk; the blocks that it hid read as ones.
	readErr error
	refs    []Ref
}

func (s *scanner) free() {
	unmapBuffer(s.own)
	s.own, s.buf = nil, nil
}

// reset points the scanner at another segment and keeps its memory.
func (s *scanner) reset(file File, id, salt uint32, limit int64) {
	*s = scanner{file: file, id: id, salt: salt, limit: limit, own: s.own, ahead: s.ahead, refs: s.refs}
}

// view returns n bytes from off on, which lie below the limit. They stay valid
// until the next view.
func (s *scanner) view(off int64, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if off >= s.bufAt && off+int64(n) <= s.bufAt+int64(s.bufN) {
		at := int(off - s.bufAt)
		return s.buf[at : at+n], nil
	}
	if s.ahead != nil && s.viewAhead(off, n) {
		at := int(off - s.bufAt)
		return s.buf[at : at+n], nil
	}
	start := off &^ (blockSize - 1)
	if need := alignUp(int(off-start) + n); need > len(s.own) {
		s.free()
		buf, err := mapBuffer(max(need, scanBuffer))
		if err != nil {
			return nil, err
		}
		s.own = buf
	}
	s.buf, s.bufAt, s.bufN = s.own, start, 0
	want := int(min(int64(len(s.buf)), s.limit-start))
	s.fill(want)
	at := int(off - start)
	return s.buf[at : at+n], nil
}

// fill reads the buffer. If the disk refuses, it reads block by block, and leaves
// ones, which no record has for a header, where there is nothing to be had.
func (s *scanner) fill(want int) {
	s.bufN, s.readErr = want, nil
	if n, err := s.file.ReadAt(s.buf[:want], s.bufAt); err == nil && n == want {
		return
	}
	for at := 0; at < want; at += blockSize {
		block := s.buf[at:min(at+blockSize, want)]
		n, err := s.file.ReadAt(block, s.bufAt+int64(at))
		if err == nil && n < len(block) {
			err = errors.New("short read")
		}
		if err != nil {
			s.readErr = err
			for i := range block[max(n, 0):] {
				block[max(n, 0)+i] = 0xff
			}
		}
	}
}

// step is what a scanner found.
type step int

const (
	stepRecord step = iota
	stepEmpty       // a block begins with zeros: nothing more was written, it seems
	stepBad         // neither a record nor empty
	stepLimit       // the end that was asked for
	stepFault       // no memory
)

// finding is one step in detail.
type finding struct {
	step  step
	at    int64 // where the record is, or the trouble begins
	next  int64 // where to go on; behind trouble only if that is known, else 0
	head  header
	cause string
	err   error
}

// next looks at the place off, and skips padding. end is where the segment's
// records end, or the limit.
func (s *scanner) next(off, end int64, r *Record) finding {
	for {
		if end-off < recordHeaderSize {
			return s.tail(off, end)
		}
		b, err := s.view(off, recordHeaderSize)
		if err != nil {
			return finding{step: stepFault, err: err}
		}
		if !isPadding(b, off) {
			return s.record(off, end, r)
		}
		if off%blockSize == 0 {
			return finding{step: stepEmpty, at: off}
		}
		f := s.tail(off, min(end, int64(alignUp(int(off)))))
		if f.step != stepLimit || f.at == end {
			return f
		}
		off = f.at
	}
}

// isPadding reports whether no record begins at off, where the bytes of a header
// would be b: zeros as far as the block goes. A record never begins with them, for
// its segment's id is not 0, unless its header lies across two blocks and both its
// checksums are 0: that is one in 2^64.
func isPadding(b []byte, off int64) bool {
	return isZero(b[:min(recordHeaderSize, blockSize-off%blockSize)])
}

// tail checks that there are only zeros between off and end.
func (s *scanner) tail(off, end int64) finding {
	b, err := s.view(off, int(end-off))
	if err != nil {
		return finding{step: stepFault, err: err}
	}
	if !isZero(b) {
		return finding{step: stepBad, at: off, next: end, cause: causePadding}
	}
	return finding{step: stepLimit, at: end}
}

// record reads the record at off.
func (s *scanner) record(off, end int64, r *Record) finding {
	f := finding{step: stepBad, at: off, cause: causeHeader, err: s.readErr}
	b, err := s.view(off, recordHeaderSize)
	if err != nil {
		return finding{step: stepFault, err: err}
	}
	if !parseHeader(b, s.salt, &f.head) {
		return f
	}
	if f.cause = checkHeader(&f.head, s.id, off, end-off); f.cause != "" {
		return f
	}
	n := f.head.size()
	if b, err = s.view(off, n); err != nil {
		return finding{step: stepFault, err: err}
	}
	f.next = off + int64(n)
	if !checkBody(b, s.salt) {
		f.cause = causeBody
		f.err = s.readErr
		return f
	}
	f.step, f.cause, f.err = stepRecord, "", nil
	fillRecord(r, s.refs, &f.head, MakePosition(s.id, uint32(off)), b)
	s.refs = r.Refs
	return f
}

// resync looks for the next whole record from off on, at every place where one may
// begin. It returns its offset, or -1.
func (s *scanner) resync(off, end int64) (int64, error) {
	off = (off + recordAlign - 1) &^ (recordAlign - 1)
	var r Record
	for end-off >= recordHeaderSize {
		if _, err := s.view(off, recordHeaderSize); err != nil {
			return -1, err
		}
		// All places whose header lies in the buffer, at one go: a prepared segment is
		// mostly zeros, and most of the search goes through them.
		window := s.buf[off-s.bufAt : min(int64(s.bufN), end-s.bufAt)]
		at := findHeader(window, s.id, s.salt)
		if at < 0 {
			off += int64(len(window)-recordHeaderSize)&^(recordAlign-1) + recordAlign
			continue
		}
		off += int64(at)
		f := s.record(off, end, &r)
		if f.step == stepFault {
			return -1, f.err
		}
		if f.step == stepRecord {
			return off, nil
		}
		off += recordAlign
	}
	return -1, nil
}

// findHeader returns the first place in b where a header of this segment lies whose own
// checksum holds, or -1. The id is compared before anything is computed.
func findHeader(b []byte, id, salt uint32) int {
	for at := 0; at+recordHeaderSize <= len(b); at += recordAlign {
		if binary.LittleEndian.Uint32(b[at+12:]) != id {
			continue
		}
		var h header
		if parseHeader(b[at:], salt, &h) {
			return at
		}
	}
	return -1
}
