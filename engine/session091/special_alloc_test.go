package session091

import (
	"testing"

	"ringmq/frame/amqp091"
)

// specialCases are the ways of messages that ask for more than their key (SSD-01,
// DRT-02, DRT-03, XT-01).
func specialCases() []hotCase {
	bounded := amqp091.AppendInt32(nil, "x-max-length", 100)
	return []hotCase{
		{"CC and BCC", 1, func(tb testing.TB) (*hotConn, func()) {
			bind := &amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("amq.direct"), RoutingKey: []byte("a")}
			items := amqp091.ItemString(nil, "a")
			props := amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: amqp091.AppendArray(amqp091.AppendArray(nil, "CC", items), "BCC", items)}
			h := newHotConn(tb, declareMethod("q", bounded), bind).publishing(1, "amq.direct", "k", props.Append(nil), 16)
			return h, h.round
		}},
		{"request and reply", 2, func(tb testing.TB) (*hotConn, func()) {
			// The request's header is not the same twice, as with real correlation ids.
			h := newHotConn(tb, declareMethod("q", bounded), consumeMethod(replyQueue, true))
			to := string(h.c.channel(1).replies.name)
			for _, id := range []string{"1", "2"} {
				props := amqp091.Properties{Flags: amqp091.FlagReplyTo | amqp091.FlagCorrelationID, ReplyTo: []byte(replyQueue), CorrelationID: []byte(id)}
				h.publishing(1, "", "q", props.Append(nil), 16).publishing(1, "", to, persistent, 16)
			}
			return h, h.round
		}},
		{"consistent hash", 1, func(tb testing.TB) (*hotConn, func()) {
			props := amqp091.Properties{Flags: amqp091.FlagMessageID, MessageID: []byte("7")}
			h := newHotConn(tb, declareMethod("q", bounded), &amqp091.ExchangeDeclare{Exchange: []byte("x"), Type: []byte("x-consistent-hash"),
				Arguments: amqp091.AppendString(nil, "hash-property", "message_id")},
				&amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("x"), RoutingKey: []byte("1")})
			h.publishing(1, "x", "", props.Append(nil), 16)
			return h, h.round
		}},
	}
}
