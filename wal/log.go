package wal

import "sync/atomic"

// Log is one segmented append-only log, owned by one loop: all its methods are
// called on that loop's thread, and all callbacks come on it. The exception is
// Open, which blocks, and which any one goroutine may call before the loop runs.
type Log struct {
	opts   Options
	disk   Disk
	dev    Device
	events Events

	logID  uint64
	seq    uint64 // of the next record
	nextID uint32 // of the next segment

	// Segments that hold the log, by id-segBase; nil where one is gone.
	segs    []*segment
	segBase uint32
	cur     *segment // where records go; nil before the first one
	last    *segment // the segment before the next one: cur, or the recovered tail

	// Groups wait in a list. The last one may be open for more records; the one in
	// flight is off the list.
	head, tail *group
	pool       []*group
	poolSize   int
	inflight   *group
	syncOnly   bool     // a sync without data is in flight
	writeSync  bool     // what is in flight ends in a sync
	syncTarget Position // Sync was asked for everything below
	startedAt  int64    // by Options.Now, of what is in flight

	end       Position // just behind the last record
	written   Position // the device has taken everything below
	synced    Position // everything below is durable
	committed Position // what Events.Committed was told
	writtenTo *segment // the segment of written
	backlog   int64    // bytes of records that are not written yet

	// stop is what Append returns once the log is over, err the reason.
	stop error
	err  error

	// space is why messages are refused for want of space, or nil.
	space      *SpaceError
	ready      []*segment // prepared, by growing id; the last one is the ballast
	overtaken  []*segment // prepared, but with ids below the current one's
	preparing  *segment   // a job makes its file
	virtual    *segment   // current already, while its file is still being made
	supplying  bool       // a job that makes or frees segments is in flight
	jobs       int        // jobs in flight, those of large segments included
	createOK   bool       // the disk may be asked for a new file
	fileSize   int64      // of the next file that is made
	filesMade  int        // of that size
	retiring   []*segment
	reclaimDue bool

	checkpoint checkpointState
	openFiles  []*segment // sealed segments with an open file, oldest use first
	fetches    fetchState
	compactor  compactor
	closing    func(error)
	closePos   Position

	compress compressor
	scratch  [1][]byte            // AppendAck's parts: here, so that they do not escape
	small    [ackPayloadSize]byte // and their bytes
	stats    Stats

	writeDoneFn func(error)
	syncDoneFn  func(error)
}

// segment is one file of the log, or one that is prepared for it.
type segment struct {
	id       uint32
	file     File // nil while closed, or not made yet
	size     int64
	salt     uint32
	recycled bool // the file held another segment before
	// reserved is set by the job that makes the file as soon as its space is sure:
	// from then on records may be taken for it.
	reserved atomic.Bool
	usable   bool // the file is made and its name durable
	opened   bool // a group with its header was formed
	sealed   bool // no more records
	damaged  bool // never recycled
	retired  bool

	previous    uint32 // header fields
	previousEnd uint32
	firstSeq    uint64

	next    int64  // offset of the next group, while current
	endAt   uint32 // where its records end, when sealed
	nextSeq uint64 // of the record behind its last, when sealed

	liveCount int64
	liveBytes int64
	pins      int      // reads in flight
	retirePos Position // of the record that says it is dead
	compacted bool     // compaction went through it
}

// Synced is the end of what is durable: a record at position p is safe from a
// power cut if p < Synced().
func (l *Log) Synced() Position { return l.synced }

// Committed is the end of what the sync mode calls safe: an answer that waits for
// a record at p may leave if p < Committed(). It is Synced with SyncAlways.
func (l *Log) Committed() Position { return l.committed }

// End is the position just behind the last record that was appended. An answer
// that must wait for everything so far waits until End() <= Committed().
func (l *Log) End() Position { return l.end }

// Err is the reason why the log is over, or nil.
func (l *Log) Err() error { return l.err }

// Space is why messages are refused for want of space, or nil.
func (l *Log) Space() error {
	if l.space == nil {
		return nil
	}
	return l.space
}

// Backlog is how many bytes of records wait for the disk. An owner that stops
// reading from publishers above a few MiB never sees ErrBusy.
func (l *Log) Backlog() int64 { return l.backlog }

// Mode is the sync mode, for status pages.
func (l *Log) Mode() SyncMode { return l.opts.Sync }

// segment finds a segment of the log by its id.
func (l *Log) segment(id uint32) *segment {
	if i := id - l.segBase; i < uint32(len(l.segs)) {
		return l.segs[i]
	}
	return nil
}

// addSegment enters a segment whose id is the highest so far.
func (l *Log) addSegment(s *segment) {
	if len(l.segs) == 0 {
		l.segBase = s.id
	}
	for l.segBase+uint32(len(l.segs)) < s.id {
		l.segs = append(l.segs, nil)
	}
	l.segs = append(l.segs, s)
}

// dropSegment takes a segment out, and the gap before the oldest one with it.
func (l *Log) dropSegment(s *segment) {
	l.segs[s.id-l.segBase] = nil
	gone := 0
	for gone < len(l.segs) && l.segs[gone] == nil {
		gone++
	}
	l.segs = l.segs[gone:]
	l.segBase += uint32(gone)
}

// Retain counts a record as live: while the records of a segment have anything
// live, the segment stays. bytes is any measure that the matching Release repeats;
// the record's size makes compaction choose well.
func (l *Log) Retain(p Position, bytes int) {
	if s := l.segment(p.Segment()); s != nil {
		s.liveCount++
		s.liveBytes += int64(bytes)
	}
}

// Release takes back one Retain. Once nothing in a segment is live and a durable
// checkpoint covers it, the segment is used again.
func (l *Log) Release(p Position, bytes int) {
	s := l.segment(p.Segment())
	if s == nil {
		return
	}
	s.liveCount--
	s.liveBytes -= int64(bytes)
	if s.liveCount <= 0 {
		if s.liveCount < 0 {
			panic("wal: record released more often than retained")
		}
		l.reclaimDue = true
	}
}
