package session091

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// validUTF8 is the rule for names (EXC-02); ASCII is decided at once.
func validUTF8(b []byte) bool { return utf8.Valid(b) }

func (c *conn) badName() { c.fail(amqp091.FrameError, 0, "Malformed UTF-8 in shortstr") }

// stall stops parsing until the congestion is over; the loop looks again in
// its next turn.
func (c *conn) stall() {
	if c.stalled {
		return
	}
	c.stalled = true
	c.lp.stalled = append(c.lp.stalled, c)
}

// strayContent is a header or body frame that no publish announced (WIR-08), or
// the wrong one of the two (WIR-07).
func (ch *channel) strayContent(typ byte, payloadLen int) {
	if ch.closing && ch.content == contentNone {
		return
	}
	switch {
	case typ == amqp091.FrameHeader && payloadLen < headFixed:
		ch.c.unknownFrame(amqp091.FrameHead{Type: typ, Channel: ch.id, Size: uint32(payloadLen)})
	case ch.content == contentNone:
		ch.c.fail(amqp091.UnexpectedFrame, 0, "expected method frame, got non method frame instead")
	case ch.content == contentHeader:
		ch.c.fail(amqp091.UnexpectedFrame, amqp091.MethodBasicPublish,
			"expected content header for class 60, got non content header frame instead")
	default:
		ch.c.fail(amqp091.UnexpectedFrame, amqp091.MethodBasicPublish,
			"expected content body, got non content body frame instead")
	}
}

// shortHeader is a content header that cannot hold its fixed part (WIR-03,
// WIR-11).
func (ch *channel) shortHeader(payload []byte) {
	if len(payload) < headFixed {
		ch.c.unknownFrame(amqp091.FrameHead{Type: amqp091.FrameHeader, Channel: ch.id, Size: uint32(len(payload))})
		return
	}
	ch.c.fail(amqp091.FrameError, amqp091.MethodBasicPublish, "cannot decode content header: truncated")
}

// badHeader is WIR-09.
func (ch *channel) badHeader(h amqp091.ContentHead) {
	if h.Class != 60 {
		ch.c.fail(amqp091.UnexpectedFrame, amqp091.MethodBasicPublish,
			fmt.Sprintf("expected content header for class 60, got one for class %d instead", h.Class))
		return
	}
	ch.c.fail(amqp091.UnexpectedFrame, amqp091.MethodBasicPublish, fmt.Sprintf("content header with weight %d", h.Weight))
}

func (ch *channel) bodyTooLarge(size uint64) {
	ch.c.fail(amqp091.FrameError, amqp091.MethodBasicPublish,
		fmt.Sprintf("content body size %d exceeds maximum allowed size %d", size, bodySizeMax))
}

// bodyOverrun is a body frame beyond the announced size (WIR-10).
func (ch *channel) bodyOverrun() {
	ch.c.fail(amqp091.FrameError, amqp091.MethodBasicPublish, "content body frame exceeds remaining content size")
}

func (ch *channel) outOfMemory() {
	ch.c.fail(amqp091.ResourceError, amqp091.MethodBasicPublish, "out of memory for the message")
}

// skipBody discards the body that belongs to a refused or a closing publish.
func (ch *channel) skipBody(size uint64) {
	ch.pub.discard = int64(min(size, 1<<62))
	if size == 0 {
		ch.content = contentNone
		ch.contentDiscarded()
		return
	}
	ch.content = contentBody
}

// refusePublish decides why a publish fails; the answer follows at once when
// its size is the reason (BAS-22), else when its content is complete.
func (ch *channel) refusePublish(size uint64) {
	p := &ch.pub
	switch {
	case p.immediate:
		p.err = core.Refuse(core.NotImplemented, "immediate=true")
	case p.target == nil:
		p.err = ch.c.vhost.NoExchange(string(p.exchange))
	case p.target.Internal:
		p.err = core.Refuse(core.AccessRefused, "cannot publish to internal exchange '%s' in vhost '%s'", p.target.Name, ch.c.vhost.Name)
	case p.err == nil:
		ch.fail(amqp091.PreconditionFailed, amqp091.MethodBasicPublish,
			fmt.Sprintf("message size %d is larger than configured max size %d", size, ch.c.srv.opts.MessageSizeMax))
	}
	ch.skipBody(size)
}

// contentDiscarded is the end of a content that is not published.
func (ch *channel) contentDiscarded() {
	ch.discard = false
	if ch.closing {
		return
	}
	p := &ch.pub
	if p.wrong != 0 {
		id := p.wrong
		p.wrong = 0
		ch.c.fail(amqp091.CommandInvalid, id, "unimplemented method")
		return
	}
	if p.err != nil {
		err := p.err
		p.err = nil
		ch.refuse(err, amqp091.MethodBasicPublish)
	}
}

// checkProps reads the properties that the engine acts on and remembers them
// for the next message. It answers and returns false if they are malformed.
func (ch *channel) checkProps(b []byte) bool {
	p := &ch.pub
	var props amqp091.Properties
	if err := props.Decode(b); err != nil {
		p.props = nil
		ch.c.fail(amqp091.FrameError, amqp091.MethodBasicPublish, "cannot decode content header: "+err.Error())
		return false
	}
	p.flags, p.prio, p.ttl, p.special = 0, 0, 0, 0
	if props.Flags&amqp091.FlagDeliveryMode != 0 && props.DeliveryMode == 2 {
		p.flags |= core.FlagPersistent
	}
	if props.Flags&amqp091.FlagPriority != 0 {
		p.prio = props.Priority
	}
	remember := true
	if props.Flags&amqp091.FlagExpiration != 0 {
		ttl, problem := parseExpiration(string(props.Expiration))
		if ttl >= expirationAbsoluteMin {
			ttl, problem = untilMillis(ttl, time.Now().UnixMilli())
			remember = false // it is another time to live at any other time
		}
		if problem != "" {
			p.err = core.Refuse(core.PreconditionFailed, "invalid expiration '%s': %s", props.Expiration, problem)
			remember = false
		}
		p.flags |= core.FlagExpires
		p.ttl = ttl
	}
	if props.Flags&amqp091.FlagUserID != 0 && string(props.UserID) != ch.c.user {
		p.err = core.Refuse(core.PreconditionFailed,
			"user_id property set to '%s' but authenticated user was '%s'", props.UserID, ch.c.user)
		remember = false
	}
	if props.Flags&(amqp091.FlagHeaders|amqp091.FlagReplyTo) != 0 && !ch.checkExtras(&props) {
		remember = false
	}
	if !remember || len(b) > propsMemoMax {
		p.props = nil
		return true
	}
	p.props = append(p.props[:0], b...)
	return true
}

// propsMemoMax is the longest property list that a channel remembers: beyond
// it the comparison costs as much as the check.
const propsMemoMax = 512

// expirationAbsoluteMin is the smallest expiration that is a point in time, in
// milliseconds since 1970, as JMS clients send it, and no time to live.
const expirationAbsoluteMin = 1_000_000_000_000

// untilMillis makes a time to live of a point in time; one that has passed is 0.
func untilMillis(at, now int64) (ms int64, problem string) {
	if ms = max(at-now, 0); ms > core.TTLMillisMax {
		return 0, "{value_too_large," + strconv.FormatInt(at, 10) + "}"
	}
	return ms, ""
}

// parseExpiration reads the expiration property in milliseconds (BAS-18).
func parseExpiration(s string) (ms int64, problem string) {
	if s == "" {
		return 0, "no_integer"
	}
	negative := s[0] == '-'
	digits := s
	if negative || s[0] == '+' {
		digits = s[1:]
	}
	i := 0
	for ; i < len(digits) && digits[i] >= '0' && digits[i] <= '9'; i++ {
		if ms = ms*10 + int64(digits[i]-'0'); ms > 1<<58 {
			ms = 1 << 58
		}
	}
	switch {
	case i == 0:
		return 0, "no_integer"
	case i < len(digits):
		return 0, fmt.Sprintf("{leftover_string,%q}", digits[i:])
	case negative && ms > 0:
		return 0, "{value_negative," + s + "}"
	case ms > core.TTLMillisMax && ms < expirationAbsoluteMin:
		return 0, "{value_too_large," + digits + "}"
	}
	return ms, ""
}

// giveBack writes basic.return for a mandatory message that reached no queue
// (BAS-08).
func (ch *channel) giveBack(m *core.Message) {
	ch.send(&amqp091.BasicReturn{
		ReplyCode: amqp091.NoRoute, ReplyText: []byte("NO_ROUTE"),
		Exchange: m.Exchange(), RoutingKey: m.Key(),
	})
	ch.c.writeContent(ch.id, m, m.Head())
}

// failNoSpace ends the channel because the disk has no room for a persistent
// message.
func (ch *channel) failNoSpace(q *queue.Queue) {
	ch.fail(amqp091.ResourceError, amqp091.MethodBasicPublish,
		fmt.Sprintf("no room on the disk for a persistent message to queue '%s' in vhost '%s'", q.Name, ch.c.vhost.Name))
}
