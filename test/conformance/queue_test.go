package conformance

import (
	"regexp"
	"strings"
	"testing"

	"ringmq/test/harness"
)

// withTTL is a set-up that declares a queue with x-message-ttl 60000 as {q}.
func withTTL(c *client) map[string]string {
	q := unique("q")
	c.queue(1, q, flags{}, table("x-message-ttl", 60000))
	return newNames("q", q)
}

func declareQ(f flags, a tbl) func(c *client, n map[string]string) {
	return func(c *client, n map[string]string) { c.method(1, 50, 10, queueArgs(n["q"], f, a)) }
}

const noCurrent = "no previously declared queue"

var queueRefusals = []refusal{
	{id: "QUE-01", name: "invalid UTF-8", conn: true, code: 501, text: "Malformed UTF-8 in shortstr",
		send: func(c *client, _ map[string]string) { c.method(1, 50, 10, queueArgs("q\xc3\x28", flags{}, "")) }},
	{id: "QUE-02", name: "reserved prefix", code: 403, failed: m(50, 10),
		text: "queue name 'amq.mine' contains reserved prefix 'amq.*'",
		send: func(c *client, _ map[string]string) { c.method(1, 50, 10, queueArgs("amq.mine", flags{}, "")) }},
	{id: "QUE-04", name: "other durability", setup: withQueue, code: 406, failed: m(50, 10),
		text: "inequivalent arg 'durable' for queue '{q}' in vhost '/': received 'true' but current is 'false'",
		send: declareQ(flags{durable: true}, "")},
	{id: "QUE-04", name: "other auto-delete", setup: withQueue, code: 406, failed: m(50, 10),
		text: "inequivalent arg 'auto_delete' for queue '{q}' in vhost '/': received 'true' but current is 'false'",
		send: declareQ(flags{autoDelete: true}, "")},
	{id: "QUE-04", name: "argument added", setup: withQueue, code: 406, failed: m(50, 10),
		text: "inequivalent arg 'x-message-ttl' for queue '{q}' in vhost '/': received the value '10' of type " +
			"'signedint' but current is none",
		send: declareQ(flags{}, table("x-message-ttl", 10))},
	{id: "QUE-04", name: "argument of another value", setup: withTTL, code: 406, failed: m(50, 10),
		text: "inequivalent arg 'x-message-ttl' for queue '{q}' in vhost '/': received '5' but current is '60000'",
		send: declareQ(flags{}, table("x-message-ttl", 5))},
	{id: "QUE-04", name: "argument left out", setup: withTTL, code: 406, failed: m(50, 10),
		text: "inequivalent arg 'x-message-ttl' for queue '{q}' in vhost '/': received none but current is the value " +
			"'60000' of type 'signedint'", send: declareQ(flags{}, "")},
	{id: "QUE-05", name: "exclusive on a plain queue", setup: withQueue, code: 405, failed: m(50, 10),
		text: lockedText, send: declareQ(flags{exclusive: true}, "")},
	{id: "QUE-07", name: "passive on a missing one", setup: freshName, code: 404, failed: m(50, 10),
		text: "no queue '{q}' in vhost '/'", send: declareQ(flags{passive: true}, "")},
	{id: "QUE-07", name: "passive with an empty name", setup: withQueue, code: 404, failed: m(50, 10),
		text: "no queue '' in vhost '/'",
		send: func(c *client, _ map[string]string) { c.method(1, 50, 10, queueArgs("", flags{passive: true}, "")) }},
	{id: "QUE-08", name: "bind", code: 404, text: noCurrent, failed: m(50, 20),
		send: func(c *client, _ map[string]string) { c.method(1, 50, 20, bindArgs("", "amq.direct", "k", "")) }},
	{id: "QUE-08", name: "unbind", code: 404, text: noCurrent, failed: m(50, 50),
		send: func(c *client, _ map[string]string) { c.method(1, 50, 50, unbindArgs("", "amq.direct", "k", "")) }},
	{id: "QUE-08", name: "purge", code: 404, text: noCurrent, failed: m(50, 30),
		send: func(c *client, _ map[string]string) { c.method(1, 50, 30, args().u16(0).ss("").bits(false)) }},
	{id: "QUE-08", name: "delete", code: 404, text: noCurrent, failed: m(50, 40),
		send: func(c *client, _ map[string]string) { c.method(1, 50, 40, deleteQueueArgs("", flags{})) }},
	{id: "QUE-08", name: "get", code: 404, text: noCurrent, failed: m(60, 70),
		send: func(c *client, _ map[string]string) { c.method(1, 60, 70, getArgs("", true)) }},
	{id: "QUE-08", name: "consume", code: 404, text: noCurrent, failed: m(60, 20),
		send: func(c *client, _ map[string]string) {
			c.method(1, 60, 20, consumeArgs("", "t", false, true, false, false, ""))
		}},
	{id: "QUE-10", name: "delete if-unused with a consumer", code: 406, failed: m(50, 40),
		text: "queue '{q}' in vhost '/' in use",
		setup: func(c *client) map[string]string {
			n := withQueue(c)
			c.consume(2, n["q"], "", true)
			return n
		},
		send: func(c *client, n map[string]string) {
			c.method(1, 50, 40, deleteQueueArgs(n["q"], flags{ifUnused: true}))
		}},
	{id: "QUE-10", name: "delete if-empty with a message", code: 406, failed: m(50, 40),
		text: "queue '{q}' in vhost '/' not empty",
		setup: func(c *client) map[string]string {
			n := withQueue(c)
			c.publish(1, "", n["q"], "x")
			c.awaitReady(1, n["q"], 1)
			return n
		},
		send: func(c *client, n map[string]string) {
			c.method(1, 50, 40, deleteQueueArgs(n["q"], flags{ifEmpty: true}))
		}},
	{id: "QUE-12", name: "purge a missing one", setup: freshName, code: 404, failed: m(50, 30),
		text: "no queue '{q}' in vhost '/'",
		send: func(c *client, n map[string]string) { c.method(1, 50, 30, args().u16(0).ss(n["q"]).bits(false)) }},
	{id: "BAS-02", name: "consume from a missing one", setup: freshName, code: 404, failed: m(60, 20),
		text: "no queue '{q}' in vhost '/'",
		send: func(c *client, n map[string]string) {
			c.method(1, 60, 20, consumeArgs(n["q"], "t", false, true, false, false, ""))
		}},
	{id: "BAS-09", name: "get from a missing one", setup: freshName, code: 404, failed: m(60, 70),
		text: "no queue '{q}' in vhost '/'",
		send: func(c *client, n map[string]string) { c.method(1, 60, 70, getArgs(n["q"], true)) }},
}

const lockedText = "cannot obtain exclusive access to locked queue '{q}' in vhost '/'. It could be originally declared " +
	"on another connection or the exclusive property value does not match that of the original declaration."

// TestQueueRefusals: QUE-01 to QUE-12.
func TestQueueRefusals(t *testing.T) { runRefusals(t, queueRefusals) }

// TestQUE_01_ServerNamed: amq.gen- and 22 URL-safe characters; it becomes the channel's current queue.
func TestQUE_01_ServerNamed(t *testing.T) {
	shape := regexp.MustCompile(`^amq\.gen-[A-Za-z0-9_-]{22}$`)
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		first, _, _ := c.queue(1, "", flags{exclusive: true}, "")
		second, _, _ := c.queue(1, "", flags{exclusive: true}, "")
		for _, name := range []string{first, second} {
			if !shape.MatchString(name) {
				t.Errorf("server-named queue %q", name)
			}
		}
		if first == second {
			t.Errorf("the same name twice: %q", first)
		}
		// QUE-08: an empty name is the current queue, per channel, in every method.
		c.bind(1, "", "amq.direct", second, "")
		c.publish(1, "amq.direct", second, "x")
		if got := c.mustGet(1, "", true); got.body != "x" {
			t.Errorf("got %+v", got)
		}
		c.publish(1, "", second, "y")
		if n := c.purge(1, ""); n != 1 {
			t.Errorf("purged %d from the current queue, want 1", n)
		}
		c.consume(1, "", "t", true)
		c.publish(1, "", second, "z")
		c.deliverBodies(1, "z")
		c.cancel(1, "t")
		c.unbind(1, "", "amq.direct", second, "")
		c.deleteQueue(1, "", flags{})
		c.method(2, 60, 70, getArgs("", true))
		checkFault(t, c.channelFault(2), 404, noCurrent, m(60, 70))
	})
}

// TestQUE_08_EmptyKey: with queue and routing key both empty, the key becomes the queue's name.
func TestQUE_08_EmptyKey(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		x, q := c.newExchange(1, "direct"), c.newQueue(1)
		c.bind(1, "", x, "", "")
		c.publish(1, x, q, "by name")
		if got := c.drain(1, q); len(got) != 1 {
			t.Errorf("%d messages through the binding, want 1", len(got))
		}
		c.unbind(1, "", x, "", "")
		c.publish(1, x, q, "x")
		if ready, _ := c.depth(1, q); ready != 0 {
			t.Error("the binding is still there")
		}
	})
}

// TestQUE_03_Counts: ready messages, not unacked ones, and consumers.
func TestQUE_03_Counts(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.publishAll(1, q, "a", "b", "c")
		if b.IsRabbitMQ() {
			c.awaitReady(1, q, 3)
		}
		if _, ready, consumers := c.queue(1, q, flags{}, ""); ready != 3 || consumers != 0 {
			t.Errorf("ready %d, consumers %d, want 3, 0", ready, consumers)
		}
		c.mustGet(1, q, false)
		if _, ready, _ := c.queue(1, q, flags{}, ""); ready != 2 {
			t.Errorf("ready %d with one unacked, want 2", ready)
		}
		c.qos(1, 1, false)
		c.consume(1, q, "t1", false)
		c.deliverBodies(1, "b")
		if ready, consumers := c.depth(1, q); ready != 1 || consumers != 1 {
			t.Errorf("ready %d, consumers %d, want 1, 1", ready, consumers)
		}
	})
}

// TestQUE_04_Redeclare: what is not compared, and widths that do not matter.
func TestQUE_04_Redeclare(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := unique("q")
		c.queue(1, q, flags{durable: true}, table("x-message-ttl", 60000, "x-own", "1"))
		for _, a := range []tbl{table("x-message-ttl", vl(60000)), table("x-message-ttl", vL(60000)),
			table("x-message-ttl", vi(60000), "x-other", true), table("x-message-ttl", vu(60000))} {
			if got, _, _ := c.queue(1, q, flags{durable: true}, a); got != q {
				t.Errorf("declare-ok names %q", got)
			}
		}
		// QUE-07: passive ignores all else.
		c.queue(1, q, flags{passive: true, autoDelete: true, exclusive: true}, table("x-message-ttl", "text"))
		// QUE-06: durable is ignored with exclusive.
		own := unique("q")
		c.queue(1, own, flags{exclusive: true, durable: true}, "")
		c.queue(1, own, flags{exclusive: true}, "")
	})
}

// TestQUE_05_Locked: every access from another connection but publish, and unbind of a missing binding.
func TestQUE_05_Locked(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		owner, other := connect(t, b).open(1, 2), connect(t, b).open(1)
		q, x := unique("q"), owner.newExchange(1, "direct")
		owner.queue(1, q, flags{exclusive: true}, "")
		owner.bind(1, q, x, "k", "")
		text := strings.ReplaceAll(lockedText, "{q}", q)
		for name, row := range map[string]struct {
			class, method uint16
			a             *enc
		}{
			"declare":           {50, 10, queueArgs(q, flags{}, "")},
			"declare exclusive": {50, 10, queueArgs(q, flags{exclusive: true}, "")},
			"passive declare":   {50, 10, queueArgs(q, flags{passive: true}, "")},
			"bind":              {50, 20, bindArgs(q, x, "k2", "")},
			"unbind":            {50, 50, unbindArgs(q, x, "k", "")},
			"consume":           {60, 20, consumeArgs(q, "t", false, true, false, false, "")},
			"get":               {60, 70, getArgs(q, true)},
			"purge":             {50, 30, args().u16(0).ss(q).bits(false)},
			"delete":            {50, 40, deleteQueueArgs(q, flags{})},
		} {
			t.Run(name, func(t *testing.T) {
				other.method(1, row.class, row.method, row.a)
				checkFault(t, other.channelFault(1), 405, text, m(uint32(row.class), uint32(row.method)))
				other.open(1)
			})
		}
		other.unbind(1, q, x, "missing", "")
		other.publish(1, "", q, "let in")
		other.sync(1)
		// QUE-06: the same connection has full access on any channel.
		owner.awaitReady(2, q, 1)
		if got := owner.mustGet(2, q, true); got.body != "let in" {
			t.Errorf("got %+v", got)
		}
		owner.shut()
		other.queue(1, q, flags{}, "") // QUE-06: gone with the connection
	})
}

// TestQUE_09_AutoDelete: gone with the last consumer, never before the first; basic.get does not count.
func TestQUE_09_AutoDelete(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		end := map[string]func(q string){
			"cancel": func(string) { c.cancel(2, "t") },
			"cancel without wait": func(string) {
				c.method(2, 60, 30, args().ss("t").bits(true))
				c.sync(2)
			},
			"channel close": func(string) { c.closeChannel(2); c.open(2) },
		}
		for name, finish := range end {
			t.Run(name, func(t *testing.T) {
				q := unique("q")
				c.queue(1, q, flags{autoDelete: true}, "")
				c.publish(1, "", q, "x")
				c.awaitReady(1, q, 1)
				c.mustGet(1, q, true)
				c.queue(1, q, flags{passive: true}, "")
				c.consume(2, q, "t", true)
				c.consume(2, q, "t2", true)
				c.cancel(2, "t2")
				c.queue(1, q, flags{passive: true}, "")
				finish(q)
				c.method(2, 50, 10, queueArgs(q, flags{passive: true}, "")) // pipelined behind the end
				if f := c.channelFault(2); f.code != 404 {
					t.Errorf("the queue outlived its last consumer: %+v", f)
				}
				c.open(2)
			})
		}
		t.Run("connection end", func(t *testing.T) {
			q, other := unique("q"), connect(t, b).open(1)
			other.queue(1, q, flags{autoDelete: true}, "")
			other.consume(1, q, "t", false)
			other.cut()
			eventually(t, "the queue goes with its consumer's connection", func() bool {
				c.method(2, 50, 10, queueArgs(q, flags{passive: true}, ""))
				if f := c.next(); f.id() == m(50, 11) {
					return false
				}
				c.method(2, 20, 41, nil)
				c.open(2)
				return true
			})
		})
	})
}

// TestQUE_10_11_Delete: missing is fine, only ready messages count, consumers are told, later acks are fine, pending
// confirms are acked.
func TestQUE_10_11_Delete(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		if n := c.deleteQueue(1, unique("none"), flags{}); n != 0 {
			t.Errorf("delete-ok counts %d for a missing queue", n)
		}
		q := c.newQueue(1)
		c.publishAll(1, q, "a", "b", "c")
		c.awaitReady(1, q, 3)
		held := c.mustGet(1, q, false)
		c.qos(2, 1, false)
		tag := c.consume(2, q, "", false)
		c.deliverBodies(2, "b")
		c.method(1, 50, 40, deleteQueueArgs(q, flags{}))
		if n := readDeleteAndCancel(c, tag); n != 1 {
			t.Errorf("delete-ok counts %d ready, want 1", n)
		}
		c.ack(1, held.tag, false)
		c.ack(2, 1, false)
		c.sync(1)
		c.sync(2)
		// if-empty looks at ready messages only.
		q = c.newQueue(1)
		c.publish(1, "", q, "x")
		c.awaitReady(1, q, 1)
		c.mustGet(1, q, false)
		c.deleteQueue(1, q, flags{ifEmpty: true, ifUnused: true})
		// The name is free, and nothing of the old queue is left.
		if _, ready, _ := c.queue(1, q, flags{durable: true}, ""); ready != 0 {
			t.Errorf("%d messages in a new queue", ready)
		}
	})
}

// readDeleteAndCancel reads delete-ok on channel 1 and basic.cancel of the tag on channel 2, in any order.
func readDeleteAndCancel(c *client, tag string) uint32 {
	c.t.Helper()
	var count uint32
	for range 2 {
		f := c.next()
		d := &dec{c.t, f.payload[4:]}
		switch {
		case f.channel == 1 && f.id() == m(50, 41):
			count = d.u32()
		case f.channel == 2 && f.id() == m(60, 30):
			if got, noWait := d.ss(), d.u8(); got != tag || noWait != 1 {
				c.t.Errorf("basic.cancel of %q, no-wait %d, want %q, 1", got, noWait, tag)
			}
		default:
			c.t.Fatalf("got %v, want delete-ok or basic.cancel", f)
		}
	}
	return count
}

// TestQUE_12_Purge: ready messages only.
func TestQUE_12_Purge(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.publishAll(1, q, "a", "b", "c")
		c.awaitReady(1, q, 3)
		c.mustGet(1, q, false)
		if n := c.purge(1, q); n != 2 {
			t.Errorf("purged %d, want 2", n)
		}
		c.nack(1, 1, false, true)
		if got := c.mustGet(1, q, true); got.body != "a" || !got.redelivered {
			t.Errorf("the unacked message came back as %+v", got)
		}
		if n := c.purge(1, q); n != 0 {
			t.Errorf("purged %d of an empty queue", n)
		}
	})
}

// TestLongReplyTexts: names of 255 bytes in a refusal must not overflow the reply text, whose limit is 255 as well.
func TestLongReplyTexts(t *testing.T) {
	long := strings.Repeat("n", 255)
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		for name, row := range map[string]struct {
			class, method uint16
			a             *enc
			code          uint16
		}{
			"queue":       {50, 10, queueArgs(long, flags{passive: true}, ""), 404},
			"exchange":    {40, 10, exchangeArgs(long, "", flags{passive: true}, ""), 404},
			"reserved":    {50, 10, queueArgs("amq."+long[4:], flags{}, ""), 403},
			"both ends":   {50, 20, bindArgs(long, long, long, ""), 404},
			"get":         {60, 70, getArgs(long, true), 404},
			"system name": {40, 20, deleteExchangeArgs("amq."+long[4:], flags{}), 403},
		} {
			t.Run(name, func(t *testing.T) {
				c.method(1, row.class, row.method, row.a)
				if f := c.channelFault(1); f.code != row.code || !strings.Contains(f.text, "nnnnnnnnnn") {
					t.Errorf("got %+v, want %d", f, row.code)
				}
				c.open(1)
			})
		}
	})
}
