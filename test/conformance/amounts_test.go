package conformance

import (
	"encoding/binary"
	"fmt"
	"testing"

	"ringmq/test/harness"
)

// manyOf is how many of each there are in TestGEN_01_TenThousand.
const manyOf = 10_000

// TestGEN_01_TenThousand: ten thousand exchanges, queues, bindings of one queue and consumers of one queue are there,
// all of them work, and all of them go.
func TestGEN_01_TenThousand(t *testing.T) {
	t.Parallel()
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		for name, run := range map[string]func(t *testing.T, c *client, b *harness.Broker){
			"exchanges": manyExchanges, "queues": manyQueues, "bindings of a queue": manyBindings, "consumers of a queue": manyConsumers,
		} {
			t.Run(name, func(t *testing.T) { run(t, connect(t, b).open(1, 2), b) })
		}
	})
}

// repeat writes what one returns for each number, a thousand at a time, and awaits an answer after the last: none of
// them was refused.
func (c *client) repeat(count int, one func(i int) []byte) {
	c.t.Helper()
	var out []byte
	for i := range count {
		out = append(out, one(i)...)
		if i%1000 == 999 || i == count-1 {
			c.write(out)
			out = out[:0]
		}
	}
	c.sync(1)
}

// manyExchanges feeds ten thousand exchanges, half of them bound to by the other half, into one queue.
func manyExchanges(t *testing.T, c *client, _ *harness.Broker) {
	q, last, stem := c.newQueue(1), c.newExchange(1, "fanout"), unique("x")
	c.bind(1, q, last, "", "")
	name := func(i int) string { return fmt.Sprint(stem, "-", i) }
	kinds := []string{"fanout", "direct", "topic", "headers"}
	c.repeat(manyOf, func(i int) []byte {
		declare := methodFrame(1, 40, 10, exchangeArgs(name(i), kinds[i%len(kinds)], flags{noWait: true}, ""))
		to := last
		if i%2 == 1 {
			to = name(i - 1)
		}
		return append(declare, methodFrame(1, 40, 30, args().u16(0).ss(to).ss(name(i)).ss("k").bits(true).table(""))...)
	})
	c.repeat(manyOf, func(i int) []byte {
		return contentFrames(1, publishArgs(name(i), "k", false, false), []byte{0, 0}, []byte("m"), c.frameMax)
	})
	if n := c.purge(1, q); n != manyOf {
		t.Errorf("%d of %d messages came through", n, manyOf)
	}
	c.repeat(manyOf, func(i int) []byte { return methodFrame(1, 40, 20, deleteExchangeArgs(name(i), flags{noWait: true})) })
	c.method(1, 40, 10, exchangeArgs(name(manyOf-1), "", flags{passive: true}, ""))
	if f := c.channelFault(1); f.code != 404 {
		t.Errorf("after the delete: %+v", f)
	}
}

// manyQueues sends one message to ten thousand queues by a fanout exchange, and one to each by its name.
func manyQueues(t *testing.T, c *client, _ *harness.Broker) {
	x, stem := c.newExchange(1, "fanout"), unique("q")
	name := func(i int) string { return fmt.Sprint(stem, "-", i) }
	c.repeat(manyOf, func(i int) []byte {
		declare := methodFrame(1, 50, 10, queueArgs(name(i), flags{noWait: true}, ""))
		return append(declare, methodFrame(1, 50, 20, args().u16(0).ss(name(i)).ss(x).ss("").bits(true).table(""))...)
	})
	c.confirm(2)
	c.publish(2, x, "", "to all")
	c.confirmed(2, 1)
	c.repeat(manyOf, func(i int) []byte {
		return contentFrames(1, publishArgs("", name(i), false, false), []byte{0, 0}, []byte("to one"), c.frameMax)
	})
	// One delete-ok counts what was in the queue; all are awaited.
	var out []byte
	for i := range manyOf {
		out = append(out, methodFrame(1, 50, 40, deleteQueueArgs(name(i), flags{}))...)
	}
	go func() { _, _ = c.nc.Write(out) }() // the answers below tell whether it went well
	for i := range manyOf {
		if n := c.expect(1, 50, 41).u32(); n != 2 {
			t.Fatalf("queue %d had %d messages, want 2", i, n)
		}
	}
}

// manyBindings reaches one queue by each of ten thousand keys, and by none once they are unbound.
func manyBindings(t *testing.T, c *client, _ *harness.Broker) {
	for _, kind := range []string{"direct", "topic"} {
		q, x := c.newQueue(1), c.newExchange(1, kind)
		key := func(i int) string { return fmt.Sprint("k.", i) }
		publishes := func(i int) []byte {
			return contentFrames(1, publishArgs(x, key(i), false, false), []byte{0, 0}, []byte("m"), c.frameMax)
		}
		c.repeat(manyOf, func(i int) []byte {
			return methodFrame(1, 50, 20, args().u16(0).ss(q).ss(x).ss(key(i)).bits(true).table(""))
		})
		c.repeat(manyOf, publishes)
		if n := c.purge(1, q); n != manyOf {
			t.Errorf("%s: %d of %d messages came through", kind, n, manyOf)
		}
		var out []byte
		for i := range manyOf - 1 { // queue.unbind has no no-wait
			out = append(out, methodFrame(1, 50, 50, unbindArgs(q, x, key(i), ""))...)
		}
		go func() { _, _ = c.nc.Write(out) }() // the answers below tell whether it went well
		for range manyOf - 1 {
			c.expect(1, 50, 51)
		}
		c.repeat(manyOf, publishes)
		if got, ok := c.get(1, q, true); !ok || got.key != key(manyOf-1) || got.count != 0 {
			t.Errorf("%s: after the unbinds %+v, %v", kind, got, ok)
		}
		c.deleteQueue(1, q, flags{})
	}
}

// manyConsumers lets ten thousand consumers of one queue, on ten connections, take one message each.
func manyConsumers(t *testing.T, c *client, b *harness.Broker) {
	const connections, each = 10, manyOf / 10
	q := c.newQueue(1)
	var all []*client
	for range connections {
		con := connect(t, b).open(1, 2)
		con.repeat(each, func(i int) []byte {
			return methodFrame(uint16(1+i%2), 60, 20, consumeArgs(q, fmt.Sprint(i), false, true, false, true, ""))
		})
		con.sync(2)
		all = append(all, con)
	}
	if _, consumers := c.depth(1, q); consumers != manyOf {
		t.Errorf("%d consumers, want %d", consumers, manyOf)
	}
	c.repeat(manyOf, func(i int) []byte {
		return contentFrames(1, publishArgs("", q, false, false), []byte{0, 0}, binary.BigEndian.AppendUint32(nil, uint32(i)), c.frameMax)
	})
	for n, con := range all {
		seen := map[string]bool{}
		for range each {
			f := con.next()
			if f.id() != m(60, 60) {
				t.Fatalf("connection %d got %v after %d deliveries", n, f, len(seen))
			}
			var msg message
			con.content(f.channel, &msg)
			seen[(&dec{t, f.payload[4:]}).ss()] = true
		}
		if len(seen) != each { // BAS-17: they take turns
			t.Errorf("connection %d: %d of %d consumers got a message", n, len(seen), each)
		}
		con.shut()
	}
	eventually(t, "all consumers gone", func() bool { _, n := c.depth(1, q); return n == 0 })
}
