package conformance

import (
	"strings"
	"testing"

	"ringmq/test/harness"
)

var exchangeRefusals = []refusal{
	{id: "EXC-02", name: "invalid UTF-8", setup: freshName, conn: true, code: 501, text: "Malformed UTF-8 in shortstr",
		send: func(c *client, _ map[string]string) {
			c.method(1, 40, 10, exchangeArgs("x\xff\xfe", "direct", flags{}, ""))
		}},
	{id: "EXC-03", name: "unknown type", setup: freshName, code: 406, text: "unknown exchange type 'nosuch'",
		failed: m(40, 10), ours: "503 up to 3.13.0", send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "nosuch", flags{}, ""))
		}},
	{id: "EXC-03", name: "empty type", setup: freshName, code: 406, text: "invalid exchange type ''",
		failed: m(40, 10), ours: "503 up to 3.13.0", send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "", flags{}, ""))
		}},
	{id: "EXC-04", name: "reserved prefix", code: 403, text: "exchange name 'amq.mine' contains reserved prefix 'amq.*'",
		failed: m(40, 10), send: func(c *client, _ map[string]string) {
			c.method(1, 40, 10, exchangeArgs("amq.mine", "direct", flags{}, ""))
		}},
	{id: "EXC-05", name: "declare default", code: 403, text: "operation not permitted on the default exchange",
		failed: m(40, 10), send: func(c *client, _ map[string]string) {
			c.method(1, 40, 10, exchangeArgs("", "direct", flags{durable: true}, ""))
		}},
	{id: "EXC-05", name: "passive declare default", code: 403, text: "operation not permitted on the default exchange",
		failed: m(40, 10), send: func(c *client, _ map[string]string) {
			c.method(1, 40, 10, exchangeArgs("", "direct", flags{passive: true}, ""))
		}},
	{id: "EXC-05", name: "delete default", code: 403, text: "operation not permitted on the default exchange",
		failed: m(40, 20), send: func(c *client, _ map[string]string) {
			c.method(1, 40, 20, deleteExchangeArgs("", flags{}))
		}},
	{id: "EXC-05", name: "bind queue to default", setup: withQueue, code: 403,
		text: "operation not permitted on the default exchange", failed: m(50, 20),
		send: func(c *client, n map[string]string) { c.method(1, 50, 20, bindArgs(n["q"], "", "k", "")) }},
	{id: "EXC-05", name: "unbind queue from default", setup: withQueue, code: 403,
		text: "operation not permitted on the default exchange", failed: m(50, 50),
		send: func(c *client, n map[string]string) { c.method(1, 50, 50, unbindArgs(n["q"], "", n["q"], "")) }},
	{id: "EXC-05", name: "default as destination", setup: withExchange, code: 403,
		text: "operation not permitted on the default exchange", failed: m(40, 30),
		send: func(c *client, n map[string]string) { c.method(1, 40, 30, bindArgs("", n["x"], "k", "")) }},
	{id: "BIND-04", name: "default as source", setup: withExchange, code: 403,
		text: "operation not permitted on the default exchange", failed: m(40, 40),
		send: func(c *client, n map[string]string) { c.method(1, 40, 40, bindArgs(n["x"], "", "k", "")) }},
	{id: "EXC-06", name: "other durability", setup: withExchange, code: 406, failed: m(40, 10),
		text: "inequivalent arg 'durable' for exchange '{x}' in vhost '/': received 'true' but current is 'false'",
		send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "direct", flags{durable: true}, ""))
		}},
	{id: "EXC-06", name: "other type", setup: withExchange, code: 406, failed: m(40, 10),
		text: "inequivalent arg 'type' for exchange '{x}' in vhost '/': received 'fanout' but current is 'direct'",
		send: func(c *client, n map[string]string) { c.method(1, 40, 10, exchangeArgs(n["x"], "fanout", flags{}, "")) }},
	{id: "EXC-06", name: "other auto-delete", setup: withExchange, code: 406, failed: m(40, 10),
		text: "inequivalent arg 'auto_delete' for exchange '{x}' in vhost '/': received 'true' but current is 'false'",
		send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "direct", flags{autoDelete: true}, ""))
		}},
	{id: "EXC-06", name: "other internal", setup: withExchange, code: 406, failed: m(40, 10),
		text: "inequivalent arg 'internal' for exchange '{x}' in vhost '/': received 'true' but current is 'false'",
		send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "direct", flags{internal: true}, ""))
		}},
	{id: "EXC-07", name: "alternate exchange added", setup: withExchange, code: 406, failed: m(40, 10),
		text: "inequivalent arg 'alternate-exchange' for exchange '{x}' in vhost '/': received the value 'ae' of type " +
			"'longstr' but current is none",
		send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "direct", flags{}, table("alternate-exchange", "ae")))
		}},
	{id: "EXC-08", name: "passive on a missing one", setup: freshName, code: 404, failed: m(40, 10),
		text: "no exchange '{x}' in vhost '/'", send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "direct", flags{passive: true}, ""))
		}},
	{id: "EXC-09", name: "alternate exchange of a wrong type", setup: freshName, code: 406, failed: m(40, 10),
		text: "invalid type 'signedint' for arg 'alternate-exchange' in exchange '{x}' in vhost '/'",
		send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "direct", flags{}, table("alternate-exchange", 5)))
		}},
	{id: "EXC-11", name: "publish to an internal one", code: 403, failed: m(60, 40),
		text: "cannot publish to internal exchange '{x}' in vhost '/'",
		setup: func(c *client) map[string]string {
			x := unique("x")
			c.exchange(1, x, "fanout", flags{internal: true}, "")
			return newNames("x", x)
		},
		send: func(c *client, n map[string]string) { c.publish(1, n["x"], "k", "b") }},
	{id: "EXC-12", name: "delete a system exchange", code: 403, failed: m(40, 20),
		text: "deletion of system exchange 'amq.direct' in vhost '/' not allowed",
		send: func(c *client, _ map[string]string) { c.method(1, 40, 20, deleteExchangeArgs("amq.direct", flags{})) }},
	{id: "EXC-12", name: "delete a missing system exchange", code: 403, failed: m(40, 20),
		text: "deletion of system exchange 'amq.none' in vhost '/' not allowed",
		send: func(c *client, _ map[string]string) { c.method(1, 40, 20, deleteExchangeArgs("amq.none", flags{})) }},
	{id: "EXC-13", name: "delete if-unused with a queue bound", code: 406, failed: m(40, 20),
		text: "exchange '{x}' in vhost '/' in use",
		setup: func(c *client) map[string]string {
			n := withExchange(c)
			c.bind(1, n["q"], n["x"], "k", "")
			return n
		},
		send: func(c *client, n map[string]string) {
			c.method(1, 40, 20, deleteExchangeArgs(n["x"], flags{ifUnused: true}))
		}},
}

// TestExchangeRefusals: EXC-02 to EXC-13.
func TestExchangeRefusals(t *testing.T) { runRefusals(t, exchangeRefusals) }

// TestEXC_01_Predeclared: the exchanges that every virtual host has, with their types.
func TestEXC_01_Predeclared(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		for name, kind := range map[string]string{"amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic",
			"amq.headers": "headers", "amq.match": "headers"} {
			c.exchange(1, name, kind, flags{durable: true}, "") // EXC-04: equal properties are fine
		}
		c.exchange(1, "amq.rabbitmq.trace", "topic", flags{durable: true, internal: true}, "")
		q := c.newQueue(1)
		c.publish(1, "", q, "by name") // QUE-13: the default binding
		if got := c.mustGet(1, q, true); got.body != "by name" || got.exchange != "" || got.key != q {
			t.Errorf("got %+v", got)
		}
	})
}

// TestEXC_02_Names: 255 bytes of any valid UTF-8; CR and LF are removed on declare, bind and delete.
func TestEXC_02_Names(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		base := unique("n")
		for _, name := range []string{base + strings.Repeat("ü", 100) + strings.Repeat("x", 55-len(base)), base + " space/#?*\x01",
			base + "日本"} {
			c.exchange(1, name, "fanout", flags{}, "")
			c.bind(1, q, name, "", "")
			c.publish(1, name, "", "x")
			if got := c.mustGet(1, q, true); got.exchange != name {
				t.Errorf("exchange %q, want %q", got.exchange, name)
			}
		}
		c.exchange(1, base+"\r\nsplit", "fanout", flags{}, "")
		c.exchange(1, base+"split", "", flags{passive: true}, "")
		c.bind(1, q, base+"sp\nlit", "", "")
		c.publish(1, base+"split", "", "x")
		c.mustGet(1, q, true)
		c.deleteExchange(1, base+"split\r", flags{})
		c.method(1, 40, 10, exchangeArgs(base+"split", "", flags{passive: true}, ""))
		if f := c.channelFault(1); f.code != 404 {
			t.Errorf("the exchange is still there after delete: %+v", f)
		}
	})
}

// TestEXC_06_Redeclare: equal properties are fine, arguments nobody compares are ignored, passive looks at the name only.
func TestEXC_06_Redeclare(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		x := unique("x")
		c.exchange(1, x, "topic", flags{durable: true}, table("x-own", "1", "alternate-exchange", "nowhere-yet"))
		c.exchange(1, x, "topic", flags{durable: true}, table("alternate-exchange", "nowhere-yet"))
		c.exchange(1, x, "nosuch", flags{passive: true, autoDelete: true}, table("alternate-exchange", 5)) // EXC-08
	})
}

// TestEXC_10_AutoDelete: gone with the last outgoing binding, never before one existed, cascading upstream.
func TestEXC_10_AutoDelete(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		exists := func(x string) bool {
			c.method(1, 40, 10, exchangeArgs(x, "", flags{passive: true}, ""))
			f := c.next()
			if f.id() == m(40, 11) {
				return true
			}
			c.method(1, 20, 41, nil)
			c.open(1)
			return false
		}
		up, down, q := unique("up"), unique("down"), c.newQueue(1)
		c.exchange(1, up, "fanout", flags{autoDelete: true}, "")
		c.exchange(1, down, "fanout", flags{autoDelete: true}, "")
		c.bindExchange(1, down, up, "", "")
		if !exists(down) || !exists(up) {
			t.Fatal("an auto-delete exchange went without having lost a binding")
		}
		c.bind(1, q, down, "1", "")
		c.bind(1, q, down, "2", "")
		c.unbind(1, q, down, "1", "")
		if !exists(down) {
			t.Fatal("went with one binding left")
		}
		c.unbind(1, q, down, "2", "")
		if exists(down) {
			t.Error("still there after its last binding")
		}
		if exists(up) {
			t.Error("the exchange that fed it only is still there")
		}
		// The same when the queue is deleted.
		c.exchange(1, down, "direct", flags{autoDelete: true}, "")
		c.bind(1, q, down, "k", "")
		c.deleteQueue(1, q, flags{})
		if exists(down) {
			t.Error("still there after its only queue was deleted")
		}
	})
}

// TestEXC_11_Internal: an internal exchange still routes as bind target and source.
func TestEXC_11_Internal(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		front, inner, q := c.newExchange(1, "fanout"), unique("inner"), c.newQueue(1)
		c.exchange(1, inner, "direct", flags{internal: true}, "")
		c.bindExchange(1, inner, front, "", "")
		c.bind(1, q, inner, "k", "")
		c.publish(1, front, "k", "through")
		if got := c.mustGet(1, q, true); got.body != "through" || got.exchange != front {
			t.Errorf("got %+v", got)
		}
	})
}

// TestEXC_12_13_Delete: a missing exchange is deleted fine; a bound destination is not "in use".
func TestEXC_12_13_Delete(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.deleteExchange(1, unique("none"), flags{})
		src, dst, q := c.newExchange(1, "fanout"), c.newExchange(1, "fanout"), c.newQueue(1)
		c.bindExchange(1, dst, src, "", "")
		c.deleteExchange(1, dst, flags{ifUnused: true})
		c.deleteExchange(1, src, flags{ifUnused: true}) // its only binding went with dst
		x := c.newExchange(1, "fanout")
		c.bind(1, q, x, "", "")
		c.deleteExchange(1, x, flags{}) // not if-unused: bindings go along
		c.exchange(1, x, "fanout", flags{}, "")
		c.publish(1, x, "", "x")
		if ready, _ := c.depth(1, q); ready != 0 {
			t.Error("a binding survived its exchange")
		}
	})
}

// TestEXC_14_Cycles: self-bindings and cycles are allowed; each queue gets one copy.
func TestEXC_14_Cycles(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		x, y, z := c.newExchange(1, "fanout"), c.newExchange(1, "direct"), c.newExchange(1, "topic")
		q := c.newQueue(1)
		c.bindExchange(1, x, x, "", "")
		c.bindExchange(1, y, x, "", "")
		c.bindExchange(1, z, y, "k", "")
		c.bindExchange(1, x, z, "#", "")
		for _, source := range []string{x, z} {
			c.bind(1, q, source, "k", "")
		}
		c.publish(1, x, "k", "once")
		if got := c.drain(1, q); len(got) != 1 {
			t.Errorf("%d copies, want 1", len(got))
		}
		c.unbindExchange(1, x, z, "#", "")
		c.unbindExchange(1, x, x, "", "")
	})
}
