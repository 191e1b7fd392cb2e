package session091

import (
	"bytes"
	"fmt"
	"testing"

	"ringmq/engine/core"
	"ringmq/frame/amqp091"
)

// newTestMessage makes a message with a property list and no body.
func newTestMessage(h *hotConn, p amqp091.Properties) *core.Message {
	return core.NewMessage(h.lp.shard.Arena(), []byte("x"), []byte("k"), p.Append(make([]byte, headFixed)), 0)
}

// XT-02: the header of a message that leaves. What asks for nothing stays as it is.
func TestRelease(t *testing.T) {
	h := newHotConn(t)
	item := func(s string) []byte { return amqp091.ItemString(nil, s) }
	other := amqp091.AppendString(nil, "a", "b")
	raw := func(tag byte, data ...byte) amqp091.Table {
		return amqp091.AppendRaw(nil, "x-delay", amqp091.Value{Tag: tag, Data: data})
	}
	turned := func(n int32) amqp091.Table { return amqp091.AppendInt32(nil, "x-delay", n) }
	for _, c := range []struct {
		name       string
		in         amqp091.Table
		expiration string
		delay      int64
		out        amqp091.Table
		keys       string
		ttl        int64 // -1 = none
	}{
		{"int8", raw('b', 100), "", 100, turned(-100), "[]", -1},
		{"uint8", raw('B', 200), "", 200, turned(-200), "[]", -1},
		{"int16", raw('s', 1, 0), "5", 256, turned(-256), "[]", 5},
		{"uint16", raw('u', 255, 255), "0", 65535, turned(-65535), "[]", 0},
		{"int32", raw('I', 127, 255, 255, 255), "", 1<<31 - 1, turned(-1<<31 + 1), "[]", -1},
		{"uint32", raw('i', 255, 255, 255, 255), "", 1<<32 - 1, amqp091.AppendInt64(nil, "x-delay", -1<<32+1), "[]", -1},
		{"int64", raw('l', 0, 0, 0, 0, 0, 0, 0, 7), "1700000060000", 7, turned(-7), "[]", 60000},
		{"a time that has passed", turned(9), "1700000000000", 9, turned(-9), "[]", 0},
		{"keys", append(append(amqp091.AppendArray(append(amqp091.Table(nil), other...), "BCC", item("two")), turned(3)...),
			amqp091.AppendArray(nil, "CC", append(item("one"), item("more")...))...), "", 3,
			append(append(append(amqp091.Table(nil), other...), turned(-3)...), amqp091.AppendArray(nil, "CC", append(item("one"), item("more")...))...),
			"[one more two]", -1},
	} {
		p := amqp091.Properties{Flags: amqp091.FlagHeaders | amqp091.FlagMessageID, MessageID: []byte("id"), Headers: c.in}
		if c.expiration != "" {
			p.Flags |= amqp091.FlagExpiration
			p.Expiration = []byte(c.expiration)
		}
		m := newTestMessage(h, p)
		if got := (codec{}).Delay(m); got != c.delay {
			t.Errorf("%s: delay %d, want %d", c.name, got, c.delay)
		}
		r := codec{}.Release([]byte("before"), m, 1_700_000_000_000)
		p.Headers = c.out
		if want := p.Append(append([]byte("before"), make([]byte, headFixed)...)); !bytes.Equal(r.Head, want) {
			t.Errorf("%s: head %q, want %q", c.name, r.Head, want)
		}
		if got := fmt.Sprintf("%s", r.Keys); got != c.keys {
			t.Errorf("%s: keys %s, want %s", c.name, got, c.keys)
		}
		if r.Expires != (c.ttl >= 0) || r.Expires && r.TTL != c.ttl {
			t.Errorf("%s: expires %v in %d ms, want %d", c.name, r.Expires, r.TTL, c.ttl)
		}
		m.Release(h.lp.shard.Arena())
	}
	for name, in := range map[string]amqp091.Table{
		"none": nil, "zero": turned(0), "negative": turned(-1), "text": amqp091.AppendString(nil, "x-delay", "5"),
		"bool": raw('t', 1), "double": raw('d', 64, 20, 0, 0, 0, 0, 0, 0), "time": raw('T', 0, 0, 0, 0, 0, 0, 0, 5),
		"too long": amqp091.AppendInt64(nil, "x-delay", 1<<32), "void": raw('V'),
	} {
		m := newTestMessage(h, amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: in})
		if got := (codec{}).Delay(m); got != 0 {
			t.Errorf("%s: delay %d", name, got)
		}
		m.Release(h.lp.shard.Arena())
	}
}

// newDelayedConn publishes to a delayed exchange with a queue behind it.
func newDelayedConn(tb testing.TB, props amqp091.Properties) *hotConn {
	return newHotConn(tb, declareMethod("q", amqp091.AppendInt32(nil, "x-max-length", 100)),
		&amqp091.ExchangeDeclare{Exchange: []byte("x"), Type: []byte("x-delayed-message"),
			Arguments: amqp091.AppendString(nil, "x-delayed-type", "direct")},
		&amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("x"), RoutingKey: []byte("k")},
		&amqp091.ConfirmSelect{}).publishing(1, "x", "k", props.Append(nil), 16)
}

var delayedProps = map[string]amqp091.Table{
	"held":          amqp091.AppendInt32(nil, "x-delay", 1000),
	"held with BCC": amqp091.AppendArray(amqp091.AppendInt32(nil, "x-delay", 1000), "BCC", amqp091.ItemString(nil, "a")),
	"routed now":    amqp091.AppendInt32(nil, "x-delay", 0),
}

// XT-02: holding a message allocates nothing, nor does routing one that is not held.
func TestAllocsDelayed(t *testing.T) {
	for name, headers := range delayedProps {
		h := newDelayedConn(t, amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: headers})
		q := h.Broker.VHost("/").Queue([]byte("q"))
		for range 1000 {
			h.round()
		}
		if n := testing.AllocsPerRun(200, h.round); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if held := q.Published == 0; held != (name != "routed now") {
			t.Errorf("%s: %d arrived", name, q.Published)
		}
		h.now += 1000e6
		for range 10 {
			h.turn()
		}
		if h.c.state != stateOpen || h.c.channel(1).closing || q.Published != 1201 || h.c.channel(1).confirms.sent != 1201 {
			t.Errorf("%s: %d arrived, %d confirmed, %q", name, q.Published, h.c.channel(1).confirms.sent, h.c.lastError)
		}
	}
}

// BenchmarkDelayed is the whole way of a held message, from frame to queue.
func BenchmarkDelayed(b *testing.B) {
	h := newDelayedConn(b, amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: amqp091.AppendInt32(nil, "x-delay", 1)})
	b.ReportAllocs()
	for b.Loop() {
		h.round()
		h.now += 1e6
	}
}
