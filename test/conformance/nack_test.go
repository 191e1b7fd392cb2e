package conformance

import (
	"fmt"
	"slices"
	"testing"

	"ringmq/test/harness"
)

// TestCNF_02_04_Nacks: queues that refuse over their limit, between queues that take all, on both loops: exactly the
// refused publishes are nacked, each publish gets one answer, and no ack of several covers a nacked or an open number.
func TestCNF_02_04_Nacks(t *testing.T) {
	const limit, rounds = 5, 60
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for n := range 6 { // connections and queues of both loops
			c := connect(t, b).open(1, 2)
			full, open, both := c.newQueue(1), c.newQueue(1), c.newExchange(1, "fanout")
			c.deleteQueue(1, full, flags{})
			c.queue(1, full, flags{}, table("x-max-length", limit, "x-overflow", "reject-publish"))
			c.bind(1, full, both, "", "")
			c.bind(1, open, both, "", "")
			c.confirm(2)
			var out []byte
			var want []uint64
			taken := 0
			for i := range rounds {
				exchange, key := "", open
				switch (i + n) % 3 {
				case 0:
					key = full
				case 1: // CNF-03: one confirm after both have answered, a nack if one of them refused
					exchange, key = both, "k"
				}
				if key != open {
					if taken++; taken > limit {
						want = append(want, uint64(i+1))
					}
				}
				out = append(out, contentFrames(2, publishArgs(exchange, key, false, false), []byte{0, 0}, []byte(fmt.Sprint(i)), 4096)...)
			}
			c.write(out)
			got := c.confirmed(2, rounds)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("nacked %v, want %v", got, want)
			}
			c.sync(2) // no confirm is left over
			if ready, _ := c.depth(1, full); ready != limit {
				t.Errorf("the limited queue holds %d, want %d", ready, limit)
			}
			if ready, _ := c.depth(1, open); ready != rounds*2/3 {
				t.Errorf("the other queue holds %d, want %d", ready, rounds*2/3)
			}
		}
	})
}
