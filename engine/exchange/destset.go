//ringmq:hot

package exchange

import (
	"encoding/binary"
	"strconv"

	"ringmq/engine/core"
)

// A set of up to listMax destinations is a slice that each change copies; a
// larger one is a vector with an index, and becomes a slice again at listMin.
// The gap keeps a set at the border from changing form with every bind.
const (
	listMax = 16
	listMin = 8
)

// destSet is an immutable set of destinations in the order in which they were
// first bound. Each has the identities of the bindings that brought it here and
// leaves with the last of them. The zero value is empty.
type destSet struct {
	list  []member // when large is nil
	large *largeSet
}

type member struct {
	dest   Dest
	idents identSet
}

// identity is what tells b from other bindings of one destination.
func (b Binding) identity() string {
	args := b.Args.Canonical()
	if args == "" && b.Key == "" {
		return ""
	}
	return strconv.Itoa(len(b.Key)) + ":" + b.Key + args
}

// identSet is a set that is never empty: almost always it is one string, and
// then costs no allocation.
type identSet struct {
	one  string
	more core.PMap[struct{}]
}

func (s identSet) add(ident string) identSet {
	if ident == s.one {
		return s
	}
	s.more = s.more.Set(ident, struct{}{})
	return s
}

// remove reports whether ident was there, and whether it was the last.
func (s identSet) remove(ident string) (rest identSet, removed, last bool) {
	if ident != s.one {
		before := s.more.Len()
		s.more = s.more.Delete(ident)
		return s, s.more.Len() < before, false
	}
	it := s.more.Iter()
	if !it.Next() {
		return s, true, true
	}
	s.one = it.Key()
	s.more = s.more.Delete(s.one)
	return s, true, false
}

func (s destSet) empty() bool { return len(s.list) == 0 && s.large == nil }

// add returns a set that also has dest, or has one more reason to have it.
func (s destSet) add(dest Dest, ident string) destSet {
	if s.large != nil {
		return destSet{large: s.large.add(dest, ident)}
	}
	for i := range s.list {
		if s.list[i].dest == dest {
			list := append([]member(nil), s.list...)
			list[i].idents = list[i].idents.add(ident)
			return destSet{list: list}
		}
	}
	added := member{dest, identSet{one: ident}}
	if len(s.list) < listMax {
		list := make([]member, len(s.list)+1)
		list[copy(list, s.list)] = added
		return destSet{list: list}
	}
	large := &largeSet{}
	for _, m := range s.list {
		large.put(m)
	}
	large.put(added)
	return destSet{large: large}
}

// remove returns a set with one reason less to have dest, and whether there was
// that reason; if not, the set is the receiver.
func (s destSet) remove(dest Dest, ident string) (destSet, bool) {
	if s.large != nil {
		large, removed := s.large.remove(dest, ident)
		if !removed {
			return s, false
		}
		if large.live <= listMin {
			return destSet{list: large.members()}, true
		}
		return destSet{large: large}, true
	}
	for i := range s.list {
		if s.list[i].dest != dest {
			continue
		}
		idents, removed, last := s.list[i].idents.remove(ident)
		if !removed {
			return s, false
		}
		if last {
			list := make([]member, 0, len(s.list)-1)
			return destSet{list: append(append(list, s.list[:i]...), s.list[i+1:]...)}, true
		}
		list := append([]member(nil), s.list...)
		list[i].idents = idents
		return destSet{list: list}, true
	}
	return s, false
}

// appendTo appends the destinations that out does not hold yet.
func (s *destSet) appendTo(d *deduper, out []Dest) []Dest {
	if s.large != nil {
		return s.large.appendTo(d, out)
	}
	if len(out) == 0 {
		// A set has no duplicates in itself.
		for i := range s.list {
			out = append(out, s.list[i].dest)
		}
		return out
	}
	for i := range s.list {
		if dest := s.list[i].dest; !d.seen(out, dest) {
			out = append(out, dest)
		}
	}
	return out
}

// largeSet is a persistent vector of destinations, in the order of binding and
// with nil where one has left, plus an index to find a destination's place.
// When more than half of the places are holes it is written anew, which the
// removals that made the holes have paid for.
type largeSet struct {
	places vector
	live   int // places that are not nil
	// index leads from the hash of a destination, as eight bytes, to its place.
	// More than one entry in a slice means that hashes met.
	index core.PMap[[]placed]
}

type placed struct {
	member
	place int
}

func indexKey(dest Dest) string {
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], hashDest(dest))
	return string(key[:])
}

// put appends a member that is new, in place: for sets that nobody has seen yet.
func (s *largeSet) put(m member) {
	key := indexKey(m.dest)
	entries, _ := s.index.Get(key)
	entries = append(append([]placed(nil), entries...), placed{m, s.places.length})
	s.index = s.index.Set(key, entries)
	s.places = s.places.push(m.dest)
	s.live++
}

func (s *largeSet) add(dest Dest, ident string) *largeSet {
	next := *s
	key := indexKey(dest)
	entries, _ := s.index.Get(key)
	for i := range entries {
		if entries[i].dest == dest {
			entries = append([]placed(nil), entries...)
			entries[i].idents = entries[i].idents.add(ident)
			next.index = s.index.Set(key, entries)
			return &next
		}
	}
	next.put(member{dest, identSet{one: ident}})
	return &next
}

func (s *largeSet) remove(dest Dest, ident string) (*largeSet, bool) {
	key := indexKey(dest)
	entries, _ := s.index.Get(key)
	for i := range entries {
		if entries[i].dest != dest {
			continue
		}
		idents, removed, last := entries[i].idents.remove(ident)
		if !removed {
			return s, false
		}
		next := *s
		entries = append([]placed(nil), entries...)
		if !last {
			entries[i].idents = idents
			next.index = s.index.Set(key, entries)
			return &next, true
		}
		next.places = s.places.set(entries[i].place, nil)
		next.live--
		if entries = append(entries[:i], entries[i+1:]...); len(entries) == 0 {
			next.index = s.index.Delete(key)
		} else {
			next.index = s.index.Set(key, entries)
		}
		if next.places.length > 2*next.live+listMax {
			return next.rewritten(), true
		}
		return &next, true
	}
	return s, false
}

// members returns what the set holds, in order.
func (s *largeSet) members() []member {
	out := make([]member, 0, s.live)
	for _, dest := range s.appendTo(&deduper{}, nil) {
		entries, _ := s.index.Get(indexKey(dest))
		for i := range entries {
			if entries[i].dest == dest {
				out = append(out, entries[i].member)
			}
		}
	}
	return out
}

func (s *largeSet) rewritten() *largeSet {
	next := &largeSet{}
	for _, m := range s.members() {
		next.put(m)
	}
	return next
}

func (s *largeSet) appendTo(d *deduper, out []Dest) []Dest {
	if s.places.root == nil {
		return out
	}
	return s.places.root.appendTo(d, len(out) == 0, out)
}
