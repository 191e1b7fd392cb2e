package conformance

import (
	"fmt"
	"strings"
	"testing"

	"ringmq/test/harness"
)

// Field cases 1, 3, 9 and 11 are in binding_test.go, confirm_test.go and handshake_test.go, next to their spec lines.
// Cases 7 and 17 are in choice_test.go and replyto_test.go. Cases 25 to 31 are in fieldcases_ttl_test.go, 33 to 41 in
// fieldcase33_test.go and fieldcases_limits_test.go, 81 in capabilities_test.go; more of 19 and 21 is in
// fieldcases_consumers_test.go.

// TestF5_UnknownExchangeType: the channel fails, not the process nor other channels' work.
func TestF5_UnknownExchangeType(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "503 up to 3.13.0")
		c := connect(t, b).open(1, 2)
		q := c.newQueue(2)
		c.consume(2, q, "t", true)
		for _, kind := range []string{"nosuch", "DIRECT", "x-delayed-nothing", strings.Repeat("t", 200)} {
			c.method(1, 40, 10, exchangeArgs(unique("x"), kind, flags{}, ""))
			f := c.channelFault(1)
			if f.code != 406 || !strings.Contains(f.text, "unknown exchange type '"+kind[:min(len(kind), 100)]) {
				t.Errorf("type %q: %+v", kind, f)
			}
			c.open(1)
			c.publish(2, "", q, "on")
			c.deliverBodies(2, "on")
		}
		connect(t, b).open(1).sync(1)
	})
}

// TestF13_Misplaced: heartbeat on channel 5, channel methods on channel 0, header without publish, body before header.
func TestF13_Misplaced(t *testing.T) {
	rows := map[string]struct {
		out  []byte
		code uint16
	}{
		"heartbeat on channel 5":       {rawFrame(8, 5, 0, nil, 0xCE), 505},
		"heartbeat on an open channel": {rawFrame(8, 1, 0, nil, 0xCE), 505},
		"queue.declare on channel 0":   {methodFrame(0, 50, 10, queueArgs("q", flags{}, "")), 504},
		"basic.publish on channel 0":   {methodFrame(0, 60, 40, publishArgs("", "k", false, false)), 504},
		"header without a publish":     {appendFrame(nil, 2, 1, headerPayload(1, []byte{0, 0})), 505},
		"body before header":           {append(methodFrame(1, 60, 40, publishArgs("", "k", false, false)), appendFrame(nil, 3, 1, []byte("x"))...), 505},
		"header on channel 0":          {appendFrame(nil, 2, 0, headerPayload(1, []byte{0, 0})), 0},
		"body on channel 0":            {appendFrame(nil, 3, 0, []byte("x")), 0},
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, row := range rows {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1)
				c.write(row.out)
				f := c.connectionFault() // with the whole close handshake
				if row.code != 0 && f.code != row.code || f.code < 500 || f.code > 541 {
					t.Errorf("got %+v, want %d", f, row.code)
				}
			})
		}
	})
}

// TestF15_ExclusiveReturns: the owner of an exclusive queue is cut and comes back at once.
func TestF15_ExclusiveReturns(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		q := unique("q")
		for range rounds {
			a := connect(t, b).open(1)
			eventually(t, "the name is free again", func() bool {
				a.method(1, 50, 10, queueArgs(q, flags{exclusive: true}, ""))
				f := a.next()
				if f.id() == m(50, 11) {
					return true
				}
				if fault := readFault(&dec{t, f.payload[4:]}); fault.code != 405 {
					t.Fatalf("declare refused with %+v", fault)
				}
				a.method(1, 20, 41, nil)
				a.open(1)
				return false
			})
			// It is ours: the clean-up of the one before must not take it away.
			a.publish(1, "", q, "mine")
			a.awaitReady(1, q, 1)
			if got := a.mustGet(1, q, true); got.body != "mine" {
				t.Fatalf("got %+v", got)
			}
			a.cut()
		}
	})
}

// TestF19_TagChurn: consumers that come and go with one tag under load leave nothing undelivered.
func TestF19_TagChurn(t *testing.T) {
	const clients, rounds, burst = 8, 20, 40
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		pub := connect(t, b).open(1)
		q := pub.newQueue(1)
		acked := 0
		var all []*client
		for range clients {
			c := connect(t, b).open(1)
			c.qos(1, 7, false)
			all = append(all, c)
		}
		for round := range rounds {
			pub.publishAll(1, q, numbered(burst)...)
			for i, c := range all {
				c.consume(1, q, "same", false)
				if (i+round)%3 == 0 {
					msg := c.deliver(1)
					c.ack(1, msg.tag, false)
					acked++
				}
				c.method(1, 60, 30, args().ss("same").bits(false))
				for f := c.next(); f.id() != m(60, 31); f = c.next() {
					var msg message
					c.content(1, &msg)
				}
				c.nack(1, 0, true, true) // what was on its way
			}
		}
		drain := connect(t, b).open(1)
		drain.consume(1, q, "same", false)
		for range rounds*burst - acked {
			msg := drain.deliver(1)
			drain.ack(1, msg.tag, false)
		}
		drain.cancel(1, "same")
		if n := drain.deleteQueue(1, q, flags{ifEmpty: true}); n != 0 {
			t.Errorf("%d left", n)
		}
	})
}

// TestF21_RaisedPrefetch: a slow consumer with a window raised on the fly does not starve another one.
func TestF21_RaisedPrefetch(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, fastChannel := range map[string]uint16{"one channel": 1, "two channels": 2} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1, 2)
				slowQ, fastQ := c.newQueue(1), c.newQueue(1)
				c.qos(1, 1, false)
				c.qos(2, 1, false)
				c.publishAll(1, slowQ, numbered(500)...)
				c.awaitReady(1, slowQ, 500)
				c.consume(1, slowQ, "slow", false)
				c.deliver(1) // never acked: the slowest consumer there is
				c.consume(fastChannel, fastQ, "fast", false)
				step := func(i int) {
					c.publish(1, "", fastQ, fmt.Sprint(i))
					msg := c.deliver(fastChannel)
					if msg.consumerTag != "fast" {
						t.Fatalf("delivered to %q", msg.consumerTag)
					}
					c.ack(fastChannel, msg.tag, false)
				}
				for i := range 100 {
					step(i)
				}
				c.qos(1, 1000, false) // holds for consumers that start later only (QOS-01)
				for i := range 100 {
					step(i)
				}
			})
		}
	})
}

// TestF23_AckAfterDelete: acks, nacks and rejects for a queue that is gone, mixed with those for a live one.
func TestF23_AckAfterDelete(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connect(t, b).open(1), connect(t, b).open(1)
		dead, live := c.newQueue(1), c.newQueue(1)
		var deadTags, liveTags []uint64
		for i := range 100 {
			c.publish(1, "", dead, fmt.Sprint(i))
			c.publish(1, "", live, fmt.Sprint(i))
		}
		c.awaitReady(1, dead, 100)
		c.awaitReady(1, live, 100)
		for range 100 {
			deadTags = append(deadTags, c.mustGet(1, dead, false).tag)
			liveTags = append(liveTags, c.mustGet(1, live, false).tag)
		}
		other.deleteQueue(1, dead, flags{})
		for i := range 50 {
			switch i % 3 {
			case 0:
				c.ack(1, deadTags[i], false)
			case 1:
				c.nack(1, deadTags[i], false, true)
			default:
				c.reject(1, deadTags[i], i%2 == 0)
			}
			c.ack(1, liveTags[i], false)
		}
		c.nack(1, liveTags[99], true, true) // covers 50 of each
		c.sync(1)
		c.awaitReady(1, live, 50)
		if got := c.mustGet(1, live, true); got.body != "50" || !got.redelivered {
			t.Errorf("first one left: %+v", got)
		}
		c.method(1, 50, 10, queueArgs(dead, flags{passive: true}, ""))
		if f := c.channelFault(1); f.code != 404 {
			t.Errorf("the deleted queue is back: %+v", f)
		}
	})
}
