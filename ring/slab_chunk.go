package ring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// slabChunk describes 2 MiB of blocks of one class. The description lives on
// the Go heap, apart from the memory it describes, so that giving the pages
// back loses nothing.
//
// A chunk is in exactly one place: current of its class, on the partial list
// of its class, full (on no list), or wholly free on dirty or clean.
type slabChunk struct {
	// free is the address of the first free header, 0 if there is none.
	free uintptr
	// live counts the blocks in use, plus one while the chunk is current: the
	// current chunk then never looks empty and Free needs no further test.
	live int32
	// size of a block in bytes, header included.
	size uint32
	// full is set while the chunk is on no list because it has no room.
	full   bool
	listed bool
	class  uint16
	index  uint32
	// bump is the offset of the first byte never carved since the chunk took
	// its class; what lies from touched on has had no pages since they were last
	// given back.
	bump, touched uint32
	base          unsafe.Pointer
	next, prev    *slabChunk
}

// slabNoChunk is what a class allocates from before its first chunk: it has no
// room, which sends Alloc to the slow path. It is never written.
var slabNoChunk = &slabChunk{}

// slabClassSizes computes the table of block sizes.
func slabClassSizes() (sizes [slabClassCount + slabLargeCount]uint64) {
	sizes[0] = slabClassMin
	for i := 1; i < len(sizes); i++ {
		octave, step := uint(i-1)/4, uint64(i-1)%4+1
		sizes[i] = slabClassMin<<octave + step*(slabClassMin/4)<<octave
	}
	return sizes
}

// NewSlabs makes the slabs of a group of n loops, each with its index. Blocks
// may be freed through any of them. No memory is mapped before it is needed.
func NewSlabs(n int) []*Slab {
	peers := make([]*Slab, n)
	for i := range peers {
		s := &Slab{peers: peers, index: uint16(i)}
		for class := range s.current {
			s.current[class] = slabNoChunk
		}
		peers[i] = s
	}
	return peers
}

// allocSlow serves a class whose current chunk has no freed block. What other
// loops gave back comes first, then room in other chunks, whose pages are
// there already, and only then memory never touched.
func (s *Slab) allocSlow(class uint) unsafe.Pointer {
	s.takeRemote()
	c := s.current[class]
	if c.free == 0 {
		c = s.roomIn(class)
	}
	if c == nil {
		return nil
	}
	h := blockAt(c.free)
	if c.free != 0 {
		c.free = h.next
		if slabChecks {
			slabCheckPoison(h, uintptr(c.size))
		}
	} else {
		h = (*blockHeader)(unsafe.Add(c.base, c.bump))
		*h = blockHeader{owner: s.index, class: uint16(class), chunk: c.index}
		if c.bump += c.size; c.bump > c.touched {
			c.touch()
		}
	}
	h.next = blockLive
	c.live++
	s.liveBlocks.add(1)
	s.liveBytes.add(int64(c.size))
	return h.payload()
}

// roomIn returns the chunk to allocate from, now current, or nil if the system
// refuses memory. REQUIRES: the current chunk has no freed block.
func (s *Slab) roomIn(class uint) *slabChunk {
	c := s.current[class]
	next := s.partial[class]
	if next == nil && c.roomToCarve() {
		return c
	}
	if next != nil {
		s.unlist(next)
	} else if next = s.takeEmpty(class); next == nil {
		return nil
	}
	s.leaveCurrent(c)
	next.live++
	s.current[class] = next
	return next
}

// touch gets pages for what was just carved. A chunk that has filled its first
// 64 KiB with small blocks will likely go on, and asking for 16 pages at a time
// costs a third less than 16 page faults (measured: 1.0 against 1.5 us a page).
// Huge pages would be cheaper still, but where memory is fragmented the kernel
// compacts it first, for milliseconds, while the loop stands.
func (c *slabChunk) touch() {
	if c.size > slabAheadBlockMax || c.touched < slabAheadBytes {
		c.touched = c.bump
		return
	}
	from := c.touched &^ (slabPageSize - 1)
	end := min(from+slabAheadBytes, slabChunkSize)
	// Kernels before 5.14 refuse; the pages then come one by one, as ever.
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(c.base, from)), end-from), unix.MADV_POPULATE_WRITE)
	c.touched = max(end, c.bump)
}

// roomToCarve reports whether another block fits behind the carved ones.
func (c *slabChunk) roomToCarve() bool {
	return c.size != 0 && c.bump+c.size <= slabChunkSize
}

// leaveCurrent files a chunk that ceases to be current.
func (s *Slab) leaveCurrent(c *slabChunk) {
	if c == slabNoChunk {
		return
	}
	c.live--
	switch {
	case c.live == 0:
		s.retire(c)
	case c.free != 0 || c.roomToCarve():
		s.list(c)
	default:
		c.full = true
	}
}

// freeSlow is called when a free emptied a chunk or gave a full one room.
func (s *Slab) freeSlow(c *slabChunk) {
	if c.full {
		c.full = false
		s.list(c)
	}
	if c.live == 0 {
		s.unlist(c)
		s.retire(c)
	}
}

// retire puts a wholly free chunk, which is on no list, aside for any class.
// Beyond the reserve its pages go back to the system at once: one system call
// for every 2 MiB freed, so that a purge pays as it goes.
func (s *Slab) retire(c *slabChunk) {
	c.free, c.bump = 0, 0
	if len(s.dirty) < slabReserveChunks {
		s.dirty = append(s.dirty, c)
		return
	}
	s.giveBack(c)
}

// giveBack returns a free chunk's pages and keeps its address range.
func (s *Slab) giveBack(c *slabChunk) {
	if !dropPages(c.base, uintptr(c.touched)) {
		// The pages are still there: count them as kept rather than lie.
		s.dirty = append(s.dirty, c)
		return
	}
	c.touched = 0
	s.clean = append(s.clean, c)
	s.mappedBytes.add(-slabChunkSize)
}

// takeEmpty readies a wholly free chunk for a class; nil if memory is refused.
func (s *Slab) takeEmpty(class uint) *slabChunk {
	var c *slabChunk
	if n := len(s.dirty); n > 0 {
		c, s.dirty = s.dirty[n-1], s.dirty[:n-1]
	} else if n := len(s.clean); n > 0 {
		c, s.clean = s.clean[n-1], s.clean[:n-1]
		s.mappedBytes.add(slabChunkSize)
	} else {
		base := mapPages(slabChunkSize)
		if base == nil {
			return nil
		}
		c = &slabChunk{base: base, index: uint32(len(s.chunks))}
		s.chunks = append(s.chunks, c)
		s.mappedBytes.add(slabChunkSize)
		s.reservedBytes.add(slabChunkSize)
	}
	c.class, c.size = uint16(class), uint32(slabClassSize[class])
	return c
}

// list puts a chunk with room at the front of its class's list: the most
// recently freed block is the one most likely still in cache.
func (s *Slab) list(c *slabChunk) {
	head := s.partial[c.class]
	c.next, c.prev, c.listed = head, nil, true
	if head != nil {
		head.prev = c
	}
	s.partial[c.class] = c
}

// unlist takes a chunk off its class's list, if it is on it.
func (s *Slab) unlist(c *slabChunk) {
	if !c.listed {
		return
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		s.partial[c.class] = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.next, c.prev, c.listed = nil, nil, false
}

// Collect takes back what other loops have freed and sets aside the chunks of
// classes that hold nothing any more. A loop that only receives frees would
// otherwise never look at them. Cheap enough for a timer of 100 ms or for the
// moment before sleep; not meant for every turn. Owner loop only.
func (s *Slab) Collect() {
	s.takeRemote()
	for class, c := range s.current {
		if c.live == 1 && c != slabNoChunk {
			s.current[class] = slabNoChunk
			s.leaveCurrent(c)
		}
	}
}

// SlabStats is what a slab holds at the moment of asking, header bytes and
// rounding included. Blocks that another loop has freed count as live until
// the owner takes them back.
type SlabStats struct {
	LiveBlocks int64
	LiveBytes  int64
	// MappedBytes is the upper bound of what the system may back with pages:
	// chunks and large blocks in use or kept in reserve.
	MappedBytes int64
	// ReservedBytes is MappedBytes plus address ranges whose pages were given back.
	ReservedBytes int64
}

// Stats tells how much memory the slab holds. Any goroutine; the four figures
// are read one after the other and may be from different moments.
func (s *Slab) Stats() SlabStats {
	return SlabStats{
		LiveBlocks:    s.liveBlocks.get(),
		LiveBytes:     s.liveBytes.get(),
		MappedBytes:   s.mappedBytes.get(),
		ReservedBytes: s.reservedBytes.get(),
	}
}

// mapPages reserves size bytes of zeroed address space that never goes away;
// nil if the system refuses. NORESERVE: what is touched counts, not the range.
func mapPages(size uintptr) unsafe.Pointer {
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return p
}

// dropPages gives the pages of a mapping's first size bytes back to the system
// and keeps the addresses; what is read there next is zero.
func dropPages(p unsafe.Pointer, size uintptr) bool {
	if size == 0 {
		return true
	}
	return unix.Madvise(unsafe.Slice((*byte)(p), size), unix.MADV_DONTNEED) == nil
}
