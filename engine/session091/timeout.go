package session091

import (
	"strconv"
	"time"

	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
	"ringmq/ring"
)

// A delivery that is held for longer than the consumer timeout ends its channel
// (CSM-03). Nothing is armed for a delivery: a loop looks through the channels that
// hold any now and then, a bounded part in each turn, and stops in each at the first
// that is younger than the shortest timeout there. What ends a channel is found that
// much late, and never early.
const (
	// inspectEvery is the longest time between two rounds.
	inspectEvery = int64(time.Minute)

	// inspectSoonest is the shortest. Between the two it is a tenth of the shortest
	// timeout that any channel with deliveries has.
	inspectSoonest = int64(100 * time.Millisecond)
	inspectShare   = 10

	// inspectBatch is how many steps a turn takes at most, of deliveries, their sources
	// and channels together. That is about 30 µs.
	inspectBatch = 4096
)

// holders are the channels of a loop that hold deliveries, or did at the last
// round.
type holders struct {
	list    []*channel
	timer   ring.Timer // of the next round
	at      int64      // when it fires, monotonic nanoseconds
	running bool
	began   int64 // the round, monotonic nanoseconds
	next    int   // of list, in a round, which goes from the end to the front
	soonest int64 // period that what was seen in this round asks for, nanoseconds
}

// holding is a channel's part in that.
type holding struct {
	watched  bool
	place    int   // in holders.list
	shortest int64 // timeout of its slots, ms, 0 = none; as of the last round, or shorter
	round    inspection
}

// inspection is where a round goes on in a channel.
type inspection struct {
	slot     int
	shortest int64 // timeout of the slots before
	tag      uint64
}

// timeout is how long a delivery of this source may be held, ms, 0 = for ever.
// usual is the broker's own.
func (s *slot) timeout(usual int64) int64 {
	if s.free || s.queue.Settings.Type == queue.Stream {
		return 0
	}
	if k := s.consumer; k != nil {
		if k.noAck {
			return 0
		}
		if k.timeout >= 0 {
			return k.timeout
		}
	}
	if ms := s.queue.ConsumerTimeout(); ms >= 0 {
		return ms
	}
	return usual
}

// shorter is the shorter of two timeouts of which 0 means none.
func shorter(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// period is how often deliveries are looked at which may be held for so long (ms).
func period(timeout int64) int64 {
	if timeout == 0 || timeout >= inspectEvery/int64(time.Millisecond)*inspectShare {
		return inspectEvery
	}
	return max(timeout*int64(time.Millisecond)/inspectShare, inspectSoonest)
}

// timeoutArgument is x-consumer-timeout of basic.consume, -1 when it is not there.
// It answers and returns false if it is no good.
func (ch *channel) timeoutArgument(m *amqp091.BasicConsume, q *queue.Queue) (ms int64, ok bool) {
	v, given := m.Arguments.Lookup("x-consumer-timeout")
	if !given {
		return -1, true
	}
	problem := ""
	if ms, ok = v.Int(); !ok {
		problem = `"expected integer, got ` + v.TypeName() + `"`
	} else if ms < 0 {
		problem = "{value_negative," + strconv.FormatInt(ms, 10) + "}"
	}
	if problem != "" {
		ch.fail(amqp091.PreconditionFailed, amqp091.MethodBasicConsume,
			"invalid arg 'x-consumer-timeout' for queue '"+q.Name+"' in vhost '"+ch.c.vhost.Name+"': "+problem)
		return 0, false
	}
	return ms, true
}

// expect takes note of a new source of deliveries.
func (ch *channel) expect(s *slot) {
	ms := s.timeout(ch.c.srv.consumerTimeout.Load())
	ch.holding.shortest = shorter(ch.holding.shortest, ms)
	if ch.holding.watched && ms != 0 {
		ch.c.lp.inspectIn(period(ms))
	}
}

// watch puts a channel that takes a delivery on the loop's list.
func (ch *channel) watch() {
	lp := ch.c.lp
	ch.holding.watched, ch.holding.place = true, len(lp.holders.list)
	lp.holders.list = append(lp.holders.list, ch)
	lp.inspectIn(period(ch.holding.shortest))
}

// unwatch takes it off, and puts the last one in its place. A round that is under
// way has been at that one, or comes to it once more.
func (ch *channel) unwatch() {
	if !ch.holding.watched {
		return
	}
	h, place := &ch.c.lp.holders, ch.holding.place
	last := len(h.list) - 1
	h.list[place] = h.list[last]
	h.list[place].holding.place = place
	h.list[last] = nil
	h.list = h.list[:last]
	ch.holding.watched, ch.holding.round = false, inspection{}
}

// inspectIn has a round begin after some nanoseconds, unless one comes earlier.
func (lp *loopState) inspectIn(wait int64) {
	h := &lp.holders
	at := lp.loop.Now() + wait
	if h.timer.Armed() && h.at <= at {
		return
	}
	if h.timer.Fire == nil {
		// The turn does the work, when the acks that have come are handled.
		h.timer.Fire = func(int64) { lp.beginInspection() }
	}
	h.at = at
	lp.loop.Arm(&h.timer, at)
}

func (lp *loopState) beginInspection() {
	h := &lp.holders
	if !h.running {
		h.running, h.began, h.next, h.soonest = true, lp.loop.Now(), len(h.list)-1, inspectEvery
	}
}

// inspect does a turn's part of a round and reports whether there is more.
func (lp *loopState) inspect() (more bool) {
	h := &lp.holders
	if !h.running {
		return false
	}
	for left := inspectBatch; left > 0; left-- {
		if h.next = min(h.next, len(h.list)-1); h.next < 0 {
			h.running = false
			if len(h.list) > 0 {
				// However much there is to look at, most of the time is left for the rest.
				took := lp.loop.Now() - h.began
				lp.inspectIn(max(h.soonest, min(took*inspectShare, inspectEvery)))
			}
			return false
		}
		ch := h.list[h.next]
		if ch.unacked.count == 0 {
			ch.unwatch()
		} else if left = ch.inspect(left); left == 0 {
			return true // goes on in this channel
		}
		h.next--
	}
	return true
}

// inspect looks for a delivery that is overdue, and ends the channel if there is
// one. left is how many steps it may take, more or less; it returns how many of them
// remain, 0 when it has not come to the end.
func (ch *channel) inspect(left int) int {
	usual := ch.c.srv.consumerTimeout.Load()
	r := &ch.holding.round
	for ; r.slot < len(ch.slots); r.slot++ {
		if left--; left <= 0 {
			return 0
		}
		r.shortest = shorter(r.shortest, ch.slots[r.slot].timeout(usual))
	}
	ch.holding.shortest = r.shortest
	h := &ch.c.lp.holders
	h.soonest = min(h.soonest, period(r.shortest))
	tag := uint64(0)
	if r.shortest != 0 {
		if left, tag = ch.overdue(left, usual); left == 0 {
			return 0
		}
	}
	*r = inspection{}
	if tag != 0 {
		ch.timeOut(tag, usual)
		return 1 // enough for this turn: a channel gives back all that it holds
	}
	return left
}

// overdue looks through the deliveries, oldest first, for one that is held too long,
// and returns its tag, 0 for none. left is as in inspect.
func (ch *channel) overdue(left int, usual int64) (_ int, tag uint64) {
	u, from := &ch.unacked, &ch.holding.round.tag
	now := ch.c.shard.Now()
	for at := max(*from, u.first, u.base) &^ (unackedChunk - 1); ; at += unackedChunk {
		*from = at
		i := (at - u.base) >> unackedShift
		if i >= uint64(len(u.dir)) {
			return left, 0
		}
		if left--; left <= 0 {
			return 0, 0
		}
		c := u.dir[i]
		if c == nil || c.live == 0 {
			continue
		}
		if heldMS(now, c.since) <= ch.holding.shortest {
			return left, 0 // nor is anything that follows
		}
		left = max(left-unackedChunk, 1)
		for j := range c.records {
			r := &c.records[j]
			if !r.live {
				continue
			}
			ms := ch.slots[r.slot].timeout(usual)
			if ms == 0 || heldMS(now, c.since+unpackAge(r.age)) <= ms {
				continue
			}
			// What the open transaction has settled is not with the client any more.
			if tag = at + uint64(j); ch.tx == nil || !ch.tx.holds(tag) {
				return left, tag
			}
		}
	}
}

func heldMS(now, since int64) int64 { return (now - since) / int64(time.Millisecond) }

// timeOut ends a channel for a delivery that is overdue. It waits for another round
// while an answer to the client is under way, which would come after the end of its
// channel, and while input is kept here until a loop or a disk has caught up: the
// acknowledgement may be in it.
func (ch *channel) timeOut(tag uint64, usual int64) {
	c := ch.c
	if c.waiting || c.stalled || c.behind {
		c.lp.holders.soonest = inspectSoonest
		return
	}
	sl := &ch.slots[ch.unacked.find(tag).slot]
	timeout, consumer := sl.timeout(usual), ""
	if sl.consumer != nil {
		consumer = sl.consumer.tag
	}
	c.srv.log.Warn("delivery not acknowledged in time", "connection", c.name, "client", c.client, "channel", ch.id,
		"queue", sl.queue.Name, "consumer", consumer, "delivery_tag", tag, "timeout_ms", timeout)
	ch.fail(amqp091.PreconditionFailed, 0, "delivery acknowledgement on channel "+strconv.Itoa(int(ch.id))+
		" timed out. Timeout value used: "+strconv.FormatInt(timeout, 10)+
		" ms. This timeout value can be configured, see consumers doc guide to learn more")
}

// SetConsumerTimeout changes how long a delivery may be held of which neither its
// consumer nor its queue says so, 0 for ever. It is in force for what is held already.
// Any goroutine.
func (s *Server) SetConsumerTimeout(d time.Duration) {
	s.consumerTimeout.Store(d.Milliseconds())
	for _, lp := range s.loops {
		lp.loop.Post(lp.beginInspection)
	}
}
