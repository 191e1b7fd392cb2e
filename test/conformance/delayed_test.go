package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

const delayedKind = "x-delayed-message"

var delayedRefusals = []refusal{
	{id: "XT-02", name: "no delayed type", setup: freshName, code: 406, failed: m(40, 10), text: delayedTypeText, send: declareDelayed()},
	{id: "XT-02", name: "unknown delayed type", setup: freshName, code: 406, failed: m(40, 10), text: delayedTypeText,
		send: declareDelayed("x-delayed-type", "nope")},
	{id: "XT-02", name: "a delayed type of its own", setup: freshName, code: 406, failed: m(40, 10), text: delayedTypeText,
		ours: "it would hold twice", send: declareDelayed("x-delayed-type", delayedKind)},
	{id: "XT-02", name: "a delayed type that is no text", setup: freshName, code: 406, failed: m(40, 10), text: delayedTypeText,
		send: declareDelayed("x-delayed-type", true)},
	{id: "XT-02", name: "arguments of the delayed type", setup: freshName, code: 406, failed: m(40, 10),
		text: "Unsupported property: zz", send: declareDelayed("x-delayed-type", "x-consistent-hash", "hash-property", "zz")},
}

const delayedTypeText = "Invalid argument, 'x-delayed-type' must be an existing exchange type"

func declareDelayed(kv ...any) func(*client, map[string]string) {
	return func(c *client, n map[string]string) {
		c.method(1, 40, 10, exchangeArgs(n["x"], delayedKind, flags{}, table(kv...)))
	}
}

// TestDelayedRefusals: XT-02.
func TestDelayedRefusals(t *testing.T) { runRefusals(t, delayedRefusals) }

// delayedCase is a delayed exchange with a queue whose deliveries are at hand.
type delayedCase struct {
	t    *testing.T
	conn *amqp.Connection
	ch   *amqp.Channel
	x, q string
	got  <-chan amqp.Delivery
}

// newDelayed makes one; like is the type that it routes like, the key is k.
func newDelayed(t *testing.T, b *harness.Broker, like string, more amqp.Table) *delayedCase {
	t.Helper()
	needsPlugins(t, b)
	d := &delayedCase{t: t, x: unique("delayed"), q: unique("delayed.q")}
	d.conn, d.ch = dialGo(t, b)
	args := amqp.Table{"x-delayed-type": like}
	for k, v := range more {
		args[k] = v
	}
	all(t,
		d.ch.ExchangeDeclare(d.x, delayedKind, true, false, false, false, args),
		declare(d.ch, d.q, true, false, false, nil),
		d.ch.QueueBind(d.q, "k", d.x, false, nil),
		d.ch.Confirm(false))
	d.consume()
	return d
}

func (d *delayedCase) consume() {
	d.t.Helper()
	d.got = must[<-chan amqp.Delivery](d.t)(d.ch.Consume(d.q, "all", true, false, false, false, nil))
}

// publish publishes a persistent message and waits for its confirm.
func (d *delayedCase) publish(body string, delay any, edit func(*amqp.Publishing)) {
	d.t.Helper()
	p := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body), Headers: amqp.Table{}}
	if delay != nil {
		p.Headers["x-delay"] = delay
	}
	if edit != nil {
		edit(&p)
	}
	c := must[*amqp.DeferredConfirmation](d.t)(d.ch.PublishWithDeferredConfirm(d.x, "k", false, false, p))
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	if ok, err := c.WaitContext(ctx); !ok || err != nil {
		d.t.Fatalf("%s: confirmed %v, %v", body, ok, err)
	}
}

// expect waits for one delivery and checks which it is.
func (d *delayedCase) expect(body string) amqp.Delivery {
	d.t.Helper()
	m := await(d.t, "message "+body, d.got)
	if string(m.Body) != body || m.Redelivered {
		d.t.Fatalf("%q came (redelivered %v), want %q", m.Body, m.Redelivered, body)
	}
	return m
}

// sooner checks that a message did not come before its time. Both ends are on one clock.
func sooner(t *testing.T, from time.Time, delay time.Duration) {
	t.Helper()
	if passed := time.Since(from); passed < delay-2*time.Millisecond {
		t.Errorf("it came after %v, its delay is %v", passed, delay)
	}
}

// TestDelayed: XT-02. What is held, in which order it comes, and how it looks then.
func TestDelayed(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		d := newDelayed(t, b, "direct", nil)
		start := time.Now()
		// Far enough from one another, and from what is not held, for a slow machine.
		d.publish("third", int32(4000), nil)
		d.publish("second", int64(3000), nil)
		d.publish("first", int16(2000), func(p *amqp.Publishing) {
			p.MessageId, p.Priority, p.Headers["other"] = "id", 3, "kept"
		})
		for i, now := range []any{nil, int32(0), int32(-50), "100", int64(1 << 32), 100.5, true} {
			body := fmt.Sprint("now ", i)
			d.publish(body, now, nil)
			if m := d.expect(body); m.Headers["x-delay"] != now {
				t.Errorf("%s: header x-delay %v, want %v", body, m.Headers["x-delay"], now)
			}
		}
		m := d.expect("first")
		sooner(t, start, 2*time.Second)
		if m.Headers["x-delay"] != int32(-2000) || m.Headers["other"] != "kept" || m.MessageId != "id" || m.Priority != 3 ||
			m.Exchange != d.x || m.RoutingKey != "k" || m.DeliveryMode != amqp.Persistent || m.Headers["x-death"] != nil {
			t.Errorf("the message is %+v", m)
		}
		d.expect("second")
		sooner(t, start, 3*time.Second)
		d.expect("third")
		sooner(t, start, 4*time.Second)
	})
}

// TestDelayedLate: XT-02. The bindings, the further keys, the expiration and the alternate exchange count when a
// message leaves; mandatory counts for what is not held.
func TestDelayedLate(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		ae := unique("delayed.ae")
		d := newDelayed(t, b, "direct", amqp.Table{"alternate-exchange": ae})
		late, blind, other := unique("late"), unique("blind"), unique("other")
		all(t, declare(d.ch, late, false, false, false, nil), declare(d.ch, blind, false, false, false, nil),
			declare(d.ch, other, false, false, false, nil), d.ch.ExchangeDeclare(ae, "fanout", false, false, false, false, nil),
			d.ch.QueueBind(other, "", ae, false, nil))
		d.publish("expires", int32(3000), func(p *amqp.Publishing) { p.Expiration = "100" })
		d.publish("keys", int32(2000), func(p *amqp.Publishing) {
			p.Headers["CC"], p.Headers["BCC"] = []any{"late"}, []any{"blind"}
		})
		all(t, d.ch.QueueBind(late, "late", d.x, false, nil), d.ch.QueueBind(blind, "blind", d.x, false, nil))
		for _, q := range []string{late, blind} {
			got := must[<-chan amqp.Delivery](t)(d.ch.Consume(q, "", true, false, false, false, nil))
			m := await(t, "the message with further keys", got)
			if m.Headers["BCC"] != nil || m.Headers["CC"] == nil || m.Headers["x-delay"] != int32(-2000) {
				t.Errorf("headers %v", m.Headers)
			}
		}
		d.expect("keys")
		if m := d.expect("expires"); m.Expiration != "100" {
			t.Errorf("expiration %q", m.Expiration)
		}
		all(t, d.ch.QueueUnbind(d.q, "k", d.x, nil))
		d.publish("alternate", int32(20), nil)
		got := must[<-chan amqp.Delivery](t)(d.ch.Consume(other, "", true, false, false, false, nil))
		if m := await(t, "the unroutable message", got); string(m.Body) != "alternate" {
			t.Errorf("%q", m.Body)
		}
	})
}

// TestDelayedMandatory: XT-02, BAS-08. A held message is never returned, one that is routed now is.
func TestDelayedMandatory(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		d := newDelayed(t, b, "direct", nil)
		returns := d.ch.NotifyReturn(make(chan amqp.Return, 4))
		confirms := d.ch.NotifyPublish(make(chan amqp.Confirmation, 4))
		for _, delay := range []int32{20, 0} {
			p := amqp.Publishing{Headers: amqp.Table{"x-delay": delay}, Body: []byte(fmt.Sprint(delay))}
			all(t, d.ch.PublishWithContext(context.Background(), d.x, "nowhere", true, false, p))
			if c := await(t, "the confirm", confirms); !c.Ack {
				t.Errorf("delay %d: refused", delay)
			}
		}
		if r := await(t, "the return", returns); string(r.Body) != "0" {
			t.Errorf("%s is returned", r.Body)
		}
		d.publish("behind", int32(40), nil)
		await(t, "its confirm", confirms)
		d.expect("behind")
		select {
		case r := <-returns:
			t.Errorf("%s is returned", r.Body)
		default:
		}
	})
}

// TestDelayedTx: XT-02, TX-03. What is published in a transaction is held from the commit on.
func TestDelayedTx(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		d := newDelayed(t, b, "direct", nil)
		ch := must[*amqp.Channel](t)(d.conn.Channel())
		publish := func(body string, delay int32) error {
			return ch.PublishWithContext(context.Background(), d.x, "k", false, false, amqp.Publishing{
				Headers: amqp.Table{"x-delay": delay, "BCC": []any{"none"}}, DeliveryMode: amqp.Persistent, Body: []byte(body)})
		}
		all(t, ch.Tx(), publish("rolled back", 20), ch.TxRollback(), publish("second", 500), publish("first", 20))
		d.publish("outside", int32(80), nil)
		d.expect("outside")
		start := time.Now()
		all(t, ch.TxCommit())
		d.expect("first")
		sooner(t, start, 20*time.Millisecond)
		d.expect("second")
		sooner(t, start, 500*time.Millisecond)
	})
}

// TestDelayedBehind: XT-02, E2E-01, DLX-01. A delayed exchange holds what comes through another one, and dead letters.
func TestDelayedBehind(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		d := newDelayed(t, b, "fanout", nil)
		front, now := unique("front"), unique("now")
		all(t, d.ch.ExchangeDeclare(front, "fanout", false, false, false, false, nil),
			declare(d.ch, now, true, false, false, amqp.Table{"x-dead-letter-exchange": d.x}),
			d.ch.QueueBind(now, "", front, false, nil), d.ch.ExchangeBind(d.x, "", front, false, nil))
		behind := *d
		behind.x = front
		start := time.Now()
		behind.publish("m", int32(100), nil)
		m, ok, err := d.ch.Get(now, false)
		if err != nil || !ok || m.Headers["x-delay"] != int32(100) || m.Expiration != "" {
			t.Fatalf("the copy that is not held: %v %v %+v", ok, err, m)
		}
		d.expect("m")
		sooner(t, start, 100*time.Millisecond)
		start = time.Now()
		all(t, m.Reject(false))
		if m := d.expect("m"); m.Headers["x-delay"] != int32(-100) || m.Headers["x-death"] == nil {
			t.Errorf("headers of the dead letter: %v", m.Headers)
		}
		sooner(t, start, 100*time.Millisecond)
	})
}

// TestDelayedRedeclare: XT-02, EXC-06, EXC-07, EXC-12. Redeclaring, and deleting with what is held.
func TestDelayedRedeclare(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		d := newDelayed(t, b, "direct", nil)
		redeclare := func(like string) error {
			return each(t, d.conn, func(ch *amqp.Channel) error {
				return ch.ExchangeDeclare(d.x, delayedKind, true, false, false, false, amqp.Table{"x-delayed-type": like})
			})
		}
		if err := redeclare("topic"); !isCode(err, 406) {
			t.Errorf("another type: %v", err)
		}
		all(t, redeclare("direct"))
		d.publish("dropped", int32(1500), nil)
		all(t, d.ch.ExchangeDelete(d.x, false, false), redeclare("direct"), d.ch.QueueBind(d.q, "k", d.x, false, nil))
		d.publish("later", int32(2000), nil)
		d.expect("later") // and not the other, which was to come first
	})
}

// TestDelayedRestart: XT-02, EXC-15. What was confirmed leaves at its time after a restart and after a kill, at once if
// that has passed, and on fewer loops.
func TestDelayedRestart(t *testing.T) {
	stop := map[string]func(b *harness.Broker) error{
		"stop": (*harness.Broker).Stop,
		"kill": (*harness.Broker).Kill,
	}
	for name, end := range stop {
		t.Run(name, func(t *testing.T) {
			harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
				d := newDelayed(t, b, "direct", nil)
				other := newDelayed(t, b, "direct", nil) // what it holds is on the other loop
				all(t, d.ch.Cancel("all", false), other.ch.Cancel("all", false))
				other.publish("other", int32(600), nil)
				d.publish("blind", int32(600), func(p *amqp.Publishing) {
					p.Headers["BCC"], p.Expiration = []any{"late"}, "60000"
				})
				due := time.Now().Add(600 * time.Millisecond)
				d.publish("transient", int32(500), func(p *amqp.Publishing) { p.DeliveryMode = amqp.Transient })
				start := time.Now()
				d.publish("remaining", int32(3000), nil)
				if err := end(b); err != nil {
					t.Fatal(err)
				}
				_ = d.conn.Close()
				<-time.After(time.Until(due)) // the broker is down when the first is due
				b = b.Restart(t, func(o *harness.Options) { o.Cores = "0" })
				d.conn, d.ch = dialGo(t, b)
				all(t, d.ch.Confirm(false))
				d.consume()
				if m := d.expect("blind"); m.Headers["x-delay"] != int32(-600) || m.Headers["BCC"] != nil || m.Expiration != "60000" {
					t.Errorf("the message that is overdue: %+v", m)
				}
				other.conn, other.ch = d.conn, d.ch
				other.got = must[<-chan amqp.Delivery](t)(d.ch.Consume(other.q, "other", true, false, false, false, nil))
				if m := other.expect("other"); m.Headers["x-delay"] != int32(-600) {
					t.Errorf("headers %v", m.Headers)
				}
				if m := d.expect("remaining"); m.Headers["x-delay"] != int32(-3000) {
					t.Errorf("headers %v", m.Headers)
				}
				sooner(t, start, 3*time.Second)
				d.publish("new", int32(20), nil)
				d.expect("new")
			})
		})
	}
}
