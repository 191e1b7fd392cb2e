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
		t.err = w.run()
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

// run writes and syncs.
func (w *threadWrite) run() error {
	if len(w.buf) == 0 {
		if w.sync {
			return w.file.Sync()
		}
		return nil
	}
	if direct, ok := w.file.(SyncWriter); ok && w.sync {
		return checkWrite(len(w.buf))(direct.WriteSyncAt(w.buf, w.offset))
	}
	if err := checkWrite(len(w.buf))(w.file.WriteAt(w.buf, w.offset)); err != nil {
		return err
	}
	if w.sync {
		return w.file.Sync()
	}
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
