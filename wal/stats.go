package wal

import "math/bits"

// SyncBuckets is the number of buckets of Stats.SyncTimes.
const SyncBuckets = 28

// Stats counts what a log did since it was opened, and what it holds.
type Stats struct {
	Records         uint64              // records appended
	RecordBytes     uint64              // their bytes, headers included
	Groups          uint64              // writes
	GroupRecordsMax uint64              // most records in one write
	WrittenBytes    uint64              // bytes written, padding included
	Syncs           uint64              // writes and calls that ended in a sync
	SyncTimes       [SyncBuckets]uint64 // how long those took: bucket i counts up to 2^i microseconds
	SyncTimeMaxNS   int64
	SyncTimeSumNS   int64
	Segments        uint64 // segments begun
	Recycled        uint64 // dead segments that were used again
	Removed         uint64 // dead segments that were deleted
	Checkpoints     uint64
	MovedRecords    uint64 // records that compaction copied
	MovedBytes      uint64

	SegmentCount int   // segments that hold the log now
	ReadyCount   int   // prepared segments
	DiskBytes    int64 // size of both
	LiveBytes    int64 // what is retained
	LiveCount    int64
	InFlightNS   int64 // how long the write in flight takes so far; needs Options.Now
}

// addSync counts one sync of ns nanoseconds.
func (s *Stats) addSync(ns int64) {
	s.SyncTimeSumNS += ns
	s.SyncTimeMaxNS = max(s.SyncTimeMaxNS, ns)
	s.SyncTimes[min(bits.Len64(uint64(max(ns-1, 0)/1000)), SyncBuckets-1)]++
}

// Stats returns the counters. It walks the segments: for status pages.
func (l *Log) Stats() Stats {
	s := l.stats
	for _, segment := range l.segs {
		if segment != nil {
			s.SegmentCount++
			s.DiskBytes += segment.size
			s.LiveBytes += segment.liveBytes
			s.LiveCount += segment.liveCount
		}
	}
	for _, segment := range l.ready {
		s.ReadyCount++
		s.DiskBytes += segment.size
	}
	if l.opts.Now != nil && (l.inflight != nil || l.syncOnly) {
		s.InFlightNS = l.opts.Now() - l.startedAt
	}
	return s
}
