package session091

import (
	"ringmq/engine/core"
	"ringmq/frame"
	"ringmq/frame/amqp091"
)

// headFixed is class, weight and body size before the properties.
const headFixed = 12

// codec reads and writes stored AMQP 0-9-1 headers for the engine.
type codec struct{}

// fields is lazy access to a message's headers and properties.
type fields struct {
	m       *core.Message
	decoded bool
	props   amqp091.Properties
}

// decode reads the header once, when somebody asks.
func (f *fields) decode() {
	if !f.decoded {
		f.decoded = true
		if f.props.Decode(f.m.Head()[headFixed:]) != nil {
			f.props = amqp091.Properties{}
		}
	}
}

// Lookup implements core.Fields. Strings are views into the message.
func (f *fields) Lookup(name string) (core.Value, bool) {
	f.decode()
	v, ok := f.props.Headers.Lookup(name)
	if !ok {
		return core.Value{}, false
	}
	return toValue(v), true
}

// Property implements exchange.Properties: those that an exchange may go by
// (XT-01). Strings are views into the message.
func (f *fields) Property(name string) (core.Value, bool) {
	f.decode()
	p := &f.props
	switch {
	case name == "message_id" && p.Flags&amqp091.FlagMessageID != 0:
		return core.Value{Kind: core.KindString, Str: frame.String(p.MessageID), Type: "longstr"}, true
	case name == "correlation_id" && p.Flags&amqp091.FlagCorrelationID != 0:
		return core.Value{Kind: core.KindString, Str: frame.String(p.CorrelationID), Type: "longstr"}, true
	case name == "timestamp" && p.Flags&amqp091.FlagTimestamp != 0:
		return core.Value{Kind: core.KindTime, Int: int64(p.Timestamp), Type: "timestamp"}, true
	}
	return core.Value{}, false
}

// fieldsOf prepares the loop's Fields for a message, without decoding yet.
func (codec) fieldsOf(lp *loopState, m *core.Message) core.Fields {
	lp.fields.m, lp.fields.decoded = m, false
	return &lp.fields
}

// MoreKeys implements engine.Codec: the keys of CC (DLX-02). BCC is never stored.
func (codec) MoreKeys(m *core.Message) (keys [][]byte) {
	var p amqp091.Properties
	if p.Decode(m.Head()[headFixed:]) != nil {
		return nil
	}
	if v, ok := p.Headers.Lookup(headerCC); ok && v.Tag == 'A' {
		keys = appendKeys(nil, v.Data)
	}
	return keys
}

// Headers implements engine.Codec.
func (codec) Headers(m *core.Message) core.Fields { return &fields{m: m} }

// toValue is a table value in the engine's terms; strings are views.
func toValue(v amqp091.Value) core.Value {
	out := core.Value{Type: v.TypeName()}
	switch v.Tag {
	case 'V':
		out.Kind = core.KindVoid
	case 't':
		out.Kind = core.KindBool
		if b, _ := v.Bool(); b {
			out.Int = 1
		}
	case 'b', 'B', 's', 'u', 'I', 'i', 'l', 'L':
		out.Kind = core.KindInt
		out.Int, _ = v.Int()
	case 'f', 'd':
		out.Kind = core.KindFloat
		out.Float, _ = v.Float()
	case 'S':
		out.Kind = core.KindString
		out.Str = frame.String(v.Data)
	case 'x':
		out.Kind = core.KindBytes
		out.Str = frame.String(v.Data)
	case 'T':
		out.Kind = core.KindTime
		t, _ := v.Time()
		out.Int = int64(t)
	default:
		out.Kind = core.KindOther
		out.Str = frame.String(v.Data)
	}
	return out
}

// xDeath finds the history table array; ok is false unless it is a well-formed
// array of tables (DLX-03b).
func xDeath(headers amqp091.Table) (entries []amqp091.Table, ok bool) {
	v, found := headers.Lookup("x-death")
	if !found || v.Tag != 'A' {
		return nil, false
	}
	for item := range v.Array() {
		t, isTable := item.Table()
		if !isTable {
			return nil, false
		}
		entries = append(entries, t)
	}
	return entries, true
}

func textOf(t amqp091.Table, name string) string {
	v, _ := t.Lookup(name)
	s, _ := v.Str()
	return string(s)
}

// Deaths implements engine.Codec.
func (codec) Deaths(m *core.Message) []core.Death {
	var p amqp091.Properties
	if p.Decode(m.Head()[headFixed:]) != nil {
		return nil
	}
	entries, _ := xDeath(p.Headers)
	deaths := make([]core.Death, 0, len(entries))
	for _, t := range entries {
		deaths = append(deaths, core.Death{Queue: textOf(t, "queue"), Reason: textOf(t, "reason")})
	}
	return deaths
}

// AppendDeath implements engine.Codec: the header of the dead-lettered copy
// (DLX-03 to DLX-05).
func (codec) AppendDeath(dst []byte, m *core.Message, queueName string, why core.DeathReason, rekeyed bool, wall int64) []byte {
	var p amqp091.Properties
	if p.Decode(m.Head()[headFixed:]) != nil {
		return append(dst, m.Head()...)
	}
	entries, _ := xDeath(p.Headers)
	items := amqp091.ItemTable(nil, deathEntry(entries, &p, m, queueName, why, wall))
	for _, t := range entries {
		if textOf(t, "queue") != queueName || textOf(t, "reason") != why.String() {
			items = amqp091.ItemTable(items, t)
		}
	}
	headers := amqp091.AppendArray(nil, "x-death", items)
	_, seen := p.Headers.Lookup("x-first-death-reason")
	for key, v := range p.Headers.All() {
		switch name := string(key); {
		case name == "x-death", name == headerBCC, rekeyed && name == headerCC:
		case name == "x-last-death-reason", name == "x-last-death-queue", name == "x-last-death-exchange":
		default:
			headers = amqp091.AppendRaw(headers, name, v)
		}
	}
	for _, prefix := range []string{"x-first-death-", "x-last-death-"} {
		if prefix == "x-first-death-" && seen {
			continue
		}
		headers = amqp091.AppendString(headers, prefix+"reason", why.String())
		headers = amqp091.AppendString(headers, prefix+"queue", queueName)
		headers = amqp091.AppendString(headers, prefix+"exchange", string(m.Exchange()))
	}
	p.Headers = headers
	p.Flags |= amqp091.FlagHeaders
	p.Flags &^= amqp091.FlagExpiration // it must not expire again
	dst = append(dst, m.Head()[:headFixed]...)
	return p.Append(dst)
}

// deathEntry is the newest entry: the known one of this queue and reason with
// its count raised, or a new one.
func deathEntry(entries []amqp091.Table, p *amqp091.Properties, m *core.Message, queueName string, why core.DeathReason, wall int64) amqp091.Table {
	for _, t := range entries {
		if textOf(t, "queue") == queueName && textOf(t, "reason") == why.String() {
			v, _ := t.Lookup("count")
			n, _ := v.Int()
			out := amqp091.AppendInt64(nil, "count", n+1)
			for key, v := range t.All() {
				if string(key) != "count" {
					out = amqp091.AppendRaw(out, string(key), v)
				}
			}
			return out
		}
	}
	keys := amqp091.ItemString(nil, string(m.Key()))
	if cc, ok := p.Headers.Lookup(headerCC); ok && cc.Tag == 'A' {
		for item := range cc.Array() {
			if s, ok := item.Str(); ok {
				keys = amqp091.ItemString(keys, string(s))
			}
		}
	}
	t := amqp091.AppendInt64(nil, "count", 1)
	t = amqp091.AppendString(t, "reason", why.String())
	t = amqp091.AppendString(t, "queue", queueName)
	t = amqp091.AppendTimestamp(t, "time", uint64(wall))
	t = amqp091.AppendString(t, "exchange", string(m.Exchange()))
	t = amqp091.AppendArray(t, "routing-keys", keys)
	if p.Flags&amqp091.FlagExpiration != 0 {
		t = amqp091.AppendString(t, "original-expiration", string(p.Expiration))
	}
	return t
}
