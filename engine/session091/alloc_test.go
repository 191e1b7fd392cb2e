package session091

import (
	"encoding/binary"
	"testing"
	"time"

	"ringmq/frame/amqp091"
)

// hotConn is a connection on a bare loop with the bytes that it is given, again
// and again.
type hotConn struct {
	*bareServer
	c     *conn
	bytes []byte
	ack   []byte // one basic.ack
	tag   uint64
}

func declareMethod(name string, args amqp091.Table) amqp091.Method {
	return &amqp091.QueueDeclare{Queue: []byte(name), Arguments: args}
}

func consumeMethod(name string, noAck bool) amqp091.Method {
	return &amqp091.BasicConsume{Queue: []byte(name), ConsumerTag: []byte("c"), NoAck: noAck}
}

// publishing fills in the bytes of n publishes of size bytes.
func (h *hotConn) publishing(n int, exchange, key string, props []byte, size int) *hotConn {
	for range n {
		h.bytes = publishFrames(h.bytes, 1, exchange, key, false, props, make([]byte, size), 131072)
	}
	return h
}

func newHotConn(tb testing.TB, methods ...amqp091.Method) *hotConn {
	s := newBareServer(tb)
	h := &hotConn{bareServer: s, c: s.open(methods...)}
	h.ack = (&amqp091.BasicAck{}).Append(nil, 1)
	return h
}

// acks acknowledges the next n deliveries, one by one or at once.
func (h *hotConn) acks(n int, multiple bool) {
	if multiple {
		h.tag += uint64(n)
		binary.BigEndian.PutUint64(h.ack[11:], h.tag)
		h.ack[19] = 1
		h.give(h.c, h.ack)
		return
	}
	for range n {
		h.tag++
		binary.BigEndian.PutUint64(h.ack[11:], h.tag)
		h.give(h.c, h.ack)
	}
}

// round gives all bytes and takes a turn.
func (h *hotConn) round() {
	h.give(h.c, h.bytes)
	h.turn()
}

// hotCase is a way of messages through a connection.
type hotCase struct {
	name     string
	messages int // per run
	make     func(tb testing.TB) (h *hotConn, run func())
}

// persistent is a property list with delivery mode 2 and a content type.
var persistent = append([]byte{0x90, 0x00, 10}, "text/plain\x02"...)

func hotCases() []hotCase {
	bounded := amqp091.AppendInt32(nil, "x-max-length", 100)
	timed := amqp091.AppendInt32(nil, "x-message-ttl", 60_000)
	plain := func(n, size int, methods ...amqp091.Method) func(testing.TB) (*hotConn, func()) {
		return func(tb testing.TB) (*hotConn, func()) {
			h := newHotConn(tb, methods...).publishing(n, "", "q", persistent, size)
			return h, h.round
		}
	}
	acked := func(n int, multiple bool, args amqp091.Table, more ...amqp091.Method) func(testing.TB) (*hotConn, func()) {
		return func(tb testing.TB) (*hotConn, func()) {
			methods := append([]amqp091.Method{declareMethod("q", args)}, more...)
			h := newHotConn(tb, append(methods, consumeMethod("q", false))...).publishing(n, "", "q", persistent, 16)
			return h, func() {
				h.round()
				h.acks(n, multiple)
			}
		}
	}
	get := (&amqp091.BasicGet{Queue: []byte("q"), NoAck: true}).Append(nil, 1)
	return []hotCase{
		{"publish to nobody", 1, plain(1, 16)},
		{"publish to nobody, 100 a turn", 100, plain(100, 16)},
		{"publish and enqueue, 100 a turn", 100, plain(100, 16, declareMethod("q", bounded))},
		{"publish and confirm", 1, plain(1, 16, declareMethod("q", bounded), &amqp091.ConfirmSelect{})},
		{"publish and confirm, 100 a turn", 100, plain(100, 16, declareMethod("q", bounded), &amqp091.ConfirmSelect{})},
		{"publish and deliver without ack", 1, plain(1, 16, declareMethod("q", nil), consumeMethod("q", true))},
		{"publish and deliver without ack, 100 a turn", 100, plain(100, 16, declareMethod("q", nil), consumeMethod("q", true))},
		{"the same, 1 KiB", 100, plain(100, 1024, declareMethod("q", nil), consumeMethod("q", true))},
		{"the same, 100 KiB by reference", 2, plain(2, 100<<10, declareMethod("q", nil), consumeMethod("q", true))},
		{"the same, 1 MiB in 8 frames", 1, plain(1, 1<<20, declareMethod("q", nil), consumeMethod("q", true))},
		{"publish, deliver, ack", 1, acked(1, false, nil)},
		{"publish, deliver, ack, 100 a turn", 100, acked(100, false, nil)},
		{"publish, deliver, ack of 100", 100, acked(100, true, nil)},
		{"the same with a shared window", 100, acked(100, true, nil, &amqp091.BasicQos{PrefetchCount: 200, Global: true})},
		{"the same with a time to live", 100, acked(100, true, timed)},
		{"headers exchange", 1, func(tb testing.TB) (*hotConn, func()) {
			props := amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: amqp091.AppendString(nil, "a", "1")}
			h := newHotConn(tb, declareMethod("q", bounded), &amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("amq.headers"),
				Arguments: amqp091.AppendString(nil, "a", "1")})
			h.publishing(1, "amq.headers", "", props.Append(nil), 16)
			return h, h.round
		}},
		{"two keys in turn", 2, func(tb testing.TB) (*hotConn, func()) {
			h := newHotConn(tb, declareMethod("q", bounded), &amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("amq.topic"), RoutingKey: []byte("#")})
			h.publishing(1, "amq.topic", "a.b", persistent, 16).publishing(1, "amq.topic", "a.c", persistent, 16)
			return h, h.round
		}},
		{"publish in two pieces", 1, func(tb testing.TB) (*hotConn, func()) {
			h := newHotConn(tb, declareMethod("q", bounded)).publishing(1, "", "q", persistent, 16)
			return h, func() {
				h.give(h.c, h.bytes[:9])
				h.give(h.c, h.bytes[9:40])
				h.give(h.c, h.bytes[40:])
				h.turn()
			}
		}},
		{"get", 1, func(tb testing.TB) (*hotConn, func()) {
			h := newHotConn(tb, declareMethod("q", nil)).publishing(1, "", "q", persistent, 16)
			return h, func() {
				h.round()
				h.give(h.c, get)
			}
		}},
	}
}

// TestAllocsMessage: from frame bytes to frame bytes, no step of a message's way
// allocates in steady state.
func TestAllocsMessage(t *testing.T) {
	for _, c := range append(hotCases(), specialCases()...) {
		want := 0.0
		if c.name == "get" {
			want = 2 // the arguments and the answer of a method that is no message path
		}
		h, run := c.make(t)
		for range 1000 / c.messages {
			run()
		}
		if n := testing.AllocsPerRun(200/c.messages+20, run); n > want {
			t.Errorf("%s: %v allocations, want at most %v", c.name, n, want)
		}
		if h.c.state != stateOpen || h.c.channel(1).closing {
			t.Errorf("%s: the connection failed: %s", c.name, h.c.lastError)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	for _, c := range append(hotCases(), specialCases()...) {
		b.Run(c.name, func(b *testing.B) {
			h, run := c.make(b)
			run()
			h.backend.out = 0
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				run()
				n += c.messages
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/message")
		})
	}
}

// BenchmarkSteps tells the steps of a message's way apart, 500 messages a turn:
// received until enqueued, dispatched until written, acknowledged, confirmed.
func BenchmarkSteps(b *testing.B) {
	const batch = 500
	h := newHotConn(b, declareMethod("q", nil), consumeMethod("q", false), &amqp091.ConfirmSelect{}).publishing(batch, "", "q", persistent, 16)
	ch := h.c.channel(1)
	var acks []byte
	for i := range batch {
		acks = (&amqp091.BasicAck{DeliveryTag: uint64(i + 1)}).Append(acks, 1)
	}
	var spent [5]time.Duration
	rounds := 0
	for b.Loop() {
		start := time.Now()
		h.give(h.c, h.bytes)
		received := time.Now()
		h.lp.shard.Settle()
		delivered := time.Now()
		ch.flushConfirms()
		confirmed := time.Now()
		h.turn()
		sent := time.Now()
		for i := range batch {
			h.tag++
			binary.BigEndian.PutUint64(acks[i*len(h.ack)+11:], h.tag)
		}
		settle := time.Now()
		h.give(h.c, acks)
		for i, d := range []time.Duration{received.Sub(start), delivered.Sub(received), confirmed.Sub(delivered), sent.Sub(confirmed), time.Since(settle)} {
			spent[i] += d
		}
		rounds++
	}
	for i, name := range []string{"ns/publish", "ns/deliver", "ns/confirm", "ns/send", "ns/ack"} {
		b.ReportMetric(float64(spent[i].Nanoseconds())/float64(rounds*batch), name)
	}
}
