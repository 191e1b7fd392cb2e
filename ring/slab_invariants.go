//go:build invariants

package ring

import "unsafe"

// slabChecks is true: released blocks are overwritten, and a block that was
// written to after its release ends the process when it is handed out again.
const slabChecks = true

// slabPoisonByte is an odd value that no length, flag or text is likely to be.
const slabPoisonByte = 0xDB

// slabPoisonMax bounds the bytes poisoned per block, so that freeing a block of
// many megabytes does not touch pages that its message never did.
const slabPoisonMax = 64 << 10

// slabPoison overwrites a block on its way to the free list, on whichever loop
// frees it: a view that outlives its message reads rubbish at once, not some day.
func slabPoison(h *blockHeader) {
	p := slabPoisoned(h, uintptr(slabClassSize[h.class]))
	for i := range p {
		p[i] = slabPoisonByte
	}
}

// slabCheckPoison ends the process if a free block was written to.
func slabCheckPoison(h *blockHeader, size uintptr) {
	for _, b := range slabPoisoned(h, size) {
		if b != slabPoisonByte {
			panic("ring: slab block was written to after its release")
		}
	}
}

// slabPoisoned is the part of a block's payload that carries the poison.
func slabPoisoned(h *blockHeader, size uintptr) []byte {
	return unsafe.Slice((*byte)(h.payload()), min(size-blockHeaderSize, slabPoisonMax))
}
