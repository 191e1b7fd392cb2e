package wal

import (
	"encoding/binary"
	"errors"
	"sync"
)

// How segments come and go.
//
//	 create ──▶ ready (named by its new id, folder synced) ──▶ current ──▶ sealed
//	              ▲                                                          │
//	              │ rename, sync folder                                      │ nothing live, covered
//	              └──────────── retired ◀── retire record is durable ◀───────┘ by a checkpoint
//
// One segment is kept ready beside the spares: the ballast. Messages never take it
// once the disk is full, so acknowledgements, events and checkpoints go on and
// bring space back.
//
// Segments are made when a log has grown to need them, and the first ones are small (see
// fileSize): a broker that stores little has little to prepare when it starts.
//
// A prepared file has its name already, and its folder entry is durable: taking it
// costs no I/O and cannot fail. What it holds is zeros, or the records of the
// segment that it was; those carry another id and another salt.

// switchSegment seals the current segment and takes the next one for a record of
// size bytes.
func (l *Log) switchSegment(size int, class recordClass) (*segment, error) {
	s, err := l.nextSegment(int64(segmentDataAt+alignUp(size)+systemReserve), class)
	if err != nil {
		return nil, err
	}
	if l.cur != nil {
		l.cur.sealed = true
		l.cur.endAt = uint32(l.cur.next)
		l.cur.nextSeq = l.seq
		l.reclaimDue = true
		l.parkFile(l.cur)
	}
	if l.last != nil {
		s.previous, s.previousEnd = l.last.id, l.last.endAt
	}
	s.firstSeq = l.seq
	l.addSegment(s)
	l.cur, l.last = s, s
	l.stats.Segments++
	l.supply()
	return s, nil
}

// nextSegment picks the next segment, of at least need bytes. As long as the disk is
// not known to be full, the only ready one may go: the one that is made next becomes
// the ballast. A record for which those that are made now are too small gets one of its
// own.
func (l *Log) nextSegment(need int64, class recordClass) (*segment, error) {
	if need > l.opts.SegmentSize {
		return l.createLarge(need)
	}
	l.supply()
	tooSmall := need > l.fileSize
	if len(l.ready) > 1 || len(l.ready) == 1 && (l.space == nil || class != classMessage) {
		if s := l.takeReady(need); s != nil {
			return s, nil
		}
		tooSmall = true
	}
	if s := l.takeVirtual(need); s != nil {
		return s, nil
	}
	switch {
	case tooSmall:
		l.growTo(need)
		return l.createLarge(need)
	case l.space != nil:
		return nil, l.space
	}
	return nil, ErrBusy
}

// takeReady takes the first prepared segment that is large enough, nil if there is
// none. It overtakes those before it.
func (l *Log) takeReady(need int64) *segment {
	for i, s := range l.ready {
		if s.size >= need {
			l.overtaken = append(l.overtaken, l.ready[:i]...)
			l.ready = append(l.ready[:0], l.ready[i+1:]...)
			return s
		}
	}
	return nil
}

// takeVirtual takes a segment whose file is still being made or renamed, if its space
// is sure: its records wait in memory. nil if there is none, or one is ready.
func (l *Log) takeVirtual(need int64) *segment {
	if len(l.ready) > 0 || l.virtual != nil {
		return nil
	}
	if p := l.preparing; p != nil && p.size >= need && p.reserved.Load() && (l.cur == nil || p.id > l.cur.id) {
		l.virtual = p
	} else if len(l.overtaken) > 0 && l.overtaken[0].size >= need {
		l.virtual = l.newSegment(l.overtaken[0].size)
	}
	return l.virtual
}

// popSegment takes the first of a list.
func popSegment(list *[]*segment) *segment {
	s := (*list)[0]
	*list = append((*list)[:0], (*list)[1:]...)
	return s
}

// createLarge makes a segment of its own for a record that fits no other. It
// blocks for the reservation of the space, a millisecond beside the time that
// such a record takes to copy. It overtakes the segments that are ready: they have
// lower ids now, and are renamed before they are used.
func (l *Log) createLarge(need int64) (*segment, error) {
	s := l.newSegment(need)
	f, err := l.disk.Create(segmentName(s.id), need)
	if err != nil {
		return nil, &SpaceError{err}
	}
	s.file = f
	l.overtaken = append(l.overtaken, l.ready...)
	l.ready = l.ready[:0]
	l.runJob(func() error { return syncFolder(l.disk, s.id) }, func(err error) { l.createLargeDone(s, err) })
	return s, nil
}

func (l *Log) createLargeDone(s *segment, err error) {
	if err != nil {
		l.failErr(err)
		return
	}
	s.usable = true
	l.submit()
}

// newSegment takes the next id.
func (l *Log) newSegment(size int64) *segment {
	s := &segment{id: l.nextID, size: size, salt: segmentSalt(l.logID, l.nextID)}
	l.nextID++
	return s
}

// runJob runs a job of the supply or of createLarge.
func (l *Log) runJob(job func() error, done func(error)) {
	l.jobs++
	l.dev.Run(job, func(err error) {
		l.jobs--
		if l.err == nil {
			done(err)
		}
		if l.closing != nil {
			l.closeProgress()
		}
	})
}

// folderError marks a failed sync of the folder. A sync that failed must not be
// tried again, and what was renamed is nobody knows where: the log ends.
type folderError struct{ IOError }

func syncFolder(d Disk, id uint32) error {
	if err := d.SyncDir(); err != nil {
		return &folderError{IOError{Op: "sync folder of", File: segmentName(id), Err: err}}
	}
	return nil
}

// supply starts the most urgent job, one at a time: renumber what a large segment
// overtook, reuse or delete what is dead, make a new file.
func (l *Log) supply() {
	if l.supplying || l.err != nil || l.stop != nil && l.virtual == nil {
		return // a log that is being closed needs no files but the one that records wait for
	}
	if len(l.overtaken) > 0 {
		s := popSegment(&l.overtaken)
		l.renameSegment(s, s.file)
		return
	}
	if len(l.retiring) > 0 && l.retiring[0].retirePos < l.synced && l.retiring[0].pins == 0 {
		l.freeSegment(popSegment(&l.retiring))
		return
	}
	if (l.virtual != nil || len(l.ready) < l.want()) && (l.space == nil || l.createOK) {
		l.createSegment()
	}
}

// createSegment makes a new file and fills it with zeros: writing into space that
// is only reserved costs the file system an update of its metadata at each sync.
func (l *Log) createSegment() {
	s := l.virtual
	if s == nil {
		s = l.newSegment(l.fileSize)
	}
	l.supplying, l.createOK = true, false
	l.preparing = s
	disk := l.disk
	var f File
	l.runJob(func() (err error) {
		f, err = createZeroed(disk, s)
		return err
	}, func(err error) {
		l.supplying, l.preparing = false, nil
		s.file = f
		if err == nil {
			l.fileMade()
		}
		l.supplyDone(s, err)
	})
}

// createZeroed makes a segment's file durable, all zeros. A file that could not be
// finished is removed, without hope if that fails too: recovery sees that it holds
// nothing.
func createZeroed(disk Disk, s *segment) (File, error) {
	f, err := disk.Create(segmentName(s.id), s.size)
	if err != nil {
		return nil, err
	}
	s.reserved.Store(true)
	if err = fillZero(f, 0, s.size); err == nil {
		err = f.Sync()
	}
	if err == nil {
		if err = syncFolder(disk, s.id); err == nil {
			return f, nil
		}
	}
	s.reserved.Store(false)
	_ = f.Close()
	_ = disk.Remove(segmentName(s.id))
	return nil, err
}

// zeroChunk is small enough that a group commit beside it does not wait long.
const zeroChunk = 256 << 10

// zeroes are never written to, so they take no memory of their own.
var zeroes = sync.OnceValues(func() ([]byte, error) { return mapBuffer(zeroChunk) })

func fillZero(f File, off, size int64) error {
	zeros, err := zeroes()
	if err != nil {
		return err
	}
	for ; off < size; off += zeroChunk {
		if _, err := f.WriteAt(zeros[:min(zeroChunk, size-off)], off); err != nil {
			return err
		}
	}
	return nil
}

// supplyDone takes what a job made.
func (l *Log) supplyDone(s *segment, err error) {
	switch {
	case err == nil:
		s.usable = true
		l.createOK, l.reclaimDue = true, true
		l.addReady(s)
	case isFolderError(err):
		l.failErr(err)
		return
	default:
		l.noteSpace(&SpaceError{err})
		// A segment that is current already gets the ballast's file. Its own id
		// is higher, so that is a rename.
		if l.virtual != nil {
			if b := l.takeReady(l.virtual.size); b != nil {
				l.renameSegment(b, b.file)
				return
			}
		}
	}
	l.supply()
	l.submit()
}

func isFolderError(err error) bool {
	var folder *folderError
	return errors.As(err, &folder)
}

// addReady enters a prepared segment. One that was overtaken while it was made is
// renamed by the next job, except if it is the one that records wait for.
func (l *Log) addReady(s *segment) {
	if s == l.virtual {
		l.virtual = nil
		return
	}
	if l.cur != nil && s.id < l.cur.id {
		l.overtaken = append(l.overtaken, s)
		return
	}
	at := len(l.ready)
	for at > 0 && l.ready[at-1].id > s.id {
		at--
	}
	l.ready = append(l.ready, nil)
	copy(l.ready[at+1:], l.ready[at:])
	l.ready[at] = s
	if len(l.ready) >= l.want() && l.space != nil {
		l.space = nil
		l.events.Space(nil)
	}
}

// noteSpace notes that the disk gave no segment, and says so once.
func (l *Log) noteSpace(err *SpaceError) {
	first := l.space == nil
	l.space = err
	if first {
		l.events.Space(err)
	}
}

// RetrySpace looks again for the space that was missing. The owner calls it on a
// timer while Space is not nil; a dead segment that is reused ends that state too.
func (l *Log) RetrySpace() {
	if l.space != nil {
		l.createOK = true
		l.supply()
	}
}

// renameSegment gives a file that holds nothing any more the next id, or the id
// that records wait for, if they fit.
func (l *Log) renameSegment(old *segment, f File) {
	s := l.virtual
	if s == nil || old.size < s.size {
		s = l.newSegment(old.size)
	}
	s.recycled = true
	s.reserved.Store(true)
	l.supplying = true
	l.preparing = s
	disk := l.disk
	var renamed File
	l.runJob(func() (err error) {
		// A file knows its name, so it is opened again under the new one.
		if f != nil {
			_ = f.Close()
		}
		if err = disk.Rename(segmentName(old.id), segmentName(s.id)); err != nil {
			return err
		}
		if err = syncFolder(disk, s.id); err != nil {
			return err
		}
		renamed, err = disk.Open(segmentName(s.id))
		return err
	}, func(err error) {
		l.supplying, l.preparing = false, nil
		s.file = renamed
		l.supplyDone(s, err)
	})
}

// freeSegment reuses the file of a dead segment, or deletes it. One with damage
// that an operator accepted is kept under another name: nothing that was damaged
// is ever deleted by the log.
func (l *Log) freeSegment(s *segment) {
	f := s.file
	l.unparkFile(s)
	s.file = nil
	if !s.damaged && l.reusable(s.size) && len(l.ready) < readyMax {
		l.stats.Recycled++
		l.renameSegment(s, f)
		return
	}
	l.supplying = true
	disk, damaged := l.disk, s.damaged
	l.runJob(func() error {
		if f != nil {
			_ = f.Close()
		}
		name := segmentName(s.id)
		if damaged {
			if err := disk.Rename(name, name+damagedSuffix); err != nil {
				return err
			}
		} else if err := disk.Remove(name); err != nil {
			return err
		}
		return syncFolder(disk, s.id)
	}, func(err error) {
		l.supplying = false
		if isFolderError(err) {
			l.failErr(err)
			return
		}
		l.stats.Removed++
		l.supply()
	})
}

// reclaim looks for segments that hold nothing live and lie before the last
// durable checkpoint, and notes each as dead in the log. Its file is touched once
// that note is durable: recovery then knows a deleted segment from a lost one.
func (l *Log) reclaim() {
	l.reclaimDue = false
	for _, s := range l.segs {
		if s == nil || !s.sealed || s.retired || s.liveCount > 0 || s.id >= l.checkpoint.covered.Segment() {
			continue
		}
		// The end of a read or of compaction comes back here.
		if s.pins > 0 || s == l.compactor.victim {
			continue
		}
		binary.LittleEndian.PutUint32(l.small[:], s.id)
		l.scratch[0] = l.small[:4]
		p, err := l.appendRecord(kindRetire, 0, classSystem, nil, l.scratch[:])
		if err != nil {
			return // the next segment that gets ready comes back here
		}
		s.retired = true
		s.retirePos = p
		l.retiring = append(l.retiring, s)
		l.dropSegment(s)
	}
	l.supply()
}
