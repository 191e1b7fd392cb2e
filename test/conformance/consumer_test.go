package conformance

import (
	"fmt"
	"testing"

	"ringmq/test/harness"
)

// TestCAN_01_Notified: consumers whose connection announced it get basic.cancel when their queue goes, others nothing.
func TestCAN_01_Notified(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		told := connect(t, b).open(1)
		untold := connectAs(t, b, login{props: table("capabilities", table("basic.nack", true))}).open(1)
		other := connect(t, b).open(1)
		q := other.newQueue(1)
		told.consume(1, q, "told", false)
		untold.consume(1, q, "untold", false)
		other.publishAll(1, q, "a", "b")
		told.deliver(1) // CAN-03: what was delivered comes before the cancel
		untold.deliver(1)
		other.deleteQueue(1, q, flags{})
		d := told.expect(1, 60, 30)
		if tag, noWait := d.ss(), d.u8(); tag != "told" || noWait != 1 {
			t.Errorf("basic.cancel of %q, no-wait %d", tag, noWait)
		}
		d.end()
		// The channel stays open, old tags can be acked, the consumer tag is free at once (CAN-02).
		told.ack(1, 1, false)
		told.sync(1)
		q = told.newQueue(1)
		told.consume(1, q, "told", true)
		untold.sync(1)
		untold.ack(1, 1, false)
		untold.sync(1)
	})
}

// TestCAN_02_OwnCancel: a client's own cancel is not notified, and cancel-ok in answer to the broker's is tolerated.
func TestCAN_02_OwnCancel(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.consume(1, q, "t", true)
		c.cancel(1, "t")
		c.deleteQueue(1, q, flags{})
		c.sync(1)
		t.Run("answered", func(t *testing.T) {
			b.SkipRabbitMQ(t, "503")
			q := c.newQueue(1)
			c.consume(1, q, "t", true)
			other := connect(t, b).open(1)
			other.deleteQueue(1, q, flags{})
			c.expect(1, 60, 30)
			c.method(1, 60, 31, args().ss("t"))
			c.sync(1)
		})
	})
}

// TestCAN_01_ExclusiveOwner: the owner deletes its queue from another channel.
func TestCAN_01_ExclusiveOwner(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q := unique("q")
		c.queue(1, q, flags{exclusive: true}, "")
		tag := c.consume(2, q, "", true)
		c.method(1, 50, 40, deleteQueueArgs(q, flags{}))
		readDeleteAndCancel(c, tag)
	})
}

// window reads exactly n deliveries on channel 1 and proves that no further one comes: the queue still holds rest.
func (c *client) window(q string, n int, rest uint32) []message {
	c.t.Helper()
	var out []message
	for range n {
		out = append(out, c.deliver(1))
	}
	c.awaitReady(1, q, rest)
	return out
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

// filled declares a queue with n messages.
func (c *client) filled(n int) string {
	c.t.Helper()
	q := c.newQueue(1)
	c.publishAll(1, q, numbered(n)...)
	c.awaitReady(1, q, uint32(n))
	return q
}

// TestQOS_01_PerConsumer: global=0 holds for consumers that start later, each for itself.
func TestQOS_01_PerConsumer(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.filled(20)
		c.qos(1, 3, false)
		c.consume(1, q, "three", false)
		c.window(q, 3, 17)
		c.qos(1, 2, false)
		c.awaitReady(1, q, 17)
		c.consume(1, q, "two", false)
		for _, msg := range c.window(q, 2, 15) {
			if msg.consumerTag != "two" {
				t.Errorf("delivered to %q", msg.consumerTag)
			}
		}
		c.ack(1, 1, false)
		if got := c.window(q, 1, 14)[0]; got.consumerTag != "three" {
			t.Errorf("the ack of a message of three let %q have one", got.consumerTag)
		}
		c.qos(1, 0, false)
		c.consume(1, q, "all", false)
		c.window(q, 14, 0)
	})
}

// TestQOS_02_Global: one window for all consumers of the channel, effective at once, 0 lifts it.
func TestQOS_02_Global(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.filled(20)
		c.qos(1, 4, true)
		c.consume(1, q, "a", false)
		c.window(q, 4, 16)
		c.consume(1, q, "b", false)
		c.awaitReady(1, q, 16)
		c.ack(1, 2, true)
		c.window(q, 2, 14)
		c.qos(1, 7, true) // raising delivers at once
		c.window(q, 3, 11)
		c.qos(1, 0, true)
		c.window(q, 11, 0)
	})
}

// TestQOS_03_Both: both limits hold together; going back to global=0 lifts the shared one.
func TestQOS_03_Both(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.filled(20)
		c.qos(1, 3, false)
		c.qos(1, 4, true)
		c.consume(1, q, "a", false)
		c.window(q, 3, 17)
		c.consume(1, q, "b", false)
		c.window(q, 1, 16)
		c.qos(1, 2, false) // lifts the shared window; b keeps the 3 it began with
		c.window(q, 2, 14)
	})
}

// TestQOS_04_NotCounted: no-ack consumers and basic.get do not mind prefetch, gets do not use up a window.
func TestQOS_04_NotCounted(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.filled(20)
		c.qos(1, 1, false)
		for range 5 {
			c.mustGet(1, q, false)
		}
		c.consume(1, q, "one", false)
		c.window(q, 1, 14)
		c.consume(1, q, "free", true)
		c.window(q, 14, 0)
	})
}

// TestQOS_05_MultipleFrees: ack multiple, nack multiple and reject free the window for all they cover.
func TestQOS_05_MultipleFrees(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.filled(30)
		c.qos(1, 5, false)
		c.consume(1, q, "five", false)
		last := c.window(q, 5, 25)[4].tag
		c.ack(1, last, true)
		last = c.window(q, 5, 20)[4].tag
		c.nack(1, last, true, false)
		last = c.window(q, 5, 15)[4].tag
		c.reject(1, last, false)
		c.window(q, 1, 14)
		c.ack(1, 0, true)
		c.window(q, 5, 9)
	})
}

// TestQOS_02_CancelFreesNothing: unacked messages of a cancelled consumer still fill the shared window.
func TestQOS_02_CancelFreesNothing(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.filled(10)
		c.qos(1, 2, true)
		c.consume(1, q, "a", false)
		c.window(q, 2, 8)
		c.cancel(1, "a")
		c.consume(1, q, "b", false)
		c.awaitReady(1, q, 8)
		c.ack(1, 2, true)
		c.window(q, 2, 6)
	})
}

// TestCSM_01_Priority: the highest priority with credit; lower ones only when all higher are blocked.
func TestCSM_01_Priority(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.qos(1, 2, false)
		for _, row := range []struct {
			tag      string
			priority any
		}{{"low", vl(-5)}, {"high", 10}, {"mid", vb(1)}} {
			c.consumeWith(1, consumeArgs(q, row.tag, false, false, false, false, table("x-priority", row.priority)))
		}
		c.consume(1, q, "default", false) // 0, between mid and low
		want := []string{"high", "high", "mid", "mid", "default", "default", "low", "low"}
		c.publishAll(1, q, numbered(len(want)+1)...)
		got := c.window(q, len(want), 1)
		for i, msg := range got {
			if msg.consumerTag != want[i] {
				t.Errorf("message %d to %q, want %q", i, msg.consumerTag, want[i])
			}
		}
		c.ack(1, got[7].tag, false) // low has credit, the only one
		if msg := c.window(q, 1, 0)[0]; msg.consumerTag != "low" {
			t.Errorf("the last one to %q, want low", msg.consumerTag)
		}
		c.ack(1, got[2].tag, false) // mid and low
		c.ack(1, got[6].tag, false)
		c.publish(1, "", q, "x")
		if msg := c.deliver(1); msg.consumerTag != "mid" {
			t.Errorf("delivered to %q, want mid", msg.consumerTag)
		}
	})
}

// TestCSM_04_UnknownArguments: accepted and ignored.
func TestCSM_04_UnknownArguments(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		c.consumeWith(1, consumeArgs(q, "t", false, true, false, false,
			table("x-cancel-on-ha-failover", true, "x-own", 1, "other", table("deep", "er"))))
		c.publish(1, "", q, "x")
		c.deliverBodies(1, "x")
	})
}
