package queue

import "ringmq/engine/core"

// StartKind is a way to say where in a stream a consumer begins.
type StartKind uint8

// The ways of the consumer argument x-stream-offset (STR-02).
const (
	// StartNext: with what is published from now on.
	StartNext StartKind = iota
	// StartFirst: with the oldest message.
	StartFirst
	// StartLast: with the newest message.
	StartLast
	// StartOffset: with the message of that offset; the oldest if it is gone.
	StartOffset
	// StartTime: with the first message that came at that time or later, ms since
	// 1970.
	StartTime
)

// Start is where in a stream a consumer begins. Value belongs to StartOffset and
// StartTime.
type Start struct {
	Kind  StartKind
	Value int64
}

// Cursor is where a consumer of a stream stands. Fill in the exported fields before
// Subscribe; the queue's loop owns it from then on.
type Cursor struct {
	Start Start
	// Match says which messages the consumer gets, nil for all of them. It is called
	// on the queue's loop, and the message is borrowed.
	Match func(*core.Message) bool

	next  uint64 // offset of the next message to look at
	asked uint64 // when a body was read back for it last, see stream.asks
	list  *waitList
	at    int // in that list
}

// attach places a new consumer of a stream.
func (q *Queue) attach(c *Consumer) {
	if c.Cursor == nil {
		c.Cursor = &Cursor{}
	}
	c.Priority = 0 // every consumer gets every message
	f, k := &q.order, c.Cursor
	switch k.Start.Kind {
	case StartNext:
		k.next = f.tail
	case StartFirst:
		k.next = f.base
	case StartLast:
		k.next = f.lastLive()
	case StartOffset:
		k.next = max(uint64(max(k.Start.Value, 0)), f.base)
	case StartTime:
		k.next = f.since(k.Start.Value)
	}
}

// lastLive is the number of the last entry that is not gone, the next one if there
// is none.
func (f *fifo) lastLive() uint64 {
	for seq := f.tail; f.live > 0 && seq > f.base; {
		seq--
		index := seq - f.base
		c := f.chunks[index>>chunkShift]
		if c == nil {
			seq = f.base + index&^uint64(chunkMask)
			continue
		}
		if c.entries[index&chunkMask].state() != stateGone {
			return seq
		}
	}
	return f.tail
}

// since is the number of the first entry of a stream that came at a time or later,
// ms since 1970. Times rise, but for a clock that was set back.
func (f *fifo) since(ms int64) uint64 {
	low, high := f.base, f.tail
	for low < high {
		mid := low + (high-low)/2
		seq, e := f.nextLive(mid, high)
		if e == nil || e.deadline >= ms {
			high = mid
		} else {
			low = seq + 1
		}
	}
	return low
}

// recoverStream is RecoverEnd of a stream: the next message gets the next offset,
// in the middle of a chunk if need be.
func (q *Queue) recoverStream() {
	f, s := &q.order, q.stream
	if n := f.recovered(); n > 0 && f.chunks[n-1] == nil && (f.tail-f.base)&chunkMask != 0 {
		c := newChunk(q.host.Arena())
		c.entries = [chunkEntries]entry{}
		f.chunks[n-1] = c
	}
	f.head = f.base
	s.safe, s.hotFrom, s.tailSeen = f.tail, f.tail, f.tail
	if f.live > 0 {
		q.host.MarkDirty(q)
	}
	q.show()
}
