package session091

import (
	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/frame/amqp091"
)

// This file is what AMQP 0-9-1 says of messages that an exchange holds back (XT-02).

// delayIn is for how many milliseconds the headers ask to be held, 0 for not at all.
func delayIn(p *amqp091.Properties) int64 {
	v, ok := p.Headers.Lookup(exchange.DelayHeader)
	if !ok {
		return 0
	}
	return exchange.Delay(toValue(v))
}

// storedHeader is the content header to be stored in place of the one received. What
// is held keeps BCC: its keys count when it leaves, and then it goes. Valid until the
// next call.
func (p *publishing) storedHeader(received []byte) []byte {
	if p.special&specialHeld != 0 && p.target.Holds() {
		return p.extras.header(received, p.extras.held)
	}
	return p.extras.header(received, p.extras.list)
}

// Delay implements engine.Codec.
func (codec) Delay(m *core.Message) int64 {
	var p amqp091.Properties
	if p.Decode(m.Head()[headFixed:]) != nil {
		return 0
	}
	return delayIn(&p)
}

// Release implements engine.Codec: the delay is delivered with its sign turned, so
// that a further delayed exchange does not hold the message again, and the expiration
// counts from now.
func (codec) Release(dst []byte, m *core.Message, wallMS int64) (r engine.ReleasedMessage) {
	var p amqp091.Properties
	if p.Decode(m.Head()[headFixed:]) != nil {
		r.Head = append(dst, m.Head()...)
		return r
	}
	delay, turned := delayIn(&p), false
	var headers amqp091.Table
	for key, v := range p.Headers.All() {
		switch name := string(key); {
		case name == headerBCC:
		case name == exchange.DelayHeader && !turned:
			headers, turned = appendTurned(headers, delay), true
		default:
			headers = amqp091.AppendRaw(headers, name, v)
		}
	}
	for _, name := range []string{headerCC, headerBCC} {
		if v, ok := p.Headers.Lookup(name); ok && v.Tag == 'A' {
			r.Keys = appendKeys(r.Keys, v.Data)
		}
	}
	if p.Flags&amqp091.FlagExpiration != 0 {
		// It was checked when it was published.
		r.Expires = true
		if r.TTL, _ = parseExpiration(string(p.Expiration)); r.TTL >= expirationAbsoluteMin {
			r.TTL, _ = untilMillis(r.TTL, wallMS)
		}
	}
	p.Headers = headers
	r.Head = p.Append(append(dst, m.Head()[:headFixed]...))
	return r
}

// appendTurned appends a delay with its sign turned, in the smallest type that holds
// all clients' usual ones.
func appendTurned(headers amqp091.Table, delay int64) amqp091.Table {
	if int64(int32(-delay)) == -delay {
		return amqp091.AppendInt32(headers, exchange.DelayHeader, int32(-delay))
	}
	return amqp091.AppendInt64(headers, exchange.DelayHeader, -delay)
}
