package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const readChunk = 4 << 20 // octets; larger ones are not faster anywhere

// readPass is one reading of all files of a folder.
type readPass struct {
	read int64 // octets
	used int64 // of them in blocks that hold anything but zeros
	took time.Duration
}

// perSecond is octets read per second.
func (p readPass) perSecond() float64 { return float64(p.read) / p.took.Seconds() }

// readFastest reads the files below dir past the page cache, in order, by one
// reader and then by as many as there are processors, and returns the faster
// pass: what the disk gives to somebody who wants nothing but the bytes.
func readFastest(ctx context.Context, dir string) (readPass, error) {
	files, err := filesBelow(dir)
	if err != nil {
		return readPass{}, err
	}
	best, err := readFiles(ctx, files, 1)
	if err != nil || len(files) == 1 || runtime.NumCPU() == 1 {
		return best, err
	}
	many, err := readFiles(ctx, files, runtime.NumCPU())
	if err == nil && many.took < best.took {
		best = many
	}
	return best, err
}

// filesBelow lists all regular files under dir.
func filesBelow(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the server left no file in %s", dir)
	}
	return files, err
}

func readFiles(ctx context.Context, files []string, readers int) (readPass, error) {
	var (
		next       atomic.Int64
		read, used atomic.Int64
		group      sync.WaitGroup
		faults     = make(chan error, readers)
	)
	start := time.Now()
	for range readers {
		group.Add(1)
		go func() {
			defer group.Done()
			buf, err := unix.Mmap(-1, 0, readChunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err != nil {
				faults <- err
				return
			}
			defer func() { _ = unix.Munmap(buf) }()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) || ctx.Err() != nil {
					return
				}
				r, u, err := readFile(files[i], buf)
				read.Add(r)
				used.Add(u)
				if err != nil {
					faults <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(faults)
	err := ctx.Err()
	for fault := range faults {
		err = errors.Join(err, fault)
	}
	return readPass{read: read.Load(), used: used.Load(), took: time.Since(start)}, err
}

// readFile reads one file whole and returns its size and how much of it is used.
func readFile(path string, buf []byte) (read, used int64, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECT, 0)
	if err == unix.EINVAL {
		// Without O_DIRECT the cache, dropped before, does no better.
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return 0, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Pread(fd, buf, read)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return read, used, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		read += int64(n)
		used += usedBlocks(buf[:n])
		if n < len(buf) {
			return read, used, nil // the end; O_DIRECT reads in between are whole
		}
	}
}

// usedBlocks counts the octets in blocks that are not all zeros: prepared files
// are no part of what there is to recover.
func usedBlocks(b []byte) (used int64) {
	for len(b) > 0 {
		block := b[:min(diskBlock, len(b))]
		b = b[len(block):]
		if !bytes.Equal(block, zeroBlock[:len(block)]) {
			used += int64(len(block))
		}
	}
	return used
}

// zeroBlock is compared with at memory speed: counting must not slow the disk.
var zeroBlock [diskBlock]byte

// dropCache makes the kernel forget the files below dir, so that whoever opens
// them next reads from the disk.
func dropCache(dir string) error {
	files, err := filesBelow(dir)
	if err != nil {
		return err
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		// Only clean pages can be dropped.
		err = errors.Join(file.Sync(), unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED), file.Close())
		if err != nil {
			return err
		}
	}
	return nil
}
