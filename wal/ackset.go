package wal

import (
	"encoding/binary"
	"errors"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// AckSet is which messages of one queue are done: all below a floor, and some
// above it in a bitmap. A queue that is consumed in order is a floor and nothing
// else. The zero value is empty.
//
// In a checkpoint the set must contain each sequence number of the queue that was
// handed out and is not live any more, whatever ended it.
type AckSet struct {
	floor uint64
	above *roaring64.Bitmap // sequence numbers >= floor; nil if none
}

// Floor is the sequence number below which everything is done.
func (s *AckSet) Floor() uint64 { return s.floor }

// SetFloor marks everything below seq as done. The floor never falls.
func (s *AckSet) SetFloor(seq uint64) {
	if seq <= s.floor {
		return
	}
	s.floor = seq
	if s.above != nil {
		s.above.RemoveRange(0, seq)
		s.absorb()
	}
}

// AddRange marks first to last as done.
func (s *AckSet) AddRange(first, last uint64) {
	first = max(first, s.floor)
	if last < first {
		return
	}
	if first == s.floor && last != ^uint64(0) {
		s.SetFloor(last + 1)
		return
	}
	if s.above == nil {
		s.above = roaring64.New()
	}
	if last != ^uint64(0) {
		s.above.AddRange(first, last+1)
		return
	}
	s.above.AddRange(first, last)
	s.above.Add(last)
}

// absorb moves the floor over a run that begins there. Its end is found by counting: a
// run may be millions long.
func (s *AckSet) absorb() {
	if !s.above.IsEmpty() && s.above.Minimum() == s.floor {
		// The largest n such that all of floor to floor+n-1 are in the set.
		n, more := uint64(1), s.above.GetCardinality()
		for n < more {
			middle := n + (more-n+1)/2
			if s.above.Rank(s.floor+middle-1) == middle {
				n = middle
			} else {
				more = middle - 1
			}
		}
		s.floor += n
		s.above.RemoveRange(0, s.floor)
	}
	if s.above.IsEmpty() {
		s.above = nil
	}
}

// Contains reports whether seq is done.
func (s *AckSet) Contains(seq uint64) bool {
	return seq < s.floor || s.above != nil && s.above.Contains(seq)
}

// CountAbove is how many sequence numbers from the floor on are done.
func (s *AckSet) CountAbove() uint64 {
	if s.above == nil {
		return 0
	}
	return s.above.GetCardinality()
}

// Merge adds everything that is done in other.
func (s *AckSet) Merge(other *AckSet) {
	if other.above != nil {
		if s.above == nil {
			s.above = roaring64.New()
		}
		s.above.Or(other.above)
	}
	s.SetFloor(other.floor)
	if s.above != nil {
		s.above.RemoveRange(0, s.floor)
		s.absorb()
	}
}

// Append appends the set in the form that checkpoints hold: the floor, and the
// bitmap in roaring's portable 64-bit format.
func (s *AckSet) Append(dst []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint64(dst, s.floor)
	if s.above == nil {
		return dst, nil
	}
	s.above.RunOptimize()
	b, err := s.above.ToBytes()
	if err != nil {
		return dst, err
	}
	return append(dst, b...), nil
}

var errAckSet = errors.New("wal: not an acknowledgement set")

// DecodeAckSet is the inverse of Append. It copies what it keeps of b. Nothing in b
// makes it panic or take more memory than a small multiple of b.
func DecodeAckSet(b []byte) (set *AckSet, err error) {
	if len(b) < 8 {
		return nil, errAckSet
	}
	s := &AckSet{floor: binary.LittleEndian.Uint64(b)}
	if b = b[8:]; len(b) == 0 {
		return s, nil
	}
	// The bitmap's own reader believes the number of its parts, at least 12 bytes each.
	if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8)/12 {
		return nil, errAckSet
	}
	defer func() {
		if recover() != nil {
			set, err = nil, errAckSet
		}
	}()
	s.above = roaring64.New()
	if err := s.above.UnmarshalBinary(b); err != nil {
		return nil, errAckSet
	}
	if err := s.above.Validate(); err != nil {
		return nil, errAckSet
	}
	if s.floor > 0 {
		s.above.RemoveRange(0, s.floor)
	}
	s.absorb()
	return s, nil
}
