//ringmq:hot

package exchange

import (
	"math"
	"sync/atomic"

	"ringmq/engine/core"
)

// hashBytes is FNV-1a. What it returns decides which queue a key belongs to,
// also after a restart: it must never change.
func hashBytes(s string) uint64 {
	h := uint64(fnvBasis)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// hashKey is hashBytes for a key.
func hashKey(s []byte) uint64 {
	h := uint64(fnvBasis)
	for _, c := range s {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// mix spreads every bit of x over the whole result: FNV leaves the high bits of
// short and similar keys alike. It is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// candidate is a binding that may be chosen.
type candidate struct {
	Binding
	ident  string // tells it from others of its destination
	seed   uint64 // of the draws of a consistent hash, from name and identity
	weight float64
}

// consistentMatcher sends equal keys to the same destination and, when a binding
// comes or goes, moves no key but those that the binding gets or had (XT-01).
//
// Each binding draws a number for the key, from a hash of both, and the highest
// wins: draws of others stay what they are whoever takes part, so a newcomer
// only takes keys and a leaver only gives its own away. The usual circle of
// points does that as well, but with one point for each unit of weight its shares
// are uneven (a queue of weight 1 may get five times another's), and with many
// points a client that binds with weight 10^9 has us hold as many. The price is
// that a match looks at every binding.
type consistentMatcher struct {
	list []candidate
	on   hashInput
	// even says that all weights are equal: the draws are then compared as they
	// are, which saves a logarithm for each.
	even bool
}

// Match implements Matcher.
func (m *consistentMatcher) Match(key []byte, headers core.Fields, out []Dest) []Dest {
	if len(m.list) == 0 {
		return out
	}
	h := m.on.hash(key, headers)
	best := 0
	if m.even {
		high := uint64(0)
		for i := range m.list {
			if draw := mix(h ^ m.list[i].seed); draw >= high {
				best, high = i, draw
			}
		}
	} else {
		// A number between 0 and 1 to the power of 1/weight is the highest as
		// often as the weight says; its logarithm orders the same way.
		high := math.Inf(-1)
		for i := range m.list {
			c := &m.list[i]
			draw := float64(mix(h^c.seed)>>11+1) / (1 << 53)
			if score := math.Log(draw) / c.weight; score > high {
				best, high = i, score
			}
		}
	}
	return appendChosen(out, m.list[best].Dest)
}

// UsesKey implements Matcher.
func (m *consistentMatcher) UsesKey() bool { return m.on.kind == hashOnKey }

// UsesHeaders implements Matcher.
func (m *consistentMatcher) UsesHeaders() bool { return m.on.kind != hashOnKey }

// appendChosen appends one destination unless out holds it.
func appendChosen(out []Dest, chosen Dest) []Dest {
	for _, o := range out {
		if o == chosen {
			return out
		}
	}
	return append(out, chosen)
}

// hashInput says what of a message a consistent hash goes by.
type hashInput struct {
	kind hashKind
	name string // of the header or property
}

type hashKind uint8

const (
	hashOnKey hashKind = iota
	hashOnHeader
	hashOnProperty
)

// hash is the same for equal values; messages without the header or property are
// all alike.
func (in *hashInput) hash(key []byte, headers core.Fields) uint64 {
	var v core.Value
	ok := false
	switch in.kind {
	case hashOnKey:
		return hashKey(key)
	case hashOnHeader:
		if headers != nil {
			v, ok = headers.Lookup(in.name)
		}
	case hashOnProperty:
		if props, known := headers.(Properties); known {
			v, ok = props.Property(in.name)
		}
	}
	if !ok {
		return 0
	}
	if isText(v) {
		return hashBytes(v.Str)
	}
	bits := valueBits(v)
	return hashKey(bits[:])
}

// modulusMatcher sends a key to the destination whose place is its hash modulo
// their number (XT-03). Binding keys mean nothing.
type modulusMatcher struct {
	set namedSet
}

// Match implements Matcher.
func (m *modulusMatcher) Match(key []byte, _ core.Fields, out []Dest) []Dest {
	if len(m.set) == 0 {
		return out
	}
	return appendChosen(out, m.set[mix(hashKey(key))%uint64(len(m.set))].dest)
}

// UsesKey implements Matcher.
func (m *modulusMatcher) UsesKey() bool { return true }

// UsesHeaders implements Matcher.
func (m *modulusMatcher) UsesHeaders() bool { return false }

// randomMatcher sends each message to any one of its destinations (XT-03).
type randomMatcher struct {
	set      namedSet
	sequence *sequence
}

// Match implements Matcher.
func (m *randomMatcher) Match(_ []byte, _ core.Fields, out []Dest) []Dest {
	if len(m.set) == 0 {
		return out
	}
	return appendChosen(out, m.set[m.sequence.next()%uint64(len(m.set))].dest)
}

// UsesKey implements Matcher.
func (m *randomMatcher) UsesKey() bool { return false }

// UsesHeaders implements Matcher.
func (m *randomMatcher) UsesHeaders() bool { return true }

// sequence is a row of numbers that look random: a counter, mixed. All versions
// of a matcher and all loops go along one row; a lock is not needed, and which
// loop gets which number does not matter.
type sequence struct{ count atomic.Uint64 }

func newSequence(seed uint64) *sequence {
	s := &sequence{}
	s.count.Store(mix(seed))
	return s
}

func (s *sequence) next() uint64 { return mix(s.count.Add(0x9e3779b97f4a7c15)) }
