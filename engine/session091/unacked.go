//ringmq:hot

package session091

import (
	"math/bits"

	"ringmq/engine"
	"ringmq/engine/queue"
)

// record is one delivery that waits for its acknowledgement: 16 bytes without
// pointers.
type record struct {
	seq     uint64 // of the entry in its queue
	slot    uint32 // where it came from: channel.slots
	age     uint16 // how long after recordChunk.since it was handed out: packAge
	live    bool
	counted bool // holds a place in the channel's shared window
}

const (
	unackedShift = 6
	unackedChunk = 1 << unackedShift
)

type recordChunk struct {
	live int
	// since is when the delivery was handed out that came while no other of the
	// chunk was live, monotonic nanoseconds; none that is live is older.
	since   int64
	records [unackedChunk]record
	next    *recordChunk // in the loop's list of free chunks
}

// chunkPool keeps free chunks of one loop.
type chunkPool struct {
	free  *recordChunk
	count int
}

const chunkPoolMax = 256

// A time of two bytes: a number of ageBits bits, in units of 2^20 ns (a little over
// a millisecond), and the number of places that it is shifted by. Counted from a
// chunk's since it is exact for two seconds and to a two thousandth after that, and
// there is no time that it could not tell.
const (
	ageUnit = 20
	ageBits = 11
	ageMask = 1<<ageBits - 1
)

// packAge keeps a time in nanoseconds. What does not fit is cut off, so that
// unpackAge gives the end of the unit: a delivery never counts as older than it is.
func packAge(ns int64) uint16 {
	if n := uint64(ns) >> ageUnit; n <= ageMask {
		return uint16(n)
	}
	return packAgeLong(uint64(ns) >> ageUnit)
}

// packAgeLong is apart so that add stays short.
//
//go:noinline
func packAgeLong(n uint64) uint16 {
	shift := bits.Len64(n) - ageBits
	if shift > 1<<(16-ageBits)-1 {
		return 1<<16 - 1
	}
	return uint16(shift)<<ageBits | uint16(n>>shift)
}

// unpackAge is the time in nanoseconds that a packed one stands for at most.
func unpackAge(age uint16) int64 {
	return int64(age&ageMask+1) << (age >> ageBits) << ageUnit
}

func (p *chunkPool) get() *recordChunk {
	ch := p.free
	if ch == nil {
		return &recordChunk{}
	}
	p.free, ch.next = ch.next, nil
	p.count--
	return ch
}

func (p *chunkPool) put(ch *recordChunk) {
	if p.count >= chunkPoolMax {
		return
	}
	for i := range ch.records {
		ch.records[i].live = false
	}
	ch.live = 0
	ch.next, p.free = p.free, ch
	p.count++
}

// unackedTable finds a delivery by its tag. Tags rise by one, so it is a deque
// of chunks; chunks whose deliveries are all settled go away wherever they
// stand, so that one forgotten message does not keep the rest.
type unackedTable struct {
	dir   []*recordChunk
	base  uint64 // tag of the first record of dir[0]; a multiple of the chunk size
	first uint64 // no live tag is below
	count int
}

// add remembers a delivery that is handed out now. Tags rise; those of no-ack
// deliveries are left out.
func (u *unackedTable) add(pool *chunkPool, now int64, tag, seq uint64, slot uint32, counted bool) {
	if u.count == 0 {
		u.recycle(pool, tag)
	}
	i := int((tag - u.base) >> unackedShift)
	if last := len(u.dir) - 1; i > last && last >= 0 && u.dir[last] != nil && u.dir[last].live == 0 {
		// remove left it, because tags were still to come in it.
		pool.put(u.dir[last])
		u.dir[last] = nil
	}
	for i >= len(u.dir) {
		u.dir = append(u.dir, nil)
	}
	ch := u.dir[i]
	if ch == nil {
		ch = pool.get()
		u.dir[i] = ch
	}
	r := &ch.records[tag&(unackedChunk-1)]
	r.seq, r.slot, r.live, r.counted = seq, slot, true, counted
	if ch.live == 0 {
		ch.since = now
	}
	r.age = packAge(now - ch.since)
	ch.live++
	u.count++
}

// recycle starts over at tag with an empty table, in the chunk it has.
func (u *unackedTable) recycle(pool *chunkPool, tag uint64) {
	base := tag &^ (unackedChunk - 1)
	if len(u.dir) == 1 && u.dir[0] != nil {
		if u.base != base {
			ch := u.dir[0]
			for i := range ch.records {
				ch.records[i].live = false
			}
		}
	} else {
		u.reset(pool)
	}
	u.base, u.first = base, tag
}

// find returns the live record of a tag, nil if it is not outstanding.
func (u *unackedTable) find(tag uint64) *record {
	if u.count == 0 || tag < u.base {
		return nil
	}
	i := (tag - u.base) >> unackedShift
	if i >= uint64(len(u.dir)) || u.dir[i] == nil {
		return nil
	}
	r := &u.dir[i].records[tag&(unackedChunk-1)]
	if !r.live {
		return nil
	}
	return r
}

// remove settles the live record of a tag.
func (u *unackedTable) remove(pool *chunkPool, tag uint64) {
	i := int((tag - u.base) >> unackedShift)
	ch := u.dir[i]
	ch.records[tag&(unackedChunk-1)].live = false
	ch.live--
	u.count--
	if ch.live > 0 || i == len(u.dir)-1 {
		return
	}
	pool.put(ch)
	u.dir[i] = nil
	n := 0
	for n < len(u.dir)-1 && u.dir[n] == nil {
		n++
	}
	if n > 0 && i < n {
		u.base += uint64(n) << unackedShift
		u.dir = u.dir[:copy(u.dir, u.dir[n:])]
	}
}

// next finds the lowest live tag that is at least from, 0 if there is none.
func (u *unackedTable) next(from uint64) uint64 {
	if u.count == 0 {
		return 0
	}
	if from < u.first {
		from = u.first
	}
	if from < u.base {
		from = u.base
	}
	for i := int((from - u.base) >> unackedShift); i < len(u.dir); i++ {
		ch := u.dir[i]
		if ch == nil || ch.live == 0 {
			from = u.base + uint64(i+1)<<unackedShift
			continue
		}
		for j := from & (unackedChunk - 1); j < unackedChunk; j++ {
			if ch.records[j].live {
				return u.base + uint64(i)<<unackedShift + j
			}
		}
		from = u.base + uint64(i+1)<<unackedShift
	}
	return 0
}

// each calls f for every live record in order of tags.
func (u *unackedTable) each(f func(*record)) {
	for _, ch := range u.dir {
		if ch == nil || ch.live == 0 {
			continue
		}
		for j := range ch.records {
			if ch.records[j].live {
				f(&ch.records[j])
			}
		}
	}
}

// reset forgets everything and gives the chunks back.
func (u *unackedTable) reset(pool *chunkPool) {
	for i, ch := range u.dir {
		if ch != nil {
			pool.put(ch)
		}
		u.dir[i] = nil
	}
	u.dir = u.dir[:0]
	u.count = 0
}

// slot is where deliveries of a channel come from: a consumer, or a queue that
// basic.get took from.
type slot struct {
	queue    *queue.Queue
	consumer *consumer // nil for basic.get
	held     int       // outstanding deliveries
	free     bool
}

// subscription is nil for basic.get.
func (s *slot) subscription() *engine.Subscription {
	if s.consumer == nil {
		return nil
	}
	return &s.consumer.sub
}

// hold remembers a delivery until it is settled.
func (ch *channel) hold(tag, seq uint64, slot uint32, counted bool) {
	if !counted && ch.window != nil && ch.window.Limited() && ch.slots[slot].consumer != nil {
		// Handed over before the window was set: it counts all the same.
		ch.window.Add(1)
		counted = true
	}
	if !ch.holding.watched {
		ch.watch()
	}
	ch.slots[slot].held++
	ch.unacked.add(&ch.c.lp.chunks, ch.c.shard.Now(), tag, seq, slot, counted)
}
