package conformance

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"ringmq/test/harness"
)

// TestFanoutFlood: publishers whose every message goes to thousands of queues do not keep others from their loop.
func TestFanoutFlood(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0"}, func(t *testing.T, b *harness.Broker) {
		var flooders []*client
		var wg sync.WaitGroup
		x := ""
		for range 2 {
			feed := connect(t, b).open(1)
			if x == "" {
				x = feed.newExchange(1, "fanout")
				for range 3000 {
					feed.bind(1, feed.newLimited(1), x, "", "")
				}
			}
			flooders = append(flooders, feed)
			out := bytes.Repeat(contentFrames(1, publishArgs(x, "", false, false), []byte{0, 0}, []byte("load"), 131072), 100)
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					if _, err := feed.nc.Write(out); err != nil {
						return // cut below
					}
				}
			}()
		}
		for i := range 4 {
			c := connect(t, b).open(1)
			q := c.newQueue(1)
			c.confirm(1)
			for n := range 10 {
				c.publish(1, "", q, fmt.Sprint(n))
				if f := c.next(); f.id() != m(60, 80) {
					t.Fatalf("got %v, want the ack", f)
				}
				if got := c.mustGet(1, q, true); got.body != fmt.Sprint(n) {
					t.Fatalf("connection %d got %q", i, got.body)
				}
			}
			c.shut()
		}
		for _, f := range flooders {
			f.cut()
		}
		wg.Wait()
	})
}

// TestLongChains: exchanges in long chains and wide fans, by bindings and as alternates, reach what is at the end.
func TestLongChains(t *testing.T) {
	const length = 1000
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		last := c.newExchange(1, "fanout")
		c.bind(1, q, last, "", "")
		bound, alternate, fan := last, last, c.newExchange(1, "fanout")
		for range length {
			x := c.newExchange(1, "fanout")
			c.bindExchange(1, bound, x, "", "")
			bound = x
			x = unique("x")
			c.exchange(1, x, "direct", flags{}, table("alternate-exchange", alternate))
			alternate = x
			x = c.newExchange(1, "fanout")
			c.bindExchange(1, x, fan, "", "")
			c.bindExchange(1, last, x, "", "")
		}
		for i, first := range []string{bound, alternate, fan} {
			c.publishWith(1, publishArgs(first, fmt.Sprint(i), true, false), props{}, []byte("m"))
		}
		for i := range 3 {
			if got := c.mustGet(1, q, true); got.key != fmt.Sprint(i) {
				t.Errorf("got %+v", got)
			}
		}
		if rest := c.drain(1, q); len(rest) > 0 {
			t.Errorf("%d copies too many", len(rest))
		}
	})
}
