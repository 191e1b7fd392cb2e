package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// TestF25_ExpiredWhileDown: what expires while the broker is down, after a stop or a kill, is dead-lettered at the start.
func TestF25_ExpiredWhileDown(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *harness.Broker) error{"stop": (*harness.Broker).Stop, "kill": (*harness.Broker).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
				const count, ttl = 100, 1500 * time.Millisecond
				conn, ch := dialGo(t, b)
				all(t, declare(ch, "dead", true, false, false, nil), ch.Confirm(false))
				dlx := func(more amqp.Table) amqp.Table {
					more["x-dead-letter-exchange"], more["x-dead-letter-routing-key"] = "", "dead"
					return more
				}
				all(t, declare(ch, "by queue", true, false, false, dlx(amqp.Table{"x-message-ttl": ttl.Milliseconds()})),
					declare(ch, "by message", true, false, false, dlx(amqp.Table{})))
				for i := range count {
					msg := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Append(nil, i)}
					queue := "by queue"
					if i%2 == 1 {
						queue, msg.Expiration = "by message", fmt.Sprint(ttl.Milliseconds())
					}
					publishConfirmed(t, ch, queue, msg)
				}
				due := time.Now().Add(ttl)
				if err := end(b); err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				time.Sleep(time.Until(due)) // that they expire meanwhile is the case
				b = b.Restart(t, nil)
				_, ch = dialGo(t, b)
				in := must[<-chan amqp.Delivery](t)(ch.Consume("dead", "", true, false, false, false, nil))
				seen := map[string]bool{}
				for range count {
					d := await(t, "a dead letter", in)
					deaths, _ := d.Headers["x-death"].([]any)
					if len(deaths) != 1 || deaths[0].(amqp.Table)["reason"] != "expired" || deaths[0].(amqp.Table)["count"] != int64(1) {
						t.Errorf("%s died as %v", d.Body, d.Headers)
					}
					seen[string(d.Body)] = true
				}
				if len(seen) != count {
					t.Errorf("%d of %d messages", len(seen), count)
				}
				for _, queue := range []string{"by queue", "by message", "dead"} {
					if q := must[amqp.Queue](t)(ch.QueueDeclarePassive(queue, true, false, false, false, nil)); q.Messages != 0 {
						t.Errorf("%d messages left in %s", q.Messages, queue)
					}
				}
			})
		})
	}
}

// publishConfirmed publishes to a queue and awaits the ack.
func publishConfirmed(t *testing.T, ch *amqp.Channel, queue string, msg amqp.Publishing) {
	t.Helper()
	c := must[*amqp.DeferredConfirmation](t)(ch.PublishWithDeferredConfirm("", queue, false, false, msg))
	if ok, err := c.WaitContext(t.Context()); !ok || err != nil {
		t.Fatalf("not confirmed: %v", err)
	}
}

// TestF27_ExpiryBehindLonger: a message leaves when it is due, not only at the head: in a plain queue behind one that
// lives longer, and in a priority queue before and behind one.
func TestF27_ExpiryBehindLonger(t *testing.T) {
	type one struct {
		body, expiration string
		priority         byte
	}
	rows := map[string]struct {
		arguments tbl
		messages  []one
	}{
		"plain":                    {"", []one{{"long", "60000", 0}, {"short", "200", 0}, {"shorter", "100", 0}}},
		"short of high priority":   {table("x-max-priority", 10), []one{{"long", "60000", 1}, {"short", "200", 9}, {"shorter", "100", 9}}},
		"short of low priority":    {table("x-max-priority", 10), []one{{"long", "60000", 9}, {"short", "200", 1}, {"shorter", "100", 0}}},
		"shorter than the queue's": {table("x-message-ttl", 60000), []one{{"long", "", 0}, {"short", "200", 0}, {"shorter", "100", 0}}},
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "messages leave at the head")
		for name, row := range rows {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := connect(t, b).open(1, 2)
				dead, q := c.newQueue(1), unique("q")
				c.queue(1, q, flags{}, row.arguments+table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead))
				c.consume(2, dead, "dead", true)
				for _, msg := range row.messages {
					p := props{expiration: msg.expiration, priority: msg.priority}
					c.publishWith(1, publishArgs("", q, false, false), p, []byte(msg.body))
				}
				c.deliverBodies(2, "shorter", "short") // the long one would hold them for a minute
				if got := strings.Join(c.drain(1, q), " "); got != "long" {
					t.Errorf("the queue gives %q", got)
				}
				c.sync(2)
			})
		}
	})
}

// TestF29_DelayQueue: a queue with a TTL, an expiry and a way back, declared again for each message, as Symfony does:
// each message comes back once, before and after the queue expired.
func TestF29_DelayQueue(t *testing.T) {
	const ttl, expires = 200, 2000
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		back, x, q := c.newQueue(1), c.newExchange(1, "direct"), unique("delay")
		c.consume(2, back, "back", true)
		arguments := table("x-message-ttl", ttl, "x-expires", expires, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", back)
		for i, pause := range []time.Duration{0, 500, expires - 100, expires, expires + 100} {
			time.Sleep(pause * time.Millisecond) // the time since the last declare is the case
			c.queue(1, q, flags{}, arguments)
			c.bind(1, q, x, q, "")
			c.publishWith(1, publishArgs(x, q, true, false), props{}, []byte(fmt.Sprint(i)))
			c.sync(1) // nothing was returned
			c.deliverBodies(2, fmt.Sprint(i))
		}
		c.sync(2) // none came twice
		if ready, _ := c.depth(1, q); ready != 0 {
			t.Errorf("%d messages left in the delay queue", ready)
		}
	})
}

// ownHeaders are headers of the client that dead-lettering must not touch.
var ownHeaders = table("text", "t", "n", vB(200), "deep", table("list", vA(vS("a"), vl(5), vV())), "x-mine", vT(1700000000), "bin", vx("\x00\xff"))

// checkOwn fails unless the client's own headers came through as they were.
func checkOwn(t *testing.T, headers map[string]val) {
	t.Helper()
	for name, want := range tableValues(t, ownHeaders) {
		if headers[name] != want {
			t.Errorf("header %s is %q, want %q", name, headers[name], want)
		}
	}
}

// deathsOf reads x-death: each entry as reason, queue, exchange, keys, and count; times apart.
func deathsOf(t *testing.T, headers map[string]val) (entries []string, times []val) {
	t.Helper()
	for _, item := range items(t, headers["x-death"]) {
		d := tableOf(t, item)
		var keys []string
		for _, key := range items(t, d["routing-keys"]) {
			keys = append(keys, key.str())
		}
		count := (&dec{t, []byte(d["count"][1:])}).u64()
		entries = append(entries, fmt.Sprintf("%s %s %q %q %d", d["reason"].str(), d["queue"].str(), d["exchange"].str(), keys, count))
		times = append(times, d["time"])
	}
	return entries, times
}

// TestF31_ExpiresAgain: a message that its consumer publishes again, with the headers it came with, expires five times:
// one entry that counts, with the time of the first.
func TestF31_ExpiresAgain(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		dead, x, q := c.newQueue(1), c.newExchange(1, "direct"), unique("q")
		c.consume(2, dead, "dead", true)
		c.queue(1, q, flags{}, table("x-message-ttl", 10, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead))
		c.bind(1, q, x, "k", "")
		properties := props{headers: ownHeaders}.encode()
		var first val
		for n := 1; n <= 5; n++ {
			c.write(contentFrames(1, publishArgs(x, "k", false, false), properties, []byte("m"), c.frameMax))
			msg := c.deliver(2)
			headers := headersOf(t, msg)
			entries, times := deathsOf(t, headers)
			if want := fmt.Sprintf("expired %s %q %q %d", q, x, []string{"k"}, n); len(entries) != 1 || entries[0] != want {
				t.Errorf("death %d: %q, want %q", n, entries, want)
			}
			if n == 1 {
				first = times[0]
			}
			if times[0] != first || first[0] != 'T' {
				t.Errorf("death %d: time %q, the first was %q", n, times[0], first)
			}
			checkFirstDeath(t, headers, "expired", q, x)
			checkOwn(t, headers)
			properties = msg.properties
		}
	})
}

func checkFirstDeath(t *testing.T, headers map[string]val, reason, queue, exchange string) {
	t.Helper()
	got := fmt.Sprintf("%s %s %s", headers["x-first-death-reason"].str(), headers["x-first-death-queue"].str(), headers["x-first-death-exchange"].str())
	if want := fmt.Sprintf("%s %s %s", reason, queue, exchange); got != want {
		t.Errorf("x-first-death-* %q, want %q", got, want)
	}
}

// TestF31_RetryLoop: a message goes five times from a consumer that rejects it to a waiting queue and back: an entry for
// each of the two, the newest in front, both counting.
func TestF31_RetryLoop(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		work, wait := unique("work"), unique("wait")
		c.queue(1, work, flags{}, table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", wait))
		c.queue(1, wait, flags{}, table("x-message-ttl", 10, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", work))
		x := c.newExchange(1, "topic")
		c.bind(1, work, x, "#", "")
		c.consume(2, work, "t", false)
		c.publishWith(1, publishArgs(x, "a.b", false, false), props{headers: ownHeaders}, []byte("m"))
		for n := 0; n <= 5; n++ {
			msg := c.deliver(2)
			headers := headersOf(t, msg)
			if n > 0 {
				entries, _ := deathsOf(t, headers)
				want := []string{fmt.Sprintf("expired %s %q %q %d", wait, "", []string{wait}, n),
					fmt.Sprintf("rejected %s %q %q %d", work, x, []string{"a.b"}, n)}
				if strings.Join(entries, "\n") != strings.Join(want, "\n") {
					t.Errorf("round %d:\n%q, want\n%q", n, entries, want)
				}
				checkFirstDeath(t, headers, "rejected", work, x)
			}
			checkOwn(t, headers)
			c.reject(2, msg.tag, false)
		}
	})
}
