package wal

import (
	"errors"
	"sync"
)

// Threads is the Device of a loop whose ring cannot write files, or that has none:
// a goroutine for writes, and one for each read and job that blocks.
//
// The result of each call is handed to the post function given to NewThreads,
// which must run it on the loop's thread, in order.
type Threads struct {
	post  func(func())
	queue chan threadWrite
	group sync.WaitGroup

	// The write in flight, at most one: its fields are the loop's until it is
	// queued, the goroutine's until it is posted, and the loop's again.
	done     func(error)
	err      error
	finishFn func()
	writes   fileWriter // of the goroutine
}

// threadWrite is one write on its way to the goroutine.
type threadWrite struct {
	file   File
	offset int64
	buf    []byte
	sync   bool
}

var _ Device = (*Threads)(nil)

// NewThreads starts the writer. post may be called on any goroutine.
func NewThreads(post func(func())) *Threads {
	t := &Threads{post: post, queue: make(chan threadWrite, 1)}
	t.finishFn = t.finish
	t.group.Add(1)
	go t.writer()
	return t
}

// Stop waits for what is in flight and ends the writer. The log must be closed, or
// failed and not used again.
func (t *Threads) Stop() {
	close(t.queue)
	t.group.Wait()
}

// Write implements Device. Loop only.
func (t *Threads) Write(f File, offset int64, buf []byte, sync bool, done func(error)) {
	if t.done != nil {
		panic("wal: two writes in flight")
	}
	t.done = done
	t.queue <- threadWrite{f, offset, buf, sync}
}

// Read implements Device. Loop only.
func (t *Threads) Read(f File, offset int64, buf []byte, done func(int, error)) {
	t.group.Add(1)
	go func() {
		defer t.group.Done()
		n, err := f.ReadAt(buf, offset)
		t.post(func() { done(n, err) })
	}()
}

// Run implements Device. Loop only.
func (t *Threads) Run(job func() error, done func(error)) {
	t.group.Add(1)
	go func() {
		defer t.group.Done()
		err := job()
		t.post(func() { done(err) })
	}()
}

func (t *Threads) writer() {
	defer t.group.Done()
	for w := range t.queue {
		t.err = t.writes.write(w.file, w.offset, w.buf, w.sync)
		t.post(t.finishFn)
	}
}

// finish runs on the loop.
func (t *Threads) finish() {
	done, err := t.done, t.err
	t.done = nil
	done(err)
}

var errShortWrite = errors.New("wal: short write")

// fileWriter carries out a log's writes, one after the other.
type fileWriter struct {
	// unsynced: a write was made that no sync covers yet. WriteSyncAt does not cover it
	// either, so the next sync has to be one. The log goes on to another file only when
	// everything in the one before is durable: so it does not matter which file it was.
	unsynced bool
}

// write is Device.Write, to its end.
func (w *fileWriter) write(f File, offset int64, buf []byte, sync bool) error {
	if len(buf) > 0 {
		if direct, ok := f.(SyncWriter); ok && sync && !w.unsynced {
			return checkWrite(len(buf))(direct.WriteSyncAt(buf, offset))
		}
		w.unsynced = true
		if err := checkWrite(len(buf))(f.WriteAt(buf, offset)); err != nil {
			return err
		}
	}
	if !sync {
		return nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	w.unsynced = false
	return nil
}

// checkWrite makes anything but a whole write an error.
func checkWrite(want int) func(int, error) error {
	return func(n int, err error) error {
		if err == nil && n != want {
			return errShortWrite
		}
		return err
	}
}
