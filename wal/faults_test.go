//go:build faults

package wal

import (
	"slices"
	"syscall"
	"testing"
)

func TestParseFaults(t *testing.T) {
	got, err := parseFaults("sync:5,write:100:ENOSPC,create:3+:EDQUOT,delay:7")
	want := []fault{{"sync", 5, false, syscall.EIO}, {"write", 100, false, syscall.ENOSPC}, {"create", 3, true, syscall.EDQUOT}, {op: "delay", n: 7}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "sync", "sync:0", "sync:x", "swim:1", "sync:1:ENOENT", "sync:1:EIO:2", "sync:1,", "delay", "delay:0", "delay:x"} {
		if got, err := parseFaults(bad); err == nil {
			t.Errorf("%q: no error, %v", bad, got)
		}
	}
}

// TestFaultySync: the sync fails once, and what was written before it is gone.
func TestFaultySync(t *testing.T) {
	faults.calls, faults.list = map[string]int{}, []fault{{op: "sync", n: 2, cause: syscall.EIO}}
	defer func() { faults.list = nil }()
	plain, err := OpenDir(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	disk := plain
	if _, wrapped := plain.(*faultDisk); !wrapped {
		disk = &faultDisk{plain}
	}
	f, err := disk.Create("a", 8192)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := f.(SyncWriter)
	if _, err := w.WriteSyncAt([]byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteSyncAt([]byte("lost"), 4096); err == nil {
		t.Fatal("the second sync did not fail")
	}
	if err := f.Sync(); err != nil {
		t.Fatalf("the third sync: %v", err)
	}
	var b [4]byte
	for offset, want := range map[int64]string{0: "kept", 4096: "\x00\x00\x00\x00"} {
		if _, err := f.ReadAt(b[:], offset); err != nil || string(b[:]) != want {
			t.Errorf("at %d: %q, %v; want %q", offset, b, err, want)
		}
	}
	if f.Fd() != -1 {
		t.Error("its descriptor would let writes pass by")
	}
}
