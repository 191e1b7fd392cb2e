package defs

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ringmq/engine"
)

// ErrClosed answers those who still wait when the store closes.
var ErrClosed = errors.New("the definitions are closed")

// retryEvery is how often changes that found no room are tried again.
const retryEvery = time.Second

// Options of a Store.
type Options struct {
	// NoSync leaves it to the kernel when the file reaches the disk: a power cut
	// may lose or damage definitions, the end of the process does not.
	NoSync bool
	// Fatal is called once, on the store's goroutine, when writing failed for
	// any reason but a lack of room. Nothing is written after it; the process
	// should end.
	Fatal func(error)
	// Trouble is called on the store's goroutine when changes cannot be written
	// for want of room, and with nil when they can again. May be nil.
	Trouble func(error)
	// After is the clock (time.After): changes that found no room are tried
	// again after a second, and with the next change. With no clock they are
	// tried again with the next change or Notify.
	After func(time.Duration) <-chan time.Time
}

// Store is an open definitions file. Its methods are for any goroutine.
type Store struct {
	opts Options
	file file
	// commit writes a batch; tests put another in its place.
	commit func(batch) error

	durable atomic.Uint64
	kick    chan struct{} // holds one: there is something to do
	stopped chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards all below
	pending batch
	last    uint64 // number of the last change
	waiters []waiter
	failed  error // fatal; nothing is written any more
	closing bool
	trouble error // why the last attempt found no room, nil when it did
}

// batch is what goes into one transaction: by kind and key the last change of
// each record, which is all that counts. Bounded by the records that were ever
// touched since the last commit, and each toucher waits for it.
type batch map[recordID]engine.Change

type recordID struct {
	kind engine.ChangeKind
	key  string
}

type waiter struct {
	n uint64
	f func(error)
}

// Apply implements engine.Definitions.
func (s *Store) Apply(changes []engine.Change) uint64 {
	s.mu.Lock()
	for _, c := range changes {
		s.pending[recordID{c.Kind, string(c.Key)}] = c
	}
	s.last++
	n := s.last
	s.mu.Unlock()
	s.wake()
	return n
}

// Durable implements engine.Definitions.
func (s *Store) Durable() uint64 { return s.durable.Load() }

// Notify implements engine.Definitions. The error is a syscall.Errno when there
// was no room, ErrClosed after Close, and the fatal error after that.
func (s *Store) Notify(n uint64, f func(error)) {
	s.mu.Lock()
	err, now := s.failed, true
	switch {
	case s.durable.Load() >= n:
		err = nil
	case err != nil:
	case s.closing:
		err = ErrClosed
	default:
		now = false
		s.waiters = append(s.waiters, waiter{n, f})
	}
	// While the disk is full whoever asks has to wait for the next attempt: one
	// who asks again with each answer must not keep the disk busy.
	timed := s.trouble != nil && s.opts.After != nil
	s.mu.Unlock()
	switch {
	case now:
		f(err)
	case !timed:
		s.wake()
	}
}

// Trouble is why changes cannot be written at present, nil when they can.
func (s *Store) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	return s.trouble
}

// Close writes what is pending and closes the file. An error says that changes
// were left behind or that the file could not be closed.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	s.mu.Unlock()
	s.wake()
	<-s.stopped
	if again {
		return nil
	}
	err := s.Trouble()
	if closed := s.file.close(); err == nil {
		err = closed
	}
	return err
}

func (s *Store) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// run is the store's goroutine.
func (s *Store) run() {
	defer close(s.stopped)
	var retry <-chan time.Time
	for {
		select {
		case <-s.kick:
		case <-retry:
		}
		retry = nil
		// A failed store keeps its goroutine until Close, but writes no more.
		if !s.isFailed() && s.write() != nil && s.opts.After != nil {
			retry = s.opts.After(retryEvery)
		}
		if s.finished() {
			return
		}
	}
}

func (s *Store) isFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed != nil
}

// finished reports that the store is closing and nothing is left to write, or
// cannot be. It answers those who still wait.
func (s *Store) finished() bool {
	s.mu.Lock()
	done := s.closing && (len(s.pending) == 0 || s.trouble != nil || s.failed != nil)
	var left []waiter
	if done {
		left, s.waiters = s.waiters, nil
	}
	s.mu.Unlock()
	tell(left, ErrClosed)
	return done
}

// write makes one attempt to write everything that is pending. It returns an
// error when it is to be tried again later.
func (s *Store) write() error {
	s.mu.Lock()
	b, n := s.pending, s.last
	s.pending = batch{}
	s.mu.Unlock()
	var err error
	if len(b) > 0 {
		err = s.commit(b)
	}
	if err == nil {
		s.written(n)
		return nil
	}
	room := noRoom(err)
	if room == 0 {
		s.fail(err)
		return nil
	}
	s.unwritten(b, n, room)
	return room
}

// written publishes that all up to n is durable.
func (s *Store) written(n uint64) {
	s.durable.Store(n)
	s.mu.Lock()
	ready := s.take(n)
	was := s.trouble
	s.trouble = nil
	s.mu.Unlock()
	if was != nil && s.opts.Trouble != nil {
		s.opts.Trouble(nil)
	}
	tell(ready, nil)
}

// unwritten puts a batch back, below what was changed since, and tells those
// who wait for it.
func (s *Store) unwritten(b batch, n uint64, err error) {
	// Whoever makes and deletes things while the disk is full leaves deletions
	// behind of what the file never had.
	s.file.dropVoid(b)
	s.mu.Lock()
	for id, c := range s.pending {
		b[id] = c
	}
	s.pending = b
	ready := s.take(n)
	first := s.trouble == nil
	s.trouble = err
	s.mu.Unlock()
	if first && s.opts.Trouble != nil {
		s.opts.Trouble(err)
	}
	tell(ready, err)
}

// fail is the end of writing.
func (s *Store) fail(err error) {
	s.mu.Lock()
	s.failed = err
	ready := s.waiters
	s.waiters = nil
	s.mu.Unlock()
	if s.opts.Fatal != nil {
		s.opts.Fatal(err)
	}
	tell(ready, err)
}

// take removes the waiters for changes up to n. mu is held.
func (s *Store) take(n uint64) []waiter {
	var ready []waiter
	left := s.waiters[:0]
	for _, w := range s.waiters {
		if w.n <= n {
			ready = append(ready, w)
		} else {
			left = append(left, w)
		}
	}
	clear(s.waiters[len(left):])
	s.waiters = left
	return ready
}

func tell(list []waiter, err error) {
	for _, w := range list {
		w.f(err)
	}
}

// noRoom is the reason of a write that failed for want of room, 0 for any other
// failure. A sync that fails, for want of room as well, is another failure: the
// kernel has dropped what it could not write.
func noRoom(err error) syscall.Errno {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		var path *fs.PathError
		if errors.As(err, &path) && path.Op != "sync" && errors.Is(err, e) {
			return e
		}
		// bbolt gives the text alone of what failed when the file grows.
		if text := err.Error(); strings.HasPrefix(text, "file resize error:") && strings.HasSuffix(text, e.Error()) {
			return e
		}
	}
	return 0
}
