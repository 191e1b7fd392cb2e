package conformance

import (
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// refusedWith checks code, scope and text of a refusal; Q in the text stands for the queue.
func refusedWith(t *testing.T, what string, err error, code int, channelOnly bool, q, text string) {
	t.Helper()
	var refused *amqp.Error
	text = strings.ReplaceAll(text, "Q", "queue '"+q+"' in vhost '/'")
	if !errors.As(err, &refused) || refused.Code != code || !strings.HasSuffix(refused.Reason, " - "+text) {
		t.Errorf("%s: %v, want %d %s", what, err, code, text)
	}
}

// TestSTR_01_Errors: what a stream refuses, on the channel or on the connection (STR-02, STR-03, TYP-04).
func TestSTR_01_Errors(t *testing.T) {
	consume := func(prefetch int, global, noAck bool, args ...any) func(ch *amqp.Channel, q string) error {
		return func(ch *amqp.Channel, q string) error {
			table := amqp.Table{}
			for i := 0; i < len(args); i += 2 {
				table[args[i].(string)] = args[i+1]
			}
			if err := ch.Qos(prefetch, 0, global); err != nil {
				return err
			}
			_, err := ch.Consume(q, "", noAck, false, false, false, table)
			return err
		}
	}
	for _, c := range []struct {
		name    string
		do      func(ch *amqp.Channel, q string) error
		code    int
		channel bool
		text    string
	}{
		{"no prefetch", consume(0, false, false), 406, true, "consumer prefetch count is not set for 'Q'"},
		{"no-ack", consume(5, false, true), 540, false, "automatic acknowledgement not supported by stream queues Q"},
		{"no-ack without prefetch", consume(0, false, true), 540, false, "automatic acknowledgement not supported by stream queues Q"},
		{"global qos", consume(5, true, false), 540, false, "Q does not support global qos"},
		{"get", func(ch *amqp.Channel, q string) error {
			_, _, err := ch.Get(q, false)
			return err
		}, 540, false, "basic.get not supported by stream queues Q"},
		{"purge", func(ch *amqp.Channel, q string) error {
			_, err := ch.QueuePurge(q, false)
			return err
		}, 540, false, "queue.purge not supported by stream queues Q"},
		{"offset of some text", consume(5, false, false, "x-stream-offset", "newest"), 406, true,
			`invalid arg 'x-stream-offset' for Q: {invalid_offset,"newest"}`},
		{"offset of an odd unit", consume(5, false, false, "x-stream-offset", "5x"), 406, true,
			`invalid arg 'x-stream-offset' for Q: {invalid_offset,"5x"}`},
		{"offset of a number in text", consume(5, false, false, "x-stream-offset", "5"), 406, true,
			`invalid arg 'x-stream-offset' for Q: {invalid_offset,"5"}`},
		{"offset of no text", consume(5, false, false, "x-stream-offset", true), 406, true,
			"invalid arg 'x-stream-offset' for Q: {unacceptable_type,bool}"},
		{"filter of a number", consume(5, false, false, "x-stream-filter", int32(1)), 406, true,
			"invalid arg 'x-stream-filter' for Q: {unacceptable_type,signedint}"},
		{"filter of numbers", consume(5, false, false, "x-stream-filter", []any{"a", int32(1)}), 406, true,
			"invalid arg 'x-stream-filter' for Q: {unacceptable_type,signedint}"},
		{"unfiltered as text", consume(5, false, false, "x-stream-match-unfiltered", "yes"), 406, true,
			"invalid arg 'x-stream-match-unfiltered' for Q: {unacceptable_type,longstr}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
				b.SkipRabbitMQ(t, "texts of ours")
				conn, ch := dialGo(t, b)
				q := newStream(t, ch)
				refusedWith(t, c.name, each(t, conn, func(ch *amqp.Channel) error { return c.do(ch, q) }), c.code, c.channel, q, c.text)
				_, err := conn.Channel()
				if (err == nil) != c.channel {
					t.Errorf("the connection afterwards: %v", err)
				}
			})
		})
	}
}

// TestTYP_02_Stream: a stream is durable, shared and named, and stays a stream.
func TestTYP_02_Stream(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		q := newStream(t, ch, "x-max-age", "1h", "x-max-length-bytes", int64(1<<30), "x-stream-max-segment-size-bytes", int32(1<<20))
		stream := amqp.Table{"x-queue-type": "stream"}
		for _, c := range []struct {
			name                           string
			durable, exclusive, autoDelete bool
			text                           string
		}{
			{"transient", false, false, false, "invalid property 'non-durable' for Q"},
			{"exclusive", true, true, false, "invalid property 'exclusive-owner' for Q"},
			{"auto-delete", true, false, true, "invalid property 'auto-delete' for Q"},
		} {
			name := unique("stream")
			err := each(t, conn, func(ch *amqp.Channel) error { return declare(ch, name, c.durable, c.autoDelete, c.exclusive, stream) })
			refusedWith(t, c.name, err, 406, true, name, c.text)
		}
		if err := each(t, conn, func(ch *amqp.Channel) error { return declare(ch, q, true, false, false, nil) }); !isCode(err, 406) {
			t.Errorf("as a classic queue: %v", err)
		}
		if err := each(t, conn, func(ch *amqp.Channel) error { return declare(ch, q, true, false, false, stream) }); !isCode(err, 406) {
			t.Errorf("without its arguments: %v", err)
		}
		for name, value := range map[string]any{"x-message-ttl": int32(1000), "x-max-length": int32(1), "x-max-priority": int32(1),
			"x-single-active-consumer": true, "x-dead-letter-exchange": "x", "x-overflow": "drop-head", "x-expires": int32(1000)} {
			args := amqp.Table{"x-queue-type": "stream", name: value}
			if err := each(t, conn, func(ch *amqp.Channel) error { return declare(ch, unique("stream"), true, false, false, args) }); !isCode(err, 406) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, age := range []any{"1", "h", "1x", "-1h", int32(5)} {
			args := amqp.Table{"x-queue-type": "stream", "x-max-age": age}
			if err := each(t, conn, func(ch *amqp.Channel) error { return declare(ch, unique("stream"), true, false, false, args) }); !isCode(err, 406) {
				t.Errorf("x-max-age %v: %v", age, err)
			}
		}
	})
}

// TestSTR_03_Delete: a stream is deleted with what it keeps, and its consumers are told (CAN-01); an exclusive
// consumer is alone (BAS-03).
func TestSTR_03_Delete(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "counts of a deleted stream are 0 there")
		conn, ch := dialGo(t, b)
		q := newStream(t, ch)
		fill(t, conn, q, 0, 9, "")
		all(t, ch.Qos(5, 0, false))
		cancels := ch.NotifyCancel(make(chan string, 1))
		_ = must[<-chan amqp.Delivery](t)(ch.Consume(q, "alone", false, true, false, false, nil))
		err := each(t, conn, func(ch *amqp.Channel) error {
			all(t, ch.Qos(5, 0, false))
			_, err := ch.Consume(q, "", false, false, false, false, nil)
			return err
		})
		if !isCode(err, 403) {
			t.Errorf("beside an exclusive consumer: %v", err)
		}
		all(t, each(t, conn, func(ch *amqp.Channel) error {
			n, err := ch.QueueDelete(q, false, false, false)
			if n != 10 {
				t.Errorf("deleted %d messages", n)
			}
			return err
		}))
		if tag := await(t, "cancel", cancels); tag != "alone" {
			t.Errorf("cancelled %q", tag)
		}
		if err := each(t, conn, func(ch *amqp.Channel) error { return ch.QueueBind(q, "", "amq.fanout", false, nil) }); !isCode(err, 404) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestSTR_03_MaxBytes: x-max-length-bytes drops the oldest, whatever the consumers do.
func TestSTR_03_MaxBytes(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "whole segments go there")
		conn, ch := dialGo(t, b)
		q := newStream(t, ch, "x-max-length-bytes", int64(100*1004))
		slow := read(t, conn, q, "first", 1)
		pad := " " + strings.Repeat("x", 1000)
		fill(t, conn, q, 0, 9, pad)
		held := slow.next(0)
		fill(t, conn, q, 10, 999, pad)
		awaitKept(t, conn, q, 100)
		all(t, held.Ack(false))
		slow.acked(900, 999)
		read(t, conn, q, "first", 10).acked(900, 999)
		read(t, conn, q, int64(5), 10).acked(900, 999)
		read(t, conn, q, int64(950), 10).acked(950, 999)
	})
}

// TestSTR_03_MaxAge: x-max-age drops what is older, also while nothing is published; offsets go on.
func TestSTR_03_MaxAge(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "whole segments go there")
		conn, ch := dialGo(t, b)
		q := newStream(t, ch, "x-max-age", "1s")
		r := read(t, conn, q, "first", 100)
		begin := time.Now()
		fill(t, conn, q, 0, 299, "")
		r.acked(0, 299)
		awaitKept(t, conn, q, 0)
		if passed := time.Since(begin); passed < time.Second {
			t.Errorf("messages left after %v", passed)
		}
		fill(t, conn, q, 300, 309, "")
		r.acked(300, 309)
	})
}
