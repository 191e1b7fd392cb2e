package core

import (
	"reflect"
	"testing"
)

// poison fills memory that nobody may read: fresh blocks and released ones.
const poison = 0xDB

// heapArena is an Arena of Go memory that knows its live blocks and overwrites
// what is released. P stands for unsafe.Pointer, which only a few files may
// name: it is inferred.
type heapArena[P comparable] struct {
	tb     testing.TB
	live   map[P][]byte
	freed  [][]byte
	refuse bool // be a system without memory
}

func newHeapArena[P comparable](tb testing.TB, _ func(P) *Message) *heapArena[P] {
	return &heapArena[P]{tb: tb, live: map[P][]byte{}}
}

// Alloc implements Arena.
func (a *heapArena[P]) Alloc(n int) (p P) {
	if a.refuse {
		return p
	}
	block := make([]byte, n+8) // the end of an empty body must lie in the block too
	for i := range block {
		block[i] = poison
	}
	p = any(reflect.ValueOf(&block[0]).UnsafePointer()).(P)
	a.live[p] = block
	return p
}

// Free implements Arena.
func (a *heapArena[P]) Free(p P) {
	block, ok := a.live[p]
	if !ok {
		a.tb.Fatal("a block is freed twice, or was never allocated")
	}
	delete(a.live, p)
	for i := range block {
		block[i] = poison
	}
	a.freed = append(a.freed, block)
}

// check fails unless want blocks are live and nobody wrote to a freed one.
func (a *heapArena[P]) check(want int) {
	a.tb.Helper()
	if len(a.live) != want {
		a.tb.Errorf("%d live blocks, want %d", len(a.live), want)
	}
	for _, block := range a.freed {
		for _, b := range block {
			if b != poison {
				a.tb.Fatal("a block was written to after its release")
			}
		}
	}
}
