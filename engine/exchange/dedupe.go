//ringmq:hot

package exchange

import (
	"hash/maphash"
	"sync"
)

// linearBudget is how many comparisons one Match spends on looking for
// duplicates in out before it builds a hash table of it: about what the table
// costs for the few destinations that nearly every message has.
const linearBudget = 256

// destSeed keys the hashes of destinations. They decide places in tables only,
// never an order that anybody can see.
var destSeed = maphash.MakeSeed()

func hashDest(d Dest) uint64 { return maphash.Comparable(destSeed, d) }

// deduper finds out whether out holds a destination already. The zero value is
// ready; release returns what it borrowed.
type deduper struct {
	compared int
	indexed  int // out[:indexed] is in the table
	table    *seenTable
}

// seen reports whether out holds dest.
func (d *deduper) seen(out []Dest, dest Dest) bool {
	if d.table == nil {
		d.compared += len(out)
		if d.compared <= linearBudget {
			for _, o := range out {
				if o == dest {
					return true
				}
			}
			return false
		}
		d.table = borrowTable()
	}
	for ; d.indexed < len(out); d.indexed++ {
		d.table.insert(hashDest(out[d.indexed]), uint32(d.indexed))
	}
	return d.table.holds(hashDest(dest), out, dest)
}

func (d *deduper) release() {
	if d.table != nil {
		returnTable(d.table)
		d.table = nil
	}
}

// tables holds tables between matches. A pool, because Match has no owner loop
// whose scratch space it could use, and a table per matcher version would be
// shared by all loops.
var tables sync.Pool

func borrowTable() *seenTable {
	t, _ := tables.Get().(*seenTable)
	if t == nil {
		t = &seenTable{slots: make([]seenSlot, 64)}
	}
	t.count = 0
	t.generation++
	if t.generation == 0 {
		// The counter went round: slots of 2^32 matches ago must not look new.
		clear(t.slots)
		t.generation = 1
	}
	return t
}

func returnTable(t *seenTable) { tables.Put(t) }

// seenTable is an open-addressing multimap from hash to a number. Slots of
// other generations count as empty, so that starting over costs nothing, and
// it holds no pointer, so that a pooled table keeps no deleted queue alive.
type seenTable struct {
	slots      []seenSlot // a power of two
	count      int
	generation uint32
}

type seenSlot struct {
	hash       uint64
	value      uint32
	generation uint32
}

func (t *seenTable) insert(hash uint64, value uint32) {
	if 2*(t.count+1) > len(t.slots) {
		t.grow()
	}
	t.count++
	t.place(seenSlot{hash, value, t.generation})
}

func (t *seenTable) place(s seenSlot) {
	mask := uint64(len(t.slots) - 1)
	at := s.hash & mask
	for t.slots[at].generation == t.generation {
		at = (at + 1) & mask
	}
	t.slots[at] = s
}

func (t *seenTable) grow() {
	old := t.slots
	t.slots = make([]seenSlot, 2*len(old))
	for _, s := range old {
		if s.generation == t.generation {
			t.place(s)
		}
	}
}

// holds reports whether dest is among the indexed destinations of out.
func (t *seenTable) holds(hash uint64, out []Dest, dest Dest) bool {
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; t.slots[at].generation == t.generation; at = (at + 1) & mask {
		if s := &t.slots[at]; s.hash == hash && out[s.value] == dest {
			return true
		}
	}
	return false
}

// insertNew inserts a hash that stands for itself, without a number, and reports
// whether it was not there yet.
func (t *seenTable) insertNew(hash uint64) bool {
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; t.slots[at].generation == t.generation; at = (at + 1) & mask {
		if t.slots[at].hash == hash {
			return false
		}
	}
	t.insert(hash, 0)
	return true
}
