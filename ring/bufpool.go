//ringmq:hot

package ring

import "unsafe"

const (
	// outChunkSize is the unit of output memory; also the largest contiguous reservation.
	outChunkSize = 32 << 10
	// smallWindow is what an idle connection's first output gets of the loop's shared chunk.
	smallWindow = 1 << 10
	// outArenaChunks chunks are mapped at a time (2 MiB).
	outArenaChunks = 64
	// outChunksWarm free chunks per loop keep their pages (16 MiB); the rest give them back.
	outChunksWarm = 512
	// segmentBlocksCached free blocks per loop stay (4 MiB); the rest goes to the garbage collector.
	segmentBlocksCached = 4096
)

// outChunk is a piece of off-heap output memory. It counts its users: one per segment, one per window
// on it, one if it is the loop's shared chunk.
type outChunk struct {
	base unsafe.Pointer
	refs int32
	next *outChunk
}

// chunkPool is the output memory of one loop. The chunk freed last is used first: it is the one in
// cache. Addresses are kept for ever, pages only for outChunksWarm chunks.
type chunkPool struct {
	warm      *outChunk
	cold      *outChunk // without pages
	warmCount int
	live      ownerCounter // chunks with users

	shared    *outChunk // small windows are cut from it
	sharedPos int

	blocks     *segmentBlock
	blockCount int

	sinkMem unsafe.Pointer // where closing connections write
}

// take returns a chunk with one user.
func (p *chunkPool) take() *outChunk {
	c := p.warm
	switch {
	case c != nil:
		p.warm = c.next
		p.warmCount--
	case p.cold != nil:
		c = p.cold
		p.cold = c.next
	default:
		c = p.grow()
	}
	c.next = nil
	c.refs = 1
	p.live.add(1)
	return c
}

// unref takes a user off a chunk.
func (p *chunkPool) unref(c *outChunk) {
	c.refs--
	if c.refs > 1 {
		return
	}
	if c.refs == 1 {
		if c == p.shared {
			p.sharedPos = 0 // nobody else reads it: start over on the same, cached, bytes
		}
		return
	}
	must(c.refs == 0, "an output chunk has fewer than no users")
	p.live.add(-1)
	if p.warmCount >= outChunksWarm && dropPages(c.base, outChunkSize) {
		c.next = p.cold
		p.cold = c
		return
	}
	c.next = p.warm
	p.warm = c
	p.warmCount++
}

// slice cuts a small window from the shared chunk and counts its user.
func (p *chunkPool) slice() (c *outChunk, pos int) {
	if p.shared == nil || p.sharedPos+smallWindow > outChunkSize {
		if p.shared != nil {
			old := p.shared
			p.shared = nil
			p.unref(old)
		}
		p.shared, p.sharedPos = p.take(), 0
	}
	pos = p.sharedPos
	p.sharedPos += smallWindow
	p.shared.refs++
	return p.shared, pos
}

// grow maps an arena and returns one of its chunks.
func (p *chunkPool) grow() *outChunk {
	base := mapPages(outChunkSize * outArenaChunks)
	must(base != nil, "the system refuses memory for output")
	chunks := make([]outChunk, outArenaChunks)
	for i := range chunks {
		chunks[i].base = unsafe.Add(base, i*outChunkSize)
		if i > 0 {
			chunks[i].next = p.cold
			p.cold = &chunks[i]
		}
	}
	return &chunks[0]
}

// sink returns outChunkSize bytes that nobody reads.
func (p *chunkPool) sink() unsafe.Pointer {
	if p.sinkMem == nil {
		p.sinkMem = p.take().base
		p.live.add(-1)
	}
	return p.sinkMem
}

// block returns an empty segment block.
func (p *chunkPool) block() *segmentBlock {
	b := p.blocks
	if b == nil {
		return new(segmentBlock)
	}
	p.blocks = b.next
	p.blockCount--
	b.next = nil
	return b
}

// unblock takes a block back; its segments are zero by now.
func (p *chunkPool) unblock(b *segmentBlock) {
	if p.blockCount < segmentBlocksCached {
		b.next = p.blocks
		p.blocks = b
		p.blockCount++
	}
}

// close unshares the shared chunk, so that the live count shows leaks only.
func (p *chunkPool) close() {
	if p.shared != nil {
		p.unref(p.shared)
		p.shared = nil
	}
}
