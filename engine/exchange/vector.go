//ringmq:hot

package exchange

const (
	vectorBits  = 5
	vectorWidth = 1 << vectorBits
)

// vector is an immutable sequence of destinations: a tree with up to 32
// branches per node, in which a change copies one node per level.
type vector struct {
	root   *vectorNode
	shift  uint // bits of an index that the levels below the root take
	length int
}

// vectorNode is a leaf (dests) or has children. Both grow up to vectorWidth.
type vectorNode struct {
	children []*vectorNode
	dests    []Dest
}

// push returns a vector with dest behind the last place.
func (v vector) push(dest Dest) vector {
	if v.length == vectorWidth<<v.shift {
		v.root = &vectorNode{children: []*vectorNode{v.root}}
		v.shift += vectorBits
	}
	v.length++
	return v.set(v.length-1, dest)
}

// set returns a vector with dest at place. REQUIRES: place < length.
func (v vector) set(place int, dest Dest) vector {
	v.root = v.root.set(v.shift, place, dest)
	return v
}

func (n *vectorNode) set(shift uint, place int, dest Dest) *vectorNode {
	if n == nil {
		n = &vectorNode{}
	}
	at := place >> shift & (vectorWidth - 1)
	if shift == 0 {
		dests := make([]Dest, max(len(n.dests), at+1))
		copy(dests, n.dests)
		dests[at] = dest
		return &vectorNode{dests: dests}
	}
	children := make([]*vectorNode, max(len(n.children), at+1))
	copy(children, n.children)
	children[at] = children[at].set(shift-vectorBits, place, dest)
	return &vectorNode{children: children}
}

// appendTo appends what is not nil. alone says that out was empty before this
// vector, whose places never hold a destination twice.
func (n *vectorNode) appendTo(d *deduper, alone bool, out []Dest) []Dest {
	for _, child := range n.children {
		out = child.appendTo(d, alone, out)
	}
	for _, dest := range n.dests {
		if dest != nil && (alone || !d.seen(out, dest)) {
			out = append(out, dest)
		}
	}
	return out
}
