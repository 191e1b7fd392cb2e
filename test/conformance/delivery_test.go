package conformance

import (
	"fmt"
	"strings"
	"testing"

	"ringmq/test/harness"
)

// TestBAS_13_RequeuePosition: requeued messages return to their original place, redelivered.
func TestBAS_13_RequeuePosition(t *testing.T) {
	all := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	give := map[string]func(c *client){
		"reject one by one backwards": func(c *client) {
			for tag := uint64(6); tag > 0; tag-- {
				c.reject(1, tag, true)
			}
		},
		"nack one by one": func(c *client) {
			for tag := uint64(1); tag <= 6; tag++ {
				c.nack(1, tag, false, true)
			}
		},
		"nack multiple":      func(c *client) { c.nack(1, 6, true, true) },
		"nack multiple zero": func(c *client) { c.nack(1, 0, true, true) },
		"mixed order": func(c *client) {
			for _, tag := range []uint64{3, 6, 1, 5, 2, 4} {
				c.reject(1, tag, true)
			}
		},
		"recover": func(c *client) {
			c.method(1, 60, 110, args().bits(true))
			c.expect(1, 60, 111)
		},
		"recover-async": func(c *client) { c.method(1, 60, 100, args().bits(true)) },
		"channel close": func(c *client) { c.closeChannel(1); c.open(1) },
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, back := range give {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1)
				q := c.newQueue(1)
				c.publishAll(1, q, all...)
				c.awaitReady(1, q, 10)
				for range 6 {
					c.mustGet(1, q, false)
				}
				back(c)
				c.awaitReady(1, q, 10)
				for i, want := range all {
					got := c.mustGet(1, q, true)
					if got.body != want || got.redelivered != (i < 6) {
						t.Errorf("position %d: %q redelivered=%v, want %q %v", i, got.body, got.redelivered, want, i < 6)
					}
				}
			})
		}
	})
}

// TestBAS_13_Drop: requeue=0 drops where no dead-letter exchange is set.
func TestBAS_13_Drop(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.publishAll(1, q, "a", "b", "c", "d")
		c.awaitReady(1, q, 4)
		for range 3 {
			c.mustGet(1, q, false)
		}
		c.reject(1, 1, false)
		c.nack(1, 3, true, false)
		c.closeChannel(1)
		c.open(1)
		if got := c.drain(1, q); strings.Join(got, "") != "d" {
			t.Errorf("left: %q, want d", got)
		}
	})
}

// TestBAS_13_SameConsumer: a requeued message may come straight back to the consumer that gave it back.
func TestBAS_13_SameConsumer(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.consume(1, q, "t", false)
		c.publish(1, "", q, "again")
		for i := range 100 {
			got := c.deliver(1)
			if got.redelivered != (i > 0) || got.tag != uint64(i+1) {
				t.Fatalf("delivery %d: %+v", i, got)
			}
			c.nack(1, got.tag, false, true)
		}
	})
}

// TestBAS_14_Recover: all outstanding messages of the channel, of all queues, then recover-ok.
func TestBAS_14_Recover(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q1, q2 := c.newQueue(1), c.newQueue(1)
		c.publish(1, "", q1, "a")
		c.publish(1, "", q2, "b")
		c.mustGet(1, q1, false)
		c.mustGet(1, q2, false)
		c.method(1, 60, 110, args().bits(true))
		c.expect(1, 60, 111)
		for _, q := range []string{q1, q2} {
			c.awaitReady(2, q, 1)
			if got := c.mustGet(2, q, true); !got.redelivered {
				t.Errorf("%+v is not marked redelivered", got)
			}
		}
		c.method(1, 60, 110, args().bits(true)) // nothing outstanding
		c.expect(1, 60, 111)
		c.method(1, 60, 80, args().u64(1).bits(false)) // the old tags are gone
		checkFault(t, c.channelFault(1), 406, "unknown delivery tag 1", m(60, 80))
	})
}

// TestBAS_15_Redelivered: whatever the way it was handed out and came back.
func TestBAS_15_Redelivered(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		take := map[string]func(q string){
			"deliver": func(q string) { c.consume(2, q, "t", false); c.deliver(2) },
			"get":     func(q string) { c.mustGet(2, q, false) },
		}
		for name, hand := range take {
			q := c.newQueue(1)
			c.publish(1, "", q, "x")
			c.awaitReady(1, q, 1)
			hand(q)
			c.closeChannel(2)
			c.open(2)
			c.awaitReady(2, q, 1)
			if got := c.mustGet(2, q, false); !got.redelivered {
				t.Errorf("%s: not redelivered", name)
			}
			c.closeChannel(2)
			c.open(2)
			c.awaitReady(2, q, 1)
			c.consume(2, q, "t", true)
			if got := c.deliver(2); !got.redelivered {
				t.Errorf("%s: not redelivered at the second time", name)
			}
			c.cancel(2, "t")
		}
	})
}

// TestBAS_16_Order: one publisher, one queue, one consumer, over requeues and a mix of delivery modes.
func TestBAS_16_Order(t *testing.T) {
	const count = 2000
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		pub, con := connect(t, b).open(1), connect(t, b).open(1)
		q := unique("q")
		pub.queue(1, q, flags{durable: true}, "")
		con.qos(1, 50, false)
		con.consume(1, q, "t", false)
		var out []byte
		for i := range count {
			p := props{deliveryMode: byte(1 + i%3%2)}
			out = append(out, contentFrames(1, publishArgs("", q, false, false), p.encode(), []byte(fmt.Sprint(i)), pub.frameMax)...)
		}
		pub.write(out)
		// Every 50 deliveries: give the whole window back once, then it must come again in order.
		again := false
		for i := 0; i < count; {
			window := min(50, count-i)
			var last uint64
			for j := range window {
				got := con.deliver(1)
				if got.body != fmt.Sprint(i+j) || got.redelivered != again {
					t.Fatalf("got %q redelivered=%v, want %d redelivered=%v", got.body, got.redelivered, i+j, again)
				}
				last = got.tag
			}
			if again = !again; again {
				con.nack(1, last, true, true)
				continue
			}
			con.ack(1, last, true)
			i += window
		}
	})
}

// TestBAS_16_RequeuedAhead: requeued messages re-enter ahead of younger ones that were never handed out.
func TestBAS_16_RequeuedAhead(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q := c.newQueue(1)
		c.publishAll(1, q, "0", "1", "2", "3")
		c.awaitReady(1, q, 4)
		for range 3 {
			c.mustGet(2, q, false) // 0 1 2
		}
		c.ack(2, 2, false) // 1 is gone
		c.publishAll(1, q, "4", "5")
		c.closeChannel(2)
		c.awaitReady(1, q, 5)
		if got := strings.Join(c.drain(1, q), ""); got != "02345" {
			t.Errorf("order %q, want 02345", got)
		}
	})
}

// TestBAS_17_RoundRobin: consumers with credit take turns, over connections.
func TestBAS_17_RoundRobin(t *testing.T) {
	const consumers, each = 10, 30
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		pub := connect(t, b).open(1)
		q := pub.newQueue(1)
		var all []*client
		for range consumers {
			c := connect(t, b).open(1)
			c.consume(1, q, "t", true)
			all = append(all, c)
		}
		bodies := make([]string, consumers*each)
		for i := range bodies {
			bodies[i] = fmt.Sprint(i)
		}
		pub.publishAll(1, q, bodies...)
		// Each gets its share: every tenth message, at the same offset all along.
		seen := map[int]bool{}
		for _, c := range all {
			first := -1
			for i := range each {
				var n int
				if _, err := fmt.Sscan(c.deliver(1).body, &n); err != nil {
					t.Fatal(err)
				}
				if first < 0 {
					first = n
				}
				if n != first+i*consumers || seen[n] {
					t.Fatalf("consumer that began with %d got %d as its number %d", first, n, i)
				}
				seen[n] = true
			}
		}
	})
}

// TestBAS_20_DeliveryModes: anything but 2 is transient and accepted.
func TestBAS_20_DeliveryModes(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		for _, mode := range []byte{1, 2, 3, 255} {
			if mode > 2 {
				b.SkipRabbitMQ(t, "406 before 3.13")
			}
			p := props{deliveryMode: mode}
			c.publishWith(1, publishArgs("", q, false, false), p, []byte("x"))
			if got := c.mustGet(1, q, true); string(got.properties) != string(p.encode()) {
				t.Errorf("mode %d came out as % x", mode, got.properties)
			}
		}
	})
}

// TestBAS_21_Opaque: properties and bodies come out byte for byte, of every size around a frame's limit.
func TestBAS_21_Opaque(t *testing.T) {
	everything := props{contentType: "a/b", contentEncoding: "gzip", headers: table("n", table("deep", table("er", vA(vS("x"), vV()))),
		"dup", 1, "dup", 2, "bin", vS("\x00\xff"), "", "empty name"), deliveryMode: 2, priority: 255, correlationID: "c", replyTo: "r",
		expiration: "60000", messageID: "m", timestamp: 1<<63 + 5, typ: "t", userID: "guest", appID: "a", clusterID: "cl"}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{frameMax: 4096}).open(1)
		q := c.newQueue(1)
		for _, p := range []props{{}, {hasHeaders: true}, {priority: 9}, everything} {
			c.publishWith(1, publishArgs("", q, false, false), p, []byte("x"))
			if got := c.mustGet(1, q, true); string(got.properties) != string(p.encode()) {
				t.Errorf("properties % x\ncame out as % x", p.encode(), got.properties)
			}
		}
		for _, size := range []int{0, 1, 2, 100, 4087, 4088, 4089, 8176, 8177, 65535, 65536, 1 << 20} {
			body := make([]byte, size)
			for i := range body {
				body[i] = byte(i * 7)
			}
			c.publishWith(1, publishArgs("", q, false, false), props{}, body)
			got := c.mustGet(1, q, true)
			if got.body != string(body) {
				t.Errorf("body of %d bytes changed", size)
			}
			if want := (size + 4087) / 4088; got.bodyFrames < want {
				t.Errorf("body of %d bytes in %d frames, want at least %d", size, got.bodyFrames, want)
			}
		}
	})
}

// TestBAS_22_TooLarge: judged at the header, the body frames are discarded, the connection lives.
func TestBAS_22_TooLarge(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "the body is buffered first")
		c := connect(t, b).open(1, 2)
		c.method(1, 60, 40, publishArgs("", "k", false, false))
		c.frame(2, 1, headerPayload(134217729, []byte{0, 0}))
		f := readFault(c.expect(1, 20, 40))
		checkFault(t, f, 406, "message size 134217729 is larger than configured max size 134217728", m(60, 40))
		for range 3 {
			c.frame(3, 1, make([]byte, 100_000)) // of the refused message
		}
		c.method(1, 20, 41, nil)
		c.sync(2)
		c.open(1)
		c.sync(1)
	})
}
