package engine

import (
	"reflect"
	"sync"

	"ringmq/engine/core"
)

// simArena is a core.Arena of Go memory, which goes with its broker. It overwrites
// what is released and refuses to release twice. P stands for unsafe.Pointer, which
// only a few files may name: it is inferred.
type simArena[P comparable] struct {
	mu   sync.Mutex // logs are opened by several goroutines
	live map[P][]byte
}

func newSimArena[P comparable](_ func(P) *core.Message) *simArena[P] {
	return &simArena[P]{live: map[P][]byte{}}
}

// Alloc implements core.Arena.
func (a *simArena[P]) Alloc(n int) P {
	a.mu.Lock()
	defer a.mu.Unlock()
	block := make([]byte, n+8) // the end of an empty body must lie in the block too
	for i := range block {
		block[i] = 0xDB
	}
	p := any(reflect.ValueOf(&block[0]).UnsafePointer()).(P)
	a.live[p] = block
	return p
}

// Free implements core.Arena.
func (a *simArena[P]) Free(p P) {
	a.mu.Lock()
	defer a.mu.Unlock()
	block, ok := a.live[p]
	if !ok {
		panic("a block is freed twice, or was never allocated")
	}
	delete(a.live, p)
	for i := range block {
		block[i] = 0xDB
	}
}

func (a *simArena[P]) blocks() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.live)
}

// countedArena is an arena that tells how many blocks are in use.
type countedArena interface {
	core.Arena
	blocks() int
}
