package conformance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// queuesKept are the durable queues of the restart tests, with arguments of every kind that means anything.
var queuesKept = map[string]amqp.Table{
	"kept.plain": nil,
	"kept.args": {
		"x-message-ttl": int32(60000), "x-expires": int64(600000), "x-max-length": int16(1000), "x-max-length-bytes": int64(1 << 40),
		"x-overflow": "reject-publish", "x-dead-letter-exchange": "kept.topic", "x-dead-letter-routing-key": "dead \"é\"",
		"x-queue-type": "classic", "x-queue-version": int32(2), "x-queue-mode": "lazy",
		"unknown": amqp.Table{"list": []any{int8(1), 2.5, []byte{0, 255}, nil, true, time.Unix(1, 0)}, "d": amqp.Decimal{Scale: 2, Value: 314}},
	},
	"kept é\"\\ \x01": {"x-max-length": int32(1)},
}

// headersKept are arguments of headers bindings, one binding each, and what a message must carry to match.
var headersKept = []amqp.Table{
	{"bool": true}, {"bool": false}, {"byte": byte(200)}, {"short": int16(-300)}, {"int": int32(-70000)}, {"long": int64(-1 << 62)},
	{"float": float32(0.1)}, {"double": -2.5e300}, {"text": "é\x00\"<&>"}, {"empty": ""}, {"bytes": []byte{0, 255, 128}},
	{"time": time.Unix(1700000000, 0)}, {"table": amqp.Table{"a": []any{int32(1), "x"}}}, {"list": []any{int32(1), "x", nil}},
	{"decimal": amqp.Decimal{Scale: 3, Value: 5}},
}

// each runs f on a channel of its own, closed after it: what f provokes stays there.
func each(t *testing.T, conn *amqp.Connection, f func(ch *amqp.Channel) error) error {
	t.Helper()
	ch := must[*amqp.Channel](t)(conn.Channel())
	defer ch.Close()
	return f(ch)
}

func all(t *testing.T, steps ...error) {
	t.Helper()
	for i, err := range steps {
		if err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

func declare(ch *amqp.Channel, name string, durable, autoDelete, exclusive bool, args amqp.Table) error {
	_, err := ch.QueueDeclare(name, durable, autoDelete, exclusive, false, args)
	return err
}

func defineAll(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	kept := amqp.Table{"alternate-exchange": "kept.fanout", "unknown": int32(1)}
	all(t,
		ch.ExchangeDeclare("kept.topic", "topic", true, false, false, false, kept),
		ch.ExchangeDeclare("kept.fanout", "fanout", true, false, false, false, nil),
		ch.ExchangeDeclare("kept.internal", "direct", true, false, true, false, nil),
		ch.ExchangeDeclare("kept.headers", "headers", true, true, false, false, nil),
		ch.ExchangeDeclare("lost", "topic", false, false, false, false, nil),
		ch.ExchangeDeclare("deleted", "topic", true, false, false, false, nil),
	)
	for name, args := range queuesKept {
		all(t, declare(ch, name, true, false, false, args))
	}
	for i, args := range headersKept {
		name := fmt.Sprintf("kept.headers.%d", i)
		all(t, declare(ch, name, true, false, false, nil), ch.QueueBind(name, "key", "kept.headers", false, args))
	}
	all(t,
		declare(ch, "kept.auto", true, true, false, nil),
		declare(ch, "kept.expires", true, false, false, amqp.Table{"x-expires": int32(1000)}),
		declare(ch, "lost", false, false, false, nil),
		declare(ch, "lost.exclusive", true, false, true, nil),
		declare(ch, "deleted", true, false, false, nil),
		ch.QueueBind("kept.plain", "a.*", "kept.topic", false, nil),
		ch.QueueBind("kept.plain", "gone.*", "kept.topic", false, nil),
		ch.QueueBind("kept.plain", "amq", "amq.direct", false, nil),
		ch.QueueBind("kept.plain", "any", "lost", false, nil),
		ch.QueueBind("lost", "lost", "amq.direct", false, nil),
		ch.QueueBind("deleted", "deleted", "amq.direct", false, nil),
		ch.QueueBind("kept.auto", "", "kept.fanout", false, nil),
		ch.ExchangeBind("kept.internal", "#.through", "kept.topic", false, nil),
		ch.ExchangeBind("kept.internal", "gone.through", "amq.direct", false, nil),
		ch.QueueBind("kept.plain", "b.through", "kept.internal", false, nil),
		ch.ExchangeBind("deleted", "#", "kept.topic", false, nil),
		ch.ExchangeDelete("deleted", false, false),
		ch.QueueUnbind("kept.plain", "gone.*", "kept.topic", nil),
		ch.ExchangeUnbind("kept.internal", "gone.through", "amq.direct", false, nil),
	)
	must[int](t)(ch.QueueDelete("deleted", false, false, false))
}

// reaches publishes and says whether a queue got it.
func reaches(t *testing.T, ch *amqp.Channel, exchange, key string, headers amqp.Table, queue string) bool {
	t.Helper()
	msg := amqp.Publishing{Headers: headers, Body: []byte(exchange + " " + key)}
	all(t, ch.Publish(exchange, key, false, false, msg))
	for found := false; ; found = true { // everything, lest the next look sees it
		_, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return found
		}
	}
}

func checkDefinitions(t *testing.T, conn *amqp.Connection) {
	t.Helper()
	ch := must[*amqp.Channel](t)(conn.Channel())
	all(t, // equal, so that each is accepted
		ch.ExchangeDeclare("kept.topic", "topic", true, false, false, false, amqp.Table{"alternate-exchange": "kept.fanout"}),
		ch.ExchangeDeclare("kept.internal", "direct", true, false, true, false, nil),
		ch.ExchangeDeclare("kept.headers", "headers", true, true, false, false, nil),
	)
	for name, args := range queuesKept {
		all(t, declare(ch, name, true, false, false, args))
		if err := each(t, conn, func(ch *amqp.Channel) error {
			return declare(ch, name, true, false, false, amqp.Table{"x-max-length": int32(77)})
		}); !isCode(err, 406) {
			t.Errorf("%q declared with another argument: %v", name, err)
		}
	}
	for _, name := range []string{"lost", "lost.exclusive", "deleted"} {
		if err := each(t, conn, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			return err
		}); !isCode(err, 404) {
			t.Errorf("queue %q: %v", name, err)
		}
		if name == "lost.exclusive" {
			continue
		}
		if err := each(t, conn, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive(name, "topic", true, false, false, false, nil)
		}); !isCode(err, 404) {
			t.Errorf("exchange %q: %v", name, err)
		}
	}
	for _, c := range []struct {
		exchange, key, queue string
		want                 bool
	}{
		{"kept.topic", "a.x", "kept.plain", true},
		{"kept.topic", "gone.x", "kept.plain", false},
		{"kept.topic", "b.through", "kept.plain", true},
		{"amq.direct", "amq", "kept.plain", true},
		{"amq.direct", "gone.through", "kept.plain", false},
		{"kept.fanout", "", "kept.auto", true},
		{"kept.topic", "nowhere", "kept.auto", true}, // by the alternate exchange
		{"", "kept.args", "kept.args", true},
	} {
		if got := reaches(t, ch, c.exchange, c.key, nil, c.queue); got != c.want {
			t.Errorf("exchange %q, key %q reaches %q: %v", c.exchange, c.key, c.queue, got)
		}
	}
	for i, args := range headersKept {
		name := fmt.Sprintf("kept.headers.%d", i)
		if !reaches(t, ch, "kept.headers", "", args, name) {
			t.Errorf("headers %v are not routed", args)
		}
		if reaches(t, ch, "kept.headers", "", amqp.Table{"other": int32(1)}, name) {
			t.Errorf("a message without %v is routed", args)
		}
	}
}

func isCode(err error, code int) bool {
	var refused *amqp.Error
	return errors.As(err, &refused) && refused.Code == code
}

// TestRestartDefinitions (EXC-15, QUE-14): what is durable is there after a restart as it was declared, what is not
// is gone, what was deleted stays deleted. After a kill too, at once after the last reply.
func TestRestartDefinitions(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		defineAll(t, ch)
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		b = b.Restart(t, nil)
		conn, ch = dialGo(t, b)
		checkDefinitions(t, conn)

		// A restored queue deletes itself when nobody has used it for its time.
		// A bind that is refused or not is no use of it (TTL-05).
		eventually(t, "the end of the queue with x-expires", func() bool {
			return isCode(each(t, conn, func(ch *amqp.Channel) error {
				return ch.QueueBind("kept.expires", "k", "amq.direct", false, nil)
			}), 404)
		})
		// The durable auto-delete queue goes with its last consumer, not before it had one.
		must[<-chan amqp.Delivery](t)(ch.Consume("kept.auto", "tag", true, false, false, false, nil))
		all(t, ch.Cancel("tag", false))
		for i, args := range headersKept { // unbind finds each by equal arguments
			all(t, ch.QueueUnbind(fmt.Sprintf("kept.headers.%d", i), "key", "kept.headers", args))
		}
		must[int](t)(ch.QueueDelete("kept.plain", false, false, false))

		_ = conn.Close()
		b = b.Restart(t, func(o *harness.Options) { o.Cores = "0" }) // one loop less
		conn, ch = dialGo(t, b)
		for _, name := range []string{"kept.auto", "kept.plain", "kept.expires"} {
			if err := each(t, conn, func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
				return err
			}); !isCode(err, 404) {
				t.Errorf("%s is back: %v", name, err)
			}
		}
		if err := each(t, conn, func(ch *amqp.Channel) error { // its last binding went
			return ch.ExchangeDeclarePassive("kept.headers", "headers", true, true, false, false, nil)
		}); !isCode(err, 404) {
			t.Errorf("the auto-delete exchange is back: %v", err)
		}
		if !reaches(t, ch, "", "kept.args", nil, "kept.args") {
			t.Error("the queue of a loop that is not there any more takes nothing")
		}
	})
}
