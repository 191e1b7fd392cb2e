//ringmq:hot

package session091

import "ringmq/frame/amqp091"

// confirmSlot is a publish whose queues have not all answered.
type confirmSlot struct {
	pending uint32
	refused bool
	settled bool
	sent    bool
}

// confirms counts the publishes of a channel in confirm mode. Those that are
// settled in order cost one counter; only what waits for other loops is kept.
type confirms struct {
	last    uint64 // number of the last publish
	ready   uint64 // every number up to here is accepted
	sent    uint64 // every number up to here was told to the client
	slots   []confirmSlot
	base    uint64   // number of slots[0]; valid when there are slots
	outside []uint64 // settled ahead of others since the last flush
}

// next numbers a publish (CFM-02).
func (f *confirms) next() uint64 {
	f.last++
	return f.last
}

// wait remembers a publish that has answers outstanding.
func (f *confirms) wait(seq uint64, pending uint32, refused bool) {
	*f.slot(seq) = confirmSlot{pending: pending, refused: refused}
}

// slot makes room for a number beyond those that are settled in order.
func (f *confirms) slot(seq uint64) *confirmSlot {
	if len(f.slots) == 0 {
		f.base = seq
	}
	for uint64(len(f.slots)) <= seq-f.base {
		f.slots = append(f.slots, confirmSlot{})
	}
	return &f.slots[seq-f.base]
}

// confirmed settles a publish at once.
func (ch *channel) confirmed(seq uint64, accepted bool) {
	f := &ch.confirms
	if len(f.slots) == 0 && accepted && f.ready == seq-1 {
		f.ready = seq
		ch.markDirty()
		return
	}
	sl := f.slot(seq)
	sl.settled, sl.refused = true, !accepted
	f.outside = append(f.outside, seq)
	ch.markDirty()
}

// Settled implements engine.Origin: one queue of a publish answered.
func (ch *channel) Settled(seq uint64, accepted bool) {
	if ch.ended {
		return
	}
	if ch.tx != nil {
		ch.tx.answered(ch, accepted)
		return
	}
	f := &ch.confirms
	if len(f.slots) == 0 || seq < f.base {
		return
	}
	sl := &f.slots[seq-f.base]
	sl.refused = sl.refused || !accepted
	if sl.pending--; sl.pending == 0 {
		sl.settled = true
		f.outside = append(f.outside, seq)
		ch.markDirty()
	}
}

func (ch *channel) markDirty() {
	if !ch.dirty {
		ch.dirty = true
		ch.c.lp.confirming = append(ch.c.lp.confirming, ch)
	}
}

// flushConfirms tells the client what was settled: one ack for all that is
// settled in order, single ones for what is ahead (CNF-04, CNF-06). No number
// is told twice, except that an ack of several may reach over numbers that
// were told alone.
func (ch *channel) flushConfirms() {
	f := &ch.confirms
	if ch.ended || !ch.confirm {
		return
	}
	last, untold := f.ready, f.ready-f.sent
	n := 0
	for n < len(f.slots) && f.slots[n].settled {
		sl, seq := &f.slots[n], f.base+uint64(n)
		n++
		switch {
		case sl.sent:
		case sl.refused:
			// An ack of several must not cover a refused number.
			ch.sendAcks(last, untold)
			untold = 0
			ch.sendNack(seq)
		default:
			last = seq
			untold++
		}
	}
	ch.sendAcks(last, untold)
	if n > 0 {
		f.base += uint64(n)
		f.ready = f.base - 1
		f.slots = f.slots[:copy(f.slots, f.slots[n:])]
	}
	f.sent = f.ready
	for _, seq := range f.outside {
		if seq < f.base || seq-f.base >= uint64(len(f.slots)) {
			continue
		}
		sl := &f.slots[seq-f.base]
		if sl.sent {
			continue
		}
		sl.sent = true
		if sl.refused {
			ch.sendNack(seq)
		} else {
			ch.sendAck(seq, false)
		}
	}
	f.outside = f.outside[:0]
}

// sendAcks acknowledges untold numbers up to last with one method.
func (ch *channel) sendAcks(last, untold uint64) {
	if untold > 0 {
		ch.sendAck(last, untold > 1)
	}
}

const confirmFrame = amqp091.FrameOverhead + 4 + 9

func (ch *channel) sendAck(seq uint64, multiple bool) {
	m := amqp091.BasicAck{DeliveryTag: seq, Multiple: multiple}
	b := ch.c.rc.Reserve(confirmFrame)
	ch.c.rc.Commit(len(m.Append(b[:0], ch.id)))
	ch.c.checkChoke()
}

func (ch *channel) sendNack(seq uint64) {
	m := amqp091.BasicNack{DeliveryTag: seq, Requeue: true}
	b := ch.c.rc.Reserve(confirmFrame)
	ch.c.rc.Commit(len(m.Append(b[:0], ch.id)))
	ch.c.checkChoke()
}
