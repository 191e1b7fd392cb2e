//go:build !race

//ringmq:hot

package ring

import "sync/atomic"

// ownerCounter is a figure that one loop writes and anybody reads. The writer
// needs no locked instruction: an aligned word is never seen half written, and
// a reader that is a moment late is as good as one that asked a moment earlier.
// A locked store would cost as much as the allocation that it counts. (The race
// detector cannot know this; its build has counter_race.go.)
type ownerCounter struct{ value int64 }

// add changes the figure. Owner loop only.
func (c *ownerCounter) add(n int64) { c.value += n }

// get reads the figure. Any goroutine.
func (c *ownerCounter) get() int64 { return atomic.LoadInt64(&c.value) }
