package conformance

import (
	"fmt"
	"testing"

	"ringmq/test/harness"
)

// The shared broker has two loops; connections are dealt over both and queues are sharded over both, so more than eight
// of each make every pair of (publisher's loop, queue's loop, consumer's loop).
const spread = 12

// TestCrossLoopOrder: every publisher to every queue to every consumer keeps publish order, with confirms.
func TestCrossLoopOrder(t *testing.T) {
	const each = 100
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		var pubs, cons []*client
		var queues []string
		for range spread {
			p, c := connect(t, b).open(1), connect(t, b).open(1)
			p.confirm(1)
			queues = append(queues, p.newQueue(1))
			pubs, cons = append(pubs, p), append(cons, c)
		}
		for i, c := range cons {
			c.qos(1, 20, false)
			c.consume(1, queues[i], "t", false)
		}
		for p, pub := range pubs {
			var out []byte
			for n := range each {
				for _, q := range queues {
					out = append(out, contentFrames(1, publishArgs("", q, false, false), []byte{0, 0},
						fmt.Appendf(nil, "%d/%d", p, n), 131072)...)
				}
			}
			pub.write(out)
		}
		for i, c := range cons {
			next := make([]int, spread)
			for range spread * each {
				var p, n int
				msg := c.deliver(1)
				if _, err := fmt.Sscanf(msg.body, "%d/%d", &p, &n); err != nil {
					t.Fatal(err)
				}
				if n != next[p] || msg.redelivered || msg.key != queues[i] {
					t.Fatalf("queue %d: message %d of publisher %d, want %d (%+v)", i, n, p, next[p], msg)
				}
				next[p]++
				c.ack(1, msg.tag, false)
			}
		}
		for _, pub := range pubs {
			if nacked := pub.confirmed(1, spread*each); len(nacked) > 0 {
				t.Errorf("nacked: %v", nacked)
			}
		}
		for _, q := range queues {
			pubs[0].awaitReady(1, q, 0)
		}
	})
}

// TestCrossLoopFanout: one publish to queues of both loops, read on connections of both.
func TestCrossLoopFanout(t *testing.T) {
	const count = 200
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		pub := connect(t, b).open(1)
		x := pub.newExchange(1, "fanout")
		var cons []*client
		for range spread {
			c := connect(t, b).open(1)
			q, _, _ := c.queue(1, "", flags{exclusive: true}, "")
			c.bind(1, q, x, "", "")
			c.consume(1, q, "t", true)
			cons = append(cons, c)
		}
		pub.confirm(1)
		for i := range count {
			pub.publish(1, x, "", fmt.Sprint(i))
		}
		pub.confirmed(1, count)
		for _, c := range cons {
			c.deliverBodies(1, numbered(count)...)
		}
	})
}

// TestCrossLoopManyConsumers: one queue, consumers on both loops; every message once, nothing lost when half of them die.
func TestCrossLoopManyConsumers(t *testing.T) {
	const count = 1200
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		pub := connect(t, b).open(1)
		q := pub.newQueue(1)
		pub.publishAll(1, q, numbered(count)...)
		seen := map[string]int{}
		var dying []*client
		for i := range spread {
			c := connect(t, b).open(1)
			c.qos(1, 10, false)
			c.consume(1, q, "t", false)
			for range 10 {
				msg := c.deliver(1)
				if i%2 == 0 {
					seen[msg.body]++
					c.ack(1, msg.tag, false)
				}
			}
			dying = append(dying, c)
		}
		for _, c := range dying {
			c.cut()
		}
		last := connect(t, b).open(1)
		last.consume(1, q, "t", false)
		for left := count - len(seen); left > 0; left-- {
			msg := last.deliver(1)
			// An ack that was written before the cut may or may not have been processed, but a message whose ack
			// the broker took must not come again; one that does come again must say so.
			if seen[msg.body]++; seen[msg.body] > 1 {
				if !msg.redelivered {
					t.Fatalf("%q came twice without the redelivered mark", msg.body)
				}
				left++
			}
			last.ack(1, msg.tag, false)
		}
		for _, body := range numbered(count) {
			if seen[body] == 0 {
				t.Errorf("message %s was lost", body)
			}
		}
	})
}

// TestCrossLoopSameQueue: declare, publish, get, purge and delete of one queue from connections of both loops.
func TestCrossLoopSameQueue(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		var all []*client
		for range spread {
			all = append(all, connect(t, b).open(1))
		}
		for round := range 10 {
			q := all[round].newQueue(1)
			for i, c := range all {
				c.publish(1, "", q, fmt.Sprint(i))
				c.depth(1, q) // travels behind the publish: it is in the queue when this is answered
			}
			all[0].awaitReady(1, q, spread)
			for i, c := range all {
				if got := c.mustGet(1, q, i%2 == 0); got.body != fmt.Sprint(i) {
					t.Fatalf("connection %d got %q", i, got.body)
				}
			}
			for i, c := range all { // gives back those that were not settled
				if i%2 == 1 {
					c.nack(1, 0, true, true)
				}
			}
			all[1].awaitReady(1, q, spread/2)
			if n := all[2].purge(1, q); n != spread/2 {
				t.Fatalf("purged %d, want %d", n, spread/2)
			}
			all[3].deleteQueue(1, q, flags{})
			all[4].method(1, 50, 10, queueArgs(q, flags{passive: true}, ""))
			if f := all[4].channelFault(1); f.code != 404 {
				t.Fatalf("still there after delete: %+v", f)
			}
			all[4].open(1)
		}
	})
}

// TestCrossLoopBindVisible: a binding that was answered is used by publishes that start afterwards on any connection.
func TestCrossLoopBindVisible(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		var all []*client
		for range spread {
			all = append(all, connect(t, b).open(1))
		}
		x := all[0].newExchange(1, "topic")
		q := all[0].newQueue(1)
		for round := range 50 {
			binder, pub := all[round%spread], all[(round*5+1)%spread]
			key := fmt.Sprintf("k.%d", round%3) // few keys, so that cached routes must be given up
			binder.bind(1, q, x, key, "")
			pub.publishWith(1, publishArgs(x, key, true, false), props{}, []byte("m"))
			pub.sync(1) // fails on a return
			binder.unbind(1, q, x, key, "")
			pub.publishWith(1, publishArgs(x, key, true, false), props{}, []byte("m"))
			pub.returned(1)
		}
		all[0].awaitReady(1, q, 50)
	})
}
