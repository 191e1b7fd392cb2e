package wal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// readAll is what a reader finds on a disk, a line for each record, and the report.
func readAll(t *testing.T, disk wal.Disk) (records []string, report string) {
	t.Helper()
	r, err := wal.Visit(disk, func(r *wal.Record) error {
		records = append(records, fmt.Sprintf("%v %d %v %x", r.Position, r.Seq, r.Refs, hashOf(r.Payload())))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Damage {
		report += d.Error() + "\n"
	}
	return records, report + fmt.Sprintf("end %v, %v", r.End, r.Cut)
}

// onDisk copies a simulated disk to a folder.
func onDisk(t *testing.T, fs *crashfs.FS) wal.Disk {
	t.Helper()
	dir := t.TempDir()
	for _, name := range fs.Names() {
		if err := os.WriteFile(filepath.Join(dir, name), fs.Bytes(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	disk, err := wal.OpenDir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return disk
}

// TestReadAhead: a folder, which is read ahead, and a simulated disk, which is not, are read
// alike: records across the pieces, records larger than one, damage anywhere, and a torn tail.
func TestReadAhead(t *testing.T) {
	w := openWorld(t, 1, func(w *world) {
		w.opts.SegmentFirst, w.opts.SegmentSize, w.opts.BacklogMax = 8<<20, 8<<20, 64<<20
	})
	for i := range 400 {
		n := []int{100, 1000, 70 << 10, 1000, 300 << 10}[i%5]
		switch i {
		case 100, 200:
			n = 1500 << 10 // the part before a piece's end may be more than there is room for
		case 300:
			n = 5 << 20 // more than a piece
		}
		mustPublish(t, w, n, 0)
		w.settle()
	}
	mustPublish(t, w, 100, 0)
	w.log.Flush()
	w.log.Free()
	places, _ := readAll(t, w.fs)
	if len(places) != 400 {
		t.Fatalf("%d records", len(places))
	}
	names := w.fs.Names()
	const piece = wal.AheadPiece
	for _, c := range []struct {
		name  string
		spoil func(fs *crashfs.FS)
	}{
		{"sound", func(*crashfs.FS) {}},
		{"the end of a piece", func(fs *crashfs.FS) { fs.Flip(names[0], piece-1, 1) }},
		{"the beginning of a piece", func(fs *crashfs.FS) { fs.Flip(names[1], piece, 1) }},
		{"a header", func(fs *crashfs.FS) { fs.Flip(names[1], 4096+8, 1) }},
		{"a whole piece", func(fs *crashfs.FS) { clear(fs.Bytes(names[2])[piece-100 : 2*piece+100]) }},
		{"a short file", func(fs *crashfs.FS) { fs.Truncate(names[1], 3<<20) }},
		{"a file that is gone", func(fs *crashfs.FS) {
			if err := fs.Remove(names[2]); err != nil {
				t.Fatal(err)
			}
		}},
		{"the tail", func(fs *crashfs.FS) {
			r, err := wal.CheckDisk(fs.Clone())
			if err != nil {
				t.Fatal(err)
			}
			end := r.End
			fs.Flip(wal.SegmentName(end.Segment()), int64(end.Offset())-40, 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := w.fs.Clone()
			c.spoil(fs)
			want, wantReport := readAll(t, fs)
			got, gotReport := readAll(t, onDisk(t, fs))
			if !slices.Equal(got, want) {
				t.Errorf("%d records, want %d", len(got), len(want))
			}
			if gotReport != wantReport {
				t.Errorf("report:\n%s\nwant:\n%s", gotReport, wantReport)
			}
			if c.name != "sound" && len(want) == len(places) {
				t.Error("nothing was spoiled")
			}
		})
	}
}
