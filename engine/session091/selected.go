package session091

import (
	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// The headers with which a sender names further routing keys (SSD-01).
const (
	headerCC  = "CC"
	headerBCC = "BCC"
)

// special says what a content header asks for that few do.
type special uint8

const (
	// specialKeys: extras.keys are routing keys beside the publish's own.
	specialKeys special = 1 << iota
	// specialList: the message is stored with extras.list for its properties.
	specialList
	// specialHeld: a delayed exchange stores it with extras.held instead.
	specialHeld
)

// extras is what the last content header that was checked asked for, in memory
// that is used again. It outlives the frame that it was read from.
type extras struct {
	items []byte   // of CC and BCC, as they stood in their arrays
	keys  [][]byte // views into items
	table []byte   // headers without BCC
	list  []byte   // flags and property list to be stored
	held  []byte   // the same with BCC
	head  []byte   // of the message that arrives
}

// appendKeys appends the texts of an array's items; others are not keys (SSD-01).
func appendKeys(keys [][]byte, items []byte) [][]byte {
	for v, rest, ok := amqp091.NextItem(items); ok; v, rest, ok = amqp091.NextItem(rest) {
		if s, isText := v.Str(); isText {
			keys = append(keys, s)
		}
	}
	return keys
}

// checkExtras looks for further keys and for a reply-to that is to be filled in.
// It notes why the publish is refused and returns false if it is; what the caller
// found before is told rather than a fault of CC or BCC, but not rather than a
// missing reply consumer.
func (ch *channel) checkExtras(props *amqp091.Properties) (ok bool) {
	p := &ch.pub
	stored := *props
	if bad := p.checkKeys(props, &stored); bad != nil {
		if p.err == nil {
			p.err = bad
		}
		return false
	}
	if props.Flags&amqp091.FlagReplyTo != 0 && string(props.ReplyTo) == replyQueue {
		if ch.replies == nil {
			p.err = core.Refuse(core.PreconditionFailed, "fast reply consumer does not exist")
			return false
		}
		stored.ReplyTo = ch.replies.name
		p.special |= specialList
	}
	if p.special&specialList != 0 {
		p.extras.list = stored.Append(p.extras.list[:0])
	}
	if p.special&specialHeld != 0 {
		stored.Headers = props.Headers
		p.extras.held = stored.Append(p.extras.held[:0])
	}
	return true
}

// checkKeys collects the keys of CC and BCC, and takes BCC out of what is stored.
func (p *publishing) checkKeys(props, stored *amqp091.Properties) *core.Error {
	var cc, bcc amqp091.Value
	hasCC, hasBCC := false, false
	for key, v, rest, ok := props.Headers.Next(); ok; key, v, rest, ok = rest.Next() {
		switch {
		case !hasCC && string(key) == headerCC:
			cc, hasCC = v, true
		case !hasBCC && string(key) == headerBCC:
			bcc, hasBCC = v, true
		}
	}
	switch {
	case hasCC && cc.Tag != 'A':
		return badKeys(headerCC, cc)
	case hasBCC && bcc.Tag != 'A':
		return badKeys(headerBCC, bcc)
	}
	e := &p.extras
	e.items = append(append(e.items[:0], cc.Data...), bcc.Data...)
	if e.keys = appendKeys(e.keys[:0], e.items); len(e.keys) > 0 {
		p.special |= specialKeys
	}
	if hasBCC {
		e.table = e.table[:0]
		for key, v, rest, ok := props.Headers.Next(); ok; key, v, rest, ok = rest.Next() {
			if string(key) != headerBCC {
				e.table = amqp091.AppendRaw(e.table, string(key), v)
			}
		}
		stored.Headers = e.table
		p.special |= specialList
		if delayIn(props) > 0 {
			p.special |= specialHeld
		}
	}
	return nil
}

func badKeys(name string, v amqp091.Value) *core.Error {
	return core.Refuse(core.PreconditionFailed, `invalid message: {unacceptable_type_in_header,"%s",%s}`, name, v.TypeName())
}

// header is a content header with the property list that is to be stored. It is
// valid until the next call.
func (e *extras) header(received, list []byte) []byte {
	head := append(append(e.head[:0], received[:headFixed]...), list...)
	if e.head = head; len(head) > extrasKept {
		e.head, e.list, e.held, e.table = nil, nil, nil, nil
	}
	return head
}

// extrasKept is the longest list or header whose memory a channel keeps for the
// next: there are thousands of channels, and few such headers. What a channel
// remembers is shorter (propsMemoMax), so nothing is lost that it needs again.
const extrasKept = 4096

// done is called when the keys have served.
func (e *extras) done() {
	if len(e.items) > extrasKept {
		e.items, e.keys = nil, nil
	}
}

// routeSpecial finds the queues of a message by all its keys.
func (ch *channel) routeSpecial(m *core.Message, x *engine.Exchange, more [][]byte) []*queue.Queue {
	c := ch.c
	h := c.srv.codec.fieldsOf(c.lp, m)
	if len(more) > 0 {
		return c.shard.RouteAll(c.vhost, x, m.Key(), more, h)
	}
	queues, _ := c.shard.Route(c.vhost, x, m.Key(), h)
	return queues
}

// completeSpecial is complete for a message with further keys or for requesters.
func (ch *channel) completeSpecial(m *core.Message) {
	p := &ch.pub
	var more [][]byte
	if p.special&specialKeys != 0 {
		more = p.extras.keys
		// Each key is as much work as a message.
		if ch.c.fanout += len(more); ch.c.fanout >= fanoutBatch {
			ch.c.fanout = 0
			ch.c.stall()
		}
	}
	ch.publishSpecial(m, more)
	p.extras.done()
}

// publishSpecial publishes a message with its further keys, or keeps it for the
// commit.
func (ch *channel) publishSpecial(m *core.Message, more [][]byte) {
	p := &ch.pub
	if ch.tx != nil {
		ch.tx.publishes = append(ch.tx.publishes, txPublish{m, p.target, p.mandatory, kept(more)})
		return
	}
	var seq uint64
	if ch.confirm {
		seq = ch.confirms.next()
	}
	var room [1]replyAddress
	if to := ch.requesters(room[:0], m, p.target, more); len(to) > 0 {
		if len(ch.routeSpecial(m, p.target, more)) == 0 {
			ch.c.shard.Stats.Published++
			if seq != 0 {
				ch.confirms.wait(seq, 1, false)
			}
			ch.reply(m, to, p.mandatory, seq != 0, seq)
			return
		}
		ch.sendReplies(m, to)
	}
	ch.publish(m, p.target, p.mandatory, seq)
}

// kept copies keys that are views into memory that is used again.
func kept(keys [][]byte) [][]byte {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = append([]byte(nil), k...)
	}
	return out
}
