package session091

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestUnackedAgainstReference drives the table of outstanding deliveries beside a
// map, with gaps as deliveries without ack leave them and with time that passes.
func TestUnackedAgainstReference(t *testing.T) {
	for seed := range seeds(t, 300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var u unackedTable
		var pool chunkPool
		ref := map[uint64]record{}
		at := map[uint64]int64{} // when each was handed out
		next, now := uint64(1), int64(1e9)
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
					u.add(&pool, now, next, r.seq, r.slot, r.counted)
					ref[next], at[next] = r, now
					next++
					now += rng.Int64N(1 << rng.IntN(44)) // up to five hours
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
			checkAges(t, seed, &u, at)
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
		if want, ok := ref[tag]; ok != (r != nil) || ok && ageless(r) != want {
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
		if ageless(r) != ref[tags[n]] {
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

func ageless(r *record) record {
	without := *r
	without.age = 0
	return without
}

// checkAges: no delivery counts as older than it is, nor as much younger; and no
// chunk is younger than what is in it, or older than the one before.
func checkAges(t *testing.T, seed uint64, u *unackedTable, at map[uint64]int64) {
	t.Helper()
	last := int64(0)
	for i, ch := range u.dir {
		if ch == nil || ch.live == 0 {
			continue
		}
		if ch.since < last {
			t.Fatalf("seed %d: a chunk begins at %d, one before it at %d", seed, ch.since, last)
		}
		last = ch.since
		for j := range ch.records {
			if !ch.records[j].live {
				continue
			}
			real := at[u.base+uint64(i)<<unackedShift+uint64(j)]
			kept := ch.since + unpackAge(ch.records[j].age)
			if late := kept - real; real < ch.since || late < 0 || late > ageError(real-ch.since) {
				t.Fatalf("seed %d: handed out at %d, kept as %d of a chunk since %d", seed, real, kept, ch.since)
			}
		}
	}
}

// ageError is how much a packed age may be above the real one.
func ageError(ns int64) int64 { return max(1<<ageUnit, ns>>(ageBits-1)) }

func TestPackAge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	check := func(ns int64) {
		t.Helper()
		if got := unpackAge(packAge(ns)); got < ns || got-ns > ageError(ns) {
			t.Errorf("%d ns are kept as %d", ns, got)
		}
	}
	for bit := range 62 {
		for _, ns := range []int64{1<<bit - 1, 1 << bit, 1<<bit + 1} {
			check(ns)
		}
	}
	for range 10_000 {
		check(rng.Int64N(1 << (1 + rng.IntN(61))))
	}
	for n := int64(0); n <= ageMask; n++ {
		if got := unpackAge(packAge(n << ageUnit)); got != (n+1)<<ageUnit {
			t.Fatalf("%d units are kept as %d ns", n, got)
		}
	}
}
