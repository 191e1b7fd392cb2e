package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dataLock is the lock on a data folder. The kernel drops it with the process, however that
// ends, so that no stale lock ever needs to be cleaned up by hand.
type dataLock struct{ file *os.File }

// lockData creates the folder when it is missing and locks it. The file carries our process id
// for the message that a second broker prints.
func lockData(path string) (*dataLock, error) {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("cannot create the data folder %s: %w; choose another with --data", path, plainErr(err))
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("cannot write in the data folder %s: %w; choose another with --data", path, plainErr(err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := lockHolder(f)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("the data folder %s is locked by %s; stop it or choose another folder with --data", path, holder)
		}
		return nil, fmt.Errorf("cannot lock the data folder %s: %w; choose another with --data", path, err)
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(pid), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot write in the data folder %s: %w; make room or choose another with --data", path, plainErr(err))
	}
	return &dataLock{f}, nil
}

// lockToRead is lockData for tools that change nothing: nothing is made, and the folder may be one that
// cannot be written to. Without a lock file no broker has used the folder, or it is a copy.
func lockToRead(path string) (*dataLock, error) {
	f, err := os.Open(filepath.Join(path, "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read in the data folder %s: %w", path, plainErr(err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		holder := lockHolder(f)
		f.Close()
		return nil, fmt.Errorf("the data folder %s is locked by %s; stop it", path, holder)
	}
	return &dataLock{f}, nil
}

// lockHolder names the process that holds the lock, as it wrote itself into the file.
func lockHolder(f *os.File) string {
	buf := make([]byte, 32)
	n, _ := f.ReadAt(buf, 0) // io.EOF is the usual end; an unreadable file leaves no name
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}

// gone reports that the file under the lock's name is not the one that is locked: the data folder
// was deleted, moved or replaced.
func (l *dataLock) gone(path string) bool {
	held, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(filepath.Join(path, "lock"))
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(held, there)
}

// release unlocks the folder. The file stays: removing it would let two brokers lock two
// different files of the same name.
func (l *dataLock) release() {
	if l != nil {
		l.file.Close()
	}
}

// plainErr takes the operation and path off an error whose line names them already.
func plainErr(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		var errno syscall.Errno
		if errors.As(pathErr.Err, &errno) {
			return errno
		}
		return pathErr.Err
	}
	return err
}
