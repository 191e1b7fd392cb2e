package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// TestManySegments reads from more sealed segments than may have an open file.
func TestManySegments(t *testing.T) {
	w := openWorld(t, 1, func(w *world) { w.opts.SegmentSize = 32 << 10 })
	for range 150 {
		mustPublish(t, w, 15000, 0)
		w.settle()
	}
	for round := range 2 {
		for seq, e := range w.store.queues[0] {
			got := false
			w.log.Fetch(e.pos, make([]byte, e.size), func(c wal.Chunk, err error) {
				var r wal.Record
				got = err == nil && c.Next(&r) && hashOf(r.Payload()) == e.hash
			})
			w.settle()
			if !got {
				t.Fatalf("round %d: message %d cannot be read", round, seq)
			}
		}
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactLarge: compaction copies records larger than its buffer, passes over what has
// no references, and gives up on damage without losing what is there.
func TestCompactLarge(t *testing.T) {
	w := openWorld(t, 1, func(w *world) { w.opts.SegmentSize, w.opts.BacklogMax = 1<<20, 64<<20 })
	for range 10 {
		mustPublish(t, w, 300<<10, 1)
		mustPublish(t, w, 600<<10, 0)
		w.settle()
	}
	if err := w.ack(0, 0, 9); err != nil {
		t.Fatal(err)
	}
	if err := w.checkpoint(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	before := w.log.Stats()
	for range 200 {
		w.log.Compact(w.store)
		w.settle()
	}
	if err := w.checkpoint(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	after := w.log.Stats()
	if after.MovedRecords < 5 || after.LiveCount != 10 || after.SegmentCount >= before.SegmentCount {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactDamage: what rots under a running log is left for the next start to report.
func TestCompactDamage(t *testing.T) {
	w := openWorld(t, 1, nil)
	for range 60 {
		mustPublish(t, w, 300, 1)
		mustPublish(t, w, 5000, 0)
		w.settle()
	}
	for _, e := range w.store.queues[1] {
		w.fs.Flip(wal.SegmentName(e.pos.Segment()), int64(e.pos.Offset())+100, 1)
	}
	if err := w.ack(0, 0, 59); err != nil {
		t.Fatal(err)
	}
	if err := w.checkpoint(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		w.log.Compact(w.store)
		w.settle()
	}
	if s := w.log.Stats(); s.MovedRecords != 0 || s.LiveCount != 60 {
		t.Errorf("%+v", s)
	}
	w.log.Free()
	report, err := wal.CheckDisk(w.fs.Clone())
	if err != nil || len(report.Damage) != 60 {
		t.Errorf("%d places reported, %v", len(report.Damage), err)
	}
}

// TestLostCheckpoint: with the last checkpoint gone, an older one serves, and it is said.
func TestLostCheckpoint(t *testing.T) {
	w := openWorld(t, 1, nil)
	var ends []wal.Position
	for i := range 3 {
		for range 5 {
			mustPublish(t, w, 100, 0)
		}
		if err := w.ack(0, uint64(5*i), uint64(5*i+1)); err != nil {
			t.Fatal(err)
		}
		if err := w.event(1, uint64(i)); err != nil {
			t.Fatal(err)
		}
		if err := w.checkpoint(); err != nil {
			t.Fatal(err)
		}
		w.settle()
	}
	mustPublish(t, w, 100, 0)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	fs := w.fs.Clone()
	if _, err := wal.Visit(fs, func(r *wal.Record) error {
		if r.Kind == wal.KindCheckpointEnd {
			ends = append(ends, r.Position)
		}
		return nil
	}); err != nil || len(ends) != 3 {
		t.Fatalf("%v, %v", ends, err)
	}
	for lost := 1; lost <= 3; lost++ {
		end := ends[3-lost]
		fs.Flip(wal.SegmentName(end.Segment()), int64(end.Offset())+40, 1)
		again := newWorld(w.rng, fs)
		again.opts.AcceptDamage = true
		again.model.ops = slices.Clone(w.model.ops)
		if err := again.recovered(w.log.End()); err != nil {
			t.Fatalf("%d lost: %v", lost, err)
		}
		want := wal.Position(0)
		if lost < 3 {
			want = ends[2-lost]
		}
		if again.report.Checkpoint != want || len(again.report.Damage) < lost {
			t.Errorf("%d lost: checkpoint %v, want %v; %v", lost, again.report.Checkpoint, want, again.report.Damage)
		}
		again.log.Free()
	}
}

// TestUnreadableBlock: a block that the disk does not give back costs what it holds, and is
// reported with the disk's error.
func TestUnreadableBlock(t *testing.T) {
	w, list := madeLog(t, 3, 900, true)
	victim := list[len(list)/2]
	disk := &badDisk{FS: w.fs, name: victim.file(), block: int64(victim.pos.Offset()) / 4096}
	seen := map[uint64]bool{}
	report, err := wal.Visit(disk, func(r *wal.Record) error { seen[r.Seq] = true; return nil })
	if err != nil || len(report.Damage) == 0 || !errors.Is(report.Damage[0], syscall.EIO) {
		t.Fatalf("%v, %v", report.Damage, err)
	}
	for _, p := range list {
		first, last := int64(p.pos.Offset())/4096, (int64(p.pos.Offset())+int64(p.size)-1)/4096
		hit := p.file() == victim.file() && first <= disk.block && disk.block <= last
		if !hit && !seen[p.seq] {
			t.Errorf("record %+v is lost", p)
		}
	}
}

// badDisk has one block that cannot be read.
type badDisk struct {
	*crashfs.FS
	name  string
	block int64
}

func (d *badDisk) Open(name string) (wal.File, error) {
	f, err := d.FS.Open(name)
	if err == nil && name == d.name {
		f = &badFile{f, d.block}
	}
	return f, err
}

type badFile struct {
	wal.File
	block int64
}

func (f *badFile) ReadAt(p []byte, off int64) (int, error) {
	if off < (f.block+1)*4096 && off+int64(len(p)) > f.block*4096 {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

// TestTexts: what an operator reads names the file and the place.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		value any
		want  []string
	}{
		{&wal.CorruptionError{File: "0a.wal", From: 5, To: 9, Records: 2, Cause: "rot", Err: syscall.EIO, Accepted: true},
			[]string{"0a.wal", "from offset 5 to 9", "rot", "2 records", syscall.EIO.Error(), "accepted"}},
		{&wal.IOError{Op: "sync", File: "0a.wal", Offset: 7, Err: syscall.EIO}, []string{"sync 0a.wal at offset 7", syscall.EIO.Error()}},
		{&wal.SpaceError{Err: syscall.ENOSPC}, []string{syscall.ENOSPC.Error()}},
		{&wal.Cut{File: "0a.wal", Offset: 7, Records: 3, Cause: "torn"}, []string{"0a.wal", "offset 7", "torn", "3 whole records"}},
		{wal.MakePosition(10, 4096), []string{"0000000a:00001000"}},
		{wal.SyncMode(9), []string{"9"}},
	} {
		text := fmt.Sprint(c.value)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%q does not mention %q", text, want)
			}
		}
	}
	report := &wal.Report{Cut: &wal.Cut{File: "f"}, Foreign: []string{"g"}, Damage: []*wal.CorruptionError{{File: "h"}}}
	var text bytes.Buffer
	if err := report.Write(&text); err != nil || strings.Count(text.String(), "\n") != 5 {
		t.Errorf("%v:\n%s", err, &text)
	}
	if err := (&wal.SpaceError{Err: syscall.EIO}); err.Full() || !errors.Is(err, wal.ErrNoSpace) {
		t.Error("a segment that cannot be made for another reason")
	}
}

// TestClock: syncs are measured with the owner's clock.
func TestClock(t *testing.T) {
	now := int64(0)
	w := openWorld(t, 1, func(w *world) { w.opts.Now = func() int64 { now += 3000; return now } })
	mustPublish(t, w, 10, 0)
	w.log.Flush()
	if w.log.Stats().InFlightNS == 0 {
		t.Error("nothing in flight")
	}
	w.dev.Drain()
	s := w.log.Stats()
	if s.Syncs != 1 || s.SyncTimeMaxNS == 0 || s.SyncTimeSumNS != s.SyncTimeMaxNS || s.InFlightNS != 0 {
		t.Errorf("%+v", s)
	}
	if s.SyncTimes[3] != 1 { // 6 microseconds
		t.Errorf("%v", s.SyncTimes)
	}
}

// TestProgress: opening tells how far it is.
func TestProgress(t *testing.T) {
	w, _ := madeLog(t, 3, 900, true)
	var done, total int64
	calls := 0
	w.opts.Progress = func(d, n int64) {
		if d <= done {
			t.Errorf("from %d to %d", done, d)
		}
		done, total = d, n
		calls++
	}
	if err := w.open(); err != nil || calls < 2 || done != total {
		t.Errorf("%d calls, %d of %d, %v", calls, done, total, err)
	}
}

// TestRecovererErrors: the owner's errors come back from Open.
func TestRecovererErrors(t *testing.T) {
	w, _ := madeLog(t, 3, 900, true)
	for _, at := range []string{"state", "ack set", "record", "ack"} {
		again := newWorld(w.rng, w.fs.Clone())
		again.wrap = func(to wal.Recoverer) wal.Recoverer { return &refuser{to, at} }
		if err := again.open(); !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

var errRefused = errors.New("refused")

type refuser struct {
	wal.Recoverer
	at string
}

func (r *refuser) answer(at string) error {
	if at == r.at {
		return errRefused
	}
	return nil
}
func (r *refuser) State([]byte) error               { return r.answer("state") }
func (r *refuser) AckSet(uint64, *wal.AckSet) error { return r.answer("ack set") }
func (r *refuser) Record(*wal.Record) error         { return r.answer("record") }
func (r *refuser) Ack(uint64, uint64, uint64) error { return r.answer("ack") }

// TestLongPowerCuts are few, long runs: what needs thousands of operations to happen.
func TestLongPowerCuts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(max(2, seedCount(t, 2000)/100)) {
		rng := rand.New(rand.NewPCG(seed, 0x10))
		w := newWorld(rng, crashfs.New())
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		for round := range 4 {
			w.fs.CrashAt(3000 + rng.IntN(1500))
			for i := 0; i < 8000 && !w.fs.Crashed() && w.problem == nil; i++ {
				w.step()
			}
			if w.problem != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, w.problem)
			}
			if err := w.crash(); err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
		}
		w.log.Free()
	}
}
