package conformance

import (
	"fmt"
	"strings"
	"testing"

	"ringmq/test/harness"
)

const replyQueue = "amq.rabbitmq.reply-to"

// consumeReplies makes the channel one that may send requests.
func (c *client) consumeReplies(ch uint16) string {
	c.t.Helper()
	return c.consume(ch, replyQueue, "", true)
}

// request publishes a request and returns where its reply goes, as the responder sees it.
func (c *client) request(ch uint16, responder *client, q, body string) (replyTo string) {
	c.t.Helper()
	c.publishWith(ch, publishArgs("", q, false, false), props{replyTo: replyQueue, correlationID: body}, []byte(body))
	var got message
	eventually(c.t, "the request", func() (ok bool) {
		got, ok = responder.get(1, q, true)
		return ok
	})
	d := &dec{c.t, got.properties}
	d.u16() // flags: correlation id and reply-to
	if id := d.ss(); id != body || got.body != body {
		c.t.Fatalf("request %q with body %q, want %q", id, got.body, body)
	}
	replyTo = d.ss()
	if token, ok := strings.CutPrefix(replyTo, replyQueue+"."); !ok || len(token) < 22 {
		c.t.Fatalf("reply-to %q", replyTo)
	}
	return replyTo
}

var replyRefusals = []refusal{
	{id: "DRT-01", name: "with acknowledgement", code: 406, text: "reply consumer cannot acknowledge", failed: m(60, 20),
		send: func(c *client, _ map[string]string) {
			c.method(1, 60, 20, consumeArgs(replyQueue, "", false, false, false, false, ""))
		}},
	{id: "DRT-01", name: "twice on a channel", code: 406, text: "reply consumer already set", failed: m(60, 20),
		setup: func(c *client) map[string]string { c.consumeReplies(1); return nil },
		send: func(c *client, _ map[string]string) {
			c.method(1, 60, 20, consumeArgs(replyQueue, "", false, true, false, false, ""))
		}},
	{id: "BAS-02", name: "the tag of a reply consumer", conn: true, code: 530, text: "attempt to reuse consumer tag 't'", failed: m(60, 20),
		setup: func(c *client) map[string]string { c.consume(1, replyQueue, "t", true); return withQueue(c) },
		send: func(c *client, n map[string]string) {
			c.method(1, 60, 20, consumeArgs(n["q"], "t", false, true, false, false, ""))
		}, ours: "allowed in 3.10"},
	{id: "DRT-02", name: "no reply consumer", setup: withQueue, code: 406, text: "fast reply consumer does not exist", failed: m(60, 40),
		send: publishProps(props{replyTo: replyQueue})},
	{id: "DRT-02", name: "reply consumer of another channel", code: 406, text: "fast reply consumer does not exist", failed: m(60, 40),
		setup: func(c *client) map[string]string { c.consumeReplies(2); return withQueue(c) }, send: publishProps(props{replyTo: replyQueue})},
	{id: "DRT-02", name: "reply consumer that was cancelled", code: 406, text: "fast reply consumer does not exist", failed: m(60, 40),
		setup: func(c *client) map[string]string {
			n, tag := withQueue(c), c.consumeReplies(1)
			publishProps(props{replyTo: replyQueue})(c, n)
			c.cancel(1, tag)
			return n
		}, send: publishProps(props{replyTo: replyQueue})},
	{id: "DRT-04", name: "get", code: 404, text: "no queue 'amq.rabbitmq.reply-to' in vhost '/'", failed: m(60, 70),
		send: func(c *client, _ map[string]string) { c.method(1, 60, 70, getArgs(replyQueue, true)) }},
	{id: "DRT-04", name: "declare of a token that never was", code: 404, text: "no queue '" + replyQueue + ".nobody' in vhost '/'", failed: m(50, 10),
		send: func(c *client, _ map[string]string) {
			c.method(1, 50, 10, queueArgs(replyQueue+".nobody", flags{}, ""))
		}},
}

// TestReplyRefusals: DRT-01, DRT-02, DRT-04.
func TestReplyRefusals(t *testing.T) { runRefusals(t, replyRefusals) }

// TestDRT_03_Reply: the reply reaches the requester's channel with exchange, key, properties and body as published, on
// connections of the same and of other loops.
func TestDRT_03_Reply(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		var all []*client
		for range 4 { // on all loops
			all = append(all, connect(t, b).open(1, 2))
		}
		q := all[0].newQueue(1)
		for i, responder := range all {
			for j, c := range all {
				tag := c.consumeReplies(2)
				p := props{correlationID: "id", headers: table("a", 1)}
				for n := range uint64(2) { // one token serves many replies
					to := c.request(2, responder, q, fmt.Sprintf("%d-%d-%d", i, j, n))
					responder.publishWith(1, publishArgs("", to, false, false), p, []byte(to))
					got := c.deliver(2)
					if got.body != to || got.key != to || got.exchange != "" || got.redelivered || got.consumerTag != tag ||
						string(got.properties) != string(p.encode()) {
						t.Errorf("reply %+v to %s", got, to)
					}
				}
				c.cancel(2, tag)
			}
		}
		if _, consumers := all[0].depth(1, q); consumers != 0 {
			t.Errorf("%d consumers on the request queue", consumers)
		}
	})
}

// TestDRT_03_Large: a reply of many frames, and none at all.
func TestDRT_03_Large(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, responders := connect(t, b).open(1), []*client{connect(t, b).open(1), connect(t, b).open(1)}
		q := c.newQueue(1)
		c.consumeReplies(1)
		for _, r := range responders {
			for _, size := range []int{0, 1, 5000, 1 << 20} {
				to := c.request(1, r, q, "?")
				r.publishWith(1, publishArgs("", to, false, false), props{}, []byte(strings.Repeat("x", size)))
				if got := c.deliver(1); len(got.body) != size {
					t.Errorf("%d bytes, want %d", len(got.body), size)
				}
			}
		}
	})
}

// TestDRT_03_Gone: a token dies with its channel or consumer; only then a mandatory reply is returned, before its
// confirm, and a confirm comes in any case. Field case 17.
func TestDRT_03_Gone(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "mandatory replies are returned always or never")
		for name, leave := range map[string]func(c *client, tag string){
			"cancel":  func(c *client, tag string) { c.cancel(1, tag) },
			"channel": func(c *client, _ string) { c.closeChannel(1) },
			"socket":  func(c *client, _ string) { c.cut() },
		} {
			t.Run(name, func(t *testing.T) {
				responders := []*client{connect(t, b).open(1, 2), connect(t, b).open(1, 2)}
				for _, r := range responders {
					c := connect(t, b).open(1)
					q := c.newQueue(1)
					tag := c.consumeReplies(1)
					to := c.request(1, r, q, "?")
					r.confirm(2)
					r.publishWith(2, publishArgs("", to, true, false), props{}, []byte("1"))
					c.deliverBodies(1, "1")
					r.confirmed(2, 1)
					leave(c, tag)
					eventually(t, "the end of "+to, func() bool { return !r.alive(1, to) })
					r.publishWith(2, publishArgs("", to, false, false), props{}, []byte("2"))
					r.publishWith(2, publishArgs("", to, true, false), props{messageID: "m"}, []byte("3"))
					// The confirm of 2 may come alone or with that of 3, but none of 3 before the return.
					var back message
					for back.code == 0 {
						if f := r.next(); f.id() == m(60, 80) {
							if n := f.payload[11]; n != 2 {
								t.Fatalf("confirm of %d before the return", n)
							}
							continue
						} else if f.id() != m(60, 50) {
							t.Fatalf("got %v, want a return", f)
						} else {
							d := &dec{t, f.payload[4:]}
							back.code, back.text, back.exchange, back.key = d.u16(), d.ss(), d.ss(), d.ss()
							r.content(2, &back)
						}
					}
					if back.code != 312 || back.key != to || back.body != "3" || back.exchange != "" {
						t.Errorf("returned %+v", back)
					}
					if f := r.next(); f.id() != m(60, 80) || f.payload[11] != 3 {
						t.Errorf("got %v, want the confirm of 3", f)
					}
				}
			})
		}
	})
}

// alive asks whether a token leads to a requester.
func (c *client) alive(ch uint16, token string) bool {
	c.t.Helper()
	c.method(ch, 50, 10, queueArgs(token, flags{passive: true}, ""))
	f := c.next()
	if f.id() == m(50, 11) {
		return true
	}
	if f.id() != m(20, 40) {
		c.t.Fatalf("got %v, want declare-ok or a close", f)
	}
	c.method(ch, 20, 41, nil)
	c.open(ch)
	return false
}

// TestDRT_03_Tx: replies and requests of a transaction leave with its commit; a returned one comes before commit-ok.
func TestDRT_03_Tx(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "mandatory replies are returned always or never")
		responders := []*client{connect(t, b).open(1, 2), connect(t, b).open(1, 2)}
		for _, r := range responders {
			c := connect(t, b).open(1)
			q := c.newQueue(1)
			tag := c.consumeReplies(1)
			to := c.request(1, r, q, "?")
			r.txSelect(2)
			r.publishWith(2, publishArgs("", to, true, false), props{}, []byte("held"))
			r.sync(2)
			if !r.alive(1, to) {
				t.Fatal("the requester is gone")
			}
			r.txCommit(2)
			c.deliverBodies(1, "held")
			c.cancel(1, tag)
			r.publishWith(2, publishArgs("", to, true, false), props{}, []byte("late"))
			r.method(2, 90, 20, nil)
			if back := r.returned(2); back.body != "late" {
				t.Errorf("returned %+v", back)
			}
			r.expect(2, 90, 21)
		}
	})
}

// TestDRT_04_Declare: the reply queue can be declared by anybody, a token while its consumer lives.
func TestDRT_04_Declare(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, responders := connect(t, b).open(1), []*client{connect(t, b).open(1), connect(t, b).open(1)}
		for _, passive := range []bool{false, true} {
			if name, ready, consumers := c.queue(1, replyQueue, flags{passive: passive}, ""); name != replyQueue || ready != 0 || consumers != 1 {
				t.Errorf("declare-ok %q, %d ready, %d consumers", name, ready, consumers)
			}
		}
		q := c.newQueue(1)
		tag := c.consumeReplies(1)
		for _, r := range responders {
			to := c.request(1, r, q, "?")
			if name, ready, consumers := r.queue(1, to, flags{}, ""); name != to || ready != 0 || consumers != 1 {
				t.Errorf("declare-ok %q, %d ready, %d consumers", name, ready, consumers)
			}
		}
		to := c.request(1, responders[0], q, "?")
		c.cancel(1, tag)
		again := c.consumeReplies(1)
		for _, r := range responders {
			if r.alive(1, to) {
				t.Error("the token of a cancelled consumer leads to the next one")
			}
		}
		if again == tag {
			t.Errorf("both consumers have tag %q", tag)
		}
	})
}

// TestF17_ManyCalls: calls over many channels, each reply on its own channel. Field case 17.
func TestF17_ManyCalls(t *testing.T) {
	const channels, calls = 50, 40
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b)
		for ch := range uint16(channels) {
			c.open(ch + 1)
			c.consumeReplies(ch + 1)
		}
		c.open(channels + 1)
		q := c.newQueue(channels + 1)
		responder := connect(t, b).open(1)
		responder.consume(1, q, "t", true)
		for n := range calls {
			for ch := range uint16(channels) {
				p := props{replyTo: replyQueue, correlationID: fmt.Sprintf("%d/%d", ch+1, n)}
				c.publishWith(ch+1, publishArgs("", q, false, false), p, nil)
			}
		}
		for range channels * calls {
			d := &dec{t, responder.deliver(1).properties}
			d.u16()
			id, to := d.ss(), d.ss()
			responder.publishWith(1, publishArgs("", to, false, false), props{correlationID: id}, []byte(id))
		}
		next := make([]int, channels+1)
		for range channels * calls {
			f := c.next()
			if f.id() != m(60, 60) {
				t.Fatalf("got %v, want a reply", f)
			}
			var msg message
			c.content(f.channel, &msg)
			if want := fmt.Sprintf("%d/%d", f.channel, next[f.channel]); msg.body != want {
				t.Fatalf("reply %q on channel %d, want %q", msg.body, f.channel, want)
			}
			next[f.channel]++
		}
	})
}
