package wal_test

import (
	"errors"
	"testing"

	"ringmq/wal"
)

// TestLightStart: a new log makes one small file and no other before that is used; its
// files then grow to the full size, and only full ones are used again.
func TestLightStart(t *testing.T) {
	const first, full = 64 << 10, 1 << 20
	w := openWorld(t, 1, func(w *world) { w.opts.SegmentFirst, w.opts.SegmentSize = first, full })
	w.settle()
	mustPublish(t, w, 1000, 0)
	w.settle()
	if s := w.log.Stats(); s.DiskBytes != first || s.ReadyCount != 0 {
		t.Fatalf("after one message: %+v", s)
	}
	for w.log.Stats().ReadyCount < 2 {
		mustPublish(t, w, 1000, 0)
		w.settle()
	}
	if s := w.log.Stats(); s.Segments != 1 || s.DiskBytes != first+first+first*4 {
		t.Fatalf("with the spares: %+v", s)
	}
	for range 6000 {
		mustPublish(t, w, 1000, 0)
		if err := w.ack(0, 0, w.store.next[0]-1); err != nil {
			t.Fatal(err)
		}
		w.log.Flush()
		w.dev.Drain()
		if w.log.CheckpointDue() {
			if err := w.checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.settle()
	s := w.log.Stats()
	if s.Recycled == 0 || s.Removed < 4 || s.DiskBytes > 5*full || s.DiskBytes%full != 0 {
		t.Errorf("after %d segments: %+v", s.Segments, s)
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, w, 1000, 0)
	if s := w.log.Stats(); s.DiskBytes%full != 0 {
		t.Errorf("a log that has grown began small again: %+v", s)
	}
}

// TestGrowForRecord: records that the small files do not take get segments of their own,
// in order with what was prepared, and those that are made next take them.
func TestGrowForRecord(t *testing.T) {
	const first, full = 64 << 10, 1 << 20
	w := openWorld(t, 1, func(w *world) {
		w.opts.SegmentFirst, w.opts.SegmentSize, w.opts.BacklogMax = first, full, 16<<20
	})
	for _, n := range []int{100, 60 << 10, 100, 200 << 10, 100, 800 << 10, 100, 100} {
		mustPublish(t, w, n, 0)
		w.settle()
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
	before := w.log.Stats().Segments
	for range 10 {
		mustPublish(t, w, 800<<10, 1)
		w.settle()
	}
	mustPublish(t, w, 100, 1)
	w.settle()
	s := w.log.Stats()
	if s.Segments-before > 11 || s.ReadyCount < 2 {
		t.Errorf("%+v", s)
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
}

// TestSmallFilesOnFullDisk: where there is no room for a larger file, a small one that is
// dead ends the shortage.
func TestSmallFilesOnFullDisk(t *testing.T) {
	const first, full = 64 << 10, 1 << 20
	w := openWorld(t, 1, func(w *world) {
		w.opts.SegmentFirst, w.opts.SegmentSize = first, full
		w.fs.SetCapacity(7 * first)
	})
	var err error
	for err == nil {
		_, err = w.publish(1000, 0)
		w.log.Flush()
		w.dev.Drain()
	}
	if !errors.Is(err, wal.ErrNoSpace) {
		t.Fatal(err)
	}
	if err := w.ack(0, 0, w.store.next[0]-1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.checkpoint(); err != nil {
			t.Fatal(err)
		}
		w.settle()
	}
	if w.log.Space() != nil {
		t.Fatalf("no service: %v, %+v", w.log.Space(), w.log.Stats())
	}
	mustPublish(t, w, 1000, 0)
	w.settle()
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
}

// TestCloseWaitsForFile: records that wait for a file which nobody has begun to make are
// written before the log is closed.
func TestCloseWaitsForFile(t *testing.T) {
	w := openWorld(t, 1, func(w *world) {
		w.opts.SegmentFirst, w.opts.SegmentSize, w.opts.BacklogMax = 64<<10, 1<<20, 16<<20
	})
	for w.log.Stats().ReadyCount < 2 {
		mustPublish(t, w, 1000, 0)
		w.settle()
	}
	// Each overtakes what is ready, or is being renamed for having been overtaken.
	mustPublish(t, w, 2<<20, 0)
	mustPublish(t, w, 2<<20, 0)
	mustPublish(t, w, 5000, 0)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.fs = w.fs.Crash(w.rng)
	if err := w.recovered(w.log.End()); err != nil || !w.report.Clean {
		t.Fatalf("clean %v, %v", w.report.Clean, err)
	}
}
