package conformance

import (
	"fmt"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// TestF19_TagChurnAtOnce: eight clients consume and cancel with one tag, all at the same time as a publisher publishes:
// every message is settled once, and nothing stays undelivered or with an owner that is gone.
func TestF19_TagChurnAtOnce(t *testing.T) {
	const clients, count, burst = 8, 10_000, 100
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		_, pub := dialGo(t, b)
		q := unique("q")
		all(t, declare(pub, q, false, false, false, nil), pub.Confirm(false))
		finished := make(chan struct{})
		var churn churned
		for range clients {
			conn, ch := dialGo(t, b)
			all(t, ch.Qos(7, 0, false))
			churn.workers.Add(1)
			go func() {
				defer churn.workers.Done()
				defer conn.Close()
				churn.work(t, ch, q, finished)
			}()
		}
		for i := range count / burst {
			var last *amqp.DeferredConfirmation
			for j := range burst {
				last = must[*amqp.DeferredConfirmation](t)(pub.PublishWithDeferredConfirm("", q, false, false, amqp.Publishing{Body: fmt.Append(nil, i*burst+j)}))
			}
			if ok, err := last.WaitContext(t.Context()); !ok || err != nil {
				t.Fatalf("not confirmed: %v", err)
			}
		}
		close(finished)
		churn.workers.Wait()
		_, drain := dialGo(t, b)
		in := must[<-chan amqp.Delivery](t)(drain.Consume(q, "same", false, false, false, false, nil))
		for len(churn.settled) < count {
			d := await(t, fmt.Sprintf("the rest behind %d", len(churn.settled)), in)
			churn.settle(t, d)
		}
		all(t, drain.Cancel("same", false))
		if n := must[int](t)(drain.QueueDelete(q, false, true, false)); n != 0 {
			t.Errorf("%d left", n)
		}
	})
}

// churned is what the clients of a churn settled.
type churned struct {
	workers sync.WaitGroup
	mu      sync.Mutex
	settled map[string]bool
}

func (c *churned) settle(t *testing.T, d amqp.Delivery) {
	if err := d.Ack(false); err != nil {
		t.Errorf("ack: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled == nil {
		c.settled = map[string]bool{}
	}
	if c.settled[string(d.Body)] {
		t.Errorf("%s was delivered again after its ack", d.Body)
	}
	c.settled[string(d.Body)] = true
}

// work consumes one message, cancels and gives back what came meanwhile, until the publisher has finished.
func (c *churned) work(t *testing.T, ch *amqp.Channel, q string, finished <-chan struct{}) {
	for {
		in, err := ch.Consume(q, "same", false, false, false, false, nil)
		if err != nil {
			t.Errorf("consume: %v", err)
			return
		}
		ended := false
		select {
		case d := <-in:
			c.settle(t, d)
		case <-finished:
			ended = true
		}
		if err := ch.Cancel("same", false); err != nil {
			t.Errorf("cancel: %v", err)
			return
		}
		for d := range in {
			if err := d.Nack(false, true); err != nil {
				t.Errorf("nack: %v", err)
			}
		}
		if ended {
			return
		}
	}
}

// TestF21_RaisedSharedPrefetch: a slow consumer on a channel whose shared window is raised on the fly takes what the
// window allows, and does not starve another consumer of the connection.
func TestF21_RaisedSharedPrefetch(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, fastChannel := range map[string]uint16{"one channel": 1, "two channels": 2} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1, 2)
				slowQ, fastQ := c.newQueue(1), c.newQueue(1)
				c.publishAll(1, slowQ, numbered(600)...)
				c.qos(1, 1, true)
				c.qos(2, 1, true)
				c.consume(1, slowQ, "slow", false)
				first := c.deliver(1) // fills the window of channel 1
				c.consume(fastChannel, fastQ, "fast", false)
				c.ack(1, first.tag, false)
				second := c.deliver(1)
				// Raised at once: the slow one, which never acknowledges, gets all that its queue has.
				c.method(1, 60, 10, args().u32(0).u16(1000).bits(true))
				for taken, answered := 2, false; taken < 600 || !answered; {
					switch f := c.next(); f.id() {
					case m(60, 11):
						answered = true
					case m(60, 60):
						var msg message
						c.content(1, &msg)
						taken++
					default:
						t.Fatalf("got %v", f)
					}
				}
				for i := range 1000 {
					c.publish(1, "", fastQ, fmt.Sprint(i))
					msg := c.deliver(fastChannel)
					if msg.consumerTag != "fast" || msg.body != fmt.Sprint(i) {
						t.Fatalf("delivery %d is %q for %q", i, msg.body, msg.consumerTag)
					}
					c.ack(fastChannel, msg.tag, false)
				}
				c.nack(1, second.tag, false, true) // it may be acknowledged late
				if again := c.deliver(1); again.body != second.body || again.consumerTag != "slow" {
					t.Errorf("got %+v", again)
				}
			})
		}
	})
}
