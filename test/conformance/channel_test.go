package conformance

import (
	"testing"

	"ringmq/test/harness"
)

var channelRefusals = []refusal{
	{id: "A-001", name: "declare-ok from a client", conn: true, code: 503, text: "unimplemented method", failed: m(50, 11),
		send: func(c *client, _ map[string]string) { c.method(1, 50, 11, args().ss("q").u32(0).u32(0)) }},
	{id: "A-001", name: "consume-ok from a client", conn: true, code: 503, text: "unimplemented method", failed: m(60, 21),
		send: func(c *client, _ map[string]string) { c.method(1, 60, 21, args().ss("t")) }},
	{id: "A-001", name: "get-empty from a client", conn: true, code: 503, text: "unimplemented method", failed: m(60, 72),
		send: func(c *client, _ map[string]string) { c.method(1, 60, 72, args().ss("")) }},
	{id: "A-001", name: "deliver with its content", conn: true, code: 503, text: "unimplemented method", failed: m(60, 60),
		send: func(c *client, _ map[string]string) {
			c.method(1, 60, 60, args().ss("t").u64(1).bits(false).ss("").ss("k"))
			c.frame(2, 1, headerPayload(3, []byte{0, 0}))
			c.frame(3, 1, []byte("abc"))
		}},
	{id: "A-001", name: "flow-ok unasked", conn: true, code: 503, text: "unimplemented method", failed: m(20, 21),
		send: func(c *client, _ map[string]string) { c.method(1, 20, 21, args().bits(true)) }},
	{id: "A-002", name: "connection method on channel 1", conn: true, code: 503, text: "...", failed: m(10, 70),
		send: func(c *client, _ map[string]string) { c.method(1, 10, 70, args().ls("s").ss("r")) }},
	{id: "A-002", name: "queue method on channel 0", conn: true, code: 504,
		text: "unexpected method in connection state running", failed: m(50, 10),
		send: func(c *client, _ map[string]string) { c.method(0, 50, 10, queueArgs("q", flags{}, "")) }},
	{id: "A-002", name: "channel.open on channel 0", conn: true, code: 504,
		text: "unexpected method in connection state running", failed: m(20, 10),
		send: func(c *client, _ map[string]string) { c.method(0, 20, 10, args().ss("")) }},
	{id: "CHA-03", name: "second open", conn: true, code: 504, text: "second 'channel.open' seen", failed: m(20, 10),
		send: func(c *client, _ map[string]string) { c.method(1, 20, 10, args().ss("")) }},
	{id: "CHA-03", name: "reopened before close-ok", conn: true, code: 504, text: "second 'channel.open' seen",
		failed: m(20, 10), send: func(c *client, _ map[string]string) {
			c.method(1, 50, 10, queueArgs(unique("none"), flags{passive: true}, ""))
			c.expect(1, 20, 40)
			c.method(1, 20, 10, args().ss(""))
		}},
	{id: "CHA-04", name: "declare on an unopened channel", conn: true, code: 504, text: "expected 'channel.open'",
		failed: m(50, 10), send: func(c *client, _ map[string]string) { c.method(9, 50, 10, queueArgs("q", flags{}, "")) }},
	{id: "CHA-04", name: "close on an unopened channel", conn: true, code: 504, text: "expected 'channel.open'",
		failed: m(20, 40), send: func(c *client, _ map[string]string) {
			c.method(9, 20, 40, args().u16(200).ss("").u16(0).u16(0))
		}},
	{id: "CHA-04", name: "close-ok on an unopened channel", conn: true, code: 504, text: "expected 'channel.open'",
		failed: m(20, 41), send: func(c *client, _ map[string]string) { c.method(9, 20, 41, nil) }},
	{id: "CHA-04", name: "header on an unopened channel", conn: true, code: 505, text: "...",
		send: func(c *client, _ map[string]string) { c.frame(2, 9, headerPayload(0, []byte{0, 0})) }},
	{id: "CHA-04", name: "body on an unopened channel", conn: true, code: 505, text: "...",
		send: func(c *client, _ map[string]string) { c.frame(3, 9, []byte("x")) }},
	{id: "CHA-06", name: "close-ok unasked", conn: true, code: 503, text: "unimplemented method", failed: m(20, 41),
		send: func(c *client, _ map[string]string) { c.method(1, 20, 41, nil) }},
	{id: "CHA-07", name: "flow off", conn: true, code: 540, text: "active=false", failed: m(20, 20),
		send: func(c *client, _ map[string]string) { c.method(1, 20, 20, args().bits(false)) }},
}

// TestChannelRefusals, CHA-03, 04, 06, 07.
func TestChannelRefusals(t *testing.T) { runRefusals(t, channelRefusals) }

// TestA_003_NoWait: no reply on success, the usual close on failure.
func TestA_003_NoWait(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q, x := unique("q"), unique("x")
		c.method(1, 50, 10, queueArgs(q, flags{noWait: true}, ""))
		c.method(1, 40, 10, exchangeArgs(x, "direct", flags{noWait: true}, ""))
		c.method(1, 50, 20, args().u16(0).ss(q).ss(x).ss("k").bits(true).table(""))
		c.method(1, 85, 10, args().bits(true))
		c.publish(1, x, "k", "hello")
		c.confirmed(1, 1)
		c.method(1, 50, 30, args().u16(0).ss(q).bits(true))
		if ready, _ := c.depth(1, q); ready != 0 {
			t.Errorf("%d messages after purge with no-wait", ready)
		}
		c.method(1, 60, 20, consumeArgs(q, "t", false, true, false, true, ""))
		if _, consumers := c.depth(1, q); consumers != 1 {
			t.Errorf("%d consumers after consume with no-wait", consumers)
		}
		c.method(1, 60, 30, args().ss("t").bits(true))
		c.method(1, 50, 40, deleteQueueArgs(q, flags{noWait: true}))
		c.method(1, 40, 20, deleteExchangeArgs(x, flags{noWait: true}))
		c.sync(1)
		// Server-named with no-wait: the current queue can still be used.
		c.method(1, 50, 10, queueArgs("", flags{exclusive: true, noWait: true}, ""))
		if _, ok := c.get(1, "", true); ok {
			t.Error("a message in a fresh queue")
		}
		// A failure is told in spite of no-wait.
		c.method(1, 60, 20, consumeArgs(q, "t", false, true, false, true, ""))
		checkFault(t, c.channelFault(1), 404, "no queue '"+q+"' in vhost '/'", m(60, 20))
	})
}

// TestA_004_Pipelining: replies of commands sent in one write come in order.
func TestA_004_Pipelining(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		var out []byte
		var names []string
		for range 200 {
			q := unique("q")
			names = append(names, q)
			out = append(out, methodFrame(1, 50, 10, queueArgs(q, flags{exclusive: true}, ""))...)
			out = append(out, contentFrames(1, publishArgs("", q, false, false), []byte{0, 0}, []byte(q), c.frameMax)...)
			out = append(out, methodFrame(1, 60, 70, getArgs(q, true))...)
		}
		c.write(out)
		for _, q := range names {
			if got := c.expect(1, 50, 11).ss(); got != q {
				t.Fatalf("declare-ok of %q, want %q", got, q)
			}
			d := c.expect(1, 60, 71)
			var msg message
			d.u64()
			c.content(1, &msg)
			if msg.body != q {
				t.Fatalf("got %q, want %q", msg.body, q)
			}
		}
	})
}

// TestA_005_ClosingChannel: after a channel error everything but close and close-ok is discarded; consumers are removed
// and unacked messages requeued at that moment.
func TestA_005_ClosingChannel(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connect(t, b).open(1, 2), connect(t, b).open(1)
		q := c.newQueue(1)
		c.publishAll(1, q, "a", "b")
		c.consume(1, q, "", false)
		c.deliverBodies(1, "a", "b")
		c.method(1, 50, 10, queueArgs(unique("none"), flags{passive: true}, ""))
		// Behind the error, still before close-ok: all of this is dropped silently.
		c.publish(1, "", q, "dropped")
		c.method(1, 50, 10, queueArgs(unique("dropped"), flags{}, ""))
		c.expect(1, 20, 40)
		other.consume(1, q, "", false)
		for _, msg := range other.deliverBodies(1, "a", "b") {
			if !msg.redelivered {
				t.Errorf("%q not redelivered", msg.body)
			}
		}
		if ready, consumers := other.depth(1, q); ready != 0 || consumers != 1 {
			t.Errorf("ready %d, consumers %d, want 0, 1", ready, consumers)
		}
		c.method(1, 20, 41, nil)
		c.open(1)
		c.sync(1)
		c.sync(2)
	})
}

// TestA_005_GetRequeuedAtOnce: what basic.get holds goes back at the error as well.
func TestA_005_GetRequeuedAtOnce(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "messages of basic.get go back at close-ok")
		c, other := connect(t, b).open(1), connect(t, b).open(1)
		q := c.newQueue(1)
		c.publish(1, "", q, "a")
		c.mustGet(1, q, false)
		c.method(1, 50, 10, queueArgs(unique("none"), flags{passive: true}, ""))
		c.expect(1, 20, 40)
		other.consume(1, q, "", false)
		other.deliverBodies(1, "a")
	})
}

// TestA_006_CrossingCloses: a client's close on a closing channel is answered, and its close-ok is still awaited.
func TestA_006_CrossingCloses(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.method(1, 50, 10, queueArgs(unique("none"), flags{passive: true}, ""))
		c.method(1, 20, 40, args().u16(200).ss("mine").u16(0).u16(0))
		c.expect(1, 20, 40)
		c.expect(1, 20, 41)
		c.method(1, 20, 41, nil)
		c.open(1)
		c.sync(1)
		// The same between connections.
		c.method(0, 50, 10, queueArgs("q", flags{}, ""))
		c.method(0, 10, 50, args().u16(200).ss("mine").u16(0).u16(0))
		c.expect(0, 10, 50)
		c.expect(0, 10, 51)
		c.method(0, 10, 51, nil)
		c.closedSocket()
	})
}

// TestA_007_ClosingConnection: after a connection error nothing is processed, exclusive queues go at once, and the
// socket closes even without close-ok.
func TestA_007_ClosingConnection(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connect(t, b).open(1), connect(t, b).open(1)
		q, exclusive := other.newQueue(1), unique("q")
		c.queue(1, exclusive, flags{exclusive: true}, "")
		c.method(1, 20, 20, args().bits(false)) // CN(540)
		c.publish(1, "", q, "dropped")
		c.expect(0, 10, 50)
		other.queue(1, exclusive, flags{}, "")
		if !b.IsRabbitMQ() { // it waits 30 s
			c.closedSocket()
		}
		if ready, _ := other.depth(1, q); ready != 0 {
			t.Errorf("%d messages published behind the error were taken", ready)
		}
	})
}

// TestCHA_01_AnyNumber: channel-max limits the count of channels, not their number.
func TestCHA_01_AnyNumber(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{channelMax: 3})
		for _, ch := range []uint16{65535, 1, 30000} {
			c.open(ch)
			c.sync(ch)
		}
	})
}

// TestCHA_02_TooMany: the count above the negotiated maximum.
func TestCHA_02_TooMany(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{channelMax: 2}).open(1, 2)
		c.closeChannel(1)
		c.open(1) // a closed one does not count
		c.method(3, 20, 10, args().ss(""))
		f := c.connectionFault()
		want := "number of channels opened (2) has reached the negotiated channel_max (2)"
		checkFault(t, f, 530, want, 0)
	})
}

// TestCHA_05_Reuse: the number is free when close-ok is out; ringmq also takes close and open in one write.
func TestCHA_05_Reuse(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		for range 50 {
			c.closeChannel(1)
			c.open(1)
		}
		t.Run("pipelined", func(t *testing.T) {
			b.SkipRabbitMQ(t, "504")
			for range 50 {
				c.write(append(methodFrame(1, 20, 40, args().u16(200).ss("").u16(0).u16(0)),
					methodFrame(1, 20, 10, args().ss(""))...))
				c.expect(1, 20, 41)
				c.expect(1, 20, 11)
			}
			c.sync(1)
		})
	})
}

// TestCHA_07_FlowOn: flow active=1 is answered and changes nothing.
func TestCHA_07_FlowOn(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.method(1, 20, 20, args().bits(true))
		if active := c.expect(1, 20, 21).u8(); active != 1 {
			t.Errorf("flow-ok %d, want 1", active)
		}
		c.sync(1)
	})
}

// TestCHA_08_ChannelEnd: unacked messages return to their original position, consumers go, auto-delete is evaluated.
func TestCHA_08_ChannelEnd(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q, auto := c.newQueue(1), unique("auto")
		c.queue(1, auto, flags{autoDelete: true}, "")
		c.consume(2, auto, "", true)
		c.publishAll(1, q, "a", "b", "c", "d")
		c.awaitReady(1, q, 4)
		c.mustGet(2, q, false)
		c.mustGet(2, q, false)
		c.closeChannel(2)
		if ready, consumers := c.depth(1, q); ready != 4 || consumers != 0 {
			t.Errorf("ready %d, consumers %d, want 4, 0", ready, consumers)
		}
		c.open(2)
		c.method(2, 50, 10, queueArgs(auto, flags{passive: true}, ""))
		checkFault(t, c.channelFault(2), 404, "no queue '"+auto+"' in vhost '/'", m(50, 10))
		for i, want := range []string{"a", "b", "c", "d"} {
			if msg := c.mustGet(1, q, true); msg.body != want || msg.redelivered != (i < 2) {
				t.Errorf("message %d: %q redelivered=%v, want %q redelivered=%v", i, msg.body, msg.redelivered, want, i < 2)
			}
		}
	})
}

// TestCHA_09_AccessRequest: always ticket 1.
func TestCHA_09_AccessRequest(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.method(1, 30, 10, args().ss("/data").bits(true, false, true, true, true))
		if ticket := c.expect(1, 30, 11).u16(); ticket != 1 {
			t.Errorf("ticket %d, want 1", ticket)
		}
	})
}
