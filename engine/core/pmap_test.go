package core

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// collidingKey returns the i-th of a family of keys that share all 64 bits of
// pmapHash: a second word equal to the multiplier wipes out the first.
func collidingKey(i uint64) string {
	b := binary.LittleEndian.AppendUint64(nil, i)
	return string(binary.LittleEndian.AppendUint64(b, pmapMulA))
}

func modelKey(rng *rand.Rand) string {
	switch n := rng.Uint64N(300); n % 3 {
	case 0:
		return collidingKey(n)
	case 1:
		return fmt.Sprint(n)
	default:
		return fmt.Sprintf("orders.%d.created.%d", n%7, n)
	}
}

func requireSame(t *testing.T, m PMap[int], want map[string]int) {
	t.Helper()
	if m.Len() != len(want) {
		t.Fatalf("Len = %d, want %d", m.Len(), len(want))
	}
	if got := maps.Collect(m.All()); !maps.Equal(got, want) {
		t.Fatalf("All = %v, want %v", got, want)
	}
	for k, v := range want {
		if got, ok := m.Get(k); !ok || got != v {
			t.Fatalf("Get(%q) = %d, %v, want %d", k, got, ok, v)
		}
		if got, ok := m.GetBytes([]byte(k)); !ok || got != v {
			t.Fatalf("GetBytes(%q) = %d, %v, want %d", k, got, ok, v)
		}
	}
}

// TestPMapModel holds the trie against a Go map over random operations and checks
// at the end that every version kept on the way is still what it was.
func TestPMapModel(t *testing.T) {
	type version struct {
		m    PMap[int]
		want map[string]int
	}
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		var m PMap[int]
		want := map[string]int{}
		var kept []version
		for step := range 2000 {
			key := modelKey(rng)
			if rng.IntN(5) < 2 {
				before := m
				_, present := want[key]
				m = m.Delete(key)
				if !present && m != before {
					t.Fatalf("seed %d step %d: deleting an absent key made a new version", seed, step)
				}
				delete(want, key)
			} else {
				m = m.Set(key, step)
				want[key] = step
			}
			absent := key + "?"
			if _, ok := m.Get(absent); ok {
				t.Fatalf("seed %d step %d: found absent key %q", seed, step, absent)
			}
			wantValue, wantOK := want[key]
			if got, ok := m.Get(key); ok != wantOK || got != wantValue {
				t.Fatalf("seed %d step %d: Get(%q) = %d, %v, want %d, %v", seed, step, key, got, ok, wantValue, wantOK)
			}
			if step%50 == 0 {
				kept = append(kept, version{m, maps.Clone(want)})
			}
		}
		kept = append(kept, version{m, want})
		for _, v := range kept {
			requireSame(t, v.m, v.want)
		}
	}
}

func TestPMapCollisions(t *testing.T) {
	if pmapHash(collidingKey(1)) != pmapHash(collidingKey(2)) {
		t.Fatal("the colliding keys of this test do not collide")
	}
	var m PMap[int]
	want := map[string]int{}
	for i := range 500 {
		k := collidingKey(uint64(i*7919) % 500)
		m = m.Set(k, i)
		want[k] = i
	}
	requireSame(t, m, want)
	for k := range want {
		m = m.Delete(k)
	}
	if m != (PMap[int]{}) {
		t.Fatalf("not the empty map after deleting all keys: %+v", m)
	}
}

// TestPMapOrder proves that order and shape come from the contents alone.
func TestPMapOrder(t *testing.T) {
	var up, down PMap[int]
	const n = 3000
	for i := range n {
		up = up.Set(fmt.Sprint(i), i)
		down = down.Set(fmt.Sprint(n+500-1-i), n+500-1-i)
	}
	for i := n; i < n+500; i++ {
		down = down.Delete(fmt.Sprint(i))
	}
	for i := range 500 {
		down = down.Set(fmt.Sprint(i), i)
	}
	a, b := up.Iter(), down.Iter()
	seen := 0
	for a.Next() {
		if !b.Next() || a.Key() != b.Key() || a.Value() != b.Value() {
			t.Fatalf("order differs at key %q", a.Key())
		}
		seen++
	}
	if b.Next() || seen != n {
		t.Fatalf("walked %d keys, want %d in both", seen, n)
	}
	for range up.All() {
		break // an early stop must not run on or panic
	}
}

func TestPMapHashSpreads(t *testing.T) {
	full, low := map[uint64]bool{}, [32]int{}
	const n = 1 << 16
	for i := range n {
		h := pmapHash(fmt.Sprintf("q%d", i))
		full[h] = true
		low[h&pmapMask]++
		if h != pmapHash(fmt.Appendf(nil, "q%d", i)) {
			t.Fatal("the hash of bytes differs from that of the same string")
		}
	}
	if len(full) != n {
		t.Errorf("%d of %d hashes are distinct", len(full), n)
	}
	for slot, count := range low {
		if count < n/32*9/10 || count > n/32*11/10 {
			t.Errorf("slot %d of the root got %d keys, want about %d", slot, count, n/32)
		}
	}
}

func buildPMap(n int) (PMap[int], [][]byte) {
	var m PMap[int]
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "tenant-%d.queue", i)
		m = m.Set(string(keys[i]), i)
	}
	return m, keys
}

func TestAllocsPMap(t *testing.T) {
	m, keys := buildPMap(10_000)
	i, sum := 0, 0
	if n := testing.AllocsPerRun(1000, func() {
		v, _ := m.GetBytes(keys[i%len(keys)])
		sum += v
		i++
	}); n != 0 {
		t.Errorf("GetBytes allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10, func() {
		it := m.Iter()
		for it.Next() {
			sum += it.Value()
		}
	}); n != 0 {
		t.Errorf("a walk allocates %v times", n)
	}
	if sum == 0 {
		t.Error("nothing was found")
	}
}

func BenchmarkPMapGetBytes(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, keys := buildPMap(n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if _, ok := m.GetBytes(keys[i*7919%n]); !ok {
					b.Fatal("lost a key")
				}
			}
		})
	}
}

func BenchmarkPMapSet(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, keys := buildPMap(n)
			names := make([]string, n)
			for i, k := range keys {
				names[i] = string(k)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m.Set(names[i*7919%n], i)
			}
		})
	}
}
