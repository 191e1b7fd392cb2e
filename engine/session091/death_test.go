package session091

import (
	"testing"
	"time"

	"ringmq/frame/amqp091"
)

// drain consumes what is left in a queue and returns it in order.
func drain(c *client, queueName string) []event {
	c.w.Helper()
	c.channel(99)
	c.consume(99, queueName, "drain", true)
	c.w.rest()
	return c.deliveries(99)
}

// CHA-08, BAS-15: a connection dies with messages in every state: in its queue,
// on their way to its loop, in its output, delivered, acknowledged. What was not
// acknowledged is back in its place; what the client had read is redelivered.
func TestConnectionDeath(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		home, con := w.dial(0), w.dial(w.Rand().IntN(2))
		home.channel(1)
		con.channel(1)
		home.declare(1, "q", nil)
		if n := w.Rand().IntN(3); n > 0 {
			con.send(1, &amqp091.BasicQos{PrefetchCount: uint16(10 * n), Global: w.Rand().IntN(2) == 0})
		}
		con.consume(1, "q", "c", false)
		con.peer.SetWindow(500 + w.Rand().IntN(5000))
		total := uint64(20 + w.Rand().IntN(150))
		acked, seen := map[uint64]bool{}, map[uint64]bool{}
		for id := uint64(1); id <= total; id++ {
			home.publish(1, "", "q", numbered(id, w.Rand().IntN(200)))
			if w.Rand().IntN(3) == 0 {
				w.steps(1)
			}
			for _, e := range con.deliveries(1) {
				seen[numberOf(e.body)] = true
				if w.Rand().IntN(2) == 0 {
					acked[numberOf(e.body)] = true
					con.ack(1, e.m.(*amqp091.BasicDeliver).DeliveryTag, false)
				}
			}
		}
		end := w.Rand().IntN(5)
		switch end {
		case 0:
			con.peer.Reset() // acks that were under way may be lost
		case 1:
			con.peer.Close()
		case 2:
			con.send(1, &amqp091.ChannelClose{ReplyCode: 200})
		case 3:
			con.send(0, &amqp091.ConnectionClose{ReplyCode: 200})
		case 4:
			con.send(1, &amqp091.BasicAck{DeliveryTag: 1 << 40}) // an error of the channel
		}
		w.rest()
		ready, unacked := w.counts("q")
		if unacked != 0 || w.queue("q").Consumers() != 0 {
			w.fatalf("end %d: %d unacked, %d consumers", end, unacked, w.queue("q").Consumers())
		}
		var last uint64
		left := drain(home, "q")
		for _, e := range left {
			id := numberOf(e.body)
			if id <= last {
				w.fatalf("message %d comes after %d", id, last)
			}
			last = id
			redelivered := e.m.(*amqp091.BasicDeliver).Redelivered
			if seen[id] && !redelivered {
				w.fatalf("end %d: message %d was delivered before and is not redelivered", end, id)
			}
			if acked[id] && end != 0 {
				w.fatalf("end %d: message %d was acknowledged and comes again", end, id)
			}
			delete(acked, id)
			delete(seen, id)
		}
		if len(left) != ready || len(left)+len(acked) != int(total) {
			w.fatalf("end %d: %d are left and %d were acknowledged, of %d", end, len(left), len(acked), total)
		}
	})
}

// QUE-11, CAN-01, CNF-02: a queue is deleted while publishes, deliveries and
// acks are on their way to and from it, on other loops.
func TestQueueDeletionInFlight(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		home, pub, con := w.dial(0), w.dial(1), w.dial(w.Rand().IntN(2))
		for _, c := range []*client{home, pub, con} {
			c.channel(1)
		}
		home.declare(1, "q", nil)
		pub.confirmSelect(1)
		book := newConfirmBook()
		pub.onEvent = func(e event) {
			if text := book.event(e.m); text != "" {
				w.fatalf("%s", text)
			}
		}
		con.consume(1, "q", "c", w.Rand().IntN(4) == 0)
		cancelled, after := 0, 0
		con.onEvent = func(e event) {
			switch e.m.ID() {
			case amqp091.MethodBasicCancel:
				cancelled++
			case amqp091.MethodBasicDeliver:
				after += cancelled
			}
		}
		total := 40 + w.Rand().IntN(100)
		deleteAt := w.Rand().IntN(total)
		for i := range total {
			book.published()
			pub.publish(1, "", "q", numbered(uint64(i), 40))
			if w.Rand().IntN(3) == 0 {
				w.steps(1)
			}
			if w.Rand().IntN(5) == 0 {
				con.pump()
				if n := con.tags[1]; n > 0 {
					con.send(1, &amqp091.BasicNack{Multiple: true, Requeue: w.Rand().IntN(2) == 0})
				}
			}
			if i == deleteAt {
				home.send(1, &amqp091.QueueDelete{Queue: []byte("q")})
			}
		}
		home.wait(1, amqp091.MethodQueueDeleteOk)
		w.rest()
		if len(book.open) != 0 || len(book.nacked) != 0 {
			w.fatalf("%d publishes are not confirmed, %d nacked", len(book.open), len(book.nacked))
		}
		if cancelled != 1 || after != 0 {
			w.fatalf("%d cancels, %d deliveries after it", cancelled, after)
		}
		if e, closed := con.take(1, amqp091.MethodChannelClose); closed {
			w.fatalf("an ack of a deleted queue's message: %s", e.m.(*amqp091.ChannelClose).ReplyText)
		}
		// The tag and the slot can be used again (CAN-02).
		home.declare(1, "q", nil)
		con.consume(1, "q", "c", true)
		book.published()
		pub.publish(1, "", "q", numbered(7, 40))
		w.rest()
		if n := len(con.deliveries(1)); n == 0 {
			w.fatalf("no delivery from the new queue of the name")
		}
	})
}

// An operator's close, and a drain, in the middle of whatever a client sends: it
// is told, and its answer is understood (CON-19).
func TestForcedCloseInTheMiddle(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		home, pub := w.dial(0), w.dial(1)
		home.channel(1)
		pub.channel(1)
		home.declare(1, "q", nil)
		// A body that leaves in pieces, so that the close comes inside a frame.
		frames := publishFrames(nil, 1, "", "q", false, nil, numbered(1, 100_000), int(w.frameMax))
		cut := w.Rand().IntN(len(frames) + 1)
		pub.peer.Write(frames[:cut])
		w.steps(w.Rand().IntN(8))
		lp := w.srv.loops[1]
		for c := range lp.conns {
			lp.loop.Post(func() { c.force("broker forced connection closure with reason 'test'") })
		}
		w.steps(w.Rand().IntN(8))
		pub.peer.Write(frames[cut:])
		pub.wait(0, amqp091.MethodConnectionClose)
		pub.send(0, &amqp091.ConnectionCloseOk{})
		w.rest()
		pub.pump()
		if !pub.peer.EOF() {
			w.fatalf("cut at %d: the connection does not end with close-ok", cut)
		}
	})
}

// TTL-05 and TTL-01 in a world with time: what is due happens in time, whatever
// else asked for the queue's one timer.
func TestTimersOfQueue(t *testing.T) {
	forSeeds(t, 40, func(w *world) {
		home := w.dial(0)
		home.channel(1)
		args := amqp091.AppendInt32(amqp091.AppendInt32(nil, "x-expires", 3000), "x-message-ttl", 5000)
		args = amqp091.AppendString(amqp091.AppendString(args, "x-dead-letter-exchange", ""), "x-dead-letter-routing-key", "dead")
		home.declare(1, "q", args)
		home.declare(1, "dead", nil)
		home.publish(1, "", "q", numbered(1, 10))
		for range 4 { // in use: neither it nor the message goes
			w.Run(time.Duration(500+w.Rand().IntN(600))*time.Millisecond, 100*time.Millisecond)
			home.count(1, "q")
		}
		home.channel(2)
		other := w.dial(1)
		other.channel(1)
		other.send(1, &amqp091.BasicQos{PrefetchCount: 1})
		other.consume(1, "q", "c", false) // takes the first, keeps it
		home.publish(1, "", "q", numbered(2, 10))
		w.rest()
		w.Run(4*time.Second, 100*time.Millisecond)
		if ready, _ := w.counts("dead"); ready != 0 {
			w.fatalf("%d expired too early", ready)
		}
		w.Run(1200*time.Millisecond, 100*time.Millisecond)
		if ready, unacked := w.counts("q"); ready != 0 || unacked != 1 {
			w.fatalf("%d ready, %d unacked after their time", ready, unacked)
		}
		if ready, _ := w.counts("dead"); ready != 1 {
			w.fatalf("%d dead letters", ready)
		}
		other.peer.Close()
		w.rest()
		if ready, _ := w.counts("dead"); ready != 2 {
			w.fatalf("%d dead letters after an overdue message came back", ready)
		}
		w.Run(2800*time.Millisecond, 100*time.Millisecond)
		w.queue("q")
		w.Run(400*time.Millisecond, 100*time.Millisecond)
		if w.srv.Broker.VHost("/").Queue([]byte("q")) != nil {
			w.fatalf("an unused queue does not expire")
		}
	})
}

// Exclusive queues go with their connection, wherever they live, and nothing
// that others sent them stays behind (QUE-06).
func TestExclusiveQueuesGo(t *testing.T) {
	forSeeds(t, 60, func(w *world) {
		owner, pub := w.dial(0), w.dial(1)
		owner.channel(1)
		pub.channel(1)
		// Enough queues that some of them live on other loops.
		for i := range 60 {
			owner.send(1, &amqp091.QueueDeclare{Queue: []byte{'q', byte('A' + i)}, Exclusive: true, AutoDelete: i%2 == 0})
		}
		w.rest()
		for i := range 60 {
			pub.publish(1, "", string([]byte{'q', byte('A' + i)}), numbered(uint64(i), 100))
			if i%7 == 0 {
				w.steps(1)
			}
		}
		if w.Rand().IntN(2) == 0 {
			owner.peer.Reset()
		} else {
			owner.send(0, &amqp091.ConnectionClose{ReplyCode: 200})
		}
		w.rest()
		for i := range 60 {
			if w.srv.Broker.VHost("/").Queue([]byte{'q', byte('A' + i)}) != nil {
				w.fatalf("exclusive queue %d outlives its connection", i)
			}
		}
	})
}

// A connection that declares exclusive queues for ever, as a client does that
// makes one for each answer, remembers those that are there.
func TestExclusiveQueuesAreForgotten(t *testing.T) {
	w := newWorld(t, 1, 1)
	c := w.dial(0)
	c.channel(1)
	for i := range 1000 {
		c.send(1, &amqp091.QueueDeclare{Exclusive: true, AutoDelete: true})
		name := c.wait(1, amqp091.MethodQueueDeclareOk).m.(*amqp091.QueueDeclareOk).Queue
		if i%100 == 0 {
			continue // stays
		}
		c.send(1, &amqp091.BasicConsume{Queue: name, ConsumerTag: []byte("c"), NoAck: true})
		c.send(1, &amqp091.BasicCancel{ConsumerTag: []byte("c")})
		c.wait(1, amqp091.MethodBasicCancelOk)
		c.got = nil
	}
	for sc := range w.srv.loops[0].conns {
		if n := len(sc.exclusive); n < 10 || n > 60 {
			t.Errorf("%d names for 10 queues", n)
		}
	}
	w.finish()
}
