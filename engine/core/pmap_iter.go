//ringmq:hot

package core

// PMapIter walks one version of a PMap without allocating. It starts before the
// first key; call Next, then Key and Value. It belongs to one goroutine.
type PMapIter[V any] struct {
	stack [pmapDepthMax]pmapFrame[V]
	depth int
	entry *pmapEntry[V]
}

// pmapFrame is a node on the way down and the index of its next entry or, past
// those, of its next child.
type pmapFrame[V any] struct {
	node  *pmapNode[V]
	index int
}

// Iter returns an iterator over m in the order of All.
func (m PMap[V]) Iter() PMapIter[V] {
	var it PMapIter[V]
	if m.root != nil {
		it.stack[0].node = m.root
		it.depth = 1
	}
	return it
}

// Next moves to the next key and reports whether there is one.
func (it *PMapIter[V]) Next() bool {
	for it.depth > 0 {
		top := &it.stack[it.depth-1]
		index := top.index
		top.index++
		if index < len(top.node.entries) {
			it.entry = &top.node.entries[index]
			return true
		}
		index -= len(top.node.entries)
		if index < len(top.node.children) {
			it.stack[it.depth] = pmapFrame[V]{node: top.node.children[index]}
			it.depth++
			continue
		}
		it.depth--
	}
	return false
}

// Key returns the current key. REQUIRES: the last Next returned true.
func (it *PMapIter[V]) Key() string { return it.entry.key }

// Value returns the current value. REQUIRES: the last Next returned true.
func (it *PMapIter[V]) Value() V { return it.entry.value }
