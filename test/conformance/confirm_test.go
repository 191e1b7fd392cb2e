package conformance

import (
	"fmt"
	"strings"
	"testing"

	"ringmq/test/harness"
)

func (c *client) txSelect(ch uint16)   { c.t.Helper(); c.method(ch, 90, 10, nil); c.expect(ch, 90, 11) }
func (c *client) txCommit(ch uint16)   { c.t.Helper(); c.method(ch, 90, 20, nil); c.expect(ch, 90, 21) }
func (c *client) txRollback(ch uint16) { c.t.Helper(); c.method(ch, 90, 30, nil); c.expect(ch, 90, 31) }

var confirmRefusals = []refusal{
	{id: "CFM-01", name: "confirm on a tx channel", code: 406, text: "cannot switch from tx to confirm mode",
		failed: m(85, 10), setup: func(c *client) map[string]string { c.txSelect(1); return nil },
		send: func(c *client, _ map[string]string) { c.method(1, 85, 10, args().bits(false)) }},
	{id: "CFM-01", name: "tx on a confirm channel", code: 406, text: "cannot switch from confirm to tx mode",
		failed: m(90, 10), setup: func(c *client) map[string]string { c.confirm(1); return nil },
		send: func(c *client, _ map[string]string) { c.method(1, 90, 10, nil) }},
	{id: "TX-01", name: "commit without select", code: 406, text: "channel is not transactional", failed: m(90, 20),
		send: func(c *client, _ map[string]string) { c.method(1, 90, 20, nil) }},
	{id: "TX-01", name: "rollback without select", code: 406, text: "channel is not transactional", failed: m(90, 30),
		send: func(c *client, _ map[string]string) { c.method(1, 90, 30, nil) }},
	{id: "TX-02", name: "publish to a missing exchange in tx", code: 404, text: "no exchange '{x}' in vhost '/'",
		failed: m(60, 40), setup: func(c *client) map[string]string { c.txSelect(1); return freshName(c) },
		send: func(c *client, n map[string]string) { c.publish(1, n["x"], "k", "b") }},
	{id: "TX-02", name: "another user in tx", code: 406, failed: m(60, 40),
		text:  "user_id property set to 'bob' but authenticated user was 'guest'",
		setup: func(c *client) map[string]string { c.txSelect(1); return withQueue(c) }, send: publishProps(props{userID: "bob"})},
}

// TestConfirmRefusals: CFM-01, TX-01, TX-02.
func TestConfirmRefusals(t *testing.T) { runRefusals(t, confirmRefusals) }

// TestCFM_02_Numbering: counts from the first select on; a second select does not restart it. Field case 9.
func TestCFM_02_Numbering(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		mandatory := func(key string) {
			c.publishWith(1, publishArgs("", key, true, false), props{}, []byte("m"))
		}
		mandatory(q)
		mandatory(unique("nobody"))
		c.returned(1)
		mandatory(q)
		c.confirm(1)
		for range 3 {
			mandatory(q)
		}
		c.confirmed(1, 3)
		c.confirm(1)
		mandatory(q)
		f := c.next()
		if want := methodFrame(1, 60, 80, args().u64(4).bits(false))[7:]; f.id() != m(60, 80) ||
			string(f.payload[:12]) != string(want[:12]) {
			t.Errorf("got %v % x, want the ack of 4", f, f.payload)
		}
		c.sync(1)
	})
}

// TestCNF_01_Acks: unroutable, transient, persistent, to many queues, to nobody.
func TestCNF_01_Acks(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.confirm(1)
		x := c.newExchange(1, "fanout")
		var queues []string
		for i := range 20 {
			q := unique("q")
			c.queue(1, q, flags{durable: i%2 == 0}, "")
			c.bind(1, q, x, "", "")
			queues = append(queues, q)
		}
		const rounds = 300
		for i := range rounds {
			switch i % 3 {
			case 0:
				c.publish(1, x, "", "to all")
			case 1:
				c.publishWith(1, publishArgs(x, "", false, false), props{deliveryMode: 2}, []byte("to all"))
			default:
				c.publish(1, "", "nobody-"+x, "lost")
			}
		}
		if nacked := c.confirmed(1, rounds); len(nacked) > 0 {
			t.Errorf("nacked: %v", nacked)
		}
		for _, q := range queues { // CNF-03: after the confirm each queue has it
			if ready, _ := c.depth(1, q); ready != rounds*2/3 {
				t.Errorf("queue holds %d, want %d", ready, rounds*2/3)
			}
		}
	})
}

// TestCNF_02_QueueDeleted: a queue deleted meanwhile counts as an ack; many publishers while queues come and go.
func TestCNF_02_QueueDeleted(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connect(t, b).open(1), connect(t, b).open(1)
		c.confirm(1)
		var last uint64
		for range 20 {
			q := other.newQueue(1)
			for range 20 {
				c.publish(1, "", q, "x")
			}
			last += 20
			other.deleteQueue(1, q, flags{})
		}
		if nacked := c.confirmed(1, last); len(nacked) > 0 {
			t.Errorf("nacked: %v", nacked)
		}
	})
}

// TestCNF_05_ReturnFirst: each return precedes the ack of its own message.
func TestCNF_05_ReturnFirst(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.confirm(1)
		const count = 50
		var out []byte
		for i := range count {
			out = append(out, contentFrames(1, publishArgs("", "nobody", true, false), []byte{0, 0}, []byte(fmt.Sprint(i)), 4096)...)
		}
		c.write(out)
		returned, acked := 0, 0
		for acked < count {
			f := c.next()
			d := &dec{t, f.payload[4:]}
			switch f.id() {
			case m(60, 50):
				var msg message
				c.content(1, &msg)
				if msg.body != fmt.Sprint(returned) {
					t.Fatalf("return %d is of %q", returned, msg.body)
				}
				returned++
			case m(60, 80):
				tag, multiple := int(d.u64()), d.u8()&1 != 0
				if tag > returned {
					t.Fatalf("ack of %d after %d returns", tag, returned)
				}
				if multiple {
					acked = tag
				} else {
					acked++
				}
			default:
				t.Fatalf("got %v", f)
			}
		}
	})
}

// TestCNF_06_Promptly: one lone publish is confirmed without any further input.
func TestCNF_06_Promptly(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.confirm(1)
		for i := range 200 {
			c.publish(1, "", q, "x")
			f := c.next()
			if d := (&dec{t, f.payload[4:]}); f.id() != m(60, 80) || d.u64() != uint64(i+1) {
				t.Fatalf("publish %d: got %v % x", i+1, f, f.payload)
			}
		}
	})
}

// TestCNF_07_InFlight: publishing does not wait for confirms to be read.
func TestCNF_07_InFlight(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.confirm(1)
		const count = 5000
		bodies := make([]string, count)
		for i := range bodies {
			bodies[i] = "x"
		}
		c.publishAll(1, q, bodies...)
		c.confirmed(1, count)
		if ready, _ := c.depth(1, q); ready != count {
			t.Errorf("ready %d, want %d", ready, count)
		}
	})
}

// TestCNF_08_EndToEnd: one confirm per publish over exchange-to-exchange routes.
func TestCNF_08_EndToEnd(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.confirm(1)
		front, back, q1, q2 := c.newExchange(1, "fanout"), c.newExchange(1, "direct"), c.newQueue(1), c.newQueue(1)
		c.bindExchange(1, back, front, "", "")
		c.bind(1, q1, back, "k", "")
		c.bind(1, q2, front, "", "")
		for range 10 {
			c.publish(1, front, "k", "m")
		}
		c.confirmed(1, 10)
		c.sync(1)
		for _, q := range []string{q1, q2} {
			if got := c.drain(1, q); len(got) != 10 {
				t.Errorf("%d messages, want 10", len(got))
			}
		}
	})
}

// TestCNF_08_SenderSelected: CC routes belong to the one publish and its one confirm.
func TestCNF_08_SenderSelected(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.confirm(1)
		x, q1, q2 := c.newExchange(1, "direct"), c.newQueue(1), c.newQueue(1)
		c.bind(1, q1, x, "k", "")
		c.bind(1, q2, x, "cc", "")
		for range 10 {
			c.publishWith(1, publishArgs(x, "k", false, false), props{headers: table("CC", vA(vS("cc")))}, []byte("m"))
		}
		c.confirmed(1, 10)
		c.sync(1)
		for _, q := range []string{q1, q2} {
			if got := c.drain(1, q); len(got) != 10 {
				t.Errorf("%d messages, want 10", len(got))
			}
		}
	})
}

// TestTX_Basics: TX-01 to TX-06.
func TestTX_Basics(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, run := range map[string]func(t *testing.T, c *client){
			"TX-01 select twice": func(_ *testing.T, c *client) {
				c.txSelect(1)
				c.txSelect(1)
				c.txCommit(1)
				c.txRollback(1)
			},
			"TX-02 publishes are held": txPublishesHeld, "TX-02 acks are held": txAcksHeld,
			"TX-03 returns before commit-ok": txReturns, "TX-05 rollback": txRollback,
			"TX-06 nack takes effect at commit": txNack, "CHA-08 dropped with the channel": txDropped,
		} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1, 2)
				c.t = t
				run(t, c)
			})
		}
	})
}

func txPublishesHeld(t *testing.T, c *client) {
	q := c.newQueue(2)
	c.txSelect(1)
	for round := range 3 { // TX-03: a new transaction begins at once
		c.publishAll(1, q, "a", "b")
		c.sync(1)
		if ready, _ := c.depth(2, q); ready != 0 {
			t.Errorf("round %d: %d messages before commit", round, ready)
		}
		if _, ok := c.get(1, q, true); ok { // TX-06
			t.Error("get sees its own uncommitted message")
		}
		c.txCommit(1)
		c.awaitReady(2, q, 2)
		if got := strings.Join(c.drain(2, q), ""); got != "ab" {
			t.Errorf("round %d: committed %q", round, got)
		}
	}
}

func txAcksHeld(t *testing.T, c *client) {
	q := c.newQueue(2)
	c.publishAll(2, q, "a", "b", "c")
	c.awaitReady(2, q, 3)
	c.txSelect(1)
	for range 3 {
		c.mustGet(1, q, false)
	}
	c.ack(1, 2, true)
	c.closeChannel(1) // not committed: all three come back
	c.awaitReady(2, q, 3)
	c.open(1)
	c.txSelect(1)
	for range 3 {
		c.mustGet(1, q, false)
	}
	c.ack(1, 2, true)
	c.txCommit(1)
	c.closeChannel(1)
	c.awaitReady(2, q, 1)
	if got := c.drain(2, q); strings.Join(got, "") != "c" {
		t.Errorf("left %q, want c", got)
	}
}

func txReturns(t *testing.T, c *client) {
	c.txSelect(1)
	c.publishWith(1, publishArgs("", unique("nobody"), true, false), props{}, []byte("back"))
	c.sync(1)
	c.method(1, 90, 20, nil)
	if got := c.returned(1); got.body != "back" || got.code != 312 {
		t.Errorf("returned %+v", got)
	}
	c.expect(1, 90, 21)
}

func txRollback(t *testing.T, c *client) {
	q := c.newQueue(2)
	c.publishAll(2, q, "a", "b")
	c.awaitReady(2, q, 2)
	c.txSelect(1)
	c.mustGet(1, q, false)
	c.mustGet(1, q, false)
	c.publish(1, "", q, "dropped")
	c.ack(1, 1, false)
	c.reject(1, 2, false)
	c.txRollback(1)
	if ready, _ := c.depth(2, q); ready != 0 { // outstanding again, not redelivered
		t.Errorf("%d ready after rollback", ready)
	}
	c.ack(1, 2, true)
	c.txCommit(1)
	c.closeChannel(1)
	if ready, _ := c.depth(2, q); ready != 0 {
		t.Errorf("%d ready after the acks were committed", ready)
	}
}

func txNack(t *testing.T, c *client) {
	q := c.newQueue(2)
	c.publish(2, "", q, "a")
	c.awaitReady(2, q, 1)
	c.txSelect(1)
	c.mustGet(1, q, false)
	c.nack(1, 1, false, true)
	c.sync(1)
	if ready, _ := c.depth(2, q); ready != 0 {
		t.Error("the nack took effect before commit")
	}
	c.txCommit(1)
	c.awaitReady(2, q, 1)
	if got := c.mustGet(2, q, true); !got.redelivered {
		t.Error("not marked redelivered")
	}
}

func txDropped(t *testing.T, c *client) {
	q := c.newQueue(2)
	c.txSelect(1)
	c.publish(1, "", q, "dropped")
	c.closeChannel(1)
	if ready, _ := c.depth(2, q); ready != 0 {
		t.Errorf("%d messages of an uncommitted transaction", ready)
	}
}
