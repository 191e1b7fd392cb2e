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

// Post runs f on the loop, in one of its next turns. Any goroutine. It reports false, and f will not
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
