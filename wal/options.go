package wal

import (
	"errors"
	"fmt"
)

// SyncMode is what a log does before it calls a record committed.
type SyncMode int

const (
	// SyncAlways commits a record after the sync that covers it. Nothing that was
	// committed is lost in a power cut.
	SyncAlways SyncMode = iota
	// SyncInterval commits a record when the kernel has it; the owner calls
	// Log.Sync on a timer. A power cut loses up to that interval of what was
	// committed; the death of the process alone loses nothing.
	SyncInterval
	// SyncOff never syncs but where a segment ends. A power cut loses up to a
	// segment of what was committed; the death of the process alone loses nothing.
	SyncOff
)

// String is the mode as the command line spells it.
func (m SyncMode) String() string {
	switch m {
	case SyncAlways:
		return "always"
	case SyncInterval:
		return "interval"
	case SyncOff:
		return "off"
	}
	return fmt.Sprintf("SyncMode(%d)", int(m))
}

// Compression is how message payloads are stored.
type Compression int

const (
	// CompressNone stores payloads as they are. The default.
	CompressNone Compression = iota
	// CompressS2 is fast: for a loop that has time and a disk that has not.
	CompressS2
	// CompressZstd is small.
	CompressZstd
)

// Events is what a log tells its owner. All methods are called on the log's loop,
// out of a completion of the device or out of RetrySpace, never out of Append. They
// may append.
type Events interface {
	// Committed: every record at a position below p is as safe as the sync mode
	// says. Called once for each group, with growing positions.
	Committed(p Position)
	// Failed: a write or sync failed, and the log is over. Called once. Nothing
	// will be committed any more; the owner says so and exits.
	Failed(err error)
	// Space: with an error (a *SpaceError), messages are refused from now on;
	// with nil, they are welcome again. Called once for each change.
	Space(err error)
}

// Limits and defaults of Options, in bytes.
const (
	// SegmentSizeDefault is large enough that the switch to the next segment is
	// rare and small enough that space comes back soon.
	SegmentSizeDefault = 64 << 20
	// SegmentFirstDefault is what a small broker pays for: little to fill with zeros
	// when it starts, little on its disk.
	SegmentFirstDefault = 4 << 20
	// SegmentSizeMin and SegmentSizeMax bound Options.SegmentSize.
	SegmentSizeMin = 32 << 10
	SegmentSizeMax = 1 << 30
	// GroupSizeDefault is where a group commit stops gathering: beyond it the time
	// of a write grows with its size, and so does every confirm's.
	GroupSizeDefault = 256 << 10
	// BacklogMaxDefault bounds what waits for the disk in memory.
	BacklogMaxDefault = 128 << 20
	// CheckpointBytesDefault bounds the events that recovery has to replay.
	CheckpointBytesDefault = 256 << 20
	// CompressMinDefault is the smallest payload worth a compressor's time.
	CompressMinDefault = 4 << 10
)

const (
	// sparesDefault segments are ready beside the ballast.
	sparesDefault = 1
	// readyMax bounds the dead segments kept for reuse; more are deleted.
	readyMax = 4
	// openFilesMax is how many sealed segments keep a descriptor for reading.
	openFilesMax = 64
	// groupPoolMax is how many idle group buffers keep their memory.
	groupPoolMax = 16
	// systemReserve is room at the end of each segment that only the log's own
	// records may use: without it a full disk could not even note which segments
	// are dead.
	systemReserve = 2 * blockSize
)

// Options of a log. Disk, Device and Events are required.
type Options struct {
	Disk   Disk
	Device Device
	Events Events

	Sync        SyncMode
	SegmentSize int64 // bytes of a segment's file, a multiple of 4096
	// SegmentFirst is the size of a new log's first segments, in bytes, a multiple of
	// 4096. Later ones grow up to SegmentSize; a larger value means no growth.
	SegmentFirst int64
	GroupSize    int   // bytes of a group commit, a multiple of 4096
	Spares       int   // prepared segments beside the ballast
	BacklogMax   int64 // bytes in memory beyond which messages get ErrBusy

	// CheckpointBytes is the growth of the log after which CheckpointDue says so.
	CheckpointBytes int64

	Compression Compression
	CompressMin int // smallest payload that is compressed, in bytes

	// AcceptDamage opens a damaged log: what is readable is recovered, segments
	// with damage are kept for good. Without it Open returns ErrDamaged.
	AcceptDamage bool
	// LogID names a new log, for tests that must repeat; 0 draws one.
	LogID uint64
	// Now is a monotonic clock in nanoseconds for the statistics of syncs, and may
	// be nil.
	Now func() int64
	// Progress is told while Open reads, after each segment, and may be nil.
	Progress func(doneBytes, totalBytes int64)
}

// withDefaults fills in what was left at zero and checks the rest.
func (o Options) withDefaults() (Options, error) {
	setDefault(&o.SegmentSize, SegmentSizeDefault)
	setDefault(&o.SegmentFirst, SegmentFirstDefault)
	o.SegmentFirst = min(o.SegmentFirst, o.SegmentSize)
	setDefault(&o.GroupSize, GroupSizeDefault)
	setDefault(&o.Spares, sparesDefault)
	setDefault(&o.BacklogMax, BacklogMaxDefault)
	setDefault(&o.CheckpointBytes, CheckpointBytesDefault)
	setDefault(&o.CompressMin, CompressMinDefault)
	switch {
	case o.Disk == nil || o.Device == nil || o.Events == nil:
		return o, errors.New("wal: Disk, Device and Events are required")
	case o.SegmentSize%blockSize != 0 || o.SegmentSize < SegmentSizeMin || o.SegmentSize > SegmentSizeMax:
		return o, fmt.Errorf("wal: segment size %d: want a multiple of %d from %d to %d",
			o.SegmentSize, blockSize, SegmentSizeMin, SegmentSizeMax)
	case o.SegmentFirst%blockSize != 0 || o.SegmentFirst < SegmentSizeMin:
		return o, fmt.Errorf("wal: first segment size %d: want a multiple of %d, at least %d", o.SegmentFirst, blockSize, SegmentSizeMin)
	case o.GroupSize%blockSize != 0 || o.GroupSize < 2*blockSize:
		return o, fmt.Errorf("wal: group size %d: want a multiple of %d, at least two", o.GroupSize, blockSize)
	case o.Spares < 0 || o.Spares >= readyMax:
		return o, fmt.Errorf("wal: %d spares: want 0 to %d", o.Spares, readyMax-1)
	}
	return o, nil
}

func setDefault[T int | int64](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}
