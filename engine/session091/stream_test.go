package session091

import (
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// STR-02: a message that a stream delivers, with its offset added to the header,
// allocates nothing from frame bytes to frame bytes.
func TestAllocsStream(t *testing.T) {
	args := amqp091.AppendString(nil, "x-queue-type", "stream")
	args = amqp091.AppendInt32(args, "x-max-length-bytes", 100*16)
	red := amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: amqp091.AppendString(nil, headerFilterValue, "red")}
	for _, c := range []struct {
		name  string
		props []byte
		args  amqp091.Table
	}{
		{"plain", persistent, nil},
		{"with headers and a filter", red.Append(nil), amqp091.AppendString(nil, argStreamFilter, "red")},
	} {
		h := newHotConn(t, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true, Arguments: args}, &amqp091.BasicQos{PrefetchCount: 200},
			&amqp091.BasicConsume{Queue: []byte("q"), ConsumerTag: []byte("c"), Arguments: c.args}).publishing(100, "", "q", c.props, 16)
		run := func() {
			h.round()
			h.acks(100, true)
		}
		for range 20 {
			run()
		}
		if n := testing.AllocsPerRun(20, run); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
		if h.c.state != stateOpen || h.c.channel(1).closing {
			t.Errorf("%s: the connection failed: %s", c.name, h.c.lastError)
		}
	}
}

// STR-03: a filter judges any header that was accepted, also one without headers.
func TestStreamFilter(t *testing.T) {
	s := newBareServer(t)
	head := func(p amqp091.Properties) *core.Message {
		return core.NewMessage(s.lp.shard.Arena(), nil, nil, p.Append(make([]byte, headFixed)), 0)
	}
	value := func(t amqp091.Table) amqp091.Properties {
		return amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: t}
	}
	for _, c := range []struct {
		name         string
		props        amqp091.Properties
		red, redOrNo bool
	}{
		{"no properties", amqp091.Properties{}, false, true},
		{"no headers", amqp091.Properties{Flags: amqp091.FlagMessageID, MessageID: []byte("red")}, false, true},
		{"other headers", value(amqp091.AppendString(nil, "colour", "red")), false, true},
		{"red", value(amqp091.AppendString(nil, headerFilterValue, "red")), true, true},
		{"redder", value(amqp091.AppendString(nil, headerFilterValue, "redder")), false, false},
		{"a number", value(amqp091.AppendInt32(nil, headerFilterValue, 1)), false, true},
	} {
		m := head(c.props)
		for unfiltered, want := range map[bool]bool{false: c.red, true: c.redOrNo} {
			k := &queue.Cursor{}
			args := amqp091.AppendBool(amqp091.AppendString(nil, argStreamFilter, "red"), argStreamUnfiltered, unfiltered)
			if name, problem := filterOf(args, k); problem != "" {
				t.Fatal(name, problem)
			}
			if got := k.Match(m); got != want {
				t.Errorf("%s, unfiltered %v: %v", c.name, unfiltered, got)
			}
		}
		m.Release(s.lp.shard.Arena())
	}
}
