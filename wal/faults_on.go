//go:build faults

package wal

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// In a build with the tag "faults" the environment variable RINGMQ_TEST_FAULT makes disk calls fail, so that a test can
// watch the whole program fail. It is a list, by commas, of OP:N, OP:N+, with an errno's name behind a further colon:
//
//	sync:5            the 5th sync that goes with a write fails with EIO, those after it succeed
//	fillsync:5        the same of syncs by themselves: a segment being prepared
//	write:100:ENOSPC  the 100th write that has a sync with it (a group, or a segment's header) finds no room
//	fill:7+           the 7th write without one (a segment being prepared) and all after it fail
//	create:3+:ENOSPC  the 3rd new file and all after it find no room
//
//	delay:5           every write that has a sync with it begins 5 ms late: what is answered before it is written
//	                  can then be lost by killing the process
//
// The calls of all logs are counted together. What failed was not done; and a sync that fails takes the write before it
// along, as a kernel may that drops what it could not write: whoever confirms in spite of it will be found out.

// fault is one entry of the list.
type fault struct {
	op    string
	n     int
	on    bool // and all after the n-th
	cause syscall.Errno
}

var faultErrnos = map[string]syscall.Errno{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EDQUOT": syscall.EDQUOT, "EROFS": syscall.EROFS}

var faultOps = map[string]bool{"sync": true, "fillsync": true, "write": true, "fill": true, "create": true, "rename": true, "remove": true, "syncdir": true}

func parseFaults(text string) ([]fault, error) {
	var list []fault
	for entry := range strings.SplitSeq(text, ",") {
		parts := strings.Split(entry, ":")
		if len(parts) == 2 {
			parts = append(parts, "EIO")
		}
		if len(parts) != 3 {
			return nil, fmt.Errorf("fault %q: want OP:N or OP:N:ERRNO", entry)
		}
		if parts[0] == "delay" && len(parts) == 3 {
			ms, err := strconv.Atoi(parts[1])
			if err != nil || ms < 1 {
				return nil, fmt.Errorf("fault %q: want delay:MILLISECONDS", entry)
			}
			list = append(list, fault{op: "delay", n: ms})
			continue
		}
		count, on := strings.CutSuffix(parts[1], "+")
		n, err := strconv.Atoi(count)
		cause, known := faultErrnos[parts[2]]
		if err != nil || n < 1 || !known || !faultOps[parts[0]] {
			return nil, fmt.Errorf("fault %q: unknown operation, number or errno", entry)
		}
		list = append(list, fault{parts[0], n, on, cause})
	}
	return list, nil
}

// faults are the list and the counts of the process.
var faults struct {
	once  sync.Once
	list  []fault
	err   error
	mu    sync.Mutex
	calls map[string]int
}

func faulty(d Disk) (Disk, error) {
	faults.once.Do(func() {
		faults.calls = map[string]int{}
		if text := os.Getenv("RINGMQ_TEST_FAULT"); text != "" {
			faults.list, faults.err = parseFaults(text)
		}
	})
	if faults.err != nil || len(faults.list) == 0 {
		return d, faults.err
	}
	return &faultDisk{d}, nil
}

// delayed waits as long as the list says.
func delayed() {
	for _, f := range faults.list {
		if f.op == "delay" {
			time.Sleep(time.Duration(f.n) * time.Millisecond)
		}
	}
}

// failing counts a call and returns the error that it shall have.
func failing(op, name string) error {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	faults.calls[op]++
	n := faults.calls[op]
	for _, f := range faults.list {
		if f.op == op && (n == f.n || f.on && n > f.n) {
			return &os.PathError{Op: op, Path: name, Err: f.cause}
		}
	}
	return nil
}

type faultDisk struct{ Disk }

func (d *faultDisk) Create(name string, size int64) (File, error) {
	if err := failing("create", name); err != nil {
		return nil, err
	}
	f, err := d.Disk.Create(name, size)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: f, name: name}, nil
}

func (d *faultDisk) Open(name string) (File, error) {
	f, err := d.Disk.Open(name)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: f, name: name}, nil
}

func (d *faultDisk) Rename(from, to string) error {
	if err := failing("rename", from); err != nil {
		return err
	}
	return d.Disk.Rename(from, to)
}

func (d *faultDisk) Remove(name string) error {
	if err := failing("remove", name); err != nil {
		return err
	}
	return d.Disk.Remove(name)
}

func (d *faultDisk) SyncDir() error {
	if err := failing("syncdir", "folder"); err != nil {
		return err
	}
	return d.Disk.SyncDir()
}

// faultFile has no descriptor to give away, so that its writes come through here on either backend.
type faultFile struct {
	File
	name string
	// The last write that no sync has covered. A log has one write in flight.
	offset int64
	size   int
}

var _ SyncWriter = (*faultFile)(nil)

func (f *faultFile) Fd() int { return -1 }

func (f *faultFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := failing("fill", f.name); err != nil {
		return 0, err
	}
	f.offset, f.size = offset, len(p)
	return f.File.WriteAt(p, offset)
}

func (f *faultFile) Sync() error { return f.sync("fillsync") }

func (f *faultFile) sync(op string) error {
	if err := failing(op, f.name); err != nil {
		if f.size > 0 {
			_, _ = f.File.WriteAt(make([]byte, f.size), f.offset)
		}
		return err
	}
	f.size = 0
	return f.File.Sync()
}

func (f *faultFile) WriteSyncAt(p []byte, offset int64) (int, error) {
	delayed()
	if err := failing("write", f.name); err != nil {
		return 0, err
	}
	f.offset, f.size = offset, len(p)
	n, err := f.File.WriteAt(p, offset)
	if err == nil {
		err = f.sync("sync")
	}
	return n, err
}
