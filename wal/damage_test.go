package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// place is a record as it was before anything was damaged.
type place struct {
	pos  wal.Position
	size int
	seq  uint64
	hash uint64
}

func (p place) file() string { return wal.SegmentName(p.pos.Segment()) }

// covers reports whether a byte of the record lies at off.
func (p place) covers(file string, off int64) bool {
	at := int64(p.pos.Offset())
	return p.file() == file && off >= at && off < at+int64(p.size)
}

// places reads all valid records of a stopped log.
func places(fs *crashfs.FS) ([]place, *wal.Report, error) {
	var list []place
	report, err := wal.Visit(fs, func(r *wal.Record) error {
		list = append(list, place{r.Position, r.Size(), r.Seq, hashOf(r.Payload())})
		return nil
	})
	return list, report, err
}

// madeLog is a log of a few segments, sealed, recycled, moved and checkpointed.
func madeLog(t *testing.T, seed uint64, steps int, closed bool) (*world, []place) {
	t.Helper()
	w := newWorld(rand.New(rand.NewPCG(seed, 6)), crashfs.New())
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < steps && w.problem == nil; i++ {
		w.step()
	}
	if w.problem != nil {
		t.Fatal(w.problem)
	}
	// One small thing at the end, so that there is a last record to lose.
	mustPublish(t, w, 77, 1)
	w.log.Flush()
	w.dev.Drain()
	w.committed = w.log.Committed()
	if closed {
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
	} else {
		w.log.Free()
	}
	w.fs = w.fs.Clone()
	list, report, err := places(w.fs)
	if err != nil || len(report.Damage) > 0 || report.Cut != nil || report.Clean != closed {
		t.Fatalf("the log is not sound to begin with: %+v, %v", report, err)
	}
	return w, list
}

// extents is how much of each file holds the log, by the places of its records.
func extents(list []place) map[string]int64 {
	ends := map[string]int64{}
	for _, p := range list {
		ends[p.file()] = max(ends[p.file()], int64(p.pos.Offset())+int64(p.size))
	}
	return ends
}

// TestBitFlips is test 6: whatever single bit of a log is flipped, it is noticed at the
// right place, nothing but the record that was hit is lost, and no record changes.
// Behind the last sync that a record bears witness to, a flip cannot be told from a torn
// write; there it ends the log, which is noticed too.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			w, list := madeLog(t, 3, 900, closed)
			ends := extents(list)
			names := slices.Sorted(maps.Keys(ends))
			tail := names[len(names)-1]
			cuts, damaged := 0, 0
			for range seedCount(t, 5000) {
				name := names[w.rng.IntN(len(names))]
				if w.rng.IntN(4) == 0 {
					name = tail
				}
				off := w.rng.Int64N(ends[name])
				bit := byte(1) << w.rng.IntN(8)
				w.fs.Flip(name, off, bit)
				cut, err := checkFlip(w.fs, list, name, off)
				w.fs.Flip(name, off, bit)
				if err != nil {
					t.Fatalf("%s offset %#x bit %#x: %v", name, off, bit, err)
				}
				if cut {
					cuts++
					if name != tail {
						t.Fatalf("%s offset %#x: cut a sealed segment", name, off)
					}
				} else {
					damaged++
				}
			}
			t.Logf("%d segments, %d records: %d flips reported as damage, %d as a torn tail", len(names), len(list), damaged, cuts)
			if damaged == 0 || cuts == 0 && !closed {
				t.Error("only one kind of finding: the test has lost its point")
			}
		})
	}
}

// checkFlip reads a log with one flipped bit and compares it with what it was.
func checkFlip(fs *crashfs.FS, list []place, name string, off int64) (cut bool, err error) {
	got, report, err := places(fs)
	if err != nil {
		return false, err
	}
	found := false
	for _, d := range report.Damage {
		// What follows from a lost record is reported as well: a checkpoint that misses
		// a piece, a retired segment that nothing says is retired.
		found = found || d.File == name && d.From <= off && off < d.To
		if d.File != name && !strings.Contains(d.Cause, "checkpoint") && !strings.Contains(d.Cause, "segment missing") {
			return false, fmt.Errorf("damage in another file: %v", d)
		}
	}
	cut = report.Cut != nil
	if cut && (report.Cut.File != name || report.Cut.Offset > off) {
		return cut, fmt.Errorf("cut at the wrong place: %v", report.Cut)
	}
	if !found && !cut {
		return cut, fmt.Errorf("not noticed: %+v", report)
	}
	there := map[uint64]place{}
	for _, p := range got {
		there[p.seq] = p
	}
	for _, p := range list {
		q, ok := there[p.seq]
		delete(there, p.seq)
		switch {
		case ok && q != p:
			return cut, fmt.Errorf("record %+v reads as %+v", p, q)
		case !ok && !p.covers(name, off) && !(cut && p.file() == name && int64(p.pos.Offset()) >= report.Cut.Offset):
			return cut, fmt.Errorf("record %+v is lost though nothing hit it: %v, %v", p, report.Damage, report.Cut)
		}
	}
	if len(there) > 0 {
		return cut, fmt.Errorf("records that were not there before: %v", there)
	}
	return cut, nil
}

// TestTruncation is test 7: the last segment's file cut short anywhere. The log ends with
// the last whole record before, and starting again finds the same.
func TestTruncation(t *testing.T) {
	t.Parallel()
	w, list := madeLog(t, 8, 150, false)
	names := slices.Sorted(maps.Keys(extents(list)))
	tail := names[len(names)-1]
	full := len(w.fs.Bytes(tail))
	stride := 1
	if raceEnabled || testing.Short() {
		stride = 61
	}
	used := int(extents(list)[tail])
	for size := full - 1; size >= 0; size -= stride {
		if size > used+4096 && size%64 != 0 && os.Getenv("RINGMQ_TEST_SEEDS") == "" {
			continue // nothing was ever written there
		}
		w.fs.Truncate(tail, size)
		var want []place
		for _, p := range list {
			if p.file() != tail || int64(p.pos.Offset())+int64(p.size) <= int64(size) && size >= 4096 {
				want = append(want, p)
			}
		}
		got, report, err := places(w.fs)
		if err != nil || len(report.Damage) > 0 {
			t.Fatalf("cut to %d: %v, %v", size, err, report.Damage)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("cut to %d: %d records, want %d", size, len(got), len(want))
		}
		if size%509 == 0 {
			startTwice(t, w, size)
		}
	}
}

// startTwice opens a copy of a truncated log, ends it, and opens it again.
func startTwice(t *testing.T, w *world, size int) {
	t.Helper()
	again := newWorld(rand.New(rand.NewPCG(uint64(size), 7)), w.fs.Clone())
	again.model.ops = slices.Clone(w.model.ops)
	if err := again.recovered(0); err != nil {
		t.Fatalf("cut to %d: %v", size, err)
	}
	end := again.report.End
	for range 2 {
		if err := again.crash(); err != nil {
			t.Fatalf("cut to %d, next start: %v", size, err)
		}
		if again.report.End != end {
			t.Fatalf("cut to %d: ends at %v, then at %v", size, end, again.report.End)
		}
	}
	again.log.Free()
}

// TestMissingSegment: a file that somebody deleted is noticed; one that the log itself
// retired is not missed.
func TestMissingSegment(t *testing.T) {
	w, list := madeLog(t, 3, 1500, true)
	names := slices.Sorted(maps.Keys(extents(list)))
	for _, name := range names[:len(names)-1] {
		fs := w.fs.Clone()
		if err := fs.Remove(name); err != nil {
			t.Fatal(err)
		}
		report, err := wal.CheckDisk(fs)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(report.Damage, func(d *wal.CorruptionError) bool {
			return d.File == name && strings.Contains(d.Cause, "missing")
		}) {
			t.Errorf("%s is gone and nobody noticed: %v", name, report.Damage)
		}
	}
}

// TestRecycledGarbage is test 8: what a prepared or recycled file holds behind the end
// of the log never comes back, whatever it is.
func TestRecycledGarbage(t *testing.T) {
	const logID = 0x1234567
	w, list := madeLog(t, 8, 700, false)
	names := slices.Sorted(maps.Keys(extents(list)))
	tail, last := names[len(names)-1], list[len(list)-1]
	end := (int64(last.pos.Offset()) + int64(last.size) + 4095) &^ 4095
	segment := last.pos.Segment()
	raw := func(id uint64, seg uint32, seq uint64) []byte {
		return wal.AppendRawRecord(nil, id, seg, seq, 0, kindMessage, body(1, 200))
	}
	var own []byte
	for _, p := range list {
		if p.file() == tail {
			own = append(own, w.fs.Bytes(tail)[p.pos.Offset():][:p.size]...)
		}
	}
	for _, c := range []struct {
		name    string
		garbage []byte
	}{
		{"an older segment", w.fs.Bytes(names[0])[4096:]},
		{"an older segment's header", w.fs.Bytes(names[0])[:4096]},
		{"records of another segment with the next number", raw(logID, segment-1, last.seq+1)},
		{"records of another log with the next number", raw(logID+1, segment, last.seq+1)},
		{"its own first records again", own},
		{"noise", body(7, 40000)},
		{"ones", bytes.Repeat([]byte{0xff}, 40000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := w.fs.Clone()
			room := fs.Bytes(tail)[end:]
			if len(room) < 4096 {
				t.Fatal("no room behind the end: choose another seed")
			}
			copy(room, c.garbage)
			fs = fs.Clone() // it is on the disk, not only in the cache
			got, report, err := places(fs)
			if err != nil || len(report.Damage) > 0 {
				t.Fatalf("%v, %v", err, report.Damage)
			}
			if !slices.Equal(got, list) {
				t.Fatalf("%d records, want %d", len(got), len(list))
			}
			again := newWorld(w.rng, fs)
			again.model.ops = slices.Clone(w.model.ops)
			if err := again.recovered(w.committed); err != nil {
				t.Fatal(err)
			}
			// What is appended now stands in a new segment, and the garbage stays out.
			mustPublish(t, again, 500, 2)
			again.log.Flush()
			again.dev.Drain()
			if err := again.crash(); err != nil {
				t.Fatal(err)
			}
			again.log.Free()
		})
	}
}

// TestForgedBody: a body that holds the next record of this very segment, all but the
// salt, is damaged at its beginning; the search behind the damage must not believe it.
func TestForgedBody(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 9)), crashfs.New())
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	publish := func(b []byte) {
		seq := w.store.next[0]
		p, err := w.log.Append(kindMessage, []wal.Ref{{Queue: 0, Seq: seq}}, [][]byte{b})
		if err != nil {
			t.Fatal(err)
		}
		w.store.put(wal.Ref{Queue: 0, Seq: seq}, p, len(b), hashOf(b))
		w.log.Flush()
		w.dev.Drain()
	}
	forged := wal.AppendRawRecord(nil, 0, 1, 2, 0, kindMessage, []byte("forged record, with another salt"))
	publish(bytes.Repeat(forged, 20))
	publish([]byte("honest"))
	w.log.Free()
	fs := w.fs.Clone()
	fs.Flip(wal.SegmentName(1), 4096, 1)   // the checksum
	fs.Flip(wal.SegmentName(1), 4096+8, 1) // the length, so that the place of the next is not known
	got, report, err := places(fs)
	if err != nil || len(got) != 1 || got[0].seq != 2 || len(report.Damage) != 1 {
		t.Fatalf("records %v, damage %v, %v", got, report.Damage, err)
	}
}

// TestGroupBearsWitness: the records of a group were formed while the group before was in
// flight. All the same one of them proves, once it is written, that the other was synced:
// rot there is damage, though the log was not closed and nothing came after.
func TestGroupBearsWitness(t *testing.T) {
	w := openWorld(t, 1, nil)
	mustPublish(t, w, 100, 0)
	w.settle()
	first := mustPublish(t, w, 100, 0)
	w.log.Flush()
	mustPublish(t, w, 100, 0)
	w.settle()
	w.log.Free()
	fs := w.fs.Clone()
	fs.Flip(wal.SegmentName(first.Segment()), int64(first.Offset())+50, 1)
	report, err := wal.CheckDisk(fs)
	if err != nil || report.Cut != nil || len(report.Damage) != 1 || report.Damage[0].From != int64(first.Offset()) || report.Records != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestRepair: a damaged log does not open; after Repair it does, with all that is
// readable, no file is deleted or changed, and the damaged segment is kept for good.
func TestRepair(t *testing.T) {
	w, list := madeLog(t, 3, 900, true)
	victim := list[len(list)/3]
	w.fs.Flip(victim.file(), int64(victim.pos.Offset())+int64(victim.size)/2, 4)
	before := w.fs.Clone()
	again := newWorld(w.rng, w.fs)
	err := again.open()
	var place *wal.CorruptionError
	if !errors.Is(err, wal.ErrDamaged) || !errors.As(err, &place) || place.File != victim.file() || place.From != int64(victim.pos.Offset()) || place.Records != 1 {
		t.Fatalf("open: %v", err)
	}
	report, err := wal.RepairDisk(w.fs)
	if err != nil || len(report.Damage) == 0 {
		t.Fatalf("repair: %+v, %v", report, err)
	}
	for _, name := range before.Names() {
		if !bytes.Equal(before.Bytes(name), w.fs.Bytes(name)) {
			t.Errorf("repair changed %s", name)
		}
	}
	if report, err := wal.CheckDisk(w.fs); err != nil || len(report.Damage) == 0 || !report.Damage[0].Accepted {
		t.Fatalf("check after repair: %+v, %v", report, err)
	}
	// Again is no harm, and new damage is not covered by it.
	if _, err := wal.RepairDisk(w.fs); err != nil {
		t.Fatal(err)
	}
	if err := again.open(); err != nil {
		t.Fatalf("open after repair: %v", err)
	}
	for q := range queueCount {
		if n := again.store.next[q]; n > 0 {
			if err := again.ack(q, 0, n-1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := again.checkpoint(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again.log.Flush()
		again.dev.Drain()
	}
	if !slices.Contains(w.fs.Names(), victim.file()+".damaged") {
		t.Errorf("the damaged segment is gone: %v", w.fs.Names())
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
	if report, err := wal.CheckDisk(w.fs); err != nil || len(report.Damage) > 0 {
		t.Fatalf("in the end: %v, %v", report.Damage, err)
	}
}
