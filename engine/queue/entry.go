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

	stateMask = 3
)

// What is known of an entry beside its state.
const (
	// entryIndexed: it has its record in the index of deadlines.
	entryIndexed uint8 = 4 << iota
	// entryLogged: the log brings it back after a restart.
	entryLogged
	// entryCarrier: its part of the log's record is the body; see Place.
	entryCarrier
	// entryAhead: its body was read back and was not delivered since.
	entryAhead
	// entryMaybe: it may have been delivered before a crash: redelivered, but not
	// counted as returned. Of queues that count only.
	entryMaybe
)

// entry is one message's place in a queue: 32 bytes off the Go heap, so that a
// million queued messages cost the garbage collector nothing.
type entry struct {
	msg        *core.Message // nil: the body is in the log only
	deadline   int64         // monotonic nanoseconds, 0 = never expires
	pos        uint64        // of its record in the shard's log, 0 = it has none
	size       uint32        // bytes of body
	deliveries uint16
	flags      uint8 // state in the lowest two bits, then the flags above
	priority   uint8 // of a queue that orders by it
}

func (e *entry) state() uint8 { return e.flags & stateMask }

func (e *entry) setState(s uint8) { e.flags = e.flags&^stateMask | s }

func (e *entry) is(flag uint8) bool { return e.flags&flag != 0 }

// inMemory is about what an entry's message takes there, in bytes: an empty body
// is not free.
func (e *entry) inMemory() int { return int(e.size) + core.MessageOverheadBytes }

const (
	chunkShift   = 7
	chunkEntries = 1 << chunkShift
	chunkMask    = chunkEntries - 1
)

// chunk is 128 consecutive entries.
type chunk struct {
	live     int32 // entries that are not gone
	resident int32 // entries whose body is in memory
	entries  [chunkEntries]entry
}

const chunkBytes = int(unsafe.Sizeof(chunk{}))

// newChunk panics when memory is refused: a broker that cannot allocate 4 KiB
// cannot keep any promise.
func newChunk(a core.Arena) *chunk {
	p := a.Alloc(chunkBytes)
	if p == nil {
		panic("queue: out of memory for queue entries")
	}
	c := (*chunk)(p)
	c.live, c.resident = 0, 0
	return c
}

func freeChunk(a core.Arena, c *chunk) { a.Free(unsafe.Pointer(c)) }
