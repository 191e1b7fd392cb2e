package conformance

import (
	"regexp"
	"strings"
	"testing"

	"ringmq/test/harness"
)

// withMessage is a set-up that declares a queue with one message as {q}.
func withMessage(c *client) map[string]string {
	n := withQueue(c)
	c.publish(1, "", n["q"], "x")
	c.awaitReady(1, n["q"], 1)
	return n
}

// settle sends ack, nack or reject for a tag.
func settle(tag uint64) func(c *client, n map[string]string) {
	return func(c *client, _ map[string]string) { c.ack(1, tag, false) }
}

// publishProps publishes one message with these properties to {q}.
func publishProps(p props) func(c *client, n map[string]string) {
	return func(c *client, n map[string]string) {
		c.publishWith(1, publishArgs("", n["q"], false, false), p, []byte("x"))
	}
}

// heldAndAcked is a set-up that gets a message, acks it, and so leaves tag 1 settled.
func heldAndAcked(c *client) map[string]string {
	n := withMessage(c)
	c.mustGet(1, n["q"], false)
	c.ack(1, 1, false)
	return n
}

var basicRefusals = []refusal{
	{id: "BAS-01", name: "prefetch size", conn: true, code: 540, text: "prefetch_size!=0 (100)", failed: m(60, 10),
		send: func(c *client, _ map[string]string) { c.method(1, 60, 10, args().u32(100).u16(0).bits(false)) }},
	{id: "BAS-02", name: "tag in use", conn: true, code: 530, text: "attempt to reuse consumer tag 't'", failed: m(60, 20),
		setup: func(c *client) map[string]string {
			n := withQueue(c)
			c.consume(1, n["q"], "t", true)
			return n
		},
		send: func(c *client, n map[string]string) {
			c.method(1, 60, 20, consumeArgs(n["q"], "t", false, true, false, false, ""))
		}},
	{id: "BAS-03", name: "exclusive beside a consumer", code: 403, failed: m(60, 20),
		text: "queue '{q}' in vhost '/' in exclusive use",
		setup: func(c *client) map[string]string {
			n := withQueue(c)
			c.consume(2, n["q"], "t", true)
			return n
		},
		send: func(c *client, n map[string]string) {
			c.method(1, 60, 20, consumeArgs(n["q"], "u", false, true, true, false, ""))
		}},
	{id: "BAS-03", name: "any beside an exclusive one", code: 403, failed: m(60, 20),
		text: "queue '{q}' in vhost '/' in exclusive use",
		setup: func(c *client) map[string]string {
			n := withQueue(c)
			c.consumeWith(2, consumeArgs(n["q"], "t", false, true, true, false, ""))
			return n
		},
		send: func(c *client, n map[string]string) {
			c.method(1, 60, 20, consumeArgs(n["q"], "u", false, true, false, false, ""))
		}},
	{id: "BAS-06", name: "missing exchange", setup: freshName, code: 404, text: "no exchange '{x}' in vhost '/'",
		failed: m(60, 40), send: func(c *client, n map[string]string) { c.publish(1, n["x"], "k", "b") }},
	{id: "BAS-06", name: "missing exchange with mandatory", setup: freshName, code: 404,
		text: "no exchange '{x}' in vhost '/'", failed: m(60, 40), send: func(c *client, n map[string]string) {
			c.publishWith(1, publishArgs(n["x"], "k", true, false), props{}, []byte("b"))
			c.publish(1, "", "k", "dropped") // pipelined behind the error
		}},
	{id: "BAS-07", name: "immediate", conn: true, code: 540, text: "immediate=true", failed: m(60, 40),
		send: func(c *client, _ map[string]string) {
			c.publishWith(1, publishArgs("", "k", false, true), props{}, []byte("b"))
		}},
	{id: "BAS-11", name: "ack of a tag never sent", code: 406, text: "unknown delivery tag 5", failed: m(60, 80),
		send: settle(5)},
	{id: "BAS-11", name: "ack of 0", setup: withMessage, code: 406, text: "unknown delivery tag 0", failed: m(60, 80),
		send: settle(0)},
	{id: "BAS-11", name: "ack twice", setup: heldAndAcked, code: 406, text: "unknown delivery tag 1", failed: m(60, 80),
		send: settle(1)},
	{id: "BAS-11", name: "nack twice", setup: heldAndAcked, code: 406, text: "unknown delivery tag 1", failed: m(60, 120),
		send: func(c *client, _ map[string]string) { c.nack(1, 1, false, true) }},
	{id: "BAS-11", name: "reject twice", setup: heldAndAcked, code: 406, text: "unknown delivery tag 1", failed: m(60, 90),
		send: func(c *client, _ map[string]string) { c.reject(1, 1, true) }},
	{id: "BAS-11", name: "multiple above the last", setup: heldAndAcked, code: 406, text: "unknown delivery tag 2",
		failed: m(60, 80), send: func(c *client, _ map[string]string) { c.ack(1, 2, true) }},
	{id: "BAS-11", name: "ack of a no-ack delivery", setup: withMessage, code: 406, text: "unknown delivery tag 1",
		failed: m(60, 80), send: func(c *client, n map[string]string) {
			c.mustGet(1, n["q"], true)
			c.ack(1, 1, false)
		}},
	{id: "BAS-11", name: "ack in a transaction", code: 406, text: "unknown delivery tag 7", failed: m(60, 80),
		send: func(c *client, _ map[string]string) {
			c.method(1, 90, 10, nil)
			c.expect(1, 90, 11)
			c.ack(1, 7, false)
		}},
	{id: "BAS-14", name: "recover without requeue", conn: true, code: 540, text: "requeue=false", failed: m(60, 110),
		send: func(c *client, _ map[string]string) { c.method(1, 60, 110, args().bits(false)) }},
	{id: "BAS-14", name: "recover-async without requeue", conn: true, code: 540, text: "requeue=false", failed: m(60, 100),
		send: func(c *client, _ map[string]string) { c.method(1, 60, 100, args().bits(false)) }},
	{id: "BAS-18", name: "expiration of letters", setup: withQueue, code: 406, text: "invalid expiration 'abc': no_integer",
		failed: m(60, 40), send: publishProps(props{expiration: "abc"})},
	{id: "BAS-18", name: "negative expiration", setup: withQueue, code: 406,
		text: "invalid expiration '-1': {value_negative,-1}", failed: m(60, 40), send: publishProps(props{expiration: "-1"})},
	{id: "BAS-18", name: "expiration with a fraction", setup: withQueue, code: 406,
		text: `invalid expiration '1.5': {leftover_string,".5"}`, failed: m(60, 40), send: publishProps(props{expiration: "1.5"})},
	{id: "BAS-18", name: "expiration too large", setup: withQueue, code: 406,
		text: "invalid expiration '315360000001': {value_too_large,315360000001}", failed: m(60, 40),
		send: publishProps(props{expiration: "315360000001"})},
	{id: "BAS-18", name: "empty expiration", setup: withQueue, code: 406, text: "invalid expiration '': no_integer",
		failed: m(60, 40), send: publishProps(props{hasExpiration: true})},
	{id: "BAS-19", name: "another user", setup: withQueue, code: 406, failed: m(60, 40),
		text: "user_id property set to 'bob' but authenticated user was 'guest'", send: publishProps(props{userID: "bob"})},
	{id: "CSM-01", name: "x-priority of a wrong type", setup: withQueue, code: 406, failed: m(60, 20),
		text: `invalid arg 'x-priority' for queue '{q}' in vhost '/': "expected integer, got longstr"`,
		send: func(c *client, n map[string]string) {
			c.method(1, 60, 20, consumeArgs(n["q"], "t", false, true, false, false, table("x-priority", "high")))
		}},
}

// TestBasicRefusals: BAS-01 to BAS-19 and CSM-01.
func TestBasicRefusals(t *testing.T) { runRefusals(t, basicRefusals) }

// TestBAS_02_ConsumerTags: server-made tags, and the same tag on two channels.
func TestBAS_02_ConsumerTags(t *testing.T) {
	shape := regexp.MustCompile(`^amq\.ctag-[A-Za-z0-9_-]{22}$`)
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q := c.newQueue(1)
		one, two := c.consume(1, q, "", true), c.consume(1, q, "", true)
		if !shape.MatchString(one) || !shape.MatchString(two) || one == two {
			t.Errorf("server-made tags %q and %q", one, two)
		}
		c.cancel(1, one)
		c.cancel(1, two)
		c.consume(1, q, "same", true)
		c.consume(2, q, "same", true)
		c.cancel(1, "same")
		c.consume(1, q, "same", true) // free again after cancel
		c.cancel(1, "same")
		c.publish(2, "", q, "x")
		if got := c.deliver(2); got.consumerTag != "same" {
			t.Errorf("delivered to %q", got.consumerTag)
		}
	})
}

// TestBAS_03_ExclusiveConsumer: basic.get still works, and the queue is free after the cancel.
func TestBAS_03_ExclusiveConsumer(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q := c.newQueue(1)
		c.consumeWith(1, consumeArgs(q, "t", false, false, true, false, ""))
		if _, ok := c.get(2, q, true); ok {
			t.Error("get-ok from an empty queue")
		}
		c.cancel(1, "t")
		c.consume(2, q, "u", true)
		c.cancel(2, "u")
		c.consumeWith(2, consumeArgs(q, "u", false, false, true, false, ""))
	})
}

// TestBAS_04_ConsumeOkFirst: consume-ok precedes the first delivery, and no-local is ignored.
func TestBAS_04_ConsumeOkFirst(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		for range 20 {
			q := c.newQueue(1)
			c.publish(1, "", q, "mine")
			c.consumeWith(1, consumeArgs(q, "", true, true, false, false, ""))
			c.deliverBodies(1, "mine")
		}
	})
}

// TestBAS_05_Cancel: unknown tags are fine, nothing comes after cancel-ok, unacked messages stay with the channel.
func TestBAS_05_Cancel(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connect(t, b).open(1), connect(t, b).open(1)
		c.cancel(1, "never-was")
		q := c.newQueue(1)
		c.consume(1, q, "t", false)
		other.publishAll(1, q, "a", "b")
		held := c.deliverBodies(1, "a", "b")
		c.cancel(1, "t")
		other.publishAll(1, q, "c", "d")
		c.awaitReady(1, q, 2) // fails on a delivery: the next frame must be declare-ok
		c.ack(1, held[0].tag, false)
		c.nack(1, held[1].tag, false, true)
		if got := c.drain(1, q); strings.Join(got, "") != "bcd" {
			t.Errorf("left in the queue: %q, want b c d", got)
		}
	})
}

// TestBAS_05_CancelUnderLoad: cancel while another connection publishes; no delivery of the tag behind cancel-ok.
func TestBAS_05_CancelUnderLoad(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connect(t, b).open(1), connect(t, b).open(1)
		q := c.newQueue(1)
		bodies := make([]string, 100)
		for i := range bodies {
			bodies[i] = "x"
		}
		seen := 0
		for range 30 {
			c.consume(1, q, "t", true)
			other.publishAll(1, q, bodies...)
			for range 10 {
				c.deliver(1)
				seen++
			}
			c.method(1, 60, 30, args().ss("t").bits(false))
			for {
				f := c.next()
				if f.id() == m(60, 31) {
					break
				}
				if f.id() != m(60, 60) {
					t.Fatalf("got %v, want deliveries and cancel-ok", f)
				}
				var msg message
				c.content(1, &msg)
				seen++
			}
			c.sync(1) // the next frame after cancel-ok is this answer
		}
		other.sync(1)
		c.consume(1, q, "t", true)
		for ; seen < 3000; seen++ {
			c.deliver(1)
		}
	})
}

// TestBAS_08_Mandatory: what is returned, and what counts as reached.
func TestBAS_08_Mandatory(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		x := c.newExchange(1, "direct")
		p := props{contentType: "text/plain", headers: table("h", 1), deliveryMode: 2, messageID: "id"}
		body := strings.Repeat("r", 200_000)
		c.publishWith(1, publishArgs(x, "nobody", true, false), p, []byte(body))
		got := c.returned(1)
		if got.code != 312 || got.text != "NO_ROUTE" || got.exchange != x || got.key != "nobody" || got.body != body ||
			string(got.properties) != string(p.encode()) {
			t.Errorf("returned %d %q %q %q, properties %q, %d bytes", got.code, got.text, got.exchange, got.key,
				got.properties, len(got.body))
		}
		// Empty body, and the default exchange.
		c.publishWith(1, publishArgs("", unique("none"), true, false), props{}, nil)
		if got := c.returned(1); got.body != "" || got.exchange != "" {
			t.Errorf("returned %+v", got)
		}
		// Routed, or not mandatory: nothing comes back.
		q := c.newQueue(1)
		c.bind(1, q, x, "k", "")
		c.publishWith(1, publishArgs(x, "k", true, false), p, []byte("m"))
		c.publish(1, x, "nobody", "dropped")
		c.awaitReady(1, q, 1) // fails on a return: the next frame must be declare-ok
		// In confirm mode the ack follows the return.
		c.confirm(1)
		c.publishWith(1, publishArgs(x, "nobody", true, false), p, []byte("m"))
		c.returned(1)
		c.confirmed(1, 1)
	})
}

// TestBAS_08_ReachedByOtherWays: what an alternate exchange or a CC route takes is not returned.
func TestBAS_08_ReachedByOtherWays(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		t.Run("alternate exchange", func(t *testing.T) {
			c := connect(t, b).open(1)
			c.confirm(1)
			alternate, x, q := c.newExchange(1, "fanout"), unique("x"), c.newQueue(1)
			c.exchange(1, x, "direct", flags{}, table("alternate-exchange", alternate))
			c.bind(1, q, alternate, "", "")
			c.publishWith(1, publishArgs(x, "nobody", true, false), props{}, []byte("a"))
			c.confirmed(1, 1)
			if got := c.drain(1, q); strings.Join(got, "") != "a" {
				t.Errorf("the queue got %q", got)
			}
		})
		t.Run("CC", func(t *testing.T) {
			c := connect(t, b).open(1)
			c.confirm(1)
			q := c.newQueue(1)
			c.publishWith(1, publishArgs("", "nobody", true, false), props{headers: table("CC", vA(vS(q)))}, []byte("b"))
			c.confirmed(1, 1)
			if got := c.drain(1, q); strings.Join(got, "") != "b" {
				t.Errorf("the queue got %q", got)
			}
		})
	})
}

// TestBAS_09_Get: get-empty, and the count of ready messages left.
func TestBAS_09_Get(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		if _, ok := c.get(1, q, false); ok {
			t.Error("get-ok from an empty queue")
		}
		c.publishAll(1, q, "a", "b", "c")
		c.awaitReady(1, q, 3)
		for left := uint32(3); left > 0; left-- {
			if got := c.mustGet(1, q, false); got.count != left-1 || got.tag != uint64(4-left) || got.key != q {
				t.Errorf("get-ok %+v, want count %d", got, left-1)
			}
		}
		if _, ok := c.get(1, q, false); ok {
			t.Error("get-ok while all are unacked")
		}
	})
}

// TestBAS_10_DeliveryTags: one counter per channel over consumers, gets and no-ack deliveries.
func TestBAS_10_DeliveryTags(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q1, q2 := c.newQueue(1), c.newQueue(1)
		c.consume(1, q1, "acked", false)
		c.publish(1, "", q1, "1")
		if got := c.deliver(1); got.tag != 1 {
			t.Errorf("tag %d, want 1", got.tag)
		}
		c.publishAll(1, q2, "2", "3")
		if got := c.mustGet(1, q2, true); got.tag != 2 {
			t.Errorf("tag %d, want 2", got.tag)
		}
		c.consume(1, q2, "free", true)
		if got := c.deliver(1); got.tag != 3 {
			t.Errorf("tag %d, want 3", got.tag)
		}
		c.publish(1, "", q1, "4")
		if got := c.deliver(1); got.tag != 4 {
			t.Errorf("tag %d, want 4", got.tag)
		}
		c.publish(1, "", q1, "5")
		c.deliver(1)
		c.ack(1, 1, false)
		c.ack(1, 5, true)
		c.sync(1)
		c.publish(2, "", q2, "other channel")
		c.deliver(1)
	})
}

// TestBAS_11_MultipleZero: everything outstanding, and fine with nothing outstanding.
func TestBAS_11_MultipleZero(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.ack(1, 0, true)
		c.nack(1, 0, true, true)
		c.sync(1)
		q := c.newQueue(1)
		c.publishAll(1, q, "a", "b", "c")
		c.awaitReady(1, q, 3)
		for range 3 {
			c.mustGet(1, q, false)
		}
		c.ack(1, 0, true)
		c.closeChannel(1)
		c.open(1)
		if ready, _ := c.depth(1, q); ready != 0 {
			t.Errorf("%d messages after ack of all", ready)
		}
	})
}

// TestBAS_12_AckMultiple: all outstanding tags up to N, of all consumers and gets of the channel, no more.
func TestBAS_12_AckMultiple(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q1, q2 := c.newQueue(1), c.newQueue(1)
		c.publishAll(1, q1, "a", "b")
		c.publishAll(1, q2, "c", "d")
		c.awaitReady(1, q1, 2)
		c.awaitReady(1, q2, 2)
		c.mustGet(1, q1, false)      // 1
		c.consume(1, q2, "t", false) // 2, 3
		c.deliverBodies(1, "c", "d")
		c.mustGet(1, q1, false) // 4
		c.ack(1, 2, true)
		c.closeChannel(1)
		if got := c.mustGet(2, q1, true); got.body != "b" || !got.redelivered || got.count != 0 {
			t.Errorf("left in the first queue: %+v", got)
		}
		if got := c.mustGet(2, q2, true); got.body != "d" || !got.redelivered || got.count != 0 {
			t.Errorf("left in the second queue: %+v", got)
		}
	})
}
