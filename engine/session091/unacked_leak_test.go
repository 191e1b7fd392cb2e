package session091

import "testing"

// TestUnackedForgottenDelivery: one delivery that is never acknowledged does
// not keep the chunks of those that are, however they are settled.
func TestUnackedForgottenDelivery(t *testing.T) {
	const rounds = 100 * unackedChunk
	for name, ahead := range map[string]uint64{"one at a time": 1, "three ahead": 3, "a chunk ahead": unackedChunk} {
		t.Run(name, func(t *testing.T) {
			var u unackedTable
			var pool chunkPool
			u.add(&pool, 0, 1, 100, 0, false)
			for tag := uint64(2); tag < rounds; tag++ {
				u.add(&pool, 0, tag, tag*7, 0, false)
				if old := tag - ahead + 1; old > 1 && old <= tag {
					u.remove(&pool, old)
				}
			}
			chunks := 0
			for _, c := range u.dir {
				if c != nil {
					chunks++
				}
			}
			if want := 2 + int(ahead)/unackedChunk + 1; chunks > want {
				t.Errorf("%d chunks for %d deliveries", chunks, u.count)
			}
			if r := u.find(1); r == nil || r.seq != 100 {
				t.Error("the forgotten delivery is lost")
			}
			if got := u.next(0); got != 1 {
				t.Errorf("lowest tag %d", got)
			}
			if ahead > 1 {
				if got, want := u.next(2), rounds-1-ahead+2; got != want {
					t.Errorf("next tag %d, want %d", got, want)
				}
			}
		})
	}
}
