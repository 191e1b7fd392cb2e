package wal

import "sync"

// Sizes of what is read ahead: large enough that the disk is always busy and a read
// costs little, small enough to have a few of them for each log.
const (
	aheadPieces = 4
	aheadPiece  = 2 << 20
	// aheadRoom is the room before a piece for the beginning of a record that goes on
	// in it. Records that are larger are read once more, by themselves.
	aheadRoom = 1 << 20
)

// aheadReader is a Disk whose files may be read ahead: its reads take time, and their
// order means nothing.
type aheadReader interface{ readsAhead() bool }

// piece is a part of a segment in memory.
type piece struct {
	id  uint32
	off int64  // of buf[aheadRoom] in the segment
	n   int    // bytes that were read
	buf []byte // off-heap, the room included
}

// ahead reads the segments that recovery goes through, in that order, while recovery
// checks what was read before. One goroutine reads. It reports nothing: what it could
// not read, recovery reads by itself, and then it meets the error.
type ahead struct {
	full chan *piece // in order; closed behind the last one
	free chan *piece
	stop chan struct{}
	all  []*piece
	done sync.WaitGroup

	next *piece // taken from full, but not wanted yet
	held *piece // the scanner looks at it
}

// aheadPart is one segment to read.
type aheadPart struct {
	id    uint32
	limit int64
}

// readAhead starts reading, nil if the disk is not one to read ahead from.
func (set *fileSet) readAhead() *ahead {
	if d, ok := set.disk.(aheadReader); !ok || !d.readsAhead() {
		return nil
	}
	a := &ahead{full: make(chan *piece, aheadPieces), free: make(chan *piece, aheadPieces), stop: make(chan struct{})}
	for range aheadPieces {
		buf, err := mapBuffer(aheadRoom + aheadPiece)
		if err != nil {
			a.unmap()
			return nil
		}
		p := &piece{buf: buf}
		a.all = append(a.all, p)
		a.free <- p
	}
	var parts []aheadPart
	for _, f := range set.parts {
		limit := f.limit()
		switch {
		case f.end >= 0:
			limit = min(limit, int64(alignUp(int(f.end))))
		case f.tail != nil:
			limit = min(limit, int64(alignUp(int(f.tail.end))))
		}
		parts = append(parts, aheadPart{f.id, limit})
	}
	a.done.Add(1)
	go a.run(set.disk, parts)
	return a
}

func (a *ahead) run(disk Disk, parts []aheadPart) {
	defer a.done.Done()
	defer close(a.full)
	for _, part := range parts {
		f, err := disk.Open(segmentName(part.id))
		if err != nil {
			continue
		}
		for off := int64(0); off < part.limit && err == nil; off += aheadPiece {
			var p *piece
			select {
			case <-a.stop:
				_ = f.Close()
				return
			case p = <-a.free:
			}
			p.id, p.off, p.n = part.id, off, int(min(aheadPiece, part.limit-off))
			if _, err = f.ReadAt(p.buf[aheadRoom:aheadRoom+p.n], off); err != nil {
				p.n = 0
			}
			a.full <- p
		}
		_ = f.Close()
	}
}

// end stops reading and gives the memory back.
func (a *ahead) end() {
	close(a.stop)
	a.done.Wait()
	a.unmap()
}

func (a *ahead) unmap() {
	for _, p := range a.all {
		unmapBuffer(p.buf)
	}
}

// peek waits for the next piece, nil behind the last one.
func (a *ahead) peek() *piece {
	if a.next == nil {
		a.next = <-a.full
	}
	return a.next
}

// drop gives back a piece.
func (a *ahead) drop(p *piece) {
	if p != nil {
		a.free <- p
	}
}

// take makes the next piece the one that the scanner looks at.
func (a *ahead) take() {
	a.drop(a.held)
	a.held, a.next = a.next, nil
}

// viewAhead makes the scanner look at n bytes from off on, if they were read ahead. What
// it looked at before is copied in front of the next piece where a record crosses.
func (s *scanner) viewAhead(off int64, n int) bool {
	a := s.ahead
	for {
		p := a.peek()
		switch {
		case p == nil || p.id > s.id:
			return false
		case p.id < s.id || p.off+int64(p.n) <= off:
			a.drop(p)
			a.next = nil
			continue
		case p.off <= off:
			a.take()
			s.buf, s.bufAt, s.bufN = p.buf[aheadRoom:], p.off, p.n
		default:
			keep := p.off - off
			if off < s.bufAt || s.bufAt+int64(s.bufN) != p.off || keep > aheadRoom {
				return false
			}
			copy(p.buf[aheadRoom-keep:aheadRoom], s.buf[off-s.bufAt:s.bufN])
			a.take()
			s.buf, s.bufAt, s.bufN = p.buf[aheadRoom-keep:], off, int(keep)+p.n
		}
		s.readErr = nil
		if off+int64(n) <= s.bufAt+int64(s.bufN) {
			return true
		}
	}
}
