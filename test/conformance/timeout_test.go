package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ringmq/test/harness"
)

// timeoutText is what a channel is told that held a delivery for too long.
func timeoutText(ch uint16, ms int) string {
	return fmt.Sprintf("delivery acknowledgement on channel %d timed out. Timeout value used: %d ms. "+
		"This timeout value can be configured, see consumers doc guide to learn more", ch, ms)
}

// A test that settles within inTime ms is not hit; overdue is longer, so that when it
// has passed it is certain.
const (
	inTime  = 1000
	overdue = 1300
)

// consumeFor consumes with x-consumer-timeout.
func (c *client) consumeFor(ch uint16, queue string, ms int) {
	c.t.Helper()
	c.consumeWith(ch, consumeArgs(queue, "t", false, false, false, false, table("x-consumer-timeout", ms)))
}

// wait lets some time pass on a channel of its own, by a timeout there.
func (c *client) wait(ch uint16, ms int) {
	c.t.Helper()
	c.open(ch)
	q := c.newQueue(ch)
	c.consumeFor(ch, q, ms)
	c.publish(ch, "", q, "tick")
	c.deliverBodies(ch, "tick")
	checkFault(c.t, c.channelFault(ch), 406, timeoutText(ch, ms), 0)
}

// TestCSM_03_Timeout: an overdue delivery ends its channel, once, with the exact text, and nothing else; what the
// channel held comes back marked as redelivered. What was acked in time ends nothing.
func TestCSM_03_Timeout(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "no x-consumer-timeout of consumers, and looks once a minute")
		c := connect(t, b).open(1, 2, 3)
		q, acked := c.newQueue(2), c.newQueue(2)
		c.consumeFor(3, acked, inTime)
		c.publish(2, "", acked, "in time")
		c.ack(3, c.deliver(3).tag, false)

		c.consumeFor(1, q, overdue)
		c.publishAll(2, q, "1", "2")
		c.deliverBodies(1, "1", "2")
		checkFault(t, readFault(c.expect(1, 20, 40)), 406, timeoutText(1, overdue), 0)
		c.wait(5, 300) // no second close comes meanwhile, though nobody answers the first
		c.method(1, 20, 41, nil)

		c.consume(2, q, "again", false)
		for _, msg := range c.deliverBodies(2, "1", "2") {
			if !msg.redelivered {
				t.Errorf("%q is not marked as redelivered", msg.body)
			}
			c.ack(2, msg.tag, false)
		}
		c.sync(3)
		c.open(1)
		c.publish(1, "", acked, "more") // the consumer of channel 3 is still there
		c.deliverBodies(3, "more")
	})
}

// TestCSM_03_Younger: the time of each delivery is its own: after the oldest is acked the next one counts.
func TestCSM_03_Younger(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "no x-consumer-timeout of consumers, and looks once a minute")
		const ms = 2000
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.consumeFor(1, q, ms)
		c.publish(1, "", q, "old")
		old := c.deliver(1)
		c.wait(2, 300)
		sent := time.Now()
		c.publish(1, "", q, "young")
		c.deliverBodies(1, "young")
		c.ack(1, old.tag, false)
		checkFault(t, c.channelFault(1), 406, timeoutText(1, ms), 0)
		// Not a matter of speed: the delivery is younger than sent, so the close must not come sooner.
		if held := time.Since(sent); held < ms*time.Millisecond {
			t.Errorf("held for %v at most", held)
		}
	})
}

// TestCSM_03_Transaction: what an open transaction has settled is not held.
func TestCSM_03_Transaction(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "no x-consumer-timeout of consumers, and looks once a minute")
		c := connect(t, b).open(1, 2)
		q := c.newQueue(1)
		c.txSelect(1)
		c.consumeFor(1, q, inTime)
		c.publish(2, "", q, "m")
		c.ack(1, c.deliver(1).tag, false)
		c.wait(3, overdue)
		c.txCommit(1)
		c.awaitReady(2, q, 0)
	})
}

// TestCSM_03_Arguments: x-consumer-timeout of basic.consume is a number of milliseconds.
func TestCSM_03_Arguments(t *testing.T) {
	row := func(name string, v any, problem string) refusal {
		return refusal{id: "CSM-03", name: name, setup: withQueue, code: 406, failed: m(60, 20),
			text: "invalid arg 'x-consumer-timeout' for queue '{q}' in vhost '/': " + problem,
			ours: "does not know the argument",
			send: func(c *client, n map[string]string) {
				c.method(1, 60, 20, consumeArgs(n["q"], "t", false, false, false, false, table("x-consumer-timeout", v)))
			}}
	}
	runRefusals(t, []refusal{
		row("text", "1000", `"expected integer, got longstr"`),
		row("bool", true, `"expected integer, got bool"`),
		row("negative", -1, "{value_negative,-1}"),
	})
}

// TestCSM_03_Broker: the option counts where neither queue nor consumer says otherwise, for basic.get too and for
// every type of queue but streams (V4-10); 0 is off.
func TestCSM_03_Broker(t *testing.T) {
	opts := harness.Options{Args: []string{"--consumer-timeout", "300ms"}}
	harness.ForEachBackendAlone(t, opts, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2, 3, 4, 5)
		own := c.newQueue(1)
		c.publishAll(1, own, "1", "2")
		c.consumeFor(4, own, 0)
		c.deliverBodies(4, "1", "2")
		log := unique("q")
		c.queue(1, log, flags{durable: true}, table("x-queue-type", "stream"))
		c.qos(5, 1, false)
		c.consume(5, log, "t", false)
		c.publishAll(1, log, "1", "2")
		c.deliverBodies(5, "1")
		for _, kind := range []string{"classic", "quorum"} {
			q := unique("q")
			c.queue(1, q, flags{durable: true}, table("x-queue-type", kind))
			c.publishAll(1, q, "1", "2")
			c.awaitReady(1, q, 2)
			c.qos(2, 1, false)
			c.consume(2, q, "t", false)
			c.deliverBodies(2, "1")
			checkFault(t, c.channelFault(2), 406, timeoutText(2, 300), 0)
			c.awaitReady(1, q, 2)
			c.mustGet(3, q, false)
			checkFault(t, c.channelFault(3), 406, timeoutText(3, 300), 0)
			c.awaitReady(1, q, 2)
			c.open(2, 3)
		}
		c.ack(4, 2, true) // held all the while
		c.sync(4)
		c.ack(5, 1, false) // too
		c.deliverBodies(5, "2")
	})
}

// TestCSM_03_Queue: the queue's own timeout goes before the broker's, the consumer's before both.
func TestCSM_03_Queue(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "looks once a minute")
		c := connect(t, b).open(1, 2, 3)
		q := unique("q")
		c.queue(1, q, flags{}, table("x-consumer-timeout", 250))
		c.publishAll(1, q, "1", "2")
		c.qos(2, 1, false)
		c.consumeFor(2, q, 0)
		c.deliverBodies(2, "1")
		c.mustGet(3, q, false)
		checkFault(t, c.channelFault(3), 406, timeoutText(3, 250), 0)
		c.ack(2, 1, false)
		c.deliverBodies(2, "2")
	})
}

// TestCSM_03_Reload: SIGHUP changes the option, for what is held already.
func TestCSM_03_Reload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ringmq.toml")
	write := func(timeout string) {
		if err := os.WriteFile(file, []byte("consumer-timeout = \""+timeout+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("0s")
	harness.ForEachBackendAlone(t, harness.Options{Args: []string{"--config", file}}, func(t *testing.T, b *harness.Broker) {
		write("0s")
		b = b.Restart(t, nil)
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.publish(1, "", q, "m")
		c.mustGet(1, q, false)
		c.wait(2, 200)
		c.sync(1)
		write("200ms")
		if err := syscall.Kill(b.PID, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		checkFault(t, c.channelFault(1), 406, timeoutText(1, 200), 0)
	})
}
