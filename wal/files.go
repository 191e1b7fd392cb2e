package wal

import (
	"cmp"
	"fmt"
	"slices"
)

// segmentFile is one file of a log that is being read.
type segmentFile struct {
	id      uint32
	size    int64
	file    File // nil while closed
	head    segmentHeader
	state   headerState
	end     int64  // where its records end, -1 if nothing says so
	nextSeq uint64 // of the record behind its last one, 0 if nothing says so
	claim   int64  // a valid record says that it is synced up to here
	damaged bool
	tail    *tail // of the last segment, once it was walked
}

// tail is where the last segment's records end.
type tail struct {
	end int64
	cut *Cut
}

func (f *segmentFile) name() string { return segmentName(f.id) }

// limit is how many bytes of the file are the segment's.
func (f *segmentFile) limit() int64 {
	if f.head.size > 0 {
		return min(f.head.size, f.size)
	}
	return f.size &^ (blockSize - 1)
}

// fileSet is the files of a stopped log.
type fileSet struct {
	disk  Disk
	logID uint64
	// parts hold the log, in order; spare hold nothing that counts.
	parts, spare []*segmentFile
	scan         scanner
	report       *Report
	accepted     []acceptedDamage
	maxID        uint32
}

// loadFiles lists a log's files and reads their headers.
func loadFiles(disk Disk) (*fileSet, error) {
	set := &fileSet{disk: disk, report: &Report{}}
	infos, err := disk.List()
	if err != nil {
		return nil, err
	}
	var unclear []*segmentFile
	for _, info := range infos {
		id, ok := segmentID(info.Name)
		if !ok {
			continue
		}
		set.maxID = max(set.maxID, id)
		f := &segmentFile{id: id, size: info.Size, end: -1}
		if err := set.loadHeader(f); err != nil {
			return nil, err
		}
		switch {
		case f.state == headerVersion:
			return nil, fmt.Errorf("wal: %s has version %d of the format, this program reads version %d", f.name(), f.head.version, formatVersion)
		case f.state != headerNone && f.head.id == id:
			set.parts = append(set.parts, f)
		default:
			unclear = append(unclear, f)
		}
	}
	byID := func(a, b *segmentFile) int { return cmp.Compare(a.id, b.id) }
	slices.SortFunc(set.parts, byID)
	slices.SortFunc(unclear, byID)
	if set.accepted, err = readAccepted(disk, infos); err != nil {
		return nil, err
	}
	if err := set.identify(unclear); err != nil {
		return nil, err
	}
	slices.SortFunc(set.parts, byID)
	set.report.LogID, set.report.Segments, set.report.Spare = set.logID, len(set.parts), len(set.spare)
	return set, nil
}

// loadHeader reads the first block of a file.
func (set *fileSet) loadHeader(f *segmentFile) error {
	f.state = headerNone
	if f.size < blockSize {
		return nil
	}
	if err := set.open(f); err != nil {
		return err
	}
	defer set.close(f)
	set.scan.reset(f.file, f.id, 0, blockSize)
	block, err := set.scan.view(0, blockSize)
	if err != nil {
		return err
	}
	f.head, f.state = parseSegmentHeader(block)
	return nil
}

func (set *fileSet) open(f *segmentFile) error {
	if f.file != nil {
		return nil
	}
	var err error
	f.file, err = set.disk.Open(f.name())
	return err
}

func (set *fileSet) close(f *segmentFile) {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

func (set *fileSet) free() {
	set.scan.free()
	for _, f := range set.parts {
		set.close(f)
	}
}

// identify settles which log this is, and what the files are whose header says
// nothing: prepared ones that hold nothing, segments whose header was damaged, or
// the last one, whose first write was torn.
func (set *fileSet) identify(unclear []*segmentFile) error {
	for i := 0; i < len(set.parts); i++ {
		f := set.parts[i]
		if i == 0 {
			set.logID = f.head.logID
		}
		if f.head.logID != set.logID {
			set.damage(f, &CorruptionError{Cause: causeForeign})
			set.report.Foreign = append(set.report.Foreign, f.name())
			set.parts = append(set.parts[:i], set.parts[i+1:]...)
			i--
		}
	}
	for _, f := range unclear {
		if f.state != headerNone && len(set.parts) > 0 && f.head.logID != set.logID {
			set.report.Foreign = append(set.report.Foreign, f.name())
			continue
		}
		part, err := set.holdsRecords(f)
		if err != nil {
			return err
		}
		if !part {
			set.spare = append(set.spare, f)
			continue
		}
		f.head = segmentHeader{id: f.id, logID: set.logID}
		set.damage(f, &CorruptionError{From: 0, To: segmentDataAt, Cause: causeFirst})
		set.parts = append(set.parts, f)
	}
	return set.checkHalves()
}

// checkHalves settles headers of which only one copy is there. If nothing says that
// the header was synced, its write was torn: nothing in that segment was promised, and
// it is left out as if it had never begun. Otherwise it is damage.
func (set *fileSet) checkHalves() error {
	for i := 0; i < len(set.parts); i++ {
		f := set.parts[i]
		synced := f.state == headerHalf || set.named(f)
		if f.state == headerTorn && !synced {
			var err error
			if synced, err = set.claimed(f); err != nil {
				return err
			}
		}
		switch {
		case f.state != headerTorn && f.state != headerHalf:
		case synced:
			set.damage(f, &CorruptionError{From: 0, To: segmentDataAt, Cause: causeFirst})
		default:
			set.report.Cut = &Cut{File: f.name(), Cause: causeTorn}
			set.spare = append(set.spare, f)
			set.parts = append(set.parts[:i], set.parts[i+1:]...)
			i--
		}
	}
	return nil
}

// named reports whether a later segment's header names this one as the one before:
// it was complete and synced then.
func (set *fileSet) named(f *segmentFile) bool {
	for _, other := range set.parts {
		if other.head.previous == f.id {
			return true
		}
	}
	return false
}

// holdsRecords reports whether a file without a header of its own is a segment that
// was synced once. A file whose first write was torn is not: nothing in it was
// promised. A header block that is neither empty nor a header is never overwritten.
func (set *fileSet) holdsRecords(f *segmentFile) (bool, error) {
	if set.named(f) {
		return true, nil
	}
	if f.size < segmentDataAt+blockSize {
		return false, nil
	}
	if err := set.open(f); err != nil {
		return false, err
	}
	defer set.close(f)
	limit := f.size &^ (blockSize - 1)
	set.scan.reset(f.file, f.id, segmentSalt(set.logID, f.id), limit)
	block, err := set.scan.view(0, blockSize)
	if err != nil {
		return false, err
	}
	empty := isZero(block) || f.state != headerNone
	if len(set.parts) == 0 {
		return !empty, nil
	}
	// Zeros, or the header of the segment that it was: as a prepared file has it.
	// Only if there is a record in the first place is there reason to doubt that.
	var r Record
	if empty && set.scan.record(segmentDataAt, limit, &r).step != stepRecord {
		return false, nil
	}
	return set.claimed(f)
}

// claimed reports whether any record of a segment says that part of it was synced.
func (set *fileSet) claimed(f *segmentFile) (bool, error) {
	if err := set.open(f); err != nil {
		return false, err
	}
	defer set.close(f)
	limit := f.size &^ (blockSize - 1)
	set.scan.reset(f.file, f.id, segmentSalt(set.logID, f.id), limit)
	for off := int64(segmentDataAt); ; {
		at, err := set.scan.resync(off, limit)
		if err != nil || at < 0 {
			return false, err
		}
		var r Record
		found := set.scan.record(at, limit, &r)
		if found.head.synced > 0 {
			return true, nil
		}
		off = found.next
	}
}

// damage reports damage of a file, and keeps the file from being used again.
func (set *fileSet) damage(f *segmentFile, e *CorruptionError) {
	f.damaged = true
	e.File, e.Segment = f.name(), f.id
	e.Accepted = isAccepted(set.accepted, e)
	set.report.Damage = append(set.report.Damage, e)
}

// chain notes where segments end, as the headers behind them say.
func (set *fileSet) chain() {
	for i, f := range set.parts {
		if i == 0 || f.head.previous == 0 {
			continue
		}
		before := set.parts[i-1]
		if before.id == f.head.previous {
			before.end, before.nextSeq = int64(f.head.end), f.head.firstSeq
		}
	}
}

// part finds a segment by its id.
func (set *fileSet) part(id uint32) *segmentFile {
	i, ok := slices.BinarySearchFunc(set.parts, id, func(f *segmentFile, id uint32) int { return cmp.Compare(f.id, id) })
	if !ok {
		return nil
	}
	return set.parts[i]
}
