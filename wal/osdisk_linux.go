package wal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// osDisk is a folder of the file system.
type osDisk struct {
	dir    string
	direct bool
}

// OpenDir returns the disk that is a folder; it is made if it is not there, and so are
// those above, and the entries of all that were made are durable. With direct, files are written past
// the page cache where the file system allows that: it is faster, and a failed
// sync cannot leave pages behind that only look written.
func OpenDir(dir string, direct bool) (Disk, error) {
	var parents []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		_, err := os.Stat(at)
		if err == nil || at == filepath.Dir(at) {
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	for _, parent := range parents {
		if err := syncDir(parent); err != nil {
			return nil, err
		}
	}
	return faulty(&osDisk{dir, direct})
}

func (d *osDisk) readsAhead() bool { return true }

func (d *osDisk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *osDisk) List() ([]FileInfo, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var files []FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, FileInfo{entry.Name(), info.Size()})
	}
	return files, nil
}

func (d *osDisk) Create(name string, size int64) (File, error) {
	f, err := d.open(name, unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return nil, err
	}
	err = ignoreEINTR(func() error { return unix.Fallocate(f.fd, 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		// Nothing is reserved then; the zeros that are written next do it.
		err = ignoreEINTR(func() error { return unix.Ftruncate(f.fd, size) })
	}
	if err != nil {
		_ = f.Close()
		_ = unix.Unlink(d.path(name))
		return nil, &os.PathError{Op: "allocate", Path: d.path(name), Err: err}
	}
	f.size = size
	return f, nil
}

func (d *osDisk) Open(name string) (File, error) {
	f, err := d.open(name, 0)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(f.fd, &stat); err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "stat", Path: d.path(name), Err: err}
	}
	f.size = stat.Size
	return f, nil
}

func (d *osDisk) open(name string, flags int) (*osFile, error) {
	path := d.path(name)
	flags |= unix.O_RDWR | unix.O_CLOEXEC
	f := &osFile{path: path, fd: -1}
	f.cached.Store(-1)
	var err error
	if d.direct {
		err = ignoreEINTR(func() (err error) { f.fd, err = unix.Open(path, flags|unix.O_DIRECT, 0o640); return err })
		f.direct = err == nil
		if errors.Is(err, unix.EINVAL) && flags&unix.O_CREAT != 0 {
			_ = unix.Unlink(path) // some file systems create the file and then refuse
		}
	}
	if !d.direct || errors.Is(err, unix.EINVAL) {
		err = ignoreEINTR(func() (err error) { f.fd, err = unix.Open(path, flags, 0o640); return err })
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

func (d *osDisk) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }
func (d *osDisk) Remove(name string) error     { return os.Remove(d.path(name)) }
func (d *osDisk) SyncDir() error               { return syncDir(d.dir) }

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// osFile is a file that is written past the page cache if direct.
type osFile struct {
	path   string
	fd     int
	direct bool
	size   int64
	// plainSync: the file system does not know RWF_DSYNC. Writer only.
	plainSync bool
	// cached is a second descriptor, through the page cache, for reads that are
	// not aligned; -1 until one is needed.
	cached atomic.Int64
}

func (f *osFile) Size() int64 { return f.size }
func (f *osFile) Fd() int     { return f.fd }

func (f *osFile) wrap(op string, err error) error {
	return &os.PathError{Op: op, Path: f.path, Err: err}
}

func (f *osFile) WriteAt(p []byte, offset int64) (int, error) {
	return f.write(p, offset, 0)
}

// WriteSyncAt writes with RWF_DSYNC: one call, and at most one flush of the disk, for
// the write and its sync.
func (f *osFile) WriteSyncAt(p []byte, offset int64) (int, error) {
	if !f.plainSync {
		n, err := f.write(p, offset, unix.RWF_DSYNC)
		if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
			return n, err
		}
		f.plainSync = true
	}
	n, err := f.write(p, offset, 0)
	if err == nil {
		err = f.Sync()
	}
	return n, err
}

func (f *osFile) write(p []byte, offset int64, flags int) (int, error) {
	done := 0
	for done < len(p) {
		var n int
		var err error
		if flags != 0 {
			n, err = unix.Pwritev2(f.fd, [][]byte{p[done:]}, offset+int64(done), flags)
		} else {
			n, err = unix.Pwrite(f.fd, p[done:], offset+int64(done))
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, f.wrap("write", err)
		}
		if n == 0 {
			return done, f.wrap("write", io.ErrShortWrite)
		}
		done += n
	}
	return done, nil
}

func (f *osFile) ReadAt(p []byte, offset int64) (int, error) {
	done := 0
	fd := f.fd
	for done < len(p) {
		n, err := unix.Pread(fd, p[done:], offset+int64(done))
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL) && f.direct && fd == f.fd:
			if fd, err = f.cachedFd(); err != nil {
				return done, err
			}
		case err != nil:
			return done, f.wrap("read", err)
		case n == 0:
			return done, io.EOF
		default:
			done += n
		}
	}
	return done, nil
}

// cachedFd opens the second descriptor. Two readers may race for it: one closes
// its own again.
func (f *osFile) cachedFd() (int, error) {
	if fd := f.cached.Load(); fd >= 0 {
		return int(fd), nil
	}
	fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, f.wrap("open", err)
	}
	if !f.cached.CompareAndSwap(-1, int64(fd)) {
		_ = unix.Close(fd)
	}
	return int(f.cached.Load()), nil
}

// Sync is called once and believed: an interrupted sync is a failed one.
func (f *osFile) Sync() error {
	if err := unix.Fdatasync(f.fd); err != nil {
		return f.wrap("sync", err)
	}
	return nil
}

func (f *osFile) DropCache() error {
	err := unix.Fadvise(f.fd, 0, 0, unix.FADV_DONTNEED)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return f.wrap("fadvise", err)
	}
	return nil
}

func (f *osFile) Close() error {
	if fd := f.cached.Swap(-1); fd >= 0 {
		_ = unix.Close(int(fd))
	}
	fd := f.fd
	f.fd = -1
	if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EINTR) {
		return f.wrap("close", err)
	}
	return nil
}

// ignoreEINTR repeats a call that was interrupted before it did anything.
func ignoreEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
