package wal_test

import (
	"math/rand/v2"
	"testing"

	"ringmq/wal"
)

// TestAckSet holds the set against a slow obvious one, and through its encoding.
func TestAckSet(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		set, done := &wal.AckSet{}, map[uint64]bool{}
		add := func(s *wal.AckSet, first, last uint64) {
			s.AddRange(first, last)
			for seq := first; seq <= last; seq++ {
				done[seq] = true
			}
		}
		for range rng.IntN(30) {
			first := rng.Uint64N(300)
			switch rng.IntN(6) {
			case 0:
				set.SetFloor(first)
				for seq := range first {
					done[seq] = true
				}
			case 1:
				other := &wal.AckSet{}
				add(other, first, first+rng.Uint64N(40))
				add(other, first/2, first/2+3)
				set.Merge(other)
			default:
				add(set, first, first+rng.Uint64N(20))
			}
		}
		b, err := set.Append([]byte("prefix"))
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := wal.DecodeAckSet(b[len("prefix"):])
		if err != nil {
			t.Fatal(err)
		}
		above := uint64(0)
		for seq := range uint64(400) {
			if set.Contains(seq) != done[seq] || decoded.Contains(seq) != done[seq] {
				t.Fatalf("seed %d, %d: set %v, decoded %v, want %v", seed, seq, set.Contains(seq), decoded.Contains(seq), done[seq])
			}
			if done[seq] && seq >= set.Floor() {
				above++
			}
		}
		if set.CountAbove() != above || set.Contains(set.Floor()) {
			t.Fatalf("seed %d: floor %d, %d above, want %d", seed, set.Floor(), set.CountAbove(), above)
		}
	}
}

// TestAckSetOrder: in order it is a floor and nothing else, and costs no memory.
func TestAckSetOrder(t *testing.T) {
	set := &wal.AckSet{}
	if n := testing.AllocsPerRun(1000, func() { set.AddRange(set.Floor(), set.Floor()+2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if b, err := set.Append(nil); err != nil || len(b) != 8 || set.Floor() != 3*1001 {
		t.Errorf("%d bytes, floor %d, %v", len(b), set.Floor(), err)
	}
	set.AddRange(^uint64(0)-1, ^uint64(0))
	if !set.Contains(^uint64(0)) || set.Contains(^uint64(0)-2) {
		t.Error("the last sequence numbers")
	}
}
