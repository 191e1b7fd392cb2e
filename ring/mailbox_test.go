package ring

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

type letter struct {
	sequence uint64
	pad      [6]uint64
}

func TestMailboxCapacity(t *testing.T) {
	for _, c := range []struct{ ask, get int }{{0, 1}, {1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 128}} {
		m := NewMailbox[int](c.ask)
		if m.Free() != c.get {
			t.Errorf("NewMailbox(%d) has %d slots, want %d", c.ask, m.Free(), c.get)
		}
		for i := range c.get {
			if !m.Push(&i) {
				t.Errorf("NewMailbox(%d) refused item %d", c.ask, i)
			}
		}
		if n := 0; m.Push(&n) || m.Free() != 0 {
			t.Errorf("NewMailbox(%d) took more than %d", c.ask, c.get)
		}
	}
}

func TestMailboxStages(t *testing.T) {
	m := NewMailbox[int](4)
	one, two, got := 1, 2, 0
	if m.Flush() {
		t.Fatal("Flush of nothing reported something")
	}
	m.Push(&one)
	if m.Pop(&got) {
		t.Fatal("an item was seen before Flush")
	}
	if !m.Flush() || m.Flush() {
		t.Fatal("Flush must report the item once")
	}
	m.Push(&two)
	if !m.Pop(&got) || got != 1 || m.Pop(&got) {
		t.Fatalf("got %d", got)
	}
	for i := range 2 {
		if !m.Push(&i) {
			t.Fatal("refused with room left")
		}
	}
	if m.Push(&one) {
		t.Fatal("a popped slot was reused before Done")
	}
	m.Done()
	if m.Free() != 1 || !m.Push(&one) || m.Push(&one) {
		t.Fatal("Done must free exactly one slot")
	}
}

// A seeded walk against a slice.
func TestMailboxModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := NewMailbox[int](16)
	var staged, shown []int
	popped, next := 0, 0
	for step := range 100_000 {
		switch rng.IntN(6) {
		case 0, 1:
			full := len(staged)+len(shown)+popped == 16
			if got := m.Push(&next); got == full {
				t.Fatalf("step %d: Push = %v, full = %v", step, got, full)
			}
			if !full {
				staged = append(staged, next)
				next++
			}
		case 2:
			if m.Flush() != (len(staged) > 0) {
				t.Fatalf("step %d: Flush with %d staged", step, len(staged))
			}
			shown, staged = append(shown, staged...), staged[:0]
		case 3, 4:
			var v int
			if m.Pop(&v) != (len(shown) > 0) || len(shown) > 0 && v != shown[0] {
				t.Fatalf("step %d: Pop gave %d of %v", step, v, shown)
			}
			if len(shown) > 0 {
				shown, popped = shown[1:], popped+1
			}
		case 5:
			m.Done()
			popped = 0
		}
		if free := 16 - len(staged) - len(shown) - popped; m.Free() > free {
			t.Fatalf("step %d: Free = %d of %d", step, m.Free(), free)
		}
	}
}

// Two goroutines, batches of varying length, order and contents kept.
func TestMailboxTwoGoroutines(t *testing.T) {
	const items = 200_000
	m := NewMailbox[letter](256)
	result := make(chan uint64)
	go func() {
		var v letter
		want := uint64(0)
		for want < items {
			n := 0
			for n < 100 && m.Pop(&v) {
				if v.sequence != want || v.pad[5] != want*3 {
					result <- want
					return
				}
				want++
				n++
			}
			m.Done()
			if n == 0 {
				runtime.Gosched()
			}
		}
		result <- want
	}()
	for i := uint64(0); i < items; {
		n := m.Free()
		if n == 0 {
			m.Flush()
			select {
			case got := <-result:
				t.Fatalf("consumer stopped at item %d", got)
			default:
				runtime.Gosched()
			}
			continue
		}
		for n = min(n, 1+int(i%37)); n > 0 && i < items; n-- {
			v := letter{sequence: i}
			v.pad[5] = i * 3
			if !m.Push(&v) {
				t.Fatal("Push refused what Free had promised")
			}
			i++
		}
		m.Flush()
	}
	if got := <-result; got != items {
		t.Fatalf("damaged or out of order at item %d", got)
	}
}

// The words that the two cores write must not share a cache line.
func TestMailboxPadding(t *testing.T) {
	var m Mailbox[int]
	offsets := []uintptr{
		unsafe.Offsetof(m.mask), unsafe.Offsetof(m.pushed), unsafe.Offsetof(m.tail),
		unsafe.Offsetof(m.popped), unsafe.Offsetof(m.head), unsafe.Sizeof(m),
	}
	for i := 1; i < len(offsets); i++ {
		if offsets[i]-offsets[i-1] < 128 {
			t.Errorf("words %d and %d are %d bytes apart", i-1, i, offsets[i]-offsets[i-1])
		}
	}
}

func TestAllocsMailbox(t *testing.T) {
	m := NewMailbox[letter](8)
	var v letter
	if got := testing.AllocsPerRun(1000, func() {
		m.Push(&v)
		m.Flush()
		m.Pop(&v)
		m.Done()
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// One goroutine does both sides: the cost of the instructions alone.
func BenchmarkMailboxBatch16(b *testing.B) {
	m := NewMailbox[letter](256)
	var v letter
	for b.Loop() {
		for range 16 {
			m.Push(&v)
		}
		m.Flush()
		for m.Pop(&v) {
		}
		m.Done()
	}
}

// Two goroutines on two cores; the figure is per item.
func BenchmarkMailboxTwoGoroutines(b *testing.B) {
	m := NewMailbox[letter](1024)
	done := make(chan struct{})
	count := b.N
	go func() {
		var v letter
		for n := 0; n < count; {
			before := n
			for m.Pop(&v) {
				n++
			}
			m.Done()
			if n == before {
				runtime.Gosched()
			}
		}
		close(done)
	}()
	var v letter
	for i := 0; i < count; i++ {
		for !m.Push(&v) {
			m.Flush()
			runtime.Gosched()
		}
		if i&15 == 15 {
			m.Flush()
		}
	}
	m.Flush()
	<-done
}
