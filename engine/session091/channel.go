package session091

import (
	"fmt"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// contentState says what a channel expects after basic.publish.
type contentState uint8

const (
	contentNone contentState = iota
	contentHeader
	contentBody
)

// channel is one channel of a connection.
type channel struct {
	c  *conn
	id uint16

	content contentState
	discard bool // the content that arrives belongs to nobody: a refused publish
	closing bool // channel.close sent; everything but close and close-ok is discarded
	ended   bool // nothing of it is left in the engine
	confirm bool
	dirty   bool // on the loop's list of channels with confirms to send

	pub       publishing
	sincePace uint32 // publishes to queues of other loops
	confirms  confirms
	tx        *txState
	nextTag   uint64 // of the next delivery
	unacked   unackedTable
	holding   holding
	slots     []slot
	freeSlots []uint32                // of slots, those that are free
	slotOf    map[*queue.Queue]uint32 // slots of basic.get
	consumers map[string]*consumer
	replies   *replyConsumer // of direct reply-to, nil for none
	prefetch  uint16         // of consumers made from now on
	window    *queue.Window
	current   string // the queue declared last (QUE-08)
}

// openChannel handles channel.open on a number that is free (CHA-01, CHA-02).
func (c *conn) openChannel(n uint16, args []byte) {
	var m amqp091.ChannelOpen
	if err := m.Decode(args); err != nil {
		c.undecodable(amqp091.MethodChannelOpen, err)
		return
	}
	if c.channelMax != 0 && c.channels >= int(c.channelMax) {
		c.fail(amqp091.NotAllowed, 0, fmt.Sprintf(
			"number of channels opened (%d) has reached the negotiated channel_max (%d)", c.channels, c.channelMax))
		return
	}
	if err := c.seat.OpenChannel(); err != nil {
		c.fail(amqp091.NotAllowed, 0, err.Text)
		return
	}
	ch := &channel{c: c, id: n, nextTag: 1}
	c.setChannel(n, ch)
	c.channels++
	c.srv.log.Debug("channel open", "connection", c.name, "channel", n)
	c.send(n, &amqp091.ChannelOpenOk{})
}

// fail ends the channel with channel.close: what it held goes back at
// once.
func (ch *channel) fail(code uint16, id amqp091.MethodID, text string) {
	if ch.closing {
		return
	}
	text = amqp091.ReplyName(code) + " - " + text
	ch.c.srv.log.Warn("channel closed by the broker", "connection", ch.c.name, "client", ch.c.client, "channel", ch.id, "code", code, "text", text)
	ch.flushConfirms()
	ch.end()
	ch.closing = true
	ch.c.send(ch.id, &amqp091.ChannelClose{
		ReplyCode: code, ReplyText: []byte(text),
		FailedClass: id.Class(), FailedMethod: id.Method(),
	})
}

// refuse answers a refusal of the engine at its scope.
func (ch *channel) refuse(err *core.Error, id amqp091.MethodID) {
	row := &core.Refusals[err.Refusal]
	if row.Connection {
		ch.c.fail(row.Code, id, err.Text)
		return
	}
	ch.fail(row.Code, id, err.Text)
}

// end gives back everything that the channel holds (CHA-08): consumers first,
// so that what is requeued does not come straight back.
func (ch *channel) end() {
	if ch.ended {
		return
	}
	ch.ended = true
	s := ch.c.shard
	if ch.pub.msg != nil {
		ch.pub.msg.Release(s.Arena())
		ch.pub.msg = nil
	}
	ch.discard = ch.content != contentNone
	for _, k := range ch.consumers {
		k.cancelled = true
		s.Abandon(&k.sub)
		s.Unsubscribe(&k.sub, nil)
	}
	ch.consumers = nil
	ch.endReplies()
	ch.pub.extras = extras{}
	ch.unacked.each(func(r *record) {
		sl := &ch.slots[r.slot]
		if r.counted {
			ch.window.Give(1)
		}
		s.Requeue(sl.queue, r.seq, sl.subscription(), false)
	})
	ch.unacked.reset(&ch.c.lp.chunks)
	ch.unwatch()
	if ch.tx != nil {
		ch.tx.drop(ch)
	}
	ch.slots, ch.freeSlots, ch.slotOf = nil, nil, nil
	ch.confirms = confirms{}
}

// closeByClient answers channel.close (CHA-05).
func (ch *channel) closeByClient() {
	c := ch.c
	ch.flushConfirms()
	others := ch.otherShards(nil)
	ch.end()
	c.fence(others, func() {
		if c.state != stateOpen {
			return
		}
		c.send(ch.id, &amqp091.ChannelCloseOk{})
		ch.remove()
	})
}

func (ch *channel) remove() {
	ch.c.srv.log.Debug("channel closed", "connection", ch.c.name, "channel", ch.id)
	ch.c.setChannel(ch.id, nil)
	ch.c.channels--
	ch.c.seat.CloseChannel()
}

// interrupted is a method in the middle of a content (WIR-07). On a closing
// channel it only ends the content that is being discarded: the client gave it
// up when it saw our close.
func (ch *channel) interrupted() (goOn bool) {
	if ch.closing {
		ch.content, ch.discard = contentNone, false
		return true
	}
	text := "expected content header for class 60, got non content header frame instead"
	if ch.content == contentBody {
		text = "expected content body, got non content body frame instead"
	}
	ch.c.fail(amqp091.UnexpectedFrame, amqp091.MethodBasicPublish, text)
	return false
}

// methodClosing handles what still arrives on a closing channel.
func (ch *channel) methodClosing(id amqp091.MethodID) {
	switch id {
	case amqp091.MethodChannelCloseOk:
		ch.remove()
	case amqp091.MethodChannelClose:
		ch.c.send(ch.id, &amqp091.ChannelCloseOk{})
	case amqp091.MethodChannelOpen:
		ch.c.fail(amqp091.ChannelError, id, "second 'channel.open' seen")
	case amqp091.MethodBasicPublish:
		ch.content, ch.discard = contentHeader, true
	}
}

// method dispatches everything but publish and ack.
func (ch *channel) method(id amqp091.MethodID, args []byte) {
	if ch.closing {
		ch.methodClosing(id)
		return
	}
	switch id {
	case amqp091.MethodBasicNack:
		ch.nack(args)
	case amqp091.MethodBasicReject:
		ch.reject(args)
	case amqp091.MethodBasicGet:
		ch.get(args)
	case amqp091.MethodBasicConsume:
		ch.consume(args)
	case amqp091.MethodBasicCancel:
		ch.cancel(args)
	case amqp091.MethodBasicCancelOk:
		// A client's answer to our cancel (CAN-02).
	case amqp091.MethodBasicQos:
		ch.qos(args)
	case amqp091.MethodBasicRecover, amqp091.MethodBasicRecoverAsync:
		ch.recover(id, args)
	case amqp091.MethodQueueDeclare:
		ch.declareQueue(args)
	case amqp091.MethodQueueBind:
		ch.bindQueue(args)
	case amqp091.MethodQueueUnbind:
		ch.unbindQueue(args)
	case amqp091.MethodQueuePurge:
		ch.purge(args)
	case amqp091.MethodQueueDelete:
		ch.deleteQueue(args)
	default:
		ch.methodRare(id, args)
	}
}

func (ch *channel) methodRare(id amqp091.MethodID, args []byte) {
	switch id {
	case amqp091.MethodExchangeDeclare:
		ch.declareExchange(args)
	case amqp091.MethodExchangeDelete:
		ch.deleteExchange(args)
	case amqp091.MethodExchangeBind:
		ch.bindExchange(args)
	case amqp091.MethodExchangeUnbind:
		ch.unbindExchange(args)
	case amqp091.MethodConfirmSelect:
		ch.confirmSelect(args)
	case amqp091.MethodTxSelect:
		ch.txSelect(args)
	case amqp091.MethodTxCommit:
		ch.txCommit(args)
	case amqp091.MethodTxRollback:
		ch.txRollback(args)
	case amqp091.MethodChannelClose:
		var m amqp091.ChannelClose
		if ch.decode(id, m.Decode(args)) {
			ch.closeByClient()
		}
	case amqp091.MethodChannelOpen:
		ch.c.fail(amqp091.ChannelError, id, "second 'channel.open' seen")
	case amqp091.MethodChannelFlow:
		ch.flow(args)
	case amqp091.MethodAccessRequest:
		var m amqp091.AccessRequest
		if ch.decode(id, m.Decode(args)) {
			ch.send(&amqp091.AccessRequestOk{})
		}
	default:
		ch.methodUnknown(id, args)
	}
}

// methodUnknown answers methods that do not belong here (A-001, A-002, WIR-12).
// One that carries content is judged when its content is complete.
func (ch *channel) methodUnknown(id amqp091.MethodID, _ []byte) {
	if id.Known() && id.HasContent() {
		ch.pub.wrong = id
		ch.content = contentHeader
		return
	}
	ch.c.fail(amqp091.CommandInvalid, id, "unimplemented method")
}

// flow answers channel.flow (CHA-07).
func (ch *channel) flow(args []byte) {
	var m amqp091.ChannelFlow
	if !ch.decode(amqp091.MethodChannelFlow, m.Decode(args)) {
		return
	}
	if !m.Active {
		ch.c.fail(amqp091.NotImplemented, amqp091.MethodChannelFlow, "active=false")
		return
	}
	ch.send(&amqp091.ChannelFlowOk{Active: true})
}

// decode reports whether arguments were readable and answers if not.
func (ch *channel) decode(id amqp091.MethodID, err error) bool {
	if err != nil {
		ch.c.undecodable(id, err)
		return false
	}
	return true
}

// send writes a method on this channel. Confirms that are due go first, so that
// the client sees them in the order of its commands.
func (ch *channel) send(m amqp091.Method) { ch.c.send(ch.id, m) }

// sendOK writes the reply of a command unless the client waived it.
func (ch *channel) sendOK(noWait bool, m amqp091.Method) {
	if !noWait {
		ch.send(m)
	}
}

// validName checks the UTF-8 of names a command carries (EXC-02).
func (ch *channel) validName(names ...[]byte) bool {
	for _, n := range names {
		if !validUTF8(n) {
			ch.c.fail(amqp091.FrameError, 0, "Malformed UTF-8 in shortstr")
			return false
		}
	}
	return true
}
