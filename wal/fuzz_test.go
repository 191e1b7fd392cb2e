package wal_test

import (
	"math/rand/v2"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// fuzzLogID is the id of the logs that are fuzzed.
const fuzzLogID = 0x1234567

// FuzzReader damages a log at any places, and puts any bytes where its records belong: the
// reader must end, without a panic, and a log that it calls sound must open, twice with the
// same result. Inputs are small: edits are four bytes each, which file, where, and what.
func FuzzReader(f *testing.F) {
	w := newWorld(rand.New(rand.NewPCG(2, 2)), crashfs.New())
	w.opts.SegmentSize = 32 << 10
	if err := w.open(); err != nil {
		f.Fatal(err)
	}
	for range 300 {
		w.step()
	}
	w.settle()
	w.log.Free()
	base := w.fs.Clone()
	f.Add([]byte{0, 16, 8, 1, 1, 0, 0, 7}, []byte{}, true)
	f.Add([]byte{3, 16, 16, 1}, []byte{}, false)
	f.Add([]byte{}, wal.AppendRawRecord(nil, fuzzLogID, 1, 1, 0, kindMessage, []byte("x")), true)
	f.Add([]byte{}, wal.AppendRawRecord(nil, fuzzLogID, 1, 1, 4096, wal.KindCheckpointEnd, make([]byte, 48)), true)
	f.Fuzz(func(t *testing.T, edits, records []byte, sums bool) {
		if len(edits) > 400 || len(records) > 20<<10 {
			return
		}
		fs := base.Clone()
		if len(records) > 0 {
			// A log of one segment, made of these records.
			fs = crashfs.New()
			content := append(wal.SegmentHeaderBlock(fuzzLogID, 1, 1, 32<<10, 0, 0), records...)
			fs.Put(wal.SegmentName(1), append(content, make([]byte, 32<<10-len(content))...))
		}
		names := fs.Names()
		for ; len(edits) >= 4; edits = edits[4:] {
			b := fs.Bytes(names[int(edits[0])%len(names)])
			b[(int(edits[1])<<8|int(edits[2]))%len(b)] ^= edits[3]
		}
		if sums {
			// Otherwise hardly any input gets beyond the checksums.
			for _, name := range names {
				wal.FixChecksums(fs.Bytes(name), fuzzLogID)
			}
		}
		openTwice(t, fs)
	})
}

// openTwice opens a log if Check has nothing against it.
func openTwice(t *testing.T, fs *crashfs.FS) {
	report, err := wal.CheckDisk(fs)
	if err != nil || len(report.Damage) > 0 {
		return
	}
	w := newWorld(rand.New(rand.NewPCG(1, 1)), fs.Clone())
	w.opts.SegmentSize = 32 << 10
	w.wrap = func(wal.Recoverer) wal.Recoverer { return ignore{} }
	if err := w.open(); err != nil {
		t.Fatalf("checked %+v, then: %v", report, err)
	}
	end := w.report.End
	w.log.Free()
	w.fs = w.fs.Clone()
	if err := w.open(); err != nil || w.report.End != end {
		t.Fatalf("ends at %v, then at %v, %v", end, w.report.End, err)
	}
	w.log.Free()
}

// ignore takes everything.
type ignore struct{}

func (ignore) State([]byte) error               { return nil }
func (ignore) AckSet(uint64, *wal.AckSet) error { return nil }
func (ignore) Ack(uint64, uint64, uint64) error { return nil }
func (ignore) Record(r *wal.Record) error {
	_, _ = r.Prefix()
	_, _ = r.Body(nil)
	return nil
}

// FuzzAckSet: any bytes, no panic, and what is accepted survives its own encoding.
func FuzzAckSet(f *testing.F) {
	set := &wal.AckSet{}
	set.SetFloor(7)
	set.AddRange(9, 12)
	set.AddRange(1<<40, 1<<40)
	b, err := set.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:8])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := wal.DecodeAckSet(b)
		if err != nil {
			return
		}
		again, err := set.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := wal.DecodeAckSet(again)
		if err != nil || decoded.Floor() != set.Floor() || decoded.CountAbove() != set.CountAbove() {
			t.Fatalf("%v: floor %d, %d above", err, decoded.Floor(), decoded.CountAbove())
		}
	})
}
