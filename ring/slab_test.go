package ring

import (
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"
)

func blockBytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

func fillBlock(p unsafe.Pointer, n int, tag byte) {
	for i, b := 0, blockBytes(p, n); i < n; i++ {
		b[i] = tag + byte(i)
	}
}

func checkBlock(t *testing.T, p unsafe.Pointer, n int, tag byte) {
	t.Helper()
	for i, b := range blockBytes(p, n) {
		if b != tag+byte(i) {
			t.Fatalf("block of %d bytes damaged at %d: %#x, want %#x", n, i, b, tag+byte(i))
		}
	}
}

func TestSlabClassesAreTight(t *testing.T) {
	if got := slabClassSize[slabClassCount-1]; got != 256<<10 {
		t.Fatalf("largest class is %d bytes", got)
	}
	if got := slabClassSize[len(slabClassSize)-1]; got != 1<<40 {
		t.Fatalf("largest mapping is %d bytes", got)
	}
	for class, size := range slabClassSize {
		if class == 0 {
			continue
		}
		below := slabClassSize[class-1]
		if got := slabClassOf(uint(size)); got != uint(class) {
			t.Errorf("class of %d is %d, want %d", size, got, class)
		}
		if got := slabClassOf(uint(below + 1)); got != uint(class) {
			t.Errorf("class of %d is %d, want %d", below+1, got, class)
		}
		if size%16 != 0 || size > below+below/4 {
			t.Errorf("class %d: %d bytes after %d", class, size, below)
		}
		if class >= slabClassCount && size%4096 != 0 {
			t.Errorf("mapping of %d bytes is not whole pages", size)
		}
	}
}

func TestSlabBounds(t *testing.T) {
	s := NewSlabs(1)[0]
	s.Free(nil)
	for _, n := range []int{-1, slabPayloadMax + 1, 1 << 62} {
		if p := s.Alloc(n); p != nil {
			t.Errorf("Alloc(%d) = %p", n, p)
		}
	}
	p := s.Alloc(0)
	if p == nil {
		t.Fatal("Alloc(0) = nil")
	}
	s.Free(p)
	if got := s.Stats(); got.LiveBlocks != 0 || got.LiveBytes != 0 {
		t.Fatalf("stats %+v", got)
	}
}

// One slab against a map of what was handed out: contents, alignment, figures.
func TestSlabModel(t *testing.T) {
	type block struct {
		p   unsafe.Pointer
		n   int
		tag byte
	}
	rng := rand.New(rand.NewPCG(1, 2))
	s := NewSlabs(1)[0]
	var live []block
	bytes := int64(0)
	for step := range 60_000 {
		if len(live) > 0 && (rng.IntN(100) < 49 || len(live) > 2000) {
			i := rng.IntN(len(live))
			b := live[i]
			checkBlock(t, b.p, min(b.n, 512), b.tag)
			bytes -= int64(slabClassSize[(*blockHeader)(unsafe.Add(b.p, -blockHeaderSize)).class])
			s.Free(b.p)
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		n := rng.IntN(1 << (1 + rng.IntN(13)))
		if rng.IntN(400) == 0 {
			n = rng.IntN(1 << 20)
		}
		p := s.Alloc(n)
		if p == nil || uintptr(p)%16 != 0 {
			t.Fatalf("step %d: Alloc(%d) = %p", step, n, p)
		}
		fillBlock(p, min(n, 512), byte(step))
		live = append(live, block{p, n, byte(step)})
		size := int64(slabClassSize[(*blockHeader)(unsafe.Add(p, -blockHeaderSize)).class])
		if size < int64(n+blockHeaderSize) {
			t.Fatalf("block of %d bytes for %d", size, n)
		}
		bytes += size
		if step%4096 == 0 {
			s.Collect()
		}
		if got := s.Stats(); got.LiveBlocks != int64(len(live)) || got.LiveBytes != bytes {
			t.Fatalf("step %d: stats %+v, want %d blocks of %d bytes", step, got, len(live), bytes)
		}
	}
	for _, b := range live {
		checkBlock(t, b.p, min(b.n, 512), b.tag)
		s.Free(b.p)
	}
	s.Collect()
	want := int64(slabReserveChunks*slabChunkSize) + s.large.cachedBytes
	if got := s.Stats(); got.LiveBlocks != 0 || got.LiveBytes != 0 || got.MappedBytes > want {
		t.Fatalf("stats at the end %+v, mapped at most %d", got, want)
	}
}

// Pages of wholly free chunks go back; the addresses stay and serve again.
func TestSlabGivesPagesBack(t *testing.T) {
	const count, size = 100_000, 1000
	s := NewSlabs(1)[0]
	blocks := make([]unsafe.Pointer, count)
	var reserved int64
	for round := range 3 {
		for i := range blocks {
			blocks[i] = s.Alloc(size)
			blockBytes(blocks[i], size)[0] = byte(i)
		}
		full := s.Stats()
		if full.MappedBytes < count*size {
			t.Fatalf("%d blocks within %d bytes", count, full.MappedBytes)
		}
		if round > 0 && full.ReservedBytes != reserved {
			t.Fatalf("round %d took new addresses: %d, before %d", round, full.ReservedBytes, reserved)
		}
		reserved = full.ReservedBytes
		for _, p := range blocks {
			s.Free(p)
		}
		s.Collect()
		if got := s.Stats().MappedBytes; got > slabReserveChunks*slabChunkSize {
			t.Fatalf("%d bytes still mapped", got)
		}
	}
}

func TestSlabLargeBlocksComeBack(t *testing.T) {
	const count, size = 20, 3 << 20
	s := NewSlabs(1)[0]
	seen := make(map[unsafe.Pointer]bool)
	var blocks []unsafe.Pointer
	for range count {
		p := s.Alloc(size)
		fillBlock(p, 4096, 7)
		checkBlock(t, p, 4096, 7)
		seen[p] = true
		blocks = append(blocks, p)
	}
	for _, p := range blocks {
		s.Free(p)
	}
	got := s.Stats()
	if got.LiveBlocks != 0 || got.MappedBytes > slabLargeCacheMax || got.ReservedBytes < count*size {
		t.Fatalf("stats %+v", got)
	}
	for range count {
		if p := s.Alloc(size + 100_000); !seen[p] {
			t.Fatalf("%p is a new mapping", p)
		}
	}
}

func TestSlabDoubleFree(t *testing.T) {
	s := NewSlabs(2)
	for _, n := range []int{10, 5000, 1 << 20} {
		p := s[0].Alloc(n)
		q := s[0].Alloc(n)
		s[0].Free(p)
		mustPanic(t, func() { s[0].Free(p) })
		s[1].Free(q)
		mustPanic(t, func() { s[1].Free(q) })
	}
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	f()
}

// Blocks that travel to other loops and are freed there come home.
func TestSlabRemoteFree(t *testing.T) {
	const loops, rounds, batch = 3, 200, 64
	slabs := NewSlabs(loops)
	boxes := make([]chan []unsafe.Pointer, loops)
	for i := range boxes {
		boxes[i] = make(chan []unsafe.Pointer, loops*rounds)
	}
	var wg sync.WaitGroup
	for i := range loops {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s := slabs[i]
			for round := range rounds {
				blocks := make([]unsafe.Pointer, batch)
				for j := range blocks {
					blocks[j] = s.Alloc(100 + j*40)
					fillBlock(blocks[j], 100, byte(i*rounds+round+j))
				}
				boxes[(i+1+round%(loops-1))%loops] <- blocks
				for len(boxes[i]) > 0 {
					for _, p := range <-boxes[i] {
						tag := *(*byte)(p)
						for k, b := range blockBytes(p, 100) {
							if b != tag+byte(k) {
								t.Errorf("block damaged")
								return
							}
						}
						s.Free(p)
					}
				}
			}
		}()
	}
	wg.Wait()
	for i, box := range boxes {
		close(box)
		for blocks := range box {
			for _, p := range blocks {
				slabs[i].Free(p)
			}
		}
	}
	for i, s := range slabs {
		s.Collect()
		if got := s.Stats(); got.LiveBlocks != 0 || got.LiveBytes != 0 {
			t.Errorf("slab %d: %+v", i, got)
		}
		if got := s.Stats().ReservedBytes; got > 64*slabChunkSize {
			t.Errorf("slab %d grew to %d bytes", i, got)
		}
	}
}

func TestAllocsSlab(t *testing.T) {
	slabs := NewSlabs(2)
	for _, n := range []int{48, 300, 70_000, 1 << 20} {
		got := testing.AllocsPerRun(200, func() {
			p := slabs[0].Alloc(n)
			q := slabs[0].Alloc(n)
			slabs[1].Free(p)
			slabs[0].Free(q)
			slabs[0].Collect()
		})
		if got != 0 {
			t.Errorf("%d bytes: %v allocations", n, got)
		}
	}
}

func BenchmarkSlabPair(b *testing.B) {
	s := NewSlabs(1)[0]
	for b.Loop() {
		s.Free(s.Alloc(200))
	}
}

// Fill and drain in order, as a queue does.
func BenchmarkSlabFIFO(b *testing.B) {
	s := NewSlabs(1)[0]
	var window [4096]unsafe.Pointer
	for i := range window {
		window[i] = s.Alloc(200)
	}
	i := 0
	for b.Loop() {
		s.Free(window[i&4095])
		window[i&4095] = s.Alloc(200)
		i++
	}
}

func BenchmarkSlabRemote(b *testing.B) {
	slabs := NewSlabs(2)
	for b.Loop() {
		slabs[1].Free(slabs[0].Alloc(200))
	}
}
