//ringmq:hot

package queue

import "ringmq/engine/core"

// streamTurn is how many messages a consumer of a stream gets before the next one
// has its turn.
const streamTurn = 32

// stream is what a queue of type Stream knows beside its entries. Those stay where
// they are when they are delivered; each consumer has a cursor. The sequence number
// of an entry is its offset, and its deadline is the time when it came, ms since 1970.
type stream struct {
	idle    waitList // consumers that have seen all there is
	thirsty waitList // consumers whose next body is being read back, or will be
	asks    uint64   // bodies that were asked for

	safe     uint64 // below it everything is safe in the log
	awaiting bool   // Store.Await was asked
	tailSeen uint64 // the tail when idle was woken last

	oldest  uint64 // no entry below it is left
	sweepAt int64  // when ages are looked at again, monotonic nanoseconds; 0 = at once

	// The newest bodies stay in memory: those from hotFrom on, hotBytes of them.
	hotFrom  uint64
	hotBytes int
	back     readBack // others that were read from the log
}

// waitList is consumers that get nothing until something happens.
type waitList []*Consumer

// add parks a consumer and puts it on the list, unless it is on one.
func (l *waitList) add(c *Consumer) {
	c.park()
	k := c.Cursor
	if k.list == nil {
		k.list, k.at = l, len(*l)
		*l = append(*l, c)
	}
}

// remove takes a consumer off its list.
func (k *Cursor) remove() {
	if k.list == nil {
		return
	}
	l := *k.list
	last := len(l) - 1
	l[k.at] = l[last]
	l[k.at].Cursor.at = k.at
	l[last] = nil
	*k.list = l[:last]
	k.list = nil
}

// wake offers all of the list the stream again, and reports whether there was any.
func (l *waitList) wake() bool {
	list := *l
	for i, c := range list {
		list[i] = nil
		c.Cursor.list = nil
		if !c.windowFull() {
			c.offer()
		}
	}
	*l = list[:0]
	return len(list) > 0
}

// add appends a message that stands in the log at pos, 0 if it does not.
func (q *Queue) add(m *core.Message, pos uint64, flags uint8) {
	at := m.Arrival
	if at == 0 {
		at = q.host.WallMillis()
	}
	q.order.push(q.host.Arena(), m, at, pos, flags)
	size := m.BodyLen() + core.MessageOverheadBytes
	if pos != 0 {
		q.addWarm(size)
	}
	q.stream.hotBytes += size
	q.ready++
	q.readyBytes += int64(m.BodyLen())
	if !q.Dirty {
		q.host.MarkDirty(q)
	}
}

// settleStream is Settle of a stream.
func (q *Queue) settleStream(now int64, budget int) (more bool) {
	s := q.stream
	more = q.retain(now)
	if s.tailSeen != q.order.tail {
		if len(s.idle) > 0 && q.settledUpTo(s.tailSeen) {
			s.idle.wake()
		}
		s.tailSeen = q.order.tail
	}
	if q.serve(budget) {
		more = true
	}
	if q.quench() {
		more = true
	}
	q.cool()
	if len(q.members) == 0 && s.back.bytes > 0 && q.chill(0) {
		more = true
	}
	if q.order.live == 0 {
		q.order.release(q.host.Arena())
	}
	q.show()
	return more
}

// settledUpTo reports whether the entry seq may be seen. If not the queue is told
// when it may. Consumers of a stream see only what a crash cannot take back: an
// offset that was seen never stands for another message.
func (q *Queue) settledUpTo(seq uint64) bool {
	s := q.stream
	if seq < s.safe {
		return true
	}
	e := q.order.at(seq)
	if e == nil {
		return true // nothing to be seen there
	}
	if e.pos != 0 && !q.store.Safe(e.pos) {
		if !s.awaiting {
			s.awaiting = true
			q.store.Await(q)
		}
		return false
	}
	s.safe = seq + 1
	return true
}

// becameSafe is the answer to Store.Await.
func (q *Queue) becameSafe() {
	q.stream.awaiting = false
	if !q.deleted && q.stream.idle.wake() {
		q.host.MarkDirty(q)
	}
}

// serve gives consumers what they can take, a few messages each in turn, and reports
// whether it stopped only because of the budget.
func (q *Queue) serve(budget int) (more bool) {
	for len(q.levels) > 0 && q.levels[0].front != nil {
		if budget <= 0 {
			return true
		}
		c := q.levels[0].front
		q.levels[0].front = c.next
		budget -= q.feed(c, min(budget, streamTurn))
	}
	return false
}

// feed gives a consumer up to n messages and parks it if it can take no more now.
// It returns the number of entries that it looked at, at least 1.
func (q *Queue) feed(c *Consumer, n int) (used int) {
	f, k := &q.order, c.Cursor
	k.next = max(k.next, f.base)
	for ; used < n; used++ {
		if c.windowFull() || c.Sink.Full() {
			c.park()
			return used + 1
		}
		seq := k.next
		if seq >= f.tail || !q.settledUpTo(seq) {
			q.stream.idle.add(c)
			return used + 1
		}
		index := seq - f.base
		ch := f.chunks[index>>chunkShift]
		if ch == nil {
			k.next = f.base + (index | chunkMask) + 1
			continue
		}
		e := &ch.entries[index&chunkMask]
		if e.state() == stateGone {
			k.next++
			continue
		}
		if e.msg == nil {
			q.stream.thirsty.add(c)
			return used + 1
		}
		k.next++
		if k.Match != nil && !k.Match(e.msg) {
			continue
		}
		c.unacked++
		q.Delivered++
		c.Sink.Deliver(seq, e.msg, Offset)
	}
	return used
}

// credit is what an acknowledgement, or whatever else a client says of a delivery,
// means to a stream: room for another one.
func (q *Queue) credit(c *Consumer) {
	if c == nil || c.unacked == 0 {
		return
	}
	c.unacked--
	if c.queue == q && c.Cursor.list == nil && !c.waiting {
		c.offer()
		q.host.MarkDirty(q)
	}
}

// quench has the next body read back for one of those that wait for theirs: the one
// that asked longest ago, so that none starves. It reports whether there is something
// to do at once.
func (q *Queue) quench() (more bool) {
	s := q.stream
	if q.loading || len(s.thirsty) == 0 {
		return false
	}
	k := s.thirsty[0].Cursor
	for _, c := range s.thirsty[1:] {
		if c.Cursor.asked < k.asked {
			k = c.Cursor
		}
	}
	e := q.order.at(k.next)
	if e == nil || e.msg != nil {
		s.thirsty.wake() // it was dropped, or came with another's
		return true
	}
	s.asks++
	k.asked = s.asks
	q.chill(q.backBytesMax())
	q.load(k.next, e)
	return false
}
