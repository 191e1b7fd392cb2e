//ringmq:hot

package ring

import "sync/atomic"

// cacheLinePad keeps words written by different cores on different lines. Two
// lines, because the hardware fetches them in pairs.
type cacheLinePad [128]byte

// Mailbox is a bounded queue from one loop to one other: a ring of a power of
// two slots with one producer and one consumer, no locks and no allocation.
//
// Both sides work on private positions and publish them once per batch, so a
// batch costs each side one write that the other core has to fetch, however
// many items it has:
//
//	producer: Push, Push, Push, Flush, then wake the consumer's loop
//	consumer: Pop until false, Done
//
// A full mailbox is back-pressure: Push refuses, and the producer keeps the
// item and stops reading what makes more of them. It never waits.
type Mailbox[T any] struct {
	// slots and mask never change; both sides read them.
	slots []T
	mask  uint64

	_ cacheLinePad
	// pushed counts the items put in, headSeen those known to be given back.
	// Producer only.
	pushed, headSeen uint64

	_ cacheLinePad
	// tail is what of pushed the consumer may see. The producer writes it.
	tail atomic.Uint64

	_ cacheLinePad
	// popped counts the items taken out, tailSeen those known to be there.
	// Consumer only.
	popped, tailSeen uint64

	_ cacheLinePad
	// head is what of popped the producer may overwrite. The consumer writes it.
	head atomic.Uint64

	_ cacheLinePad
}

// NewMailbox makes a mailbox of at least capacity slots, rounded up to a power
// of two. A popped slot keeps its copy of the item until it is overwritten, so
// Go pointers in T live that much longer.
func NewMailbox[T any](capacity int) *Mailbox[T] {
	size := 1
	for size < capacity {
		size <<= 1
	}
	return &Mailbox[T]{slots: make([]T, size), mask: uint64(size - 1)}
}

// Push copies *v into the ring, where the consumer sees it after the next
// Flush. It returns false, and takes nothing, when there is no free slot.
// Producer only.
func (m *Mailbox[T]) Push(v *T) bool {
	if m.pushed-m.headSeen > m.mask {
		m.headSeen = m.head.Load()
		if m.pushed-m.headSeen > m.mask {
			return false
		}
	}
	m.slots[m.pushed&m.mask] = *v
	m.pushed++
	return true
}

// Flush shows the consumer all that was pushed since the last Flush and
// reports whether there was anything. The caller then wakes the consumer's
// loop. Producer only.
func (m *Mailbox[T]) Flush() bool {
	if m.tail.Load() == m.pushed {
		return false
	}
	m.tail.Store(m.pushed)
	return true
}

// Pop copies the oldest item into *v; false when none is published. The slot
// is free for the producer only after Done. Consumer only.
func (m *Mailbox[T]) Pop(v *T) bool {
	if m.popped == m.tailSeen {
		m.tailSeen = m.tail.Load()
		if m.popped == m.tailSeen {
			return false
		}
	}
	*v = m.slots[m.popped&m.mask]
	m.popped++
	return true
}

// Done gives the popped slots back to the producer. Once per batch is enough.
// Consumer only.
func (m *Mailbox[T]) Done() {
	if m.head.Load() != m.popped {
		m.head.Store(m.popped)
	}
}

// Free returns how many items Push would take at least. It asks for the
// consumer's position only when more than half of the slots seem taken, so as
// not to fetch the consumer's cache line for every item. Producer only.
func (m *Mailbox[T]) Free() int {
	used := m.pushed - m.headSeen
	if used > m.mask>>1 {
		m.headSeen = m.head.Load()
		used = m.pushed - m.headSeen
	}
	return int(m.mask + 1 - used)
}
