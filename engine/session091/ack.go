//ringmq:hot

package session091

import (
	"ringmq/frame/amqp091"
)

// settleKind is what a client says about a delivery.
type settleKind uint8

const (
	settleAck settleKind = iota
	settleRequeue
	settleDiscard
)

// ackMethod handles basic.ack.
func (ch *channel) ackMethod(args []byte) {
	if ch.closing {
		return
	}
	var m amqp091.BasicAck
	if err := m.Decode(args); err != nil {
		ch.c.undecodable(amqp091.MethodBasicAck, err)
		return
	}
	ch.settle(settleAck, m.DeliveryTag, m.Multiple, amqp091.MethodBasicAck)
}

func (ch *channel) nack(args []byte) {
	var m amqp091.BasicNack
	if err := m.Decode(args); err != nil {
		ch.c.undecodable(amqp091.MethodBasicNack, err)
		return
	}
	kind := settleDiscard
	if m.Requeue {
		kind = settleRequeue
	}
	ch.settle(kind, m.DeliveryTag, m.Multiple, amqp091.MethodBasicNack)
}

func (ch *channel) reject(args []byte) {
	var m amqp091.BasicReject
	if err := m.Decode(args); err != nil {
		ch.c.undecodable(amqp091.MethodBasicReject, err)
		return
	}
	kind := settleDiscard
	if m.Requeue {
		kind = settleRequeue
	}
	ch.settle(kind, m.DeliveryTag, false, amqp091.MethodBasicReject)
}

// settle checks tags (BAS-11, BAS-12) and acts, or holds the act in a
// transaction.
func (ch *channel) settle(kind settleKind, tag uint64, multiple bool, id amqp091.MethodID) {
	if !multiple {
		r := ch.unacked.find(tag)
		if r == nil || (ch.tx != nil && ch.tx.holds(tag)) {
			ch.unknownTag(tag, id)
			return
		}
		if ch.tx != nil {
			ch.tx.settle(kind, tag)
			return
		}
		ch.settleOne(kind, tag, r)
		ch.windowMoved()
		return
	}
	if tag != 0 && (ch.unacked.find(tag) == nil || (ch.tx != nil && ch.tx.holds(tag))) {
		ch.unknownTag(tag, id)
		return
	}
	if ch.tx != nil {
		ch.tx.settleUpTo(ch, kind, tag)
		return
	}
	ch.settleUpTo(kind, tag)
	ch.windowMoved()
}

// settleUpTo settles every outstanding delivery up to tag, all for 0. Runs of
// neighbouring entries of one queue are acknowledged with one command.
func (ch *channel) settleUpTo(kind settleKind, tag uint64) {
	u := &ch.unacked
	s := ch.c.shard
	var runSlot, runLen uint32
	var runSeq uint64
	from := uint64(0)
	for {
		t := u.next(from)
		if t == 0 || (tag != 0 && t > tag) {
			break
		}
		from = t + 1
		r := u.find(t)
		if kind != settleAck {
			ch.settleOne(kind, t, r)
			continue
		}
		if runLen > 0 && r.slot == runSlot && r.seq == runSeq+uint64(runLen) {
			runLen++
		} else {
			if runLen > 0 {
				s.Ack(ch.slots[runSlot].queue, runSeq, runLen, ch.slots[runSlot].subscription())
				ch.freeSlot(runSlot)
			}
			runSlot, runSeq, runLen = r.slot, r.seq, 1
		}
		ch.unhold(t, r)
	}
	if runLen > 0 {
		s.Ack(ch.slots[runSlot].queue, runSeq, runLen, ch.slots[runSlot].subscription())
		ch.freeSlot(runSlot)
	}
	if u.count > 0 {
		u.first = from
	}
}

// settleOne settles one outstanding delivery.
func (ch *channel) settleOne(kind settleKind, tag uint64, r *record) {
	seq, n := r.seq, r.slot
	sl := &ch.slots[n]
	q, sub := sl.queue, sl.subscription()
	ch.unhold(tag, r)
	switch kind {
	case settleAck:
		ch.c.shard.Ack(q, seq, 1, sub)
	case settleRequeue:
		ch.c.shard.Requeue(q, seq, sub, false)
	case settleDiscard:
		ch.c.shard.Discard(q, seq, sub)
	}
	ch.freeSlot(n)
}

// unhold forgets an outstanding delivery.
func (ch *channel) unhold(tag uint64, r *record) {
	if r.counted {
		ch.window.Give(1)
	}
	ch.slots[r.slot].held--
	ch.unacked.remove(&ch.c.lp.chunks, tag)
}

// freeSlot lets a slot be used again when its consumer is gone and nothing of
// it is outstanding.
func (ch *channel) freeSlot(n uint32) {
	sl := &ch.slots[n]
	if sl.held > 0 || sl.free {
		return
	}
	if sl.consumer == nil {
		delete(ch.slotOf, sl.queue)
	} else if !sl.consumer.cancelled {
		return
	}
	ch.slots[n] = slot{free: true}
	ch.freeSlots = append(ch.freeSlots, n)
}

// windowMoved offers the channel's consumers messages again after places in
// the shared window became free.
func (ch *channel) windowMoved() {
	if ch.window == nil || !ch.window.Limited() {
		return
	}
	for _, k := range ch.consumers {
		ch.c.shard.Resume(&k.sub)
	}
}
