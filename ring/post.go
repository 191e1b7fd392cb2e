package ring

import (
	"sync"
	"sync/atomic"
)

// postbox holds functions that other goroutines want run on the loop.
type postbox struct {
	any    atomic.Bool // items is not empty
	mu     sync.Mutex
	items  []func() // guarded by mu
	closed bool     // guarded by mu: nothing more is taken
}

// Post runs f on the loop, in one of its next turns, in the order of the calls. Any goroutine. It reports false, and f will not
// run, when the loop has stopped. Not for the message path: it takes a lock and allocates.
func (l *Loop) Post(f func()) bool {
	b := &l.posts
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.items = append(b.items, f)
	b.any.Store(true)
	b.mu.Unlock()
	l.Wake()
	return true
}

// Run runs job, which may block, on another goroutine and then done with its result on the loop, as by
// Post. done is dropped if the loop has stopped by then. Any goroutine.
func (l *Loop) Run(job func() error, done func(error)) {
	go func() {
		err := job()
		l.Post(func() { done(err) })
	}()
}

// runPosted runs what was posted so far; what the functions post comes next turn.
func (l *Loop) runPosted() {
	b := &l.posts
	b.mu.Lock()
	items := b.items
	b.items = nil
	b.any.Store(false)
	b.mu.Unlock()
	for _, f := range items {
		f()
	}
}

// close makes Post refuse and returns what it had taken.
func (b *postbox) close() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	items := b.items
	b.items = nil
	return items
}
