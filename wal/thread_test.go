package wal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ringmq/wal"
)

// loop is a test's stand-in for an event loop: it runs what is posted to it.
type loop struct {
	posts     chan func()
	committed wal.Position
	failed    error
}

func newLoop() *loop { return &loop{posts: make(chan func(), 64)} }

func (l *loop) post(f func())            { l.posts <- f }
func (l *loop) Committed(p wal.Position) { l.committed = p }
func (l *loop) Failed(err error)         { l.failed = err }
func (l *loop) Space(error)              {}

// until runs posts until a condition holds.
func (l *loop) until(ok func() bool) {
	for !ok() {
		(<-l.posts)()
	}
}

// messages collects what is recovered.
type messages struct{ bodies map[uint64][]byte }

func (m *messages) State([]byte) error               { return nil }
func (m *messages) AckSet(uint64, *wal.AckSet) error { return nil }
func (m *messages) Ack(_, first, last uint64) error {
	for seq := first; seq <= last; seq++ {
		delete(m.bodies, seq)
	}
	return nil
}
func (m *messages) Record(r *wal.Record) error {
	body, err := r.Body(nil)
	m.bodies[r.Refs[0].Seq] = bytes.Clone(body)
	return err
}

// TestThreads runs a log on a real folder, with and without the page cache.
func TestThreads(t *testing.T) {
	for _, direct := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "wal", "log")
		want := map[uint64][]byte{}
		for start := range uint64(3) {
			disk, err := wal.OpenDir(dir, direct)
			if err != nil {
				t.Fatal(err)
			}
			loop := newLoop()
			device := wal.NewThreads(loop.post)
			found := &messages{bodies: map[uint64][]byte{}}
			log, report, err := wal.Open(wal.Options{
				Disk: disk, Device: device, Events: loop, SegmentSize: 256 << 10,
			}, func(*wal.Log) wal.Recoverer { return found })
			if err != nil {
				t.Fatal(err)
			}
			if len(found.bodies) != len(want) || report.Cut != nil || report.Clean != (start > 0) {
				t.Fatalf("start %d: %d messages, want %d; %+v", start, len(found.bodies), len(want), report)
			}
			for seq, b := range want {
				if !bytes.Equal(found.bodies[seq], b) {
					t.Fatalf("start %d: message %d differs", start, seq)
				}
			}
			var last wal.Position
			for i := range uint64(200) {
				seq := start*200 + i
				want[seq] = body(seq, int(seq*37%9000))
				if last, err = log.Append(kindMessage, []wal.Ref{{Queue: 1, Seq: seq}}, [][]byte{want[seq]}); err != nil {
					t.Fatal(err)
				}
				log.Flush()
				if i%16 == 0 {
					loop.until(func() bool { return loop.committed > last || loop.failed != nil })
				}
			}
			loop.until(func() bool { return loop.committed > last || loop.failed != nil })
			if loop.failed != nil {
				t.Fatal(loop.failed)
			}
			fetched := false
			log.Fetch(last, make([]byte, 64<<10), func(c wal.Chunk, err error) {
				var r wal.Record
				if err != nil || !c.Next(&r) || !bytes.Equal(r.Payload(), want[start*200+199]) {
					t.Errorf("fetch: %v", err)
				}
				fetched = true
			})
			loop.until(func() bool { return fetched })
			closeLog(t, log, loop, device)
		}
		if report, err := wal.Check(dir); err != nil || report.Records < 600 || !report.Clean {
			t.Fatalf("check: %+v, %v", report, err)
		}
		if report, err := wal.Repair(dir); err != nil || len(report.Damage) > 0 {
			t.Fatalf("repair: %+v, %v", report, err)
		}
		var text bytes.Buffer
		if err := wal.Dump(dir, &text); err != nil || !bytes.Contains(text.Bytes(), []byte("closed")) {
			t.Fatalf("dump: %v", err)
		}
	}
}

func closeLog(t testing.TB, log *wal.Log, loop *loop, device *wal.Threads) {
	t.Helper()
	closed := false
	log.Close(func(err error) {
		if err != nil {
			t.Errorf("close: %v", err)
		}
		closed = true
	})
	loop.until(func() bool { return closed })
	log.Free()
	device.Stop()
}

// TestToolsNeedALog: a wrong path is an error, not a new folder.
func TestToolsNeedALog(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	empty := t.TempDir()
	for _, dir := range []string{gone, empty} {
		if _, err := wal.Check(dir); err == nil {
			t.Errorf("check %s", dir)
		}
		if _, err := wal.Repair(dir); err == nil {
			t.Errorf("repair %s", dir)
		}
		if err := wal.Dump(dir, os.Stdout); err == nil {
			t.Errorf("dump %s", dir)
		}
	}
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Error("a tool made the folder")
	}
}

// TestDirFiles covers the corners of files in a folder.
func TestDirFiles(t *testing.T) {
	disk, err := wal.OpenDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create("a", 8192)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Create("a", 4096); !errors.Is(err, os.ErrExist) {
		t.Errorf("create again: %v", err)
	}
	if _, err := disk.Open("b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if f.Size() != 8192 || f.Fd() < 0 {
		t.Errorf("size %d, descriptor %d", f.Size(), f.Fd())
	}
	odd := make([]byte, 10)
	if n, err := f.ReadAt(odd, 3); n != 10 || err != nil || !bytes.Equal(odd, make([]byte, 10)) {
		t.Errorf("read: %d, %v, %v", n, err, odd)
	}
	if n, err := f.ReadAt(odd, 8190); n != 2 || err == nil {
		t.Errorf("read over the end: %d, %v", n, err)
	}
	if err := errors.Join(f.Sync(), f.DropCache(), f.Close(), disk.Rename("a", "b"), disk.SyncDir()); err != nil {
		t.Error(err)
	}
	files, err := disk.List()
	if err != nil || len(files) != 1 || files[0] != (wal.FileInfo{Name: "b", Size: 8192}) {
		t.Errorf("list: %v, %v", files, err)
	}
	if err := disk.Remove("b"); err != nil {
		t.Error(err)
	}
}
