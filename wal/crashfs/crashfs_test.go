package crashfs_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

const sectors = 16

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// pattern is a file's worth of bytes, another one in each sector.
func pattern(version byte) []byte {
	b := make([]byte, sectors*crashfs.SectorSize)
	for i := range b {
		b[i] = byte(i/crashfs.SectorSize) | version<<4
	}
	return b
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// file makes a durable file with the pattern of version 1.
func file(t *testing.T, fs *crashfs.FS, name string) wal.File {
	t.Helper()
	f, err := fs.Create(name, sectors*crashfs.SectorSize)
	must(t, err)
	_, err = f.WriteAt(pattern(1), 0)
	must(t, err, f.Sync(), fs.SyncDir())
	return f
}

// TestForgets: what was synced stays, what was not comes in any mix of old, new and between,
// sector by sector; each outcome occurs, none other does.
func TestForgets(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(300) {
		fs := crashfs.New()
		f := file(t, fs, "a")
		_, err := f.WriteAt(pattern(2), 0)
		must(t, err)
		_, err = f.WriteAt(pattern(3)[:4*crashfs.SectorSize], 0)
		must(t, err)
		b := fs.Crash(rng(seed)).Bytes("a")
		versions := make([]byte, sectors)
		for s := range sectors {
			sector := b[s*crashfs.SectorSize:][:crashfs.SectorSize]
			v := sector[0] >> 4
			if !bytes.Equal(sector, pattern(v)[s*crashfs.SectorSize:][:crashfs.SectorSize]) {
				t.Fatalf("seed %d: sector %d is torn", seed, s)
			}
			if v < 1 || v > 3 || v == 3 && s >= 4 {
				t.Fatalf("seed %d: sector %d has version %d", seed, s, v)
			}
			versions[s] = v
		}
		first, last := slices.Min(versions), slices.Max(versions)
		switch {
		case last == 1:
			seen["nothing"] = true
		case first == 2:
			seen["everything"] = true
		case versions[sectors-1] == 2 && versions[4] == 1:
			seen["a late write without an early one"] = true
		case slices.Contains(versions[:4], 2):
			seen["something between"] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("only %v", seen)
	}
}

// TestNames: without SyncDir names come and go; with it they stay.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(100) {
		fs := crashfs.New()
		file(t, fs, "a")
		must(t, fs.Rename("a", "b"))
		f, err := fs.Create("c", 10)
		must(t, err, f.Close())
		after := fs.Crash(rng(seed))
		for _, name := range after.Names() {
			seen[name] = true
		}
		if n := slices.Contains(after.Names(), "a"); n == slices.Contains(after.Names(), "b") {
			t.Fatalf("seed %d: a rename left %v", seed, after.Names())
		}
		if !bytes.Equal(after.Bytes(after.Names()[0]), pattern(1)) {
			t.Fatalf("seed %d: the content changed", seed)
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %v", seen)
	}
	fs := crashfs.New()
	file(t, fs, "a")
	must(t, fs.Rename("a", "b"), fs.SyncDir(), fs.Remove("b"), fs.SyncDir())
	if names := fs.Crash(rng(1)).Names(); len(names) != 0 {
		t.Errorf("removed and synced, still there: %v", names)
	}
}

// TestRepeats: the same seed, the same disk.
func TestRepeats(t *testing.T) {
	for seed := range uint64(20) {
		var got [2][]byte
		for i := range got {
			fs := crashfs.New()
			f := file(t, fs, "a")
			_, err := f.WriteAt(pattern(2), 0)
			must(t, err)
			got[i] = fs.Crash(rng(seed)).Bytes("a")
		}
		if !bytes.Equal(got[0], got[1]) {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestFails: the scripted call fails, once, and does half of its work if it is a write.
func TestFails(t *testing.T) {
	fs := crashfs.New()
	f := file(t, fs, "a")
	fs.Fail(2, syscall.EIO)
	if _, err := f.ReadAt(make([]byte, 10), 0); err != nil {
		t.Fatal(err)
	}
	n, err := f.WriteAt(pattern(2), 0)
	if !errors.Is(err, syscall.EIO) || n != len(pattern(2))/2 || !slices.Equal(fs.Failed(), []string{"write"}) {
		t.Fatalf("%d, %v, %v", n, err, fs.Failed())
	}
	fs.Fail(1, crashfs.ErrShort)
	if n, err = f.WriteAt(pattern(2), 0); err != nil || n != len(pattern(2))/2 {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err = f.WriteAt(pattern(2), 0); err != nil || n != len(pattern(2)) {
		t.Fatalf("%d, %v", n, err)
	}
}

// TestFailedSync: the kernel forgets that pages are dirty. The next sync succeeds, the cache
// shows the data, the disk never has it.
func TestFailedSync(t *testing.T) {
	fs := crashfs.New()
	f := file(t, fs, "a")
	_, err := f.WriteAt(pattern(2), 0)
	must(t, err)
	fs.Fail(1, syscall.EIO)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, f.Sync())
	if !bytes.Equal(fs.Bytes("a"), pattern(2)) {
		t.Error("the cache does not show it")
	}
	must(t, f.DropCache())
	if !bytes.Equal(fs.Bytes("a"), pattern(1)) || !bytes.Equal(fs.Crash(rng(1)).Bytes("a"), pattern(1)) {
		t.Error("the disk has it")
	}
}

// TestLies: a sync that does nothing says yes.
func TestLies(t *testing.T) {
	fs := crashfs.New()
	f := file(t, fs, "a")
	fs.LieAboutSync(1)
	_, err := f.WriteAt(pattern(2), 0)
	must(t, err, f.Sync())
	lost := false
	for seed := range uint64(20) {
		lost = lost || !bytes.Equal(fs.Crash(rng(seed)).Bytes("a"), pattern(2))
	}
	if !lost {
		t.Error("it was durable all the same")
	}
}

// TestFull: no file beyond the capacity, and space comes back with a removal.
func TestFull(t *testing.T) {
	fs := crashfs.New()
	fs.SetCapacity(100)
	_, err := fs.Create("a", 60)
	must(t, err)
	if _, err := fs.Create("b", 60); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	must(t, fs.Remove("a"))
	_, err = fs.Create("b", 60)
	must(t, err)
}

// TestPowerOff: from the chosen call on nothing works.
func TestPowerOff(t *testing.T) {
	fs := crashfs.New()
	f := file(t, fs, "a")
	fs.CrashAt(2)
	must(t, f.Sync())
	if err := f.Sync(); !errors.Is(err, crashfs.ErrCrashed) || !fs.Crashed() {
		t.Fatal(err)
	}
	if _, err := fs.List(); !errors.Is(err, crashfs.ErrCrashed) {
		t.Fatal(err)
	}
	if n, err := f.WriteAt(pattern(2), 0); n != 0 || !errors.Is(err, crashfs.ErrCrashed) {
		t.Fatalf("%d, %v", n, err)
	}
	if fs = fs.Kill(); fs.Crashed() || !slices.Equal(fs.Names(), []string{"a"}) {
		t.Errorf("after the restart: %v", fs.Names())
	}
}

// TestDevice: calls wait for Step, complete later, and jobs and reads mix with writes.
func TestDevice(t *testing.T) {
	fs := crashfs.New()
	f := file(t, fs, "a")
	orders := map[string]bool{}
	for seed := range uint64(30) {
		device := crashfs.NewDevice(rng(seed))
		order := ""
		device.Write(f, 0, pattern(2), true, func(err error) { must(t, err); order += "w" })
		device.Read(f, 0, make([]byte, 10), func(n int, err error) { must(t, err); order += "r" })
		device.Run(func() error { return syscall.EIO }, func(err error) {
			if !errors.Is(err, syscall.EIO) {
				t.Error(err)
			}
			order += "j"
		})
		if order != "" || device.Pending() != 3 {
			t.Fatal("done at once")
		}
		device.Drain()
		if device.Step() {
			t.Fatal("a step of nothing")
		}
		orders[order] = true
	}
	if len(orders) != 6 {
		t.Errorf("orders: %v", orders)
	}
}

// TestSyncWrite: a write with FUA is safe, what was written before is no safer than it was, and
// where the two overlap the later one stays.
func TestSyncWrite(t *testing.T) {
	lost, kept := 0, 0
	for seed := range uint64(64) {
		fs := crashfs.New()
		f, err := fs.Create("a", 8*crashfs.SectorSize)
		if err == nil {
			err = fs.SyncDir()
		}
		if err == nil {
			_, err = f.WriteAt(bytes.Repeat([]byte{1}, 4*crashfs.SectorSize), 0)
		}
		if err == nil {
			_, err = f.(wal.SyncWriter).WriteSyncAt(bytes.Repeat([]byte{2}, 2*crashfs.SectorSize), crashfs.SectorSize)
		}
		if err != nil {
			t.Fatal(err)
		}
		after := fs.Crash(rng(seed)).Bytes("a")
		for at, b := range after[crashfs.SectorSize : 3*crashfs.SectorSize] {
			if b != 2 {
				t.Fatalf("seed %d: byte %d of the sync write is %d", seed, at, b)
			}
		}
		for _, at := range []int{0, 3 * crashfs.SectorSize} {
			switch after[at] {
			case 0:
				lost++
			case 1:
				kept++
			}
		}
	}
	if lost == 0 || kept == 0 {
		t.Errorf("what was not synced was lost %d times and kept %d times", lost, kept)
	}
}
