package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	diskBlock    = 4096     // octets; what writes are padded to
	diskFileSize = 64 << 20 // octets; at least one write, if that is larger
)

// diskMode is a way to make a write durable.
type diskMode int

const (
	writeSync  diskMode = iota // pwrite and fdatasync
	directSync                 // one pwrite with O_DIRECT and O_DSYNC
)

var diskModes = []diskMode{writeSync, directSync}

func (m diskMode) String() string {
	if m == directSync {
		return "O_DIRECT+O_DSYNC"
	}
	return "pwrite+fdatasync"
}

// diskFile is what a log could at best be: one file that was written full
// before, in which whole blocks are overwritten in order and synced each time.
// There are no records, no checksums and nobody to answer.
type diskFile struct {
	path  string
	fds   [2]int // by mode, -1: refused by the file system
	size  int64
	at    int64
	chunk []byte // mapped, because O_DIRECT needs it aligned; random
}

// newDiskFile makes a file in dir for writes of chunk octets, rounded up to
// whole blocks.
func newDiskFile(dir string, chunk int) (*diskFile, error) {
	chunk = roundUp(chunk, diskBlock)
	file, err := os.CreateTemp(dir, "ringmq-bench-disk-")
	if err != nil {
		return nil, err
	}
	f := &diskFile{path: file.Name(), fds: [2]int{-1, -1}}
	err = file.Close()
	if err == nil {
		err = f.open(chunk)
	}
	if err != nil {
		return nil, fmt.Errorf("disk loop: %w", errors.Join(err, f.close()))
	}
	return f, nil
}

func (f *diskFile) open(chunk int) (err error) {
	if f.chunk, err = unix.Mmap(-1, 0, chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return err
	}
	if f.fds[writeSync], err = unix.Open(f.path, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	// Zeros first, so that no later write has to allocate or convert blocks.
	for ; f.size < max(diskFileSize, int64(chunk)); f.size += int64(chunk) {
		if err := writeAll(f.fds[writeSync], f.chunk, f.size); err != nil {
			return err
		}
	}
	if err := unix.Fsync(f.fds[writeSync]); err != nil {
		return err
	}
	// Random octets, for disks that compress.
	rng := rand.New(rand.NewPCG(uint64(chunk), 0))
	for i := range f.chunk {
		f.chunk[i] = byte(rng.Uint32())
	}
	fd, err := unix.Open(f.path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_DIRECT|unix.O_DSYNC, 0)
	if err == nil {
		f.fds[directSync] = fd
	}
	return nil // without O_DIRECT the other way remains
}

func writeAll(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// has reports whether the file system takes the mode.
func (f *diskFile) has(m diskMode) bool { return f.fds[m] >= 0 }

// commit overwrites the next chunk and returns when it is durable.
func (f *diskFile) commit(m diskMode) error {
	if f.at+int64(len(f.chunk)) > f.size {
		f.at = 0
	}
	err := writeAll(f.fds[m], f.chunk, f.at)
	if err == nil && m == writeSync {
		err = unix.Fdatasync(f.fds[m])
	}
	if err != nil {
		return fmt.Errorf("disk loop, %v: %w", m, err)
	}
	f.at += int64(len(f.chunk))
	return nil
}

// run commits chunk after chunk for d, at least one, and records how long each
// took.
func (f *diskFile) run(ctx context.Context, m diskMode, d time.Duration, h *histogram) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for now, end := nowNS(), nowNS()+int64(d); ; {
		if err := f.commit(m); err != nil {
			return err
		}
		done := nowNS()
		h.record(done-now, 1)
		if done >= end || ctx.Err() != nil {
			return ctx.Err()
		}
		now = done
	}
}

func (f *diskFile) close() error {
	for _, fd := range f.fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if f.chunk != nil {
		_ = unix.Munmap(f.chunk)
	}
	return os.Remove(f.path)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// fileSystems are the names of what statfs calls by a number.
var fileSystems = map[int64]string{
	0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x2FC12FC1: "zfs", 0xF2F52010: "f2fs",
	0x01021994: "tmpfs, which is memory and no disk", 0x794C7630: "overlayfs", 0x6969: "nfs",
}

// fileSystem names the kind that holds dir.
func fileSystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "an unknown file system"
	}
	if name, ok := fileSystems[int64(s.Type)]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", s.Type)
}

// needSpace fails when dir has less than wanted octets free.
func needSpace(dir string, wanted int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if free := int64(s.Bavail) * int64(s.Bsize); free < wanted {
		return fmt.Errorf("%s has %d MiB free, this needs %d MiB (fewer --messages, or another --data-dir)", dir, free>>20, wanted>>20)
	}
	return nil
}
