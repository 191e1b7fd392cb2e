package conformance

import (
	"fmt"
	"testing"

	"ringmq/test/harness"
)

// TestBAS_24_NoPriorities: without x-max-priority messages are delivered as they arrived, whatever priority they carry;
// the property itself is delivered untouched.
func TestBAS_24_NoPriorities(t *testing.T) {
	priorities := []byte{0, 9, 1, 255, 4, 5, 0, 9}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, a := range map[string]tbl{"no arguments": "", "a limit": table("x-max-length", 100), "lazy": table("x-queue-mode", "lazy")} {
			c := connect(t, b).open(1, 2)
			q := unique("q")
			c.queue(1, q, flags{}, a)
			sent := map[string]string{}
			for i, p := range priorities {
				properties := props{priority: p}
				sent[fmt.Sprint(i)] = string(properties.encode())
				c.publishWith(1, publishArgs("", q, false, false), properties, []byte(fmt.Sprint(i)))
			}
			// Once by get and given back, once to a consumer.
			for i := range priorities {
				if got := c.mustGet(1, q, false); got.body != fmt.Sprint(i) {
					t.Errorf("%s: position %d is message %s", name, i, got.body)
				}
			}
			c.nack(1, 0, true, true)
			c.awaitReady(1, q, uint32(len(priorities)))
			c.consume(2, q, "t", true)
			for i := range priorities {
				if got := c.deliver(2); got.body != fmt.Sprint(i) || got.properties == nil || string(got.properties) != sent[got.body] {
					t.Errorf("%s: delivery %d is message %s with % x", name, i, got.body, got.properties)
				}
			}
		}
	})
}
