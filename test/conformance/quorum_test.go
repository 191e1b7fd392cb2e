package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// quorum are the arguments of a quorum queue, with more by pairs.
func quorum(more ...any) amqp.Table {
	t := amqp.Table{"x-queue-type": "quorum"}
	for i := 0; i < len(more); i += 2 {
		t[more[i].(string)] = more[i+1]
	}
	return t
}

// put publishes a text to a queue and waits for the confirm.
func put(t *testing.T, ch *amqp.Channel, queue, body string) {
	t.Helper()
	all(t, ch.Confirm(false))
	d := must[*amqp.DeferredConfirmation](t)(ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{Body: []byte(body)}))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if ok, err := d.WaitContext(ctx); err != nil || !ok {
		t.Fatalf("%s to %s: confirmed %v, %v", body, queue, ok, err)
	}
}

// countOf is what a delivery says of how often it came back, -1 if nothing.
func countOf(d amqp.Delivery) int64 {
	if n, ok := d.Headers["x-delivery-count"].(int64); ok {
		return n
	}
	return -1
}

// wantDelivery checks a delivery's text, flag and count.
func wantDelivery(t *testing.T, d amqp.Delivery, body string, redelivered bool, count int64) {
	t.Helper()
	if string(d.Body) != body || d.Redelivered != redelivered || countOf(d) != count {
		t.Fatalf("got %q, redelivered %v, x-delivery-count %d; want %q, %v, %d", d.Body, d.Redelivered, countOf(d), body, redelivered, count)
	}
}

// take gets one message, which must be there.
func take(t *testing.T, ch *amqp.Channel, queue string) amqp.Delivery {
	t.Helper()
	d, ok, err := ch.Get(queue, false)
	if err != nil || !ok {
		t.Fatalf("nothing in %s: %v", queue, err)
	}
	return d
}

// TestDeliveryLimit: DLX-09, TYP-03, field case 33. A message of a quorum queue is handed out limit+1 times, says how
// often it came back, and goes to the dead letter exchange; delivery and get agree.
func TestDeliveryLimit(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		all(t, declare(ch, "dlq", true, false, false, nil),
			declare(ch, "limited", true, false, false, quorum("x-delivery-limit", int32(2), "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "dlq")))
		_, cons := dialGo(t, b)
		all(t, cons.Qos(1, 0, false))
		from := must[<-chan amqp.Delivery](t)(cons.Consume("limited", "c", false, false, false, false, nil))
		put(t, ch, "limited", "poison")
		for n := range int64(3) {
			d := await(t, "a delivery", from)
			count := n
			if n == 0 {
				count = -1 // not there at 0
			}
			wantDelivery(t, d, "poison", n > 0, count)
			all(t, d.Nack(false, true))
		}
		all(t, cons.Cancel("c", false))
		var dead amqp.Delivery
		for end := time.Now().Add(20 * time.Second); ; {
			var ok bool
			var err error
			if dead, ok, err = ch.Get("dlq", true); err != nil {
				t.Fatal(err)
			} else if ok || time.Now().After(end) {
				break
			}
		}
		death, _ := dead.Headers["x-death"].([]any)
		if len(death) != 1 || death[0].(amqp.Table)["reason"] != "delivery_limit" || dead.Headers["x-first-death-reason"] != "delivery_limit" {
			t.Fatalf("the dead letter says %v", dead.Headers)
		}

		put(t, ch, "limited", "got")
		wantDelivery(t, take(t, ch, "limited"), "got", false, -1)
		all(t, ch.Nack(0, true, true)) // all that this channel holds
		d := take(t, ch, "limited")
		wantDelivery(t, d, "got", true, 1)
		all(t, d.Reject(true))
		_, gone := dialGo(t, b)
		wantDelivery(t, take(t, gone, "limited"), "got", true, 2)
		all(t, gone.Close()) // the third return
		if d, ok, _ := ch.Get("limited", true); ok {
			t.Errorf("handed out once more: %v", d.Headers)
		}
		if q := must[amqp.Queue](t)(ch.QueueDeclarePassive("dlq", true, false, false, false, nil)); q.Messages != 1 {
			t.Errorf("%d dead letters", q.Messages)
		}
	})
}

// TestQuorumRequeue: DLX-09. What comes back goes behind what is ready; a classic queue keeps its place.
func TestQuorumRequeue(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		for queue, want := range map[string]string{"q": "1 2 3 0 4", "c": "0 1 2 3 4"} {
			args := amqp.Table{"x-queue-type": "classic"}
			if queue == "q" {
				args = quorum()
			}
			all(t, declare(ch, queue, true, false, false, args))
			for n := range 4 {
				put(t, ch, queue, fmt.Sprint(n))
			}
			first := take(t, ch, queue)
			all(t, first.Nack(false, true))
			put(t, ch, queue, "4")
			var got []string
			for range 5 {
				got = append(got, string(take(t, ch, queue).Body))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %v, want %s", queue, got, want)
			}
		}
	})
}

// TestQuorumRefusals: TYP-02, TYP-04, TYP-05, CSM-02.
func TestQuorumRefusals(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		all(t, declare(ch, "q", true, false, false, quorum()), declare(ch, "sac", true, false, false, quorum("x-single-active-consumer", true)))
		for _, c := range []struct {
			name string
			code int
			text string
			do   func(ch *amqp.Channel) error
		}{
			{"transient", 406, "invalid property 'non-durable' for queue 'x' in vhost '/'",
				func(ch *amqp.Channel) error { return declare(ch, "x", false, false, false, quorum()) }},
			{"exclusive", 406, "invalid property 'exclusive-owner' for queue 'x' in vhost '/'",
				func(ch *amqp.Channel) error { return declare(ch, "x", true, false, true, quorum()) }},
			{"auto-delete", 406, "invalid property 'auto-delete' for queue 'x' in vhost '/'",
				func(ch *amqp.Channel) error { return declare(ch, "x", true, true, false, quorum()) }},
			{"server-named", 406, "Cannot declare a server-named queue for type rabbit_quorum_queue",
				func(ch *amqp.Channel) error { return declare(ch, "", true, false, false, quorum()) }},
			{"priorities", 406, "invalid arg 'x-max-priority' for queue 'x' in vhost '/' of queue type rabbit_quorum_queue",
				func(ch *amqp.Channel) error {
					return declare(ch, "x", true, false, false, quorum("x-max-priority", int32(3)))
				}},
			{"other type", 406, "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received 'classic' but current is 'quorum'",
				func(ch *amqp.Channel) error {
					return declare(ch, "q", true, false, false, amqp.Table{"x-queue-type": "classic"})
				}},
			{"get beside a single active consumer", 405, "cannot obtain access to locked queue 'sac' in vhost '/'. " +
				"basic.get operations are not supported by quorum queues with single active consumer",
				func(ch *amqp.Channel) error { _, _, err := ch.Get("sac", false); return err }},
			{"delete if-empty", 406, "queue 'q' in vhost '/' not empty", func(ch *amqp.Channel) error {
				put(t, ch, "q", "x")
				_, err := ch.QueueDelete("q", false, true, false)
				return err
			}},
		} {
			var e *amqp.Error
			if err := each(t, conn, c.do); !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Reason, c.text) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		for _, queue := range []string{"q", "sac"} {
			conn, ch := dialGo(t, b)
			closed := conn.NotifyClose(make(chan *amqp.Error, 1))
			all(t, ch.Qos(1, 0, true))
			_, err := ch.Consume(queue, "", false, false, false, false, nil)
			if e := await(t, "the end of the connection", closed); e == nil || e.Code != 540 ||
				!strings.Contains(e.Reason, "queue '"+queue+"' in vhost '/' does not support global qos") {
				t.Errorf("shared prefetch: %v, %v", err, e)
			}
		}
	})
}

// TestQuorumRestart: field case 43, TYP-03. The count survives kill -9, and a message that never works out reaches the
// dead letter queue although the broker goes down between all tries. What was published as transient stays as well.
func TestQuorumRestart(t *testing.T) {
	// One loop, so that a confirm of either queue proves what went before on both.
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0"}, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		all(t, declare(ch, "dlq", true, false, false, quorum()),
			declare(ch, "q", true, false, false, quorum("x-delivery-limit", int32(3), "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "dlq")))
		for _, body := range []string{"poison", "fresh"} {
			put(t, ch, "q", body)
		}
		for n := range int64(4) {
			for range 2 { // the other one first, if it is there
				d := take(t, ch, "q")
				if string(d.Body) == "fresh" {
					if n > 0 && countOf(d) > n {
						t.Fatalf("fresh came back %d times", countOf(d))
					}
					all(t, d.Ack(false))
					put(t, ch, "q", "fresh")
					continue
				}
				if n > 0 {
					wantDelivery(t, d, "poison", true, n)
				}
				all(t, d.Nack(false, true))
				break
			}
			put(t, ch, "dlq", "mark") // behind which the requeue is safe
			if n%2 == 0 {
				all(t, b.Kill())
			}
			b = b.Restart(t, nil)
			_, ch = dialGo(t, b)
		}
		var bodies []string
		for end := time.Now().Add(20 * time.Second); len(bodies) < 5 && time.Now().Before(end); {
			if d, ok, err := ch.Get("dlq", true); err != nil {
				t.Fatal(err)
			} else if ok {
				bodies = append(bodies, string(d.Body))
			}
		}
		if text := strings.Join(bodies, " "); strings.Count(text, "poison") != 1 || strings.Count(text, "mark") != 4 {
			t.Errorf("in the dead letter queue: %v", bodies)
		}
	})
}

// TestDeadLetterAtLeastOnce: DLX-08. A dead letter that its target refuses is kept and offered again.
func TestDeadLetterAtLeastOnce(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		all(t, declare(ch, "source", true, false, false, quorum("x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish",
			"x-max-length", int32(100), "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "target")))
		put(t, ch, "source", "0") // no target yet
		all(t, take(t, ch, "source").Reject(false))
		all(t, declare(ch, "target", true, false, false, amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}))
		for n := 1; n < 4; n++ {
			put(t, ch, "source", fmt.Sprint(n))
			all(t, take(t, ch, "source").Reject(false))
		}
		if err := each(t, conn, func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete("source", false, true, false)
			return err
		}); !isCode(err, 406) {
			t.Errorf("a queue whose dead letters nobody takes counts as empty: %v", err)
		}
		seen := map[string]bool{}
		for end := time.Now().Add(30 * time.Second); len(seen) < 4; {
			if time.Now().After(end) {
				t.Fatalf("only %v came", seen)
			}
			if d, ok, err := ch.Get("target", true); err != nil {
				t.Fatal(err)
			} else if ok {
				seen[string(d.Body)] = true
			}
		}
	})
}

// TestDeadLetterFullTarget: DLX-08. A target that is full gets its dead letters when it has room, and those of nobody
// else wait or come twice for it.
func TestDeadLetterFullTarget(t *testing.T) {
	const count = 600 // more than are offered at a time
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		surely := func(exchange, key string) amqp.Table {
			return quorum("x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish", "x-max-length", int32(10*count),
				"x-message-ttl", int32(1), "x-dead-letter-exchange", exchange, "x-dead-letter-routing-key", key)
		}
		full := amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}
		all(t, declare(ch, "full", true, false, false, full), declare(ch, "good", true, false, false, nil), declare(ch, "other", true, false, false, full),
			ch.ExchangeDeclare("both", "fanout", true, false, false, false, nil), ch.QueueBind("full", "", "both", false, nil), ch.QueueBind("good", "", "both", false, nil),
			declare(ch, "source", true, false, false, surely("both", "")), declare(ch, "second", true, false, false, surely("", "other")))
		put(t, ch, "full", "stays")
		put(t, ch, "other", "goes")
		for n := range count {
			all(t, ch.PublishWithContext(context.Background(), "", "source", false, false, amqp.Publishing{Body: fmt.Append(nil, n)}))
		}
		for n := range 3 {
			put(t, ch, "second", fmt.Sprint(n))
		}
		// All have gone round several times when the three have come, one by one, through a queue that holds one.
		for got := 0; got < 4; {
			if _, ok, err := ch.Get("other", true); err != nil {
				t.Fatal(err)
			} else if ok {
				got++
			}
		}
		q := must[amqp.Queue](t)(ch.QueueDeclarePassive("good", true, false, false, false, nil))
		if q.Messages != count {
			t.Errorf("%d messages in the good queue, want %d", q.Messages, count)
		}
		from := must[<-chan amqp.Delivery](t)(ch.Consume("full", "", true, false, false, false, nil))
		for range count + 1 {
			await(t, "a dead letter", from)
		}
		if q = must[amqp.Queue](t)(ch.QueueDeclarePassive("good", true, false, false, false, nil)); q.Messages != count {
			t.Errorf("%d messages in the good queue at the end, want %d", q.Messages, count)
		}
	})
}
