package session091

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestUnackedAgainstReference drives the table of outstanding deliveries beside a
// map, with gaps as deliveries without ack leave them.
func TestUnackedAgainstReference(t *testing.T) {
	for seed := range seeds(t, 300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var u unackedTable
		var pool chunkPool
		ref := map[uint64]record{}
		next := uint64(1)
		live := func() (tags []uint64) {
			for tag := range ref {
				tags = append(tags, tag)
			}
			slices.Sort(tags)
			return tags
		}
		for range 200 {
			switch rng.IntN(5) {
			case 0, 1:
				for range rng.IntN(2 * unackedChunk) {
					if next += uint64(rng.IntN(3)) / 2; rng.IntN(60) == 0 {
						next += uint64(rng.IntN(5 * unackedChunk))
					}
					r := record{seq: next * 3, slot: uint32(rng.IntN(5)), live: true, counted: rng.IntN(2) == 0}
					u.add(&pool, next, r.seq, r.slot, r.counted)
					ref[next] = r
					next++
				}
			case 2, 3:
				tags := live()
				rng.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
				if rng.IntN(2) == 0 {
					slices.Sort(tags)
				}
				for _, tag := range tags[:rng.IntN(len(tags)+1)] {
					u.remove(&pool, tag)
					delete(ref, tag)
				}
			case 4:
				if rng.IntN(20) == 0 {
					u.reset(&pool)
					clear(ref)
				}
			}
			checkUnacked(t, seed, &u, ref, live(), next)
		}
	}
}

func checkUnacked(t *testing.T, seed uint64, u *unackedTable, ref map[uint64]record, tags []uint64, next uint64) {
	t.Helper()
	if u.count != len(ref) {
		t.Fatalf("seed %d: %d deliveries, want %d", seed, u.count, len(ref))
	}
	for tag := max(next, 200) - 200; tag < next+3; tag++ {
		r := u.find(tag)
		if want, ok := ref[tag]; ok != (r != nil) || ok && *r != want {
			t.Fatalf("seed %d: tag %d is %v, want %v", seed, tag, r, ok)
		}
	}
	var walked []uint64
	for tag := u.next(0); tag != 0; tag = u.next(tag + 1) {
		walked = append(walked, tag)
	}
	if !slices.Equal(walked, tags) {
		t.Fatalf("seed %d: next gives %v, want %v", seed, walked, tags)
	}
	n := 0
	u.each(func(r *record) {
		if *r != ref[tags[n]] {
			t.Fatalf("seed %d: each gives %v as number %d", seed, *r, n)
		}
		n++
	})
	if n != len(tags) {
		t.Fatalf("seed %d: each gives %d of %d", seed, n, len(tags))
	}
	chunks := 0
	for _, ch := range u.dir {
		if ch != nil {
			chunks++
		}
	}
	if chunks > len(ref)+1 {
		t.Fatalf("seed %d: %d chunks for %d deliveries", seed, chunks, len(ref))
	}
}
