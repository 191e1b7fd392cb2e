package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// TestF35_CommitIntoFullQueue: a commit that a full queue refuses in part fails on the channel; what was taken before the
// queue was full stays (TX-04), and nothing is both committed and missing.
func TestF35_CommitIntoFullQueue(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, f := range map[string]flags{"transient": {}, "durable": {durable: true}} {
			c := connect(t, b).open(1, 2)
			q := unique("q")
			c.queue(1, q, f, table("x-max-length", 5, "x-overflow", "reject-publish"))
			publish := func(from, to int) {
				for i := from; i < to; i++ {
					c.publishWith(2, publishArgs("", q, false, false), props{deliveryMode: 2}, []byte(fmt.Sprint(i)))
				}
			}
			c.txSelect(2)
			publish(0, 3)
			c.txCommit(2)
			c.awaitReady(1, q, 3)
			publish(3, 9)
			c.method(2, 90, 20, nil)
			checkFault(t, c.channelFault(2), 406, "partial tx completion", m(90, 20))
			if got := strings.Join(c.drain(1, q), ""); got != "01234" {
				t.Errorf("%s: the queue holds %s, want 01234", name, got)
			}
			c.open(2)
			c.txSelect(2)
			publish(3, 8) // exactly what fits
			c.txCommit(2)
			c.awaitReady(1, q, 5)
		}
	})
}

// TestF37_FullDeadLetterQueue: a dead letter queue that refuses over its limit holds its limit and not more; the dead
// letters that it refuses are dropped and counted, they do not stay in their old queue. After a restart neither.
func TestF37_FullDeadLetterQueue(t *testing.T) {
	t.Parallel()
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		const count, limit = 1000, 10
		refused := 0.0
		for name, durable := range map[string]bool{"transient": false, "durable": true} {
			conn, ch := dialGo(t, b)
			dead, source := name+" dead", name+" source"
			all(t, declare(ch, dead, durable, false, false, amqp.Table{"x-max-length": int32(limit), "x-overflow": "reject-publish"}),
				declare(ch, source, durable, false, false, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}))
			in := must[<-chan amqp.Delivery](t)(ch.Consume(source, "", false, false, false, false, nil))
			for i := range count {
				all(t, ch.Publish("", source, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Append(nil, i)}))
			}
			for range count {
				all(t, await(t, "a message to reject", in).Nack(false, false))
			}
			refused += count - limit
			eventually(t, "the refused ones are counted", func() bool {
				m, err := b.Metrics()
				return err == nil && m["ringmq_messages_refused_total"] == refused
			})
			if durable {
				_ = conn.Close()
				b = b.Restart(t, nil)
				conn, ch = dialGo(t, b)
			}
			for queue, want := range map[string]int{dead: limit, source: 0} {
				if q := must[amqp.Queue](t)(ch.QueueDeclarePassive(queue, durable, false, false, false, nil)); q.Messages != want {
					t.Errorf("%s holds %d, want %d", queue, q.Messages, want)
				}
			}
			got, _ := bodies(t, ch, dead, limit)
			if want := strings.Fields("0 1 2 3 4 5 6 7 8 9"); !slices.Equal(got, want) {
				t.Errorf("%s dead letters %v, want %v", name, got, want)
			}
			if durable {
				refused = 0
			}
			_ = conn.Close()
		}
	})
}

// TestF39_NoDeduplication: there is no de-duplication: no exchange type offers it, and a queue that is asked for it by an
// argument that nobody knows keeps every message, also one that was delayed.
func TestF39_NoDeduplication(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "503 for unknown types up to 3.13.0")
		c := connect(t, b).open(1, 2)
		c.method(1, 40, 10, exchangeArgs(unique("x"), "x-message-deduplication", flags{}, table("x-cache-size", 10)))
		checkFault(t, c.channelFault(1), 406, "unknown exchange type 'x-message-deduplication'", m(40, 10))
		c.open(1)
		q, x := unique("q"), unique("x")
		c.queue(1, q, flags{}, table("x-message-deduplication", true, "x-cache-ttl", 2000))
		c.exchange(1, x, "x-delayed-message", flags{}, table("x-delayed-type", "fanout"))
		c.bind(1, q, x, "", "")
		c.consume(2, q, "t", true)
		for _, delay := range []int{300, 200, 0} {
			h := table("x-deduplication-header", "same", "x-delay", delay)
			c.publishWith(1, publishArgs(x, "", false, false), props{headers: h, messageID: "same"}, []byte(fmt.Sprint(delay)))
		}
		c.deliverBodies(2, "0", "200", "300")
		c.sync(2)
	})
}

// TestF41_UnackedDoNotCount: a length limit counts ready messages only: while five are held five more are taken and no
// sixth; what is given back is not lost.
func TestF41_UnackedDoNotCount(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2, 3)
		dead := c.newQueue(1)
		dlx := table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead)
		hold := func(q string) {
			c.publishAll(1, q, "a", "b", "c", "d", "e")
			c.awaitReady(1, q, 5)
			c.qos(2, 5, false)
			c.consume(2, q, "t", false)
			c.deliverBodies(2, "a", "b", "c", "d", "e")
		}
		giveBack := func() { // the consumer goes, and with it what it holds
			c.closeChannel(2)
			c.open(2)
		}
		t.Run("reject-publish", func(t *testing.T) {
			q := c.bounded(1, 5, table("x-overflow", "reject-publish"))
			hold(q)
			c.confirm(3)
			publish := func(from, count uint64) {
				for i := range count {
					c.publishWith(3, publishArgs("", q, false, false), props{}, []byte(fmt.Sprint(from+i)))
				}
			}
			publish(1, 7)
			if nacked := c.confirmed(3, 7); !slices.Equal(nacked, []uint64{6, 7}) {
				t.Errorf("nacked %v, want 6 and 7", nacked)
			}
			giveBack()
			publish(8, 1)
			if f := c.next(); f.id() != m(60, 120) { // ten are more than five
				t.Errorf("got %v, want the nack", f)
			}
			if got := strings.Join(c.drain(1, q), ""); got != "abcde12345" {
				t.Errorf("the queue held %s", got)
			}
		})
		t.Run("drop-head", func(t *testing.T) {
			q := c.bounded(1, 5, dlx)
			hold(q)
			c.publishAll(1, q, "1", "2", "3", "4", "5")
			c.awaitReady(1, q, 5)
			giveBack() // LEN-04: the head goes, and that is what came back
			c.awaitReady(1, dead, 5)
			if got := strings.Join(c.drain(1, q), ""); got != "12345" {
				t.Errorf("the queue held %s", got)
			}
			var went []string
			for range 5 {
				msg := c.mustGet(1, dead, true)
				if reason := headersOf(t, msg)["x-first-death-reason"].str(); reason != "maxlen" {
					t.Errorf("%q died of %s", msg.body, reason)
				}
				went = append(went, msg.body)
			}
			if slices.Sort(went); strings.Join(went, "") != "abcde" {
				t.Errorf("dead letters %v", went)
			}
		})
	})
}
