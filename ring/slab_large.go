package ring

import "unsafe"

// slabLarge keeps the free blocks above 256 KiB. Each is a mapping of its own.
// Sizes go in the same four steps per power of two as the small ones, so that
// a range freed by one message fits the next; the bytes by which a range is
// longer than its message are never touched and cost no memory.
type slabLarge struct {
	// dirty blocks still have their pages, clean ones have given them back.
	dirty, clean [slabLargeCount][]unsafe.Pointer
	// cachedBytes is the size of all dirty blocks, at most slabLargeCacheMax.
	cachedBytes int64
}

// allocLarge serves classes that are mappings of their own.
func (s *Slab) allocLarge(class uint) unsafe.Pointer {
	s.takeRemote()
	size := int64(slabClassSize[class])
	i := class - slabClassCount
	var base unsafe.Pointer
	if n := len(s.large.dirty[i]); n > 0 {
		base, s.large.dirty[i] = s.large.dirty[i][n-1], s.large.dirty[i][:n-1]
		s.large.cachedBytes -= size
	} else if n := len(s.large.clean[i]); n > 0 {
		base, s.large.clean[i] = s.large.clean[i][n-1], s.large.clean[i][:n-1]
		s.mappedBytes.add(size)
	} else {
		base = mapPages(uintptr(size))
		if base == nil {
			return nil
		}
		s.mappedBytes.add(size)
		s.reservedBytes.add(size)
	}
	h := (*blockHeader)(base)
	*h = blockHeader{owner: s.index, class: uint16(class), next: blockLive}
	s.liveBlocks.add(1)
	s.liveBytes.add(size)
	return h.payload()
}

// freeLarge keeps the block's pages while the cache has room for them, else
// gives them back. The address range stays for the next block of the class.
func (s *Slab) freeLarge(h *blockHeader) {
	i := h.class - slabClassCount
	size := int64(slabClassSize[h.class])
	base := unsafe.Pointer(h)
	s.liveBlocks.add(-1)
	s.liveBytes.add(-size)
	// Marks the block as free for as long as the page stays: see Free.
	h.next = 0
	if s.large.cachedBytes+size <= slabLargeCacheMax || !dropPages(base, uintptr(size)) {
		s.large.cachedBytes += size
		s.large.dirty[i] = append(s.large.dirty[i], base)
		return
	}
	s.mappedBytes.add(-size)
	s.large.clean[i] = append(s.large.clean[i], base)
}
