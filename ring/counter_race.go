//go:build race

//ringmq:hot

package ring

import "sync/atomic"

// ownerCounter is a figure that one loop writes and anybody reads; see
// counter.go for why the ordinary build has a plain store instead.
type ownerCounter struct{ value int64 }

// add changes the figure. Owner loop only.
func (c *ownerCounter) add(n int64) { atomic.AddInt64(&c.value, n) }

// get reads the figure. Any goroutine.
func (c *ownerCounter) get() int64 { return atomic.LoadInt64(&c.value) }
