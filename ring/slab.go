//ringmq:hot

package ring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Sizes of the slab allocator, in bytes unless said otherwise.
const (
	// blockHeaderSize precedes every block. It keeps the payload aligned to 16.
	blockHeaderSize = 16
	// slabChunkSize is what is asked from the system at a time. A chunk holds
	// blocks of one class only, so that its emptiness is one counter.
	slabChunkSize = 2 << 20
	// slabClassMin is the smallest block, header included.
	slabClassMin = 64
	// slabClassMinBits is log2 of slabClassMin.
	slabClassMinBits = 6
	// slabClassCount is the number of classes carved out of chunks: 64 B, then
	// four steps for each power of two up to 256 KiB.
	slabClassCount = 49
	// slabLargeCount is the number of classes that are mappings of their own:
	// the same steps, on from 256 KiB to 1 TiB.
	slabLargeCount = 88
	// slabPayloadMax is the largest request; anything beyond is refused.
	slabPayloadMax = 1<<40 - blockHeaderSize
	// slabReserveChunks is how many wholly free chunks keep their pages. It
	// spares a queue that breathes around a chunk boundary the page faults.
	slabReserveChunks = 8
	// slabLargeCacheMax is how many bytes of free large blocks keep their
	// pages, for the same reason.
	slabLargeCacheMax = 32 << 20
	// slabAheadBytes is how much memory a growing chunk takes from the system at
	// a time, for blocks of at most slabAheadBlockMax.
	slabAheadBytes    = 64 << 10
	slabAheadBlockMax = 16 << 10
	// slabPageSize is the smallest page of any Linux that this runs on.
	slabPageSize = 4 << 10
	// blockLive stands in blockHeader.next while the block is in use. No block
	// has this address, so a second Free is seen for the price of a compare.
	blockLive = 1
)

// blockHeader lies in the 16 bytes before each payload. It is never reached by
// the garbage collector and holds no Go pointer.
type blockHeader struct {
	// owner is the index of the slab that the block came from.
	owner uint16
	// class is the size class; >= slabClassCount means a mapping of its own.
	class uint16
	// chunk is the index of the block's chunk in the owner's table.
	chunk uint32
	// next is blockLive while in use, else the address of the next free header.
	next uintptr
}

// Slab is an allocator of off-heap blocks, one per loop. The garbage collector
// neither scans nor counts what it hands out: a million queued messages cost
// it nothing.
//
// Alloc, Free and Collect belong to the loop that owns the slab; Stats may be
// called from any goroutine. Address ranges are never unmapped, only their
// pages are given back: a stale pointer into a slab can therefore never come
// to point into the Go heap, which the runtime would answer with a crash.
type Slab struct {
	// current is the chunk that each class allocates from; never nil.
	current [slabClassCount]*slabChunk
	// chunks holds every chunk by its index.
	chunks []*slabChunk
	// peers are all slabs of the group, by index; shared and read only.
	peers []*Slab
	index uint16

	liveBlocks    ownerCounter
	liveBytes     ownerCounter
	mappedBytes   ownerCounter
	reservedBytes ownerCounter

	// partial lists, per class, the chunks besides the current one that have room.
	partial [slabClassCount]*slabChunk
	// dirty and clean are wholly free chunks with and without their pages.
	dirty, clean []*slabChunk
	large        slabLarge

	// The padding keeps the word that other cores write off the owner's lines.
	_      [64]byte
	remote atomic.Uintptr
	_      [64]byte
}

// slabClassSize is the block size of each class, header included.
var slabClassSize = slabClassSizes()

// slabClassOf gives the class of a block of total bytes, header included.
// REQUIRES: slabClassMin < total.
func slabClassOf(total uint) uint {
	k := uint(bits.Len(total-1)) - 1
	return (k-slabClassMinBits)<<2 + (total-1)>>((k-2)&63) - 3
}

// blockAt turns a header's address back into a pointer. The address is always
// one of a mapping that lives as long as the process.
func blockAt(address uintptr) *blockHeader {
	return (*blockHeader)(unsafe.Add(unsafe.Pointer(nil), address))
}

// payload is the memory behind the header.
func (h *blockHeader) payload() unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(h), blockHeaderSize)
}

// Alloc returns a block of at least n bytes, aligned to 16 and not zeroed; the
// caller owns it until Free. It returns nil only if n is out of bounds or the
// operating system refuses memory. Owner loop only.
func (s *Slab) Alloc(n int) unsafe.Pointer {
	if uint(n) > slabPayloadMax {
		return nil
	}
	total, class := uint(n)+blockHeaderSize, uint(0)
	if total > slabClassMin {
		class = slabClassOf(total)
	}
	if class >= slabClassCount {
		return s.allocLarge(class)
	}
	c := s.current[class]
	if c.free == 0 {
		return s.allocSlow(class)
	}
	h := blockAt(c.free)
	c.free = h.next
	c.live++
	h.next = blockLive
	s.liveBlocks.add(1)
	s.liveBytes.add(int64(c.size))
	if slabChecks {
		slabCheckPoison(h, uintptr(c.size))
	}
	return h.payload()
}

// Free gives a block back, whichever slab of the group it came from. It is
// called on the slab of the running loop: a block of its own goes to its free
// list, a foreign one to its owner by one compare-and-swap. Freeing a block
// twice, or a pointer that Alloc did not return, ends the process. nil is
// allowed and does nothing. Owner loop only.
func (s *Slab) Free(p unsafe.Pointer) {
	if p == nil {
		return
	}
	h := (*blockHeader)(unsafe.Add(p, -blockHeaderSize))
	if h.next != blockLive {
		panic("ring: slab block freed twice, or not a slab block")
	}
	if slabChecks {
		slabPoison(h)
	}
	if h.owner != s.index {
		s.peers[h.owner].pushRemote(h)
		return
	}
	s.freeOwn(h)
}

// freeOwn takes back a block of this slab.
func (s *Slab) freeOwn(h *blockHeader) {
	if h.class >= slabClassCount {
		s.freeLarge(h)
		return
	}
	c := s.chunks[h.chunk]
	h.next = c.free
	c.free = uintptr(unsafe.Pointer(h))
	c.live--
	s.liveBlocks.add(-1)
	s.liveBytes.add(-int64(c.size))
	if c.live == 0 || c.full {
		s.freeSlow(c)
	}
}

// pushRemote is the only method that other loops call. The stack is only ever
// pushed to and taken whole, so a header address that comes round again while
// a push is under way does no harm.
func (s *Slab) pushRemote(h *blockHeader) {
	for {
		head := s.remote.Load()
		h.next = head
		if s.remote.CompareAndSwap(head, uintptr(unsafe.Pointer(h))) {
			return
		}
	}
}

// takeRemote frees what other loops have given back since the last time.
func (s *Slab) takeRemote() {
	if s.remote.Load() == 0 {
		return
	}
	address := s.remote.Swap(0)
	for address != 0 {
		h := blockAt(address)
		address = h.next
		s.freeOwn(h)
	}
}
