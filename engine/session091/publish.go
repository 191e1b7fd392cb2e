//ringmq:hot

package session091

import (
	"bytes"

	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// publishing is the content that arrives on a channel, and what the channel
// remembers of the publish before: a client that publishes to one place again
// pays one comparison for decoding and routing.
type publishing struct {
	msg     *core.Message // being filled
	wrong   amqp091.MethodID
	err     *core.Error // to be answered when the content is complete
	discard int64       // body bytes of a discarded content still to come

	args      []byte // arguments of the last basic.publish
	exchange  []byte // views into args
	key       []byte
	mandatory bool
	immediate bool
	toReply   bool // exchange and key name a requester (DRT-03)
	target    *engine.Exchange
	epoch     uint64
	routed    bool // route holds for target and key at epoch
	route     []*queue.Queue

	props []byte // of the last content header that was checked
	flags uint16
	prio  uint8
	// special says what that header asks for beside routing by one key; extras
	// holds what it needs.
	special special
	ttl     int64
	extras  extras
}

// publishMethod handles basic.publish. args is valid during the call.
func (ch *channel) publishMethod(args []byte) {
	p := &ch.pub
	ch.content = contentHeader
	if ch.closing {
		ch.discard = true
		return
	}
	p.wrong, p.err = 0, nil
	ch.c.publisher = true
	if up := ch.c.shard.Broker.Alarms(); up != 0 {
		ch.c.block(ch, up)
	}
	epoch := ch.c.vhost.Epoch()
	if p.epoch == epoch && p.target != nil && bytes.Equal(args, p.args) {
		return
	}
	if !bytes.Equal(args, p.args) || p.args == nil {
		var m amqp091.BasicPublish
		if err := m.Decode(args); err != nil {
			ch.content = contentNone
			ch.c.undecodable(amqp091.MethodBasicPublish, err)
			return
		}
		if !validUTF8(m.Exchange) || !validUTF8(m.RoutingKey) {
			ch.content = contentNone
			p.args = p.args[:0]
			p.target = nil
			ch.c.badName()
			return
		}
		p.args = append(p.args[:0], args...)
		// The views must point into the copy: decode it, it is known good.
		_ = m.Decode(p.args)
		p.exchange, p.key, p.mandatory, p.immediate = m.Exchange, m.RoutingKey, m.Mandatory, m.Immediate
		p.toReply = len(m.Exchange) == 0 && isReplyKey(m.RoutingKey)
	}
	p.epoch, p.routed = epoch, false
	p.target = ch.c.vhost.Exchange(p.exchange)
}

// headerFrame handles a content header.
func (ch *channel) headerFrame(payload []byte) {
	if ch.content != contentHeader {
		ch.strayContent(amqp091.FrameHeader, len(payload))
		return
	}
	h, ok := amqp091.ParseContentHead(payload)
	if !ok {
		ch.shortHeader(payload)
		return
	}
	if ch.closing || ch.discard {
		ch.skipBody(h.BodySize)
		return
	}
	p := &ch.pub
	if h.Class != 60 || h.Weight != 0 {
		ch.badHeader(h)
		return
	}
	if h.BodySize > bodySizeMax {
		ch.bodyTooLarge(h.BodySize)
		return
	}
	if p.wrong != 0 {
		ch.skipBody(h.BodySize)
		return
	}
	if !bytes.Equal(h.Props, p.props) || p.props == nil {
		if !ch.checkProps(h.Props) {
			return
		}
	}
	if p.target == nil || p.target.Internal || p.immediate || p.err != nil || int64(h.BodySize) > ch.c.srv.opts.MessageSizeMax {
		ch.refusePublish(h.BodySize)
		return
	}
	if p.special&specialList != 0 {
		payload = p.storedHeader(payload)
	}
	m := core.NewMessage(ch.c.shard.Arena(), p.exchange, p.key, payload, int(h.BodySize))
	if m == nil {
		ch.outOfMemory()
		return
	}
	m.Flags, m.Priority, m.TTL = p.flags, p.prio, p.ttl
	p.msg = m
	if h.BodySize == 0 {
		ch.content = contentNone
		ch.complete()
		return
	}
	ch.content = contentBody
}

// bodySizeMax is the largest body that a content header may announce (WIR-10).
const bodySizeMax = 512 << 20

// bodyMissing is how many body bytes the channel still expects.
func (ch *channel) bodyMissing() int64 {
	if ch.pub.msg != nil {
		return int64(ch.pub.msg.Missing())
	}
	return ch.pub.discard
}

// bodyFrame handles a complete body frame.
func (ch *channel) bodyFrame(payload []byte) {
	if ch.content != contentBody {
		ch.strayContent(amqp091.FrameBody, len(payload))
		return
	}
	if int64(len(payload)) > ch.bodyMissing() {
		ch.bodyOverrun()
		return
	}
	ch.bodyPart(payload)
	ch.bodyDone()
}

// bodyPart takes a part of a body frame that fits.
func (ch *channel) bodyPart(p []byte) {
	if ch.pub.msg != nil {
		ch.pub.msg.AppendBody(p)
		return
	}
	ch.pub.discard -= int64(len(p))
}

// bodyDone is called at the end of a body frame.
func (ch *channel) bodyDone() {
	if ch.bodyMissing() > 0 {
		return
	}
	ch.content = contentNone
	if ch.pub.msg == nil {
		ch.contentDiscarded()
		return
	}
	ch.complete()
}

// complete publishes the message that has arrived.
func (ch *channel) complete() {
	m := ch.pub.msg
	ch.pub.msg = nil
	if ch.pub.toReply || ch.pub.special&specialKeys != 0 {
		ch.completeSpecial(m)
		return
	}
	if ch.tx != nil {
		ch.tx.publish(ch, m)
		return
	}
	var seq uint64
	if ch.confirm {
		seq = ch.confirms.next()
	}
	ch.publish(m, ch.pub.target, ch.pub.mandatory, seq)
}

// publish routes a message and hands it to its queues. It takes over the
// reference. seq is its confirm number, 0 for none.
func (ch *channel) publish(m *core.Message, x *engine.Exchange, mandatory bool, seq uint64) {
	s := ch.c.shard
	s.Stats.Published++
	queues := ch.routeOf(m, x)
	if len(queues) == 0 {
		s.Stats.Unroutable++
		if mandatory {
			ch.giveBack(m)
		}
		m.Release(s.Arena())
		if seq != 0 {
			ch.confirmed(seq, true)
		}
		return
	}
	persistent := m.Persistent()
	if seq == 0 && (persistent || queues[0].Settings.Type != queue.Classic) && ch.noSpace(queues, persistent) {
		m.Release(s.Arena())
		return
	}
	if len(queues) == 1 && seq == 0 {
		s.Publish(queues[0], m, nil, 0)
		ch.checkCongestion(queues[0], persistent)
		return
	}
	if len(queues) > 1 {
		m.AddRef(int32(len(queues) - 1))
	}
	if seq == 0 {
		s.PublishAll(queues, m, nil, 0)
		ch.checkFanout(queues, persistent)
		return
	}
	ch.publishConfirmed(m, queues, seq)
	ch.checkFanout(queues, persistent)
}

// stored reports whether a queue keeps a message on the disk. Quorum queues and streams
// keep all.
func stored(q *queue.Queue, persistent bool) bool {
	return q.Settings.Durable && (persistent || q.Settings.Type != queue.Classic)
}

// noSpace refuses a publish without confirms for which the disk has no room: the
// client would never hear of it otherwise.
func (ch *channel) noSpace(queues []*queue.Queue, persistent bool) bool {
	for _, q := range queues {
		if stored(q, persistent) && ch.c.shard.Full(q) {
			ch.failNoSpace(q)
			return true
		}
	}
	return false
}

// publishConfirmed hands a message over and keeps count of the answers
// (CNF-03).
func (ch *channel) publishConfirmed(m *core.Message, queues []*queue.Queue, seq uint64) {
	var pending uint32
	var refused bool
	if len(queues) == 1 {
		switch ch.c.shard.Publish(queues[0], m, ch, seq) {
		case engine.Refused, engine.NoSpace:
			refused = true
		case engine.Pending:
			pending = 1
		}
	} else {
		pending, refused, _ = ch.c.shard.PublishAll(queues, m, ch, seq)
	}
	if pending == 0 {
		ch.confirmed(seq, !refused)
		return
	}
	ch.confirms.wait(seq, pending, refused)
}

// routeOf finds the queues of a message, from the channel's memory if it can.
func (ch *channel) routeOf(m *core.Message, x *engine.Exchange) []*queue.Queue {
	p := &ch.pub
	if p.special&specialKeys != 0 {
		return ch.routeSpecial(m, x, p.extras.keys)
	}
	if p.routed && x == p.target && ch.tx == nil {
		return p.route
	}
	queues, keyed := ch.c.shard.Route(ch.c.vhost, x, m.Key(), ch.c.srv.codec.fieldsOf(ch.c.lp, m))
	if keyed && ch.tx == nil {
		p.route = append(p.route[:0], queues...)
		p.routed = true
	}
	return queues
}

// fanoutBatch bounds how many queues the publishes of one connection go to
// before it is another's turn: a bound on its input is none on the work where
// one message goes to thousands of queues.
const fanoutBatch = 8192

// checkFanout is checkCongestion for a message that went to several queues.
func (ch *channel) checkFanout(queues []*queue.Queue, persistent bool) {
	c := ch.c
	if len(queues) > 1 {
		if c.fanout += len(queues); c.fanout >= fanoutBatch || c.shard.Congested() {
			c.fanout = 0
			c.stall()
			return
		}
	}
	for _, q := range queues[1:] {
		ch.checkDisk(q, persistent)
	}
	ch.checkCongestion(queues[0], persistent)
}

// checkDisk stops the connection's parsing while the disk of a queue is behind.
func (ch *channel) checkDisk(q *queue.Queue, persistent bool) {
	c := ch.c
	if !c.shard.Pressed() || c.behind {
		return
	}
	at := c.shard.Tight(q)
	if at == nil && stored(q, persistent) {
		at = c.shard.Behind(q)
	}
	if at != nil {
		c.behind, c.behindOn = true, at
		c.lp.behind = append(c.lp.behind, c)
	}
}

// checkCongestion stops the connection's parsing while another loop lags, so
// that mailboxes stay bounded, and while consumers of the queue do.
func (ch *channel) checkCongestion(q *queue.Queue, persistent bool) {
	s := ch.c.shard
	ch.checkDisk(q, persistent)
	if q.Shard == s.Index {
		if q.Ready() > paceReady {
			ch.c.pace(q)
		}
		return
	}
	if s.Congested() {
		ch.c.stall()
		return
	}
	// Another loop's figures are not worth a look for every message.
	if ch.sincePace++; ch.sincePace%pacePublishes == 0 && q.Seen.Ready() > paceReady {
		ch.c.pace(q)
	}
}
