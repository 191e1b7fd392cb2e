package conformance

import (
	"fmt"
	"testing"

	"ringmq/test/harness"
)

// deliveryCount is x-delivery-count of a message, which has no property before its headers; -1 when there is none.
func deliveryCount(t *testing.T, msg message) int {
	t.Helper()
	if flags := (&dec{t, msg.properties}).u16(); flags&(1<<13) == 0 {
		return -1
	}
	v := headersOf(t, msg)["x-delivery-count"]
	if v == "" {
		return -1
	}
	if v[0] != 'l' { // FLD-03
		t.Errorf("x-delivery-count is %q", v)
		return -1
	}
	return int((&dec{t, []byte(v[1:])}).u64())
}

// TestF33_DeliveryCount: the first delivery of a quorum queue's message says no count, the n-th return makes it n;
// redelivered is false and then true; get and consume agree, whatever the way back. After the limit it is dead-lettered
// (DLX-09).
func TestF33_DeliveryCount(t *testing.T) {
	const limit = 3
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "3.10 says x-delivery-count 0")
		for name, way := range map[string]struct {
			take func(c *client, q string) message
			back func(c *client, tag uint64)
		}{
			"get and reject":       {(*client).getOne, func(c *client, tag uint64) { c.reject(2, tag, true) }},
			"consume and nack":     {(*client).consumeOne, func(c *client, tag uint64) { c.nack(2, tag, false, true) }},
			"get and close":        {(*client).getOne, func(c *client, _ uint64) { c.closeChannel(2); c.open(2) }},
			"consume and close":    {(*client).consumeOne, func(c *client, _ uint64) { c.closeChannel(2); c.open(2) }},
			"consume and recover":  {(*client).consumeOne, func(c *client, _ uint64) { c.method(2, 60, 110, args().bits(true)); c.expect(2, 60, 111) }},
			"get and nack several": {(*client).getOne, func(c *client, _ uint64) { c.nack(2, 0, true, true) }},
		} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1, 2)
				c.t = t
				dead, q := c.newQueue(1), unique("q")
				c.queue(1, q, flags{durable: true}, table("x-queue-type", "quorum", "x-delivery-limit", limit,
					"x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead))
				for _, p := range []props{{}, {headers: table("own", "kept")}} {
					c.publishWith(1, publishArgs("", q, false, false), p, []byte("m"))
					for n := range limit + 1 {
						msg := way.take(c, q)
						want := n
						if n == 0 {
							want = -1
						}
						if got := deliveryCount(t, msg); got != want {
							t.Errorf("delivery %d has x-delivery-count %d, want %d (-1 is none)", n+1, got, want)
						}
						if msg.redelivered != (n > 0) {
							t.Errorf("delivery %d: redelivered %v", n+1, msg.redelivered)
						}
						way.back(c, msg.tag)
					}
					c.awaitReady(1, dead, 1)
					headers := headersOf(t, c.mustGet(1, dead, true))
					if reason := headers["x-first-death-reason"].str(); reason != "delivery_limit" {
						t.Errorf("died of %q", reason)
					}
					if p.headers != "" && headers["own"].str() != "kept" {
						t.Errorf("headers %q", headers)
					}
				}
				if ready, _ := c.depth(1, q); ready != 0 {
					t.Errorf("%d messages left", ready)
				}
			})
		}
	})
}

// getOne awaits a message by basic.get on channel 2.
func (c *client) getOne(q string) (msg message) {
	c.t.Helper()
	eventually(c.t, fmt.Sprint("a message in ", q), func() (ok bool) { msg, ok = c.get(2, q, false); return ok })
	return msg
}

// consumeOne takes a message by a consumer on channel 2 and cancels it; the message stays held.
func (c *client) consumeOne(q string) message {
	c.t.Helper()
	c.qos(2, 1, false)
	tag := c.consume(2, q, "", false)
	msg := c.deliver(2)
	c.cancel(2, tag)
	return msg
}
