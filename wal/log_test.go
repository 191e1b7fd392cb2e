package wal_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

func openWorld(t *testing.T, seed uint64, prepare func(*world)) *world {
	t.Helper()
	w := newWorld(rand.New(rand.NewPCG(seed, 10)), crashfs.New())
	if prepare != nil {
		prepare(w)
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	return w
}

// settle lets everything finish that waits for the disk.
func (w *world) settle() {
	for range 10 {
		w.log.Flush()
		w.dev.Drain()
	}
}

// TestNothingBeforeTheSync: a position is committed after the sync that covers it, not
// when it is appended, not when it is written.
func TestNothingBeforeTheSync(t *testing.T) {
	w := openWorld(t, 1, nil)
	p := mustPublish(t, w, 100, 0)
	if w.committed > p || w.log.Synced() > p {
		t.Fatal("committed by Append")
	}
	w.log.Flush()
	if w.committed > p {
		t.Fatal("committed by Flush")
	}
	w.dev.Drain()
	if w.committed <= p || w.log.Committed() != w.committed || w.log.Synced() != w.committed {
		t.Fatalf("committed %v, appended %v, synced %v", w.committed, p, w.log.Synced())
	}
	if end := w.log.End(); end <= p || end > w.committed {
		t.Errorf("end %v, committed %v", end, w.committed)
	}
}

// TestGroupCommit: what is appended while a write is in flight leaves with one write.
func TestGroupCommit(t *testing.T) {
	w := openWorld(t, 1, nil)
	mustPublish(t, w, 100, 0)
	w.log.Flush()
	w.dev.Drain()
	before := w.log.Stats()
	mustPublish(t, w, 100, 0)
	w.log.Flush()
	for range 50 {
		mustPublish(t, w, 100, 0)
		w.log.Flush()
	}
	w.dev.Drain()
	after := w.log.Stats()
	if n := after.Groups - before.Groups; n != 2 {
		t.Errorf("%d writes for 51 records, want 2", n)
	}
	if after.GroupRecordsMax != 50 || after.Syncs-before.Syncs != 2 {
		t.Errorf("largest group %d, syncs %d", after.GroupRecordsMax, after.Syncs-before.Syncs)
	}
	if w.log.Backlog() != 0 {
		t.Errorf("backlog %d", w.log.Backlog())
	}
}

// TestAckGrows: acknowledgements in order are one record while the group is open, and
// never reach over a record between them.
func TestAckGrows(t *testing.T) {
	w := openWorld(t, 1, nil)
	for range 10 {
		mustPublish(t, w, 10, 0)
	}
	w.settle()
	records := w.log.Stats().Records
	for seq := range uint64(5) {
		if err := w.ack(0, seq, seq); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.log.Stats().Records - records; n != 1 {
		t.Errorf("%d records for five acknowledgements in order", n)
	}
	mustPublish(t, w, 10, 0)
	if err := w.ack(0, 5, 6); err != nil {
		t.Fatal(err)
	}
	w.log.Flush() // in flight: it must not grow any more
	if err := w.ack(0, 7, 7); err != nil {
		t.Fatal(err)
	}
	if n := w.log.Stats().Records - records; n != 4 {
		t.Errorf("%d records, want 4", n)
	}
	w.settle()
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
	if got := len(w.store.queues[0]); got != 3 {
		t.Errorf("%d messages left, want 3", got)
	}
}

// TestModes: what each mode calls committed, and what it syncs.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode   wal.SyncMode
		name   string
		synced bool
	}{{wal.SyncAlways, "always", true}, {wal.SyncInterval, "interval", false}, {wal.SyncOff, "off", false}} {
		t.Run(c.name, func(t *testing.T) {
			w := openWorld(t, 1, func(w *world) { w.opts.Sync = c.mode })
			if w.log.Mode().String() != c.name {
				t.Error(w.log.Mode())
			}
			p := mustPublish(t, w, 100, 0)
			w.settle()
			if w.committed <= p {
				t.Fatal("not committed")
			}
			if synced := w.log.Synced() > p; synced != c.synced {
				t.Errorf("synced: %v", synced)
			}
			w.log.Sync()
			w.settle()
			if w.log.Synced() <= p {
				t.Error("Sync did not sync")
			}
		})
	}
}

// TestDeadProcess: without a power cut no mode loses what was committed.
func TestDeadProcess(t *testing.T) {
	for _, mode := range []wal.SyncMode{wal.SyncAlways, wal.SyncInterval, wal.SyncOff} {
		for seed := uint64(1); seed <= 20; seed++ {
			w := openWorld(t, seed, func(w *world) { w.opts.Sync = mode })
			for range 400 {
				w.step()
			}
			promised := w.committed
			w.log.Free()
			w.fs = w.fs.Kill()
			if err := w.recovered(promised); err != nil {
				t.Fatalf("%v, seed %d: %v", mode, seed, err)
			}
		}
	}
}

// TestFullDisk is the log's part of test 10: on a full disk messages are refused before
// anything of them is promised, acknowledgements and checkpoints go on, a restart needs
// no space, and service resumes when messages are consumed, or space is given.
func TestFullDisk(t *testing.T) {
	for _, how := range []string{"consumed", "more space"} {
		t.Run(how, func(t *testing.T) {
			w := openWorld(t, 1, func(w *world) { w.fs.SetCapacity(6 * 64 << 10) })
			var err error
			published := 0
			for err == nil && published < 5000 {
				if _, err = w.publish(1000, 0); err == nil {
					published++
				}
				w.log.Flush()
				w.dev.Drain()
			}
			var space *wal.SpaceError
			if !errors.Is(err, wal.ErrNoSpace) || !errors.As(err, &space) || !space.Full() {
				t.Fatalf("after %d messages: %v", published, err)
			}
			if w.space == nil || w.spaces != 1 || w.log.Space() == nil || w.failed != nil {
				t.Fatalf("space %v, told %d times, failed %v", w.space, w.spaces, w.failed)
			}
			// Acknowledgements, each with a write of its own.
			for seq := range uint64(20) {
				if err := w.ack(0, 2*seq, 2*seq); err != nil {
					t.Fatalf("acknowledgement %d on the full disk: %v", seq, err)
				}
				w.log.Flush()
				w.dev.Drain()
			}
			if err := w.crash(); err != nil {
				t.Fatal(err)
			}
			if w.log.Space() == nil {
				t.Fatal("there is space after the restart")
			}
			if _, err := w.publish(10, 0); !errors.Is(err, wal.ErrNoSpace) {
				t.Fatalf("publish after the restart: %v", err)
			}
			if err := w.ack(0, 1, 1); err != nil {
				t.Fatalf("acknowledgement after the restart: %v", err)
			}
			if how == "more space" {
				w.fs.SetCapacity(0)
				w.log.RetrySpace()
			} else {
				if w.store.next[0] == 0 {
					t.Fatal("the restart forgot the queue")
				}
				if err := w.ack(0, 0, w.store.next[0]-1); err != nil {
					t.Fatal(err)
				}
				if err := w.checkpoint(); err != nil {
					t.Fatalf("checkpoint on the full disk: %v", err)
				}
			}
			w.settle()
			if w.log.Space() != nil || w.space != nil {
				t.Fatalf("no service: %v, %+v", w.log.Space(), w.log.Stats())
			}
			mustPublish(t, w, 1000, 0)
			w.settle()
			if err := w.crash(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestFullBeyondTheBallast: when not even an acknowledgement fits, it is refused like a
// message, and nothing breaks.
func TestFullBeyondTheBallast(t *testing.T) {
	w := openWorld(t, 1, func(w *world) { w.fs.SetCapacity(3 * 64 << 10) })
	for w.log.Space() == nil {
		_, _ = w.publish(1000, 0)
		w.log.Flush()
		w.dev.Drain()
	}
	var err error
	acks := 0
	for ; err == nil && acks < 100; acks++ {
		err = w.ack(0, uint64(acks%10), uint64(acks%10))
		w.log.Flush()
		w.dev.Drain()
	}
	if !errors.Is(err, wal.ErrNoSpace) || acks < 13 {
		t.Fatalf("after %d acknowledgements: %v", acks, err)
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
	w.fs.SetCapacity(0)
	w.log.RetrySpace()
	w.settle()
	mustPublish(t, w, 10, 0)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
}

// TestBacklog: messages are refused when the disk is far behind, and only then.
func TestBacklog(t *testing.T) {
	w := openWorld(t, 1, func(w *world) { w.opts.BacklogMax = 20 << 10 })
	var err error
	n := 0
	for ; err == nil; n++ {
		_, err = w.publish(1000, 0)
	}
	if !errors.Is(err, wal.ErrBusy) || n < 19 || n > 22 {
		t.Fatalf("after %d messages: %v", n, err)
	}
	if err := w.ack(0, 0, 0); err != nil {
		t.Fatal(err)
	}
	w.settle()
	mustPublish(t, w, 1000, 0)
	w.settle()
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
}

// TestLargeRecords: a record larger than a segment gets one of its own, is read back, and
// its file is deleted, not reused.
func TestLargeRecords(t *testing.T) {
	w := openWorld(t, 1, func(w *world) { w.opts.BacklogMax = 8 << 20 })
	mustPublish(t, w, 100, 0)
	for _, n := range []int{60 << 10, 64 << 10, 1 << 20} {
		mustPublish(t, w, n, 1)
		mustPublish(t, w, 50, 1)
	}
	w.settle()
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
	e := w.store.queues[1][4]
	got := uint64(0)
	w.log.Fetch(e.pos, make([]byte, e.size), func(c wal.Chunk, err error) {
		var r wal.Record
		if err != nil || !c.Next(&r) {
			t.Errorf("fetch: %v", err)
			return
		}
		got = hashOf(r.Payload())
	})
	w.settle()
	if got != e.hash {
		t.Error("the large record reads differently")
	}
	mustPublish(t, w, 60000, 2)
	if err := w.ack(1, 0, 5); err != nil {
		t.Fatal(err)
	}
	if err := w.checkpoint(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if s := w.log.Stats(); s.Removed == 0 || s.DiskBytes > 1<<20 {
		t.Errorf("the large segment is still there: %+v", s)
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
}

// TestSpaceComesBack: a long run with a bounded set of live messages needs bounded space,
// by reuse alone, and by compaction where a few old messages would hold whole segments.
func TestSpaceComesBack(t *testing.T) {
	for _, old := range []int{0, 30} {
		w := openWorld(t, 1, nil)
		for i := range 4000 {
			if i%100 == 0 && i/100 < old {
				mustPublish(t, w, 300, 1) // never acknowledged
			}
			mustPublish(t, w, 300, 0)
			if n := w.store.next[0]; n > 20 {
				if err := w.ack(0, n-21, n-21); err != nil {
					t.Fatal(err)
				}
			}
			w.log.Flush()
			w.dev.Drain()
			w.log.Compact(w.store)
			if w.log.CheckpointDue() {
				if err := w.checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.settle()
		s := w.log.Stats()
		if s.DiskBytes > 13*64<<10 || s.LiveCount != int64(20+old) || s.Recycled == 0 {
			t.Errorf("old=%d: %+v", old, s)
		}
		if (s.MovedRecords > 0) != (old > 0) {
			t.Errorf("old=%d: %d records moved", old, s.MovedRecords)
		}
		if err := w.crash(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFetch covers the ends that the random reads of the power cuts do not.
func TestFetch(t *testing.T) {
	w := openWorld(t, 1, nil)
	var at []wal.Position
	for range 5 {
		at = append(at, mustPublish(t, w, 1000, 0))
	}
	fetch := func(p wal.Position, size int) (got []wal.Position, need int, err error) {
		err = errors.New("never done")
		w.log.Fetch(p, make([]byte, size), func(c wal.Chunk, e error) {
			err, need = e, c.Need
			var r wal.Record
			for c.Next(&r) {
				got = append(got, r.Position)
			}
		})
		w.settle()
		return got, need, err
	}
	check := func(when string) {
		t.Helper()
		if got, _, err := fetch(at[1], 3*1048); err != nil || !slices.Equal(got, at[1:4]) {
			t.Errorf("%s: three records: %v, %v", when, got, err)
		}
		if _, need, err := fetch(at[0], 500); !errors.Is(err, wal.ErrShortBuffer) || need != 1048 {
			t.Errorf("%s: short buffer: %v, need %d", when, err, need)
		}
		if _, need, err := fetch(at[0], 8); !errors.Is(err, wal.ErrShortBuffer) || need == 0 {
			t.Errorf("%s: tiny buffer: %v, need %d", when, err, need)
		}
	}
	w.settle()
	check("written")
	at = at[:0]
	for range 5 {
		at = append(at, mustPublish(t, w, 1000, 0))
	}
	check("while it was in memory")
	var damage *wal.CorruptionError
	if _, _, err := fetch(at[0]+8, 2000); !errors.As(err, &damage) {
		t.Errorf("the middle of a record: %v", err)
	}
	for _, p := range []wal.Position{0, wal.MakePosition(99, 4096), wal.MakePosition(1, 8), w.log.End()} {
		if _, _, err := fetch(p, 2000); !errors.Is(err, wal.ErrGone) {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// TestClose: it finishes what was appended, says so, and refuses the rest.
func TestClose(t *testing.T) {
	w := openWorld(t, 1, func(w *world) { w.opts.Sync = wal.SyncOff })
	mustPublish(t, w, 1000, 0)
	var done error = errors.New("not done")
	w.log.Close(func(err error) { done = err })
	if done == nil {
		t.Fatal("done before the sync")
	}
	if _, err := w.log.Append(kindMessage, nil, nil); !errors.Is(err, wal.ErrClosed) {
		t.Fatal(err)
	}
	w.dev.Drain()
	if done != nil {
		t.Fatal(done)
	}
	w.log.Close(func(err error) { done = err })
	if !errors.Is(done, wal.ErrClosed) {
		t.Fatalf("second close: %v", done)
	}
	w.log.Free()
	w.fs = w.fs.Crash(w.rng)
	if err := w.recovered(w.log.End()); err != nil || !w.report.Clean {
		t.Fatalf("clean %v, %v", w.report.Clean, err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
}

// TestRefusals: what no log takes.
func TestRefusals(t *testing.T) {
	w := openWorld(t, 1, nil)
	for _, kind := range []uint8{0, 0x80, 0x81, 0x86, 0xff} {
		if _, err := w.log.Append(kind, nil, nil); !errors.Is(err, wal.ErrKind) {
			t.Errorf("kind %#x: %v", kind, err)
		}
	}
	if _, err := w.log.Append(kindMessage, make([]wal.Ref, 1<<16), nil); !errors.Is(err, wal.ErrKind) {
		t.Errorf("65536 references: %v", err)
	}
	if err := w.log.AppendState(nil); !errors.Is(err, wal.ErrCheckpoint) {
		t.Errorf("state outside a checkpoint: %v", err)
	}
	if err := w.log.EndCheckpoint(); !errors.Is(err, wal.ErrCheckpoint) {
		t.Errorf("end of no checkpoint: %v", err)
	}
	if err := w.log.BeginCheckpoint(); err != nil {
		t.Fatal(err)
	}
	if err := w.log.BeginCheckpoint(); !errors.Is(err, wal.ErrCheckpoint) {
		t.Errorf("second checkpoint: %v", err)
	}
	w.log.AbortCheckpoint()
	if err := w.log.BeginCheckpoint(); err != nil {
		t.Error(err)
	}
	if w.log.End() != 0 {
		t.Errorf("refusals appended up to %v", w.log.End())
	}
	for _, opts := range []wal.Options{
		{}, {Disk: w.fs, Device: w.dev}, {SegmentSize: 1000}, {SegmentSize: 4096}, {GroupSize: 100}, {GroupSize: 4096}, {Spares: 9},
	} {
		if opts.Disk == nil && (opts.SegmentSize != 0 || opts.GroupSize != 0 || opts.Spares != 0) {
			opts.Disk, opts.Device, opts.Events = w.fs, w.dev, w
		}
		if _, _, err := wal.Open(opts, nil); err == nil {
			t.Errorf("opened with %+v", opts)
		}
	}
}

// TestForeignFiles: segments of another log are not this log's to read or to reuse.
func TestForeignFiles(t *testing.T) {
	w, _ := madeLog(t, 3, 300, true)
	block := wal.SegmentHeaderBlock(0xbad, 0xf00, 1, 64<<10, 0, 0)
	content := append(block, make([]byte, 60<<10)...)
	for _, name := range []string{wal.SegmentName(0xf00), wal.SegmentName(0xf01)} {
		w.fs.Put(name, slices.Clone(content))
	}
	report, err := wal.CheckDisk(w.fs)
	if err != nil || len(report.Foreign) != 2 {
		t.Fatalf("foreign %v, %v", report.Foreign, err)
	}
	w.opts.AcceptDamage = true
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, w, 100, 0)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range report.Foreign {
		if string(w.fs.Bytes(name)) != string(content) {
			t.Errorf("%s was touched", name)
		}
	}
}

// TestVersion: a log of another version of the format is refused by name, not taken for
// damage.
func TestVersion(t *testing.T) {
	w, list := madeLog(t, 3, 50, true)
	wal.SetVersion(w.fs.Bytes(list[0].file()), 2)
	if _, err := wal.CheckDisk(w.fs); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Fatal(err)
	}
}

// TestDump: one line for each record, and the report behind.
func TestDump(t *testing.T) {
	w, list := madeLog(t, 3, 900, true)
	var text strings.Builder
	if err := wal.DumpDisk(w.fs, &text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) < len(list)+3 {
		t.Errorf("%d lines for %d records", len(lines), len(list))
	}
	for _, want := range []string{"message kind 0x40", "moved", "event kind 0x01", "ack queue", "checkpoint", "done below", "retired", "closed in order", "log 0000000001234567"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the dump does not mention %q", want)
		}
	}
}
