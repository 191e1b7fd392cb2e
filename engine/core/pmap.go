//ringmq:hot

package core

import (
	"iter"
	"math/bits"
	"strings"
)

// The trie eats the 64-bit hash five bits at a time, so thirteen levels use it
// up; what still shares a place after that shares the whole hash and lies in
// one sorted leaf.
const (
	pmapBits     = 5
	pmapMask     = 1<<pmapBits - 1
	pmapHashBits = 64
	pmapDepthMax = (pmapHashBits+pmapBits-1)/pmapBits + 1
)

// Two odd constants with about half their bits set: the multipliers of pmapHash.
const (
	pmapMulA uint64 = 0xa0761d6478bd642f
	pmapMulB uint64 = 0xe7037ed1a0b428db
)

// PMap is an immutable map from string to V: a hash array mapped trie in which
// Set and Delete copy the path from the root to one node (at most thirteen nodes
// of at most 32 slots) and share the rest with the version they started from.
// The zero value is the empty map. Any number of loops may read any version
// without locks; a version, once published, never changes.
//
// Iteration order depends on the keys alone, never on the order of insertion or
// on the process, so that a seeded simulation replays exactly.
type PMap[V any] struct {
	root  *pmapNode[V]
	count int
}

type pmapEntry[V any] struct {
	key   string
	value V
}

// pmapNode holds entries and subtrees in two dense slices; a bit in entryBits or
// childBits says which of the 32 slots is taken by what. Below the last level
// both bit maps are zero and entries is sorted by key: a client that makes keys
// collide on purpose then costs a binary search, not a scan.
type pmapNode[V any] struct {
	entryBits uint32
	childBits uint32
	entries   []pmapEntry[V]
	children  []*pmapNode[V]
}

// Len returns the number of keys.
func (m PMap[V]) Len() int { return m.count }

// Get returns the value stored under key. It does not allocate.
func (m PMap[V]) Get(key string) (V, bool) { return pmapGet(m.root, key) }

// GetBytes is Get for a key that lies in a receive buffer: the bytes are only
// read, not kept, and nothing is allocated.
func (m PMap[V]) GetBytes(key []byte) (V, bool) { return pmapGet(m.root, key) }

// Set returns a version in which key holds v. The receiver stays as it was.
func (m PMap[V]) Set(key string, v V) PMap[V] {
	root, added := m.root.set(0, pmapHash(key), key, v)
	if added {
		m.count++
	}
	m.root = root
	return m
}

// Delete returns a version without key, or the receiver when key is absent.
func (m PMap[V]) Delete(key string) PMap[V] {
	if m.root == nil {
		return m
	}
	root, removed := m.root.remove(0, pmapHash(key), key)
	if !removed {
		return m
	}
	if len(root.entries)+len(root.children) == 0 {
		root = nil
	}
	return PMap[V]{root: root, count: m.count - 1}
}

// All ranges over the map in its fixed order. On the message path use Iter, which
// needs no callback.
func (m PMap[V]) All() iter.Seq2[string, V] { return m.each }

func (m PMap[V]) each(yield func(string, V) bool) {
	it := m.Iter()
	for it.Next() {
		if !yield(it.Key(), it.Value()) {
			return
		}
	}
}

func pmapGet[V any, K string | []byte](n *pmapNode[V], key K) (v V, ok bool) {
	if n == nil {
		return v, false
	}
	hash := pmapHash(key)
	for shift := uint(0); shift < pmapHashBits; shift += pmapBits {
		bit := uint32(1) << (hash >> shift & pmapMask)
		if n.childBits&bit != 0 {
			n = n.children[bits.OnesCount32(n.childBits&(bit-1))]
			continue
		}
		if n.entryBits&bit == 0 {
			return v, false
		}
		e := &n.entries[bits.OnesCount32(n.entryBits&(bit-1))]
		if e.key != string(key) {
			return v, false
		}
		return e.value, true
	}
	low, high := 0, len(n.entries)
	for low < high {
		mid := int(uint(low+high) >> 1)
		switch e := &n.entries[mid]; {
		case e.key == string(key):
			return e.value, true
		case e.key < string(key):
			low = mid + 1
		default:
			high = mid
		}
	}
	return v, false
}

// pmapHash mixes eight bytes per multiplication. It is seedless on purpose, see
// PMap about order; pmapNode says what bounds the harm of crafted keys.
func pmapHash[K string | []byte](key K) uint64 {
	h := uint64(len(key)) ^ pmapMulB
	i := 0
	for ; len(key)-i >= 8; i += 8 {
		w := uint64(key[i]) | uint64(key[i+1])<<8 | uint64(key[i+2])<<16 | uint64(key[i+3])<<24 |
			uint64(key[i+4])<<32 | uint64(key[i+5])<<40 | uint64(key[i+6])<<48 | uint64(key[i+7])<<56
		high, low := bits.Mul64(w^pmapMulA, h)
		h = high ^ low
	}
	var tail uint64
	if len(key)-i >= 4 {
		tail = uint64(key[i]) | uint64(key[i+1])<<8 | uint64(key[i+2])<<16 | uint64(key[i+3])<<24
		i += 4
	}
	for ; i < len(key); i++ {
		tail = tail<<8 | uint64(key[i])
	}
	high, low := bits.Mul64(tail^pmapMulA, h)
	high, low = bits.Mul64(high^low^pmapMulB, pmapMulA)
	return high ^ low
}

// set returns a copy of n (which may be nil) with key at v and whether the key is new.
func (n *pmapNode[V]) set(shift uint, hash uint64, key string, v V) (*pmapNode[V], bool) {
	if n == nil {
		n = &pmapNode[V]{}
	}
	if shift >= pmapHashBits {
		return n.setCollided(key, v)
	}
	bit := uint32(1) << (hash >> shift & pmapMask)
	at := bits.OnesCount32(n.entryBits & (bit - 1))
	childAt := bits.OnesCount32(n.childBits & (bit - 1))
	switch {
	case n.childBits&bit != 0:
		child, added := n.children[childAt].set(shift+pmapBits, hash, key, v)
		next := *n
		next.children = append([]*pmapNode[V](nil), n.children...)
		next.children[childAt] = child
		return &next, added
	case n.entryBits&bit == 0:
		next := *n
		next.entryBits |= bit
		next.entries = pmapInsert(n.entries, at, pmapEntry[V]{key, v})
		return &next, true
	case n.entries[at].key == key:
		next := *n
		next.entries = append([]pmapEntry[V](nil), n.entries...)
		next.entries[at].value = v
		return &next, false
	default:
		// Two keys want one slot: both move a level down.
		old := n.entries[at]
		child, _ := (*pmapNode[V])(nil).set(shift+pmapBits, pmapHash(old.key), old.key, old.value)
		child, _ = child.set(shift+pmapBits, hash, key, v)
		next := *n
		next.entryBits &^= bit
		next.childBits |= bit
		next.entries = pmapCut(n.entries, at)
		next.children = pmapInsert(n.children, childAt, child)
		return &next, true
	}
}

func (n *pmapNode[V]) setCollided(key string, v V) (*pmapNode[V], bool) {
	at, found := n.findCollided(key)
	if !found {
		return &pmapNode[V]{entries: pmapInsert(n.entries, at, pmapEntry[V]{key, v})}, true
	}
	entries := append([]pmapEntry[V](nil), n.entries...)
	entries[at].value = v
	return &pmapNode[V]{entries: entries}, false
}

func (n *pmapNode[V]) findCollided(key string) (int, bool) {
	low, high := 0, len(n.entries)
	for low < high {
		mid := int(uint(low+high) >> 1)
		order := strings.Compare(n.entries[mid].key, key)
		if order == 0 {
			return mid, true
		}
		if order < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, false
}

// remove returns a copy of n without key. The copy may be empty; a child that is
// left with one entry and no subtree is folded into its parent, so that equal
// contents always have equal shape.
func (n *pmapNode[V]) remove(shift uint, hash uint64, key string) (*pmapNode[V], bool) {
	if shift >= pmapHashBits {
		at, found := n.findCollided(key)
		if !found {
			return n, false
		}
		return &pmapNode[V]{entries: pmapCut(n.entries, at)}, true
	}
	bit := uint32(1) << (hash >> shift & pmapMask)
	at := bits.OnesCount32(n.entryBits & (bit - 1))
	if n.entryBits&bit != 0 {
		if n.entries[at].key != key {
			return n, false
		}
		next := *n
		next.entryBits &^= bit
		next.entries = pmapCut(n.entries, at)
		return &next, true
	}
	if n.childBits&bit == 0 {
		return n, false
	}
	childAt := bits.OnesCount32(n.childBits & (bit - 1))
	child, removed := n.children[childAt].remove(shift+pmapBits, hash, key)
	if !removed {
		return n, false
	}
	next := *n
	if len(child.children) == 0 && len(child.entries) == 1 {
		next.childBits &^= bit
		next.entryBits |= bit
		next.children = pmapCut(n.children, childAt)
		next.entries = pmapInsert(n.entries, at, child.entries[0])
		return &next, true
	}
	next.children = append([]*pmapNode[V](nil), n.children...)
	next.children[childAt] = child
	return &next, true
}

// pmapInsert copies s with e put at index at.
func pmapInsert[E any](s []E, at int, e E) []E {
	out := make([]E, len(s)+1)
	copy(out, s[:at])
	out[at] = e
	copy(out[at+1:], s[at:])
	return out
}

// pmapCut copies s without index at; nil when nothing is left.
func pmapCut[E any](s []E, at int) []E {
	if len(s) == 1 {
		return nil
	}
	out := make([]E, len(s)-1)
	copy(out, s[:at])
	copy(out[at:], s[at+1:])
	return out
}
