package session091

import (
	"crypto/rand"
	"encoding/base64"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// generated makes a unique name: 22 characters of URL-safe base64 after prefix
// (QUE-01, BAS-02).
func generated(prefix string) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// named is the queue that a command means: the one it names, or the channel's
// current one (QUE-08). It answers and returns nil if there is none.
func (ch *channel) named(name []byte, id amqp091.MethodID) *queue.Queue {
	if !ch.validName(name) {
		return nil
	}
	if len(name) == 0 {
		if ch.current == "" {
			ch.fail(amqp091.NotFound, id, "no previously declared queue")
			return nil
		}
		name = []byte(ch.current)
	}
	q, err := ch.c.vhost.FindQueue(name, ch.c)
	if err != nil {
		ch.refuse(err, id)
		return nil
	}
	return q
}

// newSlot registers a source of deliveries.
func (ch *channel) newSlot(sl slot) uint32 {
	ch.expect(&sl)
	if last := len(ch.freeSlots) - 1; last >= 0 {
		n := ch.freeSlots[last]
		ch.freeSlots = ch.freeSlots[:last]
		ch.slots[n] = sl
		return n
	}
	ch.slots = append(ch.slots, sl)
	return uint32(len(ch.slots) - 1)
}

// consume handles basic.consume (BAS-02 to BAS-04, CSM-01).
func (ch *channel) consume(args []byte) {
	id := amqp091.MethodBasicConsume
	var m amqp091.BasicConsume
	if !ch.decode(id, m.Decode(args)) || !ch.validName(m.ConsumerTag) {
		return
	}
	if string(m.Queue) == replyQueue {
		ch.consumeReplies(&m)
		return
	}
	q := ch.named(m.Queue, id)
	if q == nil {
		return
	}
	tag, ok := ch.newTag(m.ConsumerTag)
	if !ok {
		return
	}
	priority := int64(0)
	if v, ok := m.Arguments.Lookup("x-priority"); ok {
		if priority, ok = v.Int(); !ok {
			ch.fail(amqp091.PreconditionFailed, id, "invalid arg 'x-priority' for queue '"+q.Name+"' in vhost '"+
				ch.c.vhost.Name+`': "expected integer, got `+v.TypeName()+`"`)
			return
		}
	}
	timeout, ok := ch.timeoutArgument(&m, q)
	if !ok {
		return
	}
	if q.Settings.Type != queue.Classic && ch.window != nil && ch.window.Limited() { // TYP-04
		ch.c.fail(amqp091.NotImplemented, id, ch.nameOf(q)+" does not support global qos")
		return
	}
	var cursor *queue.Cursor
	if isStream(q) {
		if cursor, ok = ch.streamCursor(&m, q); !ok {
			return
		}
	}
	k := &consumer{ch: ch, tag: tag, noAck: m.NoAck, timeout: timeout}
	k.init()
	k.sub.Queue = q
	k.sub.Consumer = queue.Consumer{
		Tag: tag, Window: ch.window, Prefetch: uint32(ch.prefetch),
		Priority: int32(min(max(priority, -1<<31), 1<<31-1)), NoAck: m.NoAck, Exclusive: m.Exclusive,
		Cursor: cursor,
	}
	k.slot = ch.newSlot(slot{queue: q, consumer: k})
	if ch.consumers == nil {
		ch.consumers = map[string]*consumer{}
	}
	ch.consumers[tag] = k
	ch.subscribe(k, m.NoWait)
}

// newTag is the tag of a new consumer (BAS-02). It answers and returns false if it
// is in use.
func (ch *channel) newTag(wanted []byte) (tag string, ok bool) {
	if tag = string(wanted); tag == "" {
		return generated("amq.ctag-"), true
	}
	if _, used := ch.consumers[tag]; used || ch.replies != nil && ch.replies.tag == tag {
		ch.c.fail(amqp091.NotAllowed, amqp091.MethodBasicConsume, "attempt to reuse consumer tag '"+tag+"'")
		return "", false
	}
	return tag, true
}

func (ch *channel) subscribe(k *consumer, noWait bool) {
	c := ch.c
	c.waiting = true
	c.shard.Subscribe(&k.sub, k, func(err *core.Error) {
		c.waiting = false
		c.wake()
		if ch.ended || c.state != stateOpen {
			return
		}
		if err != nil {
			k.cancelled = true
			delete(ch.consumers, k.tag)
			ch.freeSlot(k.slot)
			ch.refuse(err, amqp091.MethodBasicConsume)
		} else {
			ch.sendOK(noWait, &amqp091.BasicConsumeOk{ConsumerTag: []byte(k.tag)})
		}
	})
}

// cancel handles basic.cancel (BAS-05): cancel-ok follows the last delivery.
func (ch *channel) cancel(args []byte) {
	var m amqp091.BasicCancel
	if !ch.decode(amqp091.MethodBasicCancel, m.Decode(args)) {
		return
	}
	tag := string(m.ConsumerTag)
	noWait := m.NoWait
	k := ch.consumers[tag]
	if k == nil {
		if ch.replies != nil && ch.replies.tag == tag {
			ch.endReplies()
		}
		ch.sendOK(noWait, &amqp091.BasicCancelOk{ConsumerTag: []byte(tag)})
		return
	}
	c := ch.c
	c.waiting = true
	c.shard.Unsubscribe(&k.sub, func() {
		c.waiting = false
		c.wake()
		if ch.ended || c.state != stateOpen {
			return
		}
		k.cancelled = true
		if ch.consumers[tag] == k {
			delete(ch.consumers, tag)
			ch.freeSlot(k.slot)
		}
		ch.sendOK(noWait, &amqp091.BasicCancelOk{ConsumerTag: []byte(tag)})
	})
}

// Cancelled implements queue.Sink: the queue is gone (CAN-01).
func (k *consumer) Cancelled() {
	ch := k.ch
	if ch.ended || k.cancelled {
		return
	}
	k.cancelled = true
	delete(ch.consumers, k.tag)
	ch.freeSlot(k.slot)
	if ch.c.caps.cancelNotify {
		ch.send(&amqp091.BasicCancel{ConsumerTag: []byte(k.tag), NoWait: true})
	}
}

// get handles basic.get (BAS-09).
func (ch *channel) get(args []byte) {
	id := amqp091.MethodBasicGet
	var m amqp091.BasicGet
	if !ch.decode(id, m.Decode(args)) {
		return
	}
	q := ch.named(m.Queue, id)
	if q == nil {
		return
	}
	if isStream(q) {
		ch.notOfStreams(q, "basic.get", id)
		return
	}
	if q.Settings.Type == queue.Quorum && q.Settings.SingleActive { // CSM-02
		ch.fail(amqp091.ResourceLocked, id, "cannot obtain access to locked "+ch.nameOf(q)+
			". basic.get operations are not supported by quorum queues with single active consumer")
		return
	}
	noAck, c := m.NoAck, ch.c
	if q.Shard == c.shard.Index && !q.Deleted() {
		c.shard.Observe(q)
		if g, state := q.Get(noAck, c.shard.Now()); state != queue.GotLater {
			ch.got(q, g, state == queue.GotOne, noAck)
			return
		}
	}
	ch.getLater(q, noAck)
}

// getLater takes a message of another loop's queue, or one that is on the disk
// only. Parsing stops until it has come.
func (ch *channel) getLater(q *queue.Queue, noAck bool) {
	c, answered := ch.c, false
	c.shard.Get(q, noAck, func(g queue.Got, state queue.GotState, deleted bool) {
		answered = true
		if c.getting {
			c.getting, c.waiting = false, false
			c.wake()
		}
		ok := state == queue.GotOne
		switch {
		case ch.ended || c.state != stateOpen:
			ch.ungot(q, g, ok, noAck)
		case deleted:
			ch.refuse(c.vhost.NoQueue(q.Name), amqp091.MethodBasicGet)
		default:
			ch.got(q, g, ok, noAck)
		}
	})
	if !answered {
		c.getting, c.waiting = true, true
	}
}

// ungot returns a message whose channel ended while it was on its way.
func (ch *channel) ungot(q *queue.Queue, g queue.Got, ok, noAck bool) {
	switch {
	case !ok:
	case noAck:
		g.Message.Release(ch.c.shard.Arena())
	default:
		ch.c.shard.Requeue(q, g.Seq, nil, true)
	}
}

func (ch *channel) got(q *queue.Queue, g queue.Got, ok, noAck bool) {
	if !ok {
		ch.send(&amqp091.BasicGetEmpty{})
		return
	}
	tag := ch.nextTag
	ch.nextTag++
	if !noAck {
		n, known := ch.slotOf[q]
		if !known {
			n = ch.newSlot(slot{queue: q})
			if ch.slotOf == nil {
				ch.slotOf = map[*queue.Queue]uint32{}
			}
			ch.slotOf[q] = n
		}
		ch.hold(tag, g.Seq, n, false)
	}
	ch.send(&amqp091.BasicGetOk{
		DeliveryTag: tag, Redelivered: g.Redelivered,
		Exchange: g.Message.Exchange(), RoutingKey: g.Message.Key(),
		MessageCount: uint32(g.Remaining),
	})
	head := g.Message.Head()
	if g.Count > 0 {
		if with := ch.c.lp.headWith(head, 0, queue.DeliverFlags(0).WithCount(g.Count)); len(with)+amqp091.FrameOverhead <= int(ch.c.frameMax) {
			head = with
		}
	}
	ch.c.writeContent(ch.id, g.Message, head)
	if noAck {
		g.Message.Release(ch.c.shard.Arena())
	}
}
