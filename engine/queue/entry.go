//ringmq:hot

package queue

import (
	"unsafe"

	"ringmq/engine/core"
)

// State of an entry.
const (
	stateGone uint8 = iota
	stateReady
	stateUnacked
)

// entry is one message's place in a queue: 24 bytes off the Go heap, so that a
// million queued messages cost the garbage collector nothing.
type entry struct {
	msg        *core.Message
	deadline   int64 // monotonic nanoseconds, 0 = never expires
	deliveries uint16
	state      uint8
	indexed    bool // has its record in the index of deadlines
	_          [4]byte
}

const (
	chunkShift   = 7
	chunkEntries = 1 << chunkShift
	chunkMask    = chunkEntries - 1
)

// chunk is 128 consecutive entries.
type chunk struct {
	live    int32 // entries that are not gone
	_       [4]byte
	entries [chunkEntries]entry
}

const chunkBytes = int(unsafe.Sizeof(chunk{}))

// newChunk panics when memory is refused: a broker that cannot allocate 3 KiB
// cannot keep any promise.
func newChunk(a core.Arena) *chunk {
	p := a.Alloc(chunkBytes)
	if p == nil {
		panic("queue: out of memory for queue entries")
	}
	c := (*chunk)(p)
	c.live = 0
	return c
}

func freeChunk(a core.Arena, c *chunk) { a.Free(unsafe.Pointer(c)) }
