package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"ringmq/wal"
)

// This file is the engine's only contact with package wal: names for what the
// store uses, opening, and the device that connects a log to its loop.

type (
	walLog      = wal.Log
	walPosition = wal.Position
	walRef      = wal.Ref
	walRecord   = wal.Record
	walChunk    = wal.Chunk
	walAckSet   = wal.AckSet
	walReport   = wal.Report

	walRecoverer  = wal.Recoverer
	walSpaceError = wal.SpaceError
)

// walRefsMax is how many queues one record can name.
const walRefsMax = wal.RefsMax

// Kinds of records. The numbers are never given anew (docs/wal-format.md).
const (
	kindLease    = wal.KindEventMin + 0 // queue u64, up to u64
	kindRequeued = wal.KindEventMin + 1 // queue u64, sequence u64, deliveries u16
	kindMessage  = wal.KindMessageMin + 0
	kindSpill    = wal.KindMessageMin + 1 // a body that left memory; means nothing after a restart
)

// Refusals of a log that the store tells apart.
// errBusy is what isBusy recognizes.
var errBusy = wal.ErrBusy

func isBusy(err error) bool  { return errors.Is(err, wal.ErrBusy) }
func isSpace(err error) bool { return errors.Is(err, wal.ErrNoSpace) }
func isEnded(err error) bool { return errors.Is(err, wal.ErrClosed) || errors.Is(err, wal.ErrFailed) }
func needsRoom(err error) bool {
	return errors.Is(err, wal.ErrShortBuffer)
}

// storageHooks put a test's disk, device and clock in the place of the real ones.
type storageHooks struct {
	disk   func(loop int) wal.Disk
	device func(loop int) testDevice
	clock  func() (mono, wallMS int64) // as monotonic and wallMillis
	loops  func() []int                // that have a log
	remove func(loop int)              // a loop's log
}

// testDevice does a log's I/O step by step. Step does something if anything waits.
type testDevice interface {
	wal.Device
	Step() bool
}

// logFolder is the folder of one loop's log.
func logFolder(dir string, loop int) string { return filepath.Join(dir, fmt.Sprintf("%03d", loop)) }

// syncModes are the words of StorageOptions.Sync.
var syncModes = map[string]wal.SyncMode{
	"": wal.SyncAlways, "always": wal.SyncAlways, "interval": wal.SyncInterval, "off": wal.SyncOff,
}

// compressions are the words of StorageOptions.Compress.
var compressions = map[string]wal.Compression{
	"": wal.CompressNone, "none": wal.CompressNone, "s2": wal.CompressS2, "zstd": wal.CompressZstd,
}

// openLog reads the log of a loop into to.
func openLog(o *StorageOptions, loop int, dev wal.Device, ev wal.Events, to func(*wal.Log) wal.Recoverer) (*wal.Log, *wal.Report, error) {
	mode, ok := syncModes[o.Sync]
	if !ok {
		return nil, nil, fmt.Errorf("unknown sync mode %q", o.Sync)
	}
	compression, ok := compressions[o.Compress]
	if !ok {
		return nil, nil, fmt.Errorf("unknown compression %q", o.Compress)
	}
	dir := logFolder(o.Dir, loop)
	var d wal.Disk
	var err error
	if o.hooks.disk != nil {
		d = o.hooks.disk(loop)
	} else {
		d, err = wal.OpenDir(dir, true)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("log %s: %w", dir, err)
	}
	l, report, err := wal.Open(wal.Options{
		Disk: d, Device: dev, Events: ev, Sync: mode, Compression: compression,
		SegmentSize: o.SegmentSize, Now: monotonic,
		Progress: func(done, total int64) {
			if o.Progress != nil {
				o.Progress(loop, done, total)
			}
		},
	}, to)
	if err != nil {
		return nil, report, logError(dir, report, err)
	}
	return l, report, nil
}

// DamageError is why a log does not open: it holds damage that no crash leaves
// behind. The text names the files and offsets.
type DamageError struct {
	Dir  string // folder of the log
	text string
}

// Error implements error.
func (e *DamageError) Error() string { return e.text }

// Unwrap makes it what package wal calls damage.
func (e *DamageError) Unwrap() error { return wal.ErrDamaged }

func logError(dir string, report *wal.Report, err error) error {
	if !errors.Is(err, wal.ErrDamaged) || report == nil {
		return fmt.Errorf("log %s: %w", dir, err)
	}
	text := "log " + dir + " is damaged"
	for i, d := range report.Damage {
		if d.Accepted {
			continue
		}
		if i == 8 {
			text += "; and more"
			break
		}
		text += "; " + d.Error()
	}
	return &DamageError{Dir: dir, text: text}
}

// logDevice carries out a log's I/O: writes by the loop's ring if it can, all
// else on other goroutines. While the broker starts, before the loops run, the
// results come to whoever starts it.
type logDevice struct {
	direct  testDevice   // does it all, if there is one
	threads *wal.Threads // nil with direct
	port    diskPort     // of the loop; valid once bound

	mu     sync.Mutex
	bound  bool
	early  []func()
	arrive chan struct{} // something came early
}

func newLogDevice(o *StorageOptions, loop int) *logDevice {
	d := &logDevice{arrive: make(chan struct{}, 1)}
	if o.hooks.device != nil {
		d.direct = o.hooks.device(loop)
	} else {
		d.threads = wal.NewThreads(d.post)
	}
	return d
}

// stop ends the device's goroutines. The log is closed or has failed.
func (d *logDevice) stop() {
	if d.threads != nil {
		d.threads.Stop()
	}
}

// post hands a result to the loop. Any goroutine.
func (d *logDevice) post(f func()) {
	d.mu.Lock()
	bound := d.bound
	if !bound {
		d.early = append(d.early, f)
	}
	d.mu.Unlock()
	if bound {
		d.port.post(f)
		return
	}
	select {
	case d.arrive <- struct{}{}:
	default:
	}
}

// pump runs the results that came before the loop did; with wait it waits for the
// first one.
func (d *logDevice) pump(wait bool) {
	if d.direct != nil {
		d.direct.Step()
		return
	}
	if wait {
		<-d.arrive
	}
	for {
		d.mu.Lock()
		list := d.early
		d.early = nil
		d.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, f := range list {
			f()
		}
	}
}

// bind ties the device to the loop, on which it is called.
func (d *logDevice) bind(p diskPort) {
	d.mu.Lock()
	d.port = p
	list := d.early
	d.early = nil
	d.bound = true
	d.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// Write implements wal.Device.
func (d *logDevice) Write(f wal.File, offset int64, buf []byte, sync bool, done func(error)) {
	if d.direct != nil {
		d.direct.Write(f, offset, buf, sync, done)
		return
	}
	if fd := f.Fd(); d.port.write != nil && fd >= 0 {
		d.port.write(fd, offset, buf, sync, done)
		return
	}
	if d.port.hold != nil {
		// A loop that spins keeps the writer's completion from running.
		d.port.hold(1)
		d.threads.Write(f, offset, buf, sync, func(err error) {
			d.port.hold(-1)
			done(err)
		})
		return
	}
	d.threads.Write(f, offset, buf, sync, done)
}

// Read implements wal.Device.
func (d *logDevice) Read(f wal.File, offset int64, buf []byte, done func(int, error)) {
	if d.direct != nil {
		d.direct.Read(f, offset, buf, done)
		return
	}
	d.threads.Read(f, offset, buf, done)
}

// Run implements wal.Device.
func (d *logDevice) Run(job func() error, done func(error)) {
	if d.direct != nil {
		d.direct.Run(job, done)
		return
	}
	d.threads.Run(job, done)
}

// stats fills in a log's figures.
func logStats(l *wal.Log, s *StorageStats) {
	st := l.Stats()
	s.Sync = l.Mode().String()
	if err := l.Space(); err != nil {
		s.Space = err.Error()
	}
	s.DiskBytes, s.LiveBytes, s.LiveCount = st.DiskBytes, st.LiveBytes, st.LiveCount
	s.Segments, s.Ready = st.SegmentCount, st.ReadyCount
	s.Records, s.RecordBytes, s.WrittenBytes = st.Records, st.RecordBytes, st.WrittenBytes
	s.Groups, s.Syncs, s.Checkpoints = st.Groups, st.Syncs, st.Checkpoints
	s.Recycled, s.Removed, s.Moved = st.Recycled, st.Removed, st.MovedRecords
	s.SyncTimeSum, s.SyncTimeMax, s.InFlight = nanoseconds(st.SyncTimeSumNS), nanoseconds(st.SyncTimeMaxNS), nanoseconds(st.InFlightNS)
	s.Backlog = l.Backlog()
}
