package session091

import (
	"maps"
	"slices"
	"testing"
	"time"

	"ringmq/engine"
	"ringmq/frame/amqp091"
)

// alarm raises or clears and lets the world come to rest.
func (w *world) alarm(a engine.Alarm, on bool) {
	w.Helper()
	w.srv.Broker.SetAlarm(a, on)
	w.rest()
}

// blockEvents takes the notices of a client and returns them in words.
func (c *client) blockEvents() (list []string) {
	kept := c.got[:0]
	for _, e := range c.got {
		switch m := e.m.(type) {
		case *amqp091.ConnectionBlocked:
			list = append(list, string(m.Reason))
		case *amqp091.ConnectionUnblocked:
			list = append(list, "unblocked")
		default:
			kept = append(kept, e)
		}
	}
	c.got = kept
	return list
}

func (c *client) wantBlockEvents(want ...string) {
	c.w.Helper()
	got := c.blockEvents()
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = got[i] == want[i]
	}
	if !same {
		c.fatalf("notices %q, want %q", got, want)
	}
}

func (w *world) wantReady(name string, want int) {
	w.Helper()
	if ready, _ := w.counts(name); ready != want {
		w.fatalf("%s holds %d ready messages, want %d", name, ready, want)
	}
}

// TestAlarmsInAllOrders raises and clears both alarms in every order: a publisher
// is stopped iff any is up, is told once, and nothing of what it sent is lost or
// doubled; a consumer that acknowledges is never stopped (spec C.8, ALM-01 to
// ALM-03).
func TestAlarmsInAllOrders(t *testing.T) {
	type step struct {
		a  engine.Alarm
		on bool
	}
	mem, disk := engine.AlarmMemory, engine.AlarmDisk
	for _, c := range []struct {
		steps  []step
		reason string
	}{
		{[]step{{mem, true}, {mem, false}}, "low on memory"},
		{[]step{{disk, true}, {disk, false}}, "low on disk"},
		{[]step{{mem, true}, {disk, true}, {mem, false}, {disk, false}}, "low on memory"},
		{[]step{{mem, true}, {disk, true}, {disk, false}, {mem, false}}, "low on memory"},
		{[]step{{disk, true}, {mem, true}, {mem, false}, {disk, false}}, "low on disk"},
		{[]step{{disk, true}, {mem, true}, {disk, false}, {mem, false}}, "low on disk"},
		{[]step{{mem, true}, {mem, true}, {disk, false}, {mem, false}}, "low on memory"},
		{[]step{{mem | disk, true}, {mem | disk, false}}, "low on memory & disk"},
	} {
		w := newWorld(t, 1, 2)
		publisher, consumer := w.dial(0), w.dial(1)
		publisher.channel(1)
		consumer.channel(1)
		consumer.declare(1, "in", nil)
		consumer.declare(1, "out", nil)
		for range 2 * len(c.steps) {
			publisher.publish(1, "", "out", numbered(0, 8))
		}
		w.rest()
		consumer.consume(1, "out", "t", false)

		up, sent, acked := engine.Alarm(0), 0, 0
		for _, s := range c.steps {
			if was := up; s.on {
				up |= s.a
				w.alarm(s.a, true)
				if was == 0 { // it has published before, so it is told at once
					publisher.wantBlockEvents(c.reason)
				}
			} else {
				up &^= s.a
				w.alarm(s.a, false)
				if up == 0 {
					publisher.wantBlockEvents("unblocked")
				}
			}
			publisher.wantBlockEvents()
			publisher.publish(1, "", "in", numbered(uint64(sent), 8))
			sent++
			w.rest()
			if up == 0 {
				w.wantReady("in", sent)
			} else {
				w.wantReady("in", 0)
			}
			acked++
			consumer.ack(1, uint64(acked), false)
			w.rest()
			if _, unacked := w.counts("out"); unacked != 2*len(c.steps)-acked {
				w.fatalf("%d unacked after %d acks: the consumer was stopped", unacked, acked)
			}
			consumer.wantBlockEvents()
		}
		w.finish()
	}
}

// dialConn is dial that also finds the broker's end.
func (w *world) dialConn(loop int, heartbeat uint16, notices bool) (*client, *conn) {
	w.Helper()
	lp := w.srv.loops[loop]
	before := maps.Clone(lp.conns)
	c := w.dialRaw(loop)
	c.peer.Write(amqp091.ProtocolHeader[:])
	c.wait(0, amqp091.MethodConnectionStart)
	hello := startOk()
	if !notices {
		hello.ClientProperties = nil
	}
	c.send(0, hello)
	c.wait(0, amqp091.MethodConnectionTune)
	c.send(0, &amqp091.ConnectionTuneOk{ChannelMax: 2047, FrameMax: w.frameMax, Heartbeat: heartbeat})
	c.send(0, &amqp091.ConnectionOpen{VirtualHost: []byte("/")})
	c.wait(0, amqp091.MethodConnectionOpenOk)
	c.channel(1)
	for end := range lp.conns {
		if _, old := before[end]; !old {
			return c, end
		}
	}
	w.fatalf("the connection is not there")
	return nil, nil
}

func (w *world) wantState(end *conn, want string) {
	w.Helper()
	if got := end.info().State; got != want {
		w.fatalf("state %q, want %q", got, want)
	}
}

// drain takes everything that a queue holds and returns the numbers.
func (c *client) drain(ch uint16, name string) (ids []uint64) {
	c.w.Helper()
	c.consume(ch, name, "drain", true)
	for _, e := range c.deliveries(ch) {
		ids = append(ids, numberOf(e.body))
	}
	return ids
}

// TestBlockedPublisher shows a blocked connection from all sides: a publish stops
// it, nothing behind that is read, deliveries still reach it, all goes on in order
// when the alarm clears, and the listings say so (ALM-02, ALM-03).
func TestBlockedPublisher(t *testing.T) {
	for _, notices := range []bool{true, false} {
		w := newWorld(t, 2, 2)
		c, end := w.dialConn(0, 0, notices)
		other, _ := w.dialConn(1, 0, true)
		c.declare(1, "q", nil)
		c.declare(1, "held", nil)
		other.publish(1, "", "held", numbered(9, 8))
		other.consume(1, "held", "t", false)
		w.alarm(engine.AlarmDisk, true)
		other.wantBlockEvents("low on disk")
		c.wantBlockEvents() // it has not published yet
		w.wantState(end, "running")
		c.consume(1, "held", "t", true) // and is served like any other

		for i := range 5 {
			c.publish(1, "", "q", numbered(uint64(i), 100))
		}
		c.send(1, &amqp091.BasicQos{PrefetchCount: 7})
		w.rest()
		if notices {
			c.wantBlockEvents("low on disk")
		}
		c.wantBlockEvents()
		w.wantReady("q", 0)
		w.wantState(end, "blocked")
		if _, ok := c.take(1, amqp091.MethodBasicQosOk); ok {
			w.fatalf("a method behind a blocked publish was handled")
		}

		// The other one, which was told, has not published since and gives its message back.
		other.send(1, &amqp091.BasicCancel{ConsumerTag: []byte("t")})
		other.send(1, &amqp091.BasicReject{DeliveryTag: 1, Requeue: true})
		w.rest()
		if got := c.deliveries(1); len(got) != 1 || numberOf(got[0].body) != 9 {
			w.fatalf("%d deliveries to a blocked connection, want 1", len(got))
		}

		w.alarm(engine.AlarmDisk, false)
		other.wantBlockEvents("unblocked")
		if notices {
			c.wantBlockEvents("unblocked")
		}
		c.wantBlockEvents()
		w.wantReady("q", 5)
		c.wait(1, amqp091.MethodBasicQosOk)
		w.wantState(end, "running")
		if got := c.drain(1, "q"); !slices.Equal(got, []uint64{0, 1, 2, 3, 4}) {
			w.fatalf("messages %v", got)
		}
		w.finish()
	}
}

// A connection that was told and has not published since is "blocking", and a
// publish whose method came before the alarm is finished.
func TestBlockingPublisher(t *testing.T) {
	w := newWorld(t, 3, 1)
	c, end := w.dialConn(0, 0, true)
	c.declare(1, "q", nil)
	frames := publishFrames(nil, 1, "", "q", false, nil, numbered(1, 3000), frameMaxMin)
	for _, cut := range []int{10, 30, 2000, len(frames) - 1} { // in the method, header, body, end
		w.wantReady("q", 0)
		c.peer.Write(frames[:cut])
		w.rest()
		w.alarm(engine.AlarmMemory, true)
		c.peer.Write(frames[cut:])
		w.rest()
		if want := "blocking"; cut > 10 {
			w.wantState(end, want)
			w.wantReady("q", 1)
		} else {
			w.wantState(end, "blocked")
			w.wantReady("q", 0)
		}
		w.alarm(engine.AlarmMemory, false)
		w.wantReady("q", 1)
		c.send(1, &amqp091.QueuePurge{Queue: []byte("q")})
		c.wait(1, amqp091.MethodQueuePurgeOk)
		c.blockEvents()
	}
	w.finish()
}

// ALM-04: the broker goes on to send heartbeats to a blocked connection and does
// not take the silence, which is its own doing, for the client's. After the alarm
// a silent client is found out again.
func TestBlockedHeartbeats(t *testing.T) {
	w := newWorld(t, 4, 1)
	c, end := w.dialConn(0, 2, true)
	c.declare(1, "q", nil)
	w.alarm(engine.AlarmMemory, true)
	c.publish(1, "", "q", numbered(1, 8))
	w.rest()
	w.wantState(end, "blocked")
	out := end.rc.BytesOut()
	for range 60 {
		w.Run(time.Second, 100*time.Millisecond)
		c.pump()
	}
	w.wantState(end, "blocked")
	if sent := end.rc.BytesOut() - out; sent < 8*60/2 {
		w.fatalf("%d bytes of heartbeats in a minute", sent)
	}
	w.alarm(engine.AlarmMemory, false)
	w.wantReady("q", 1)
	w.Run(time.Second, 100*time.Millisecond)
	w.wantState(end, "running")
	w.Run(10*time.Second, 100*time.Millisecond)
	if end.state != stateDead {
		w.fatalf("a client that is silent after the alarm stays")
	}
	w.finish()
}

// The ways in which a blocked connection ends while the alarm is up. What it held
// goes back, what was blocked is not taken.
func TestBlockedEnds(t *testing.T) {
	for _, way := range []string{"operator", "peer", "reset"} {
		w := newWorld(t, 5, 2)
		c, end := w.dialConn(0, 0, true)
		c.declare(1, "q", nil)
		c.publish(1, "", "q", numbered(1, 8))
		c.consume(1, "q", "t", false)
		w.alarm(engine.AlarmMemory, true)
		c.wantBlockEvents("low on memory")
		frames := publishFrames(nil, 1, "", "q", false, nil, numbered(2, 8), frameMaxMin)
		if way != "operator" {
			frames = frames[:methodSize] // nothing is left unread, so that the end is seen at once
		}
		c.peer.Write(frames)
		w.rest()
		w.wantState(end, "blocked")
		switch way {
		case "operator":
			end.force("moving house")
			c.wait(0, amqp091.MethodConnectionClose)
			c.send(0, &amqp091.ConnectionCloseOk{})
		case "peer":
			c.peer.Close()
		case "reset":
			c.peer.Reset()
		}
		w.rest()
		if end.state < stateDying {
			w.fatalf("%s: the connection is in state %v", way, end.state)
		}
		w.wantReady("q", 1)
		w.alarm(engine.AlarmMemory, false)
		w.wantReady("q", 1)
		w.finish()
	}
}

// methodSize is the size of the basic.publish frame in front of a content for "q".
const methodSize = amqp091.FrameOverhead + 10

// A peer that left data unread and went is heard out when the alarm ends (CON-22).
func TestBlockedEndsUnread(t *testing.T) {
	w := newWorld(t, 5, 2)
	c, end := w.dialConn(0, 0, true)
	c.declare(1, "q", nil)
	w.alarm(engine.AlarmMemory, true)
	c.publish(1, "", "q", numbered(1, 8))
	w.rest()
	c.peer.Close()
	w.rest()
	w.alarm(engine.AlarmMemory, false)
	if end.state != stateDead {
		w.fatalf("the connection outlives the alarm in state %v", end.state)
	}
	w.wantReady("q", 1)
	w.finish()
}

// A blocked publish goes where its exchange leads when the alarm is over, not to
// what was there when its method came.
func TestBlockedPublishIsRoutedAnew(t *testing.T) {
	w := newWorld(t, 6, 1)
	c, _ := w.dialConn(0, 0, true)
	other, _ := w.dialConn(0, 0, true)
	bind := func(queueName string) {
		other.declare(1, queueName, nil)
		other.send(1, &amqp091.ExchangeDeclare{Exchange: []byte("x"), Type: []byte("fanout")})
		other.wait(1, amqp091.MethodExchangeDeclareOk)
		other.send(1, &amqp091.QueueBind{Queue: []byte(queueName), Exchange: []byte("x")})
		other.wait(1, amqp091.MethodQueueBindOk)
	}
	bind("old")
	c.publish(1, "x", "", numbered(1, 8))
	w.rest()
	w.wantReady("old", 1)
	w.alarm(engine.AlarmMemory, true)
	c.publish(1, "x", "", numbered(2, 8))
	w.rest()
	other.send(1, &amqp091.ExchangeDelete{Exchange: []byte("x")})
	other.wait(1, amqp091.MethodExchangeDeleteOk)
	bind("new")
	w.alarm(engine.AlarmMemory, false)
	w.wantReady("old", 1)
	w.wantReady("new", 1)
	w.finish()
}

// Alarms come and go at random under publishers with confirms: each message is
// confirmed once, and arrives once and in order.
func TestAlarmsAtRandom(t *testing.T) {
	forSeeds(t, 100, func(w *world) {
		home, pub := w.dial(0), w.dial(1)
		home.channel(1)
		pub.channel(1)
		home.declare(1, "q", nil)
		home.consume(1, "q", "t", true)
		pub.confirmSelect(1)
		book := newConfirmBook()
		pub.onEvent = func(e event) {
			if fault := book.event(e.m); fault != "" {
				w.fatalf("%s", fault)
			}
		}
		total := uint64(50 + w.Rand().IntN(100))
		for book.last < total {
			a := engine.Alarm(1 << w.Rand().IntN(2))
			w.srv.Broker.SetAlarm(a, w.Rand().IntN(2) == 0)
			for range w.Rand().IntN(5) {
				if book.last < total {
					pub.publish(1, "", "q", numbered(book.published(), w.Rand().IntN(3000)))
				}
			}
			w.steps(1 + w.Rand().IntN(8))
		}
		w.srv.Broker.SetAlarm(engine.AlarmMemory|engine.AlarmDisk, false)
		w.rest()
		if len(book.open) > 0 || len(book.nacked) > 0 {
			w.fatalf("%d publishes without an answer, %d refused", len(book.open), len(book.nacked))
		}
		for i, e := range home.deliveries(1) {
			if numberOf(e.body) != uint64(i+1) || !whole(e.body) {
				w.fatalf("message %d came as number %d", numberOf(e.body), i+1)
			}
			total--
		}
		if total != 0 {
			w.fatalf("%d messages are missing", total)
		}
	})
}
