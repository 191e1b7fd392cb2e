package session091

import (
	"slices"
	"testing"

	"ringmq/engine/core"
	"ringmq/frame/amqp091"
	"ringmq/ring/sim"
)

// Publish, consume and acknowledge, each on another loop than the queue.
func TestAcrossLoops(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		home, pub, con := w.dial(0), w.dial(1), w.dial(1)
		for _, c := range []*client{home, pub, con} {
			c.channel(1)
		}
		home.declare(1, "q", nil)
		if w.queue("q").Shard != 0 {
			w.fatalf("the queue does not live where it was declared")
		}
		con.send(1, &amqp091.BasicQos{PrefetchCount: uint16(w.Rand().IntN(20))})
		con.consume(1, "q", "c", false)
		var sent, got uint64
		total := uint64(50 + w.Rand().IntN(200))
		for got < total {
			for range w.Rand().IntN(10) {
				if sent < total {
					sent++
					pub.publish(1, "", "q", numbered(sent, w.Rand().IntN(300)))
				}
			}
			w.steps(1 + w.Rand().IntN(5))
			if sent == total {
				w.rest()
			}
			list := con.deliveries(1)
			for i, e := range list {
				m := e.m.(*amqp091.BasicDeliver)
				if got++; numberOf(e.body) != got || !whole(e.body) || m.Redelivered || string(m.RoutingKey) != "q" {
					w.fatalf("message %d came as number %d, redelivered %v", numberOf(e.body), got, m.Redelivered)
				}
				if i%3 == 0 || i == len(list)-1 {
					con.ack(1, m.DeliveryTag, true)
				}
			}
		}
		w.rest()
		if ready, unacked := w.counts("q"); ready != 0 || unacked != 0 {
			w.fatalf("%d ready, %d unacked at the end", ready, unacked)
		}
	})
}

// CNF-03, CNF-04: a publish is confirmed when all its queues, on all loops, have
// it; once; and never by an ack of several before that.
func TestConfirmsAcrossLoops(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		near, far, pub := w.dial(0), w.dial(1), w.dial(0)
		for _, c := range []*client{near, far, pub} {
			c.channel(1)
		}
		near.declare(1, "near", nil)
		far.declare(1, "far", nil)
		limit := 10 + w.Rand().IntN(30)
		bounded := amqp091.AppendInt32(amqp091.AppendString(nil, "x-overflow", "reject-publish"), "x-max-length", int32(limit))
		far.declare(1, "bounded", bounded)
		for _, q := range []string{"near", "far"} {
			near.send(1, &amqp091.QueueBind{Queue: []byte(q), Exchange: []byte("amq.fanout")})
			near.wait(1, amqp091.MethodQueueBindOk)
		}
		pub.confirmSelect(1)
		book := newConfirmBook()
		// Where each number went, and as which one to that queue.
		wants := map[uint64]map[string]uint64{}
		nth := map[string]uint64{}
		book.onAck = func(seq uint64) {
			for q, n := range wants[seq] {
				if have := w.queue(q).Published; have < n {
					w.fatalf("number %d is acked, and %s has %d of %d messages", seq, q, have, n)
				}
			}
		}
		pub.onEvent = func(e event) {
			if text := book.event(e.m); text != "" {
				w.fatalf("%s", text)
			}
		}
		for range 30 {
			for range w.Rand().IntN(8) {
				seq := book.published()
				key := []string{"near", "far", "bounded", "fanout", "nobody"}[w.Rand().IntN(5)]
				exchange, to := "", []string{key}
				switch key {
				case "fanout":
					exchange, to = "amq.fanout", []string{"near", "far"}
				case "nobody":
					to = nil
				}
				wants[seq] = map[string]uint64{}
				for _, q := range to {
					nth[q]++
					wants[seq][q] = nth[q]
				}
				pub.publish(1, exchange, key, numbered(seq, 0))
			}
			w.steps(w.Rand().IntN(4))
		}
		w.rest()
		if len(book.open) != 0 || len(book.acked)+len(book.nacked) != int(book.last) {
			w.fatalf("%d of %d are not confirmed", len(book.open), book.last)
		}
		refused := 0
		for seq, to := range wants {
			over := to["bounded"] > uint64(limit)
			if over {
				refused++
			}
			if over != book.nacked[seq] {
				w.fatalf("number %d: nacked %v, message %d of a queue for %d", seq, book.nacked[seq], to["bounded"], limit)
			}
		}
		if ready, _ := w.counts("bounded"); refused > 0 && ready != limit {
			w.fatalf("%d messages in a queue for %d", ready, limit)
		}
	})
}

// A consumer on another loop whose client does not read: what is on its way is
// bounded, and nothing is lost when it reads again.
func TestFullConsumerAcrossLoops(t *testing.T) {
	forSeeds(t, 40, func(w *world) {
		home, con, free := w.dial(0), w.dial(1), w.dial(1)
		for _, c := range []*client{home, con, free} {
			c.channel(1)
		}
		home.declare(1, "q", nil)
		con.consume(1, "q", "slow", w.Rand().IntN(2) == 0)
		con.peer.SetWindow(w.Rand().IntN(3000))
		con.deaf = true
		size := []int{100, 3000, 20_000, 200_000}[w.Rand().IntN(4)]
		total := uint64(3<<19/(size+200)) + 5
		for id := uint64(1); id <= total; id++ {
			home.publish(1, "", "q", numbered(id, size))
			if id%50 == 0 {
				w.steps(1)
			}
		}
		w.Settle()
		ready, _ := w.counts("q")
		onTheWay := (int(total) - ready) * size
		// The connection's mark, the window between the loops, what the client's
		// side took, and one message for each that was begun below the mark.
		if bound := 256<<10 + core.RemoteWindowBytes + 4096 + 3*size; onTheWay > bound {
			w.fatalf("%d bytes are handed out to a client that does not read, at most %d", onTheWay, bound)
		}
		if ready == 0 {
			w.fatalf("the whole queue went to a client that does not read")
		}
		// The others on its loop go on.
		home.declare(1, "other", nil)
		free.consume(1, "other", "c", true)
		home.publish(1, "", "other", numbered(1, 10))
		w.Settle()
		free.pump()
		if len(free.deliveries(1)) != 1 {
			w.fatalf("a slow client stops the others")
		}
		con.peer.SetWindow(1 << 20)
		con.deaf = false
		w.rest()
		var next uint64
		for _, e := range con.deliveries(1) {
			if next++; numberOf(e.body) != next || len(e.body) != size || !whole(e.body) {
				w.fatalf("message %d came as number %d", numberOf(e.body), next)
			}
		}
		if next != total {
			w.fatalf("%d of %d messages came", next, total)
		}
	})
}

// BAS-05: no delivery after cancel-ok, however many were under way; what was
// delivered can still be acknowledged.
func TestCancelWhileDelivering(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		home, con := w.dial(0), w.dial(1)
		home.channel(1)
		con.channel(1)
		home.declare(1, "q", nil)
		cancelled, after := false, 0
		con.onEvent = func(e event) {
			switch e.m.ID() {
			case amqp091.MethodBasicCancelOk:
				cancelled = true
			case amqp091.MethodBasicDeliver:
				if cancelled {
					after++
				}
			}
		}
		con.consume(1, "q", "c", false)
		total := uint64(50 + w.Rand().IntN(100))
		cancelAt := uint64(w.Rand().IntN(int(total)))
		for id := uint64(1); id <= total; id++ {
			home.publish(1, "", "q", numbered(id, 50))
			if w.Rand().IntN(4) == 0 {
				w.steps(1)
			}
			if id == cancelAt {
				con.send(1, &amqp091.BasicCancel{ConsumerTag: []byte("c")})
			}
		}
		w.rest()
		if cancelAt > 0 && (!cancelled || after > 0) {
			w.fatalf("cancelled %v, %d deliveries after it", cancelled, after)
		}
		list := con.deliveries(1)
		ready, unacked := w.counts("q")
		if unacked != len(list) || ready+unacked != int(total) {
			w.fatalf("%d delivered, %d unacked, %d ready of %d", len(list), unacked, ready, total)
		}
		if len(list) > 0 {
			con.ack(1, uint64(len(list)), true)
		}
		con.consume(1, "q", "again", true)
		var next uint64
		for _, e := range append(list, con.deliveries(1)...) {
			if next++; numberOf(e.body) != next {
				w.fatalf("message %d came as number %d", numberOf(e.body), next)
			}
		}
		if next != total {
			w.fatalf("%d of %d messages came", next, total)
		}
	})
}

// QOS-02: a window that consumers of queues on several loops share is never
// overdrawn, and no place in it is lost.
func TestSharedWindowAcrossLoops(t *testing.T) {
	forSeeds(t, 100, func(w *world) {
		con := w.dial(0)
		con.channel(1)
		limit := 1 + w.Rand().IntN(4)
		con.send(1, &amqp091.BasicQos{PrefetchCount: uint16(limit), Global: true})
		con.wait(1, amqp091.MethodBasicQosOk)
		held, got := map[uint64]bool{}, 0
		con.onEvent = func(e event) {
			if m, ok := e.m.(*amqp091.BasicDeliver); ok {
				got++
				if held[m.DeliveryTag] = true; len(held) > limit {
					w.fatalf("%d deliveries held in a window of %d", len(held), limit)
				}
			}
		}
		const each = 40
		var homes []*client
		for i := range w.Loops() {
			c := w.dial(i)
			c.channel(1)
			name := string(rune('a' + i))
			c.declare(1, name, nil)
			con.consume(1, name, name, false)
			homes = append(homes, c)
		}
		for id := range uint64(each) {
			for i, c := range homes {
				c.publish(1, "", string(rune('a'+i)), numbered(id+1, 20))
			}
		}
		for round := 0; got < each*len(homes) || len(held) > 0; round++ {
			w.steps(1 + w.Rand().IntN(3))
			con.pump()
			if len(held) == 0 {
				if w.rest(); len(held) == 0 {
					w.fatalf("%d of %d came, none is held, and nothing moves", got, each*len(homes))
				}
			}
			tags := make([]uint64, 0, limit)
			for tag := range held {
				tags = append(tags, tag)
			}
			slices.Sort(tags)
			tag := tags[w.Rand().IntN(len(tags))]
			delete(held, tag)
			if w.Rand().IntN(4) == 0 {
				con.send(1, &amqp091.BasicReject{DeliveryTag: tag, Requeue: true})
				got--
			} else {
				con.ack(1, tag, false)
			}
		}
		w.rest()
	})
}

// QOS-02, QOS-03: a window counts what was handed out before it was set.
func TestWindowSetLater(t *testing.T) {
	forSeeds(t, 40, func(w *world) {
		home, con := w.dial(0), w.dial(w.Rand().IntN(2))
		home.channel(1)
		con.channel(1)
		home.declare(1, "q", nil)
		con.send(1, &amqp091.BasicQos{PrefetchCount: 5})
		con.consume(1, "q", "c", false)
		for id := uint64(1); id <= 20; id++ {
			home.publish(1, "", "q", numbered(id, 20))
		}
		w.rest()
		window := func(n uint16, want int) {
			w.t.Helper()
			if n > 0 {
				con.send(1, &amqp091.BasicQos{PrefetchCount: n, Global: true})
				con.wait(1, amqp091.MethodBasicQosOk)
			}
			w.rest()
			if got := len(con.deliveries(1)); got != want {
				w.fatalf("%d deliveries, want %d", got, want)
			}
		}
		window(0, 5)
		window(3, 0)
		con.ack(1, 2, true) // three are held still
		window(0, 0)
		con.ack(1, 3, false)
		window(0, 1)
		window(4, 1)
		window(9, 1)                                     // its own prefetch of 5 holds as well
		con.send(1, &amqp091.BasicQos{PrefetchCount: 5}) // lifts the shared window
		con.wait(1, amqp091.MethodBasicQosOk)
		con.ack(1, 0, true)
		window(0, 5)
	})
}

// GEN-02 and BAS-10 need no loop of their own: two channels of one connection
// keep their numbers, also with kind faults.
func TestGetAcrossLoops(t *testing.T) {
	forSeeds(t, 60, func(w *world) {
		w.SetFaults(sim.Faults{DelayMax: 2, SkipPercent: 40})
		home, con := w.dial(0), w.dial(1)
		home.channel(1)
		con.channel(1)
		con.channel(2)
		home.declare(1, "q", nil)
		for id := uint64(1); id <= 20; id++ {
			home.publish(1, "", "q", numbered(id, 30))
		}
		w.rest()
		var next uint64
		for range 20 {
			ch := uint16(1 + w.Rand().IntN(2))
			con.send(ch, &amqp091.BasicGet{Queue: []byte("q"), NoAck: w.Rand().IntN(2) == 0})
			e := con.wait(ch, amqp091.MethodBasicGetOk)
			m := e.m.(*amqp091.BasicGetOk)
			if next++; numberOf(e.body) != next || m.MessageCount != uint32(20-next) {
				w.fatalf("got %d with %d left, want %d", numberOf(e.body), m.MessageCount, next)
			}
		}
		con.send(1, &amqp091.BasicGet{Queue: []byte("q")})
		con.wait(1, amqp091.MethodBasicGetEmpty)
	})
}
