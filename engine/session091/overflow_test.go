package session091

import (
	"testing"

	"ringmq/engine/core"
	"ringmq/frame/amqp091"
	"ringmq/ring/sim"
)

// TestMailboxOverflow: a burst that is larger than the mailbox between two loops
// stops its publisher, for as long as the other loop needs. Nothing is lost or
// reordered, and what waits stays bounded.
func TestMailboxOverflow(t *testing.T) {
	stalls := 0
	forSeeds(t, 60, func(w *world) {
		w.SetFaults(sim.Faults{DelayMax: 2, ReadMax: 1 << 20, SkipPercent: 30})
		far, near, pub := w.dial(1), w.dial(0), w.dial(0)
		for _, c := range []*client{far, near, pub} {
			c.channel(1)
		}
		far.declare(1, "far", nil)
		near.declare(1, "near", nil)
		for _, q := range []string{"near", "far"} {
			far.send(1, &amqp091.QueueBind{Queue: []byte(q), Exchange: []byte("amq.fanout")})
			far.wait(1, amqp091.MethodQueueBindOk)
		}
		exchange := []string{"", "amq.fanout"}[w.Rand().IntN(2)]
		book := newConfirmBook()
		confirm := w.Rand().IntN(2) == 0
		if confirm {
			pub.confirmSelect(1)
			pub.onEvent = func(e event) {
				if text := book.event(e.m); text != "" {
					w.fatalf("%s", text)
				}
			}
		}
		const total = 5 * core.MailboxSlots
		var burst []byte
		for id := uint64(1); id <= total; id++ {
			burst = publishFrames(burst, 1, exchange, "far", false, nil, numbered(id, 8), int(w.frameMax))
			if confirm {
				book.published()
			}
		}
		pub.peer.Write(burst)
		for busy := true; busy; {
			busy = w.Step()
			if len(w.srv.loops[0].stalled) > 0 {
				stalls++
			}
			if n := w.srv.loops[0].shard.Stats.Remote - w.queue("far").Published; n > core.MailboxSlots+2 {
				w.fatalf("%d messages are on their way between the loops", n)
			}
			busy = pub.pump() || busy
		}
		w.rest()
		if len(book.open) != 0 || len(book.nacked) != 0 {
			w.fatalf("%d publishes are not confirmed, %d nacked", len(book.open), len(book.nacked))
		}
		w.all(far, "far", total)
		if exchange != "" {
			w.all(pub, "near", total)
		}
	})
	if stalls == 0 {
		t.Error("no burst was larger than the mailbox")
	}
}

// all drains a queue that must hold the messages 1 to total in their order.
func (w *world) all(c *client, queueName string, total uint64) {
	w.t.Helper()
	next := uint64(0)
	for _, e := range drain(c, queueName) {
		if next++; numberOf(e.body) != next {
			w.fatalf("%s: message %d came as number %d", queueName, numberOf(e.body), next)
		}
	}
	if next != total {
		w.fatalf("%s: %d of %d messages came", queueName, next, total)
	}
}

// Deliveries and acknowledgements overflow, too: two queues feed each other's
// loop at once, with acks on the way back.
func TestOverflowBothWays(t *testing.T) {
	forSeeds(t, 40, func(w *world) {
		w.SetFaults(sim.Faults{DelayMax: 1, ReadMax: 1 << 20, SkipPercent: 50})
		var clients [2]*client
		names := [2]string{"q0", "q1"}
		for i := range clients {
			c := w.dial(i)
			c.channel(1)
			c.channel(2)
			c.declare(1, names[i], nil)
			clients[i] = c
		}
		// Each consumes the other's queue and publishes to it.
		var got [2]uint64
		for i, c := range clients {
			c.consume(2, names[1-i], "c", false)
			c.onEvent = func(e event) {
				m, ok := e.m.(*amqp091.BasicDeliver)
				if !ok {
					return
				}
				if got[i]++; numberOf(e.body) != got[i] {
					w.fatalf("client %d: message %d came as number %d", i, numberOf(e.body), got[i])
				}
				if w.Rand().IntN(50) == 0 {
					c.ack(2, m.DeliveryTag, true)
				}
			}
		}
		const total = 3 * core.MailboxSlots
		for i, c := range clients {
			var burst []byte
			for id := uint64(1); id <= total; id++ {
				burst = publishFrames(burst, 1, "", names[1-i], false, nil, numbered(id, 8), int(w.frameMax))
			}
			c.peer.Write(burst)
		}
		w.rest()
		for i, c := range clients {
			if got[i] != total {
				w.fatalf("client %d got %d of %d", i, got[i], total)
			}
			c.ack(2, 0, true)
		}
		w.rest()
		for _, q := range names {
			if ready, unacked := w.counts(q); ready != 0 || unacked != 0 {
				w.fatalf("%s: %d ready, %d unacked", q, ready, unacked)
			}
		}
	})
}
