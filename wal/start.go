package wal

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// damagedError is ErrDamaged with the places.
type damagedError struct{ places []*CorruptionError }

func (e *damagedError) Error() string {
	text := fmt.Sprintf("%v (%d places); first: %v", ErrDamaged, len(e.places), e.places[0])
	return text
}

func (e *damagedError) Is(target error) bool { return target == ErrDamaged }

// Unwrap gives the places.
func (e *damagedError) Unwrap() []error {
	list := make([]error, len(e.places))
	for i, place := range e.places {
		list[i] = place
	}
	return list
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// start makes a log that was read ready for appending. It goes on in a new segment:
// behind a cut there may be whole records of the old one, and a new header that says
// where the old segment ends is what keeps them out for good. Only on a full disk it
// goes on in the old one.
func (l *Log) start(in *reading) error {
	l.seq = max(in.seq, 1)
	if l.logID == 0 {
		if l.logID = l.opts.LogID; l.logID == 0 {
			var b [8]byte
			if _, err := rand.Read(b[:]); err != nil {
				return err
			}
			l.logID = max(1, le64(b[:]))
		}
	}
	l.nextID = in.maxID + 1
	for _, f := range in.parts {
		s := l.segment(f.id)
		s.endAt, s.nextSeq, s.damaged, s.firstSeq = uint32(f.end), f.nextSeq, f.damaged, f.head.firstSeq
		l.last = s
		l.nextID = max(l.nextID, f.head.previous+1)
	}
	if l.last != nil {
		l.growTo(l.last.size)
	}
	l.end = in.report.End
	l.written, l.synced, l.committed, l.writtenTo = l.end, l.end, l.end, l.last
	if in.checkpoint != nil {
		l.checkpoint.durable, l.checkpoint.covered = in.report.Checkpoint, in.checkpoint.from
		for _, entry := range in.checkpoint.segments {
			l.nextID = max(l.nextID, entry.id+1)
		}
	}
	l.reclaimDue, l.createOK = true, true
	if err := l.startSupply(in.spare); err != nil {
		return err
	}
	if len(l.ready) == 0 && l.last != nil && !l.last.damaged {
		return l.resumeTail()
	}
	return nil
}

// resumeTail goes on in the last segment, for want of another: on a disk that was full
// before the restart as well, the ballast is in use already, and acknowledgements must
// still fit.
//
// Whatever stands behind the end is overwritten with zeros first, so that none of it is
// ever read as a part of what follows. This is the one place where a sector is written again: the one with the
// end of the last record, whose bytes stay the same. A crash on the way leaves a cut at the
// same place.
func (l *Log) resumeTail() error {
	s := l.last
	next := int64(alignUp(int(s.endAt)))
	if s.size-next < systemReserve+blockSize {
		return nil
	}
	f, err := l.disk.Open(segmentName(s.id))
	if err != nil {
		return err
	}
	if err := zeroFrom(f, int64(s.endAt), s.size); err != nil {
		_ = f.Close()
		return &IOError{Op: "cut", File: segmentName(s.id), Offset: int64(s.endAt), Err: err}
	}
	s.file, s.sealed, s.next, s.endAt, s.nextSeq = f, false, next, 0, 0
	l.cur = s
	l.written = MakePosition(s.id, uint32(next))
	l.synced, l.committed = l.written, l.written
	return nil
}

// zeroFrom overwrites a segment from off to its end, and makes that durable.
func zeroFrom(f File, off, size int64) error {
	block, err := mapBuffer(blockSize)
	if err != nil {
		return err
	}
	defer unmapBuffer(block)
	start := off &^ (blockSize - 1)
	if _, err := f.ReadAt(block, start); err != nil {
		return err
	}
	clear(block[off-start:])
	if _, err := f.WriteAt(block, start); err != nil {
		return err
	}
	if err := fillZero(f, start+blockSize, size); err != nil {
		return err
	}
	return f.Sync()
}

// startSupply prepares the first segment. Files that hold nothing are used again
// under new ids: what a torn write left in them under the old one must stay dead.
func (l *Log) startSupply(spare []*segmentFile) error {
	for _, f := range spare {
		if !l.reusable(f.size) || len(l.ready) >= readyMax {
			if err := l.disk.Remove(f.name()); err != nil {
				return err
			}
			continue
		}
		s := l.newSegment(f.size)
		s.recycled, s.usable = true, true
		if err := l.disk.Rename(f.name(), segmentName(s.id)); err != nil {
			return err
		}
		file, err := l.disk.Open(segmentName(s.id))
		if err != nil {
			return err
		}
		s.file = file
		l.ready = append(l.ready, s)
	}
	if len(spare) > 0 {
		if err := l.disk.SyncDir(); err != nil {
			return err
		}
	}
	if len(l.ready) == 0 {
		s := l.newSegment(l.fileSize)
		file, err := createZeroed(l.disk, s)
		if isFolderError(err) {
			return err
		}
		if err != nil {
			l.space = &SpaceError{err}
			return nil
		}
		s.file, s.usable = file, true
		l.fileMade()
		l.ready = append(l.ready, s)
	}
	return nil
}
