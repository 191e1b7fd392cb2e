//ringmq:hot

package queue

// Settle brings the queue to rest at time now: expire what is due, deliver
// what consumers can take, drop what is above the limits. It delivers at most
// budget messages and reports whether more could be done at once. It is called
// at the end of each turn in which the queue changed, and before anything
// observes the queue.
func (q *Queue) Settle(now int64, budget int) (more bool) {
	if q.stream != nil {
		return q.settleStream(now, budget)
	}
	if q.retiming && q.retime(now) {
		q.host.MarkDirty(q)
	}
	if q.overdue(now) && q.expire(now) {
		// What is overdue still must not be seen (TTL-02): the rest waits.
		return true
	}
	if q.ready > 0 && q.runnable() {
		more = q.dispatch(budget)
	}
	if q.limited {
		q.trim()
	}
	if len(q.zeros) > 0 && !more {
		q.expireZeros()
	}
	if q.order.live == 0 {
		q.order.release(q.host.Arena())
	}
	q.show()
	return more
}

// runnable reports whether any consumer waits for messages.
func (q *Queue) runnable() bool {
	for _, l := range q.levels {
		if l.front != nil {
			return true
		}
	}
	return false
}

// nextConsumer finds the consumer whose turn it is: the highest priority with
// credit (CSM-01), round robin among equals (BAS-17). Those that cannot take a
// message are parked on the way. counted tells that a place in the channel's
// window was taken.
func (q *Queue) nextConsumer() (c *Consumer, counted bool) {
	for _, l := range q.levels {
		for l.front != nil {
			c := l.front
			if c.windowFull() || c.Sink.Full() {
				c.park()
				continue
			}
			if c.Window != nil && !c.NoAck && c.Window.Limited() {
				if !c.Window.Take() {
					c.park()
					continue
				}
				counted = true
			}
			l.front = c.next
			return c, counted
		}
	}
	return nil, false
}

// dispatch delivers up to budget messages and reports whether it stopped only
// because of the budget.
func (q *Queue) dispatch(budget int) bool {
	for q.ready > 0 {
		if budget == 0 {
			return true
		}
		budget--
		seq, e := q.order.first()
		if e.pos != 0 && !q.deliverable(seq, e) {
			return false
		}
		c, counted := q.nextConsumer()
		if c == nil {
			return false
		}
		q.order.taken(seq)
		q.ready--
		m := e.msg
		q.readyBytes -= int64(e.size)
		var f DeliverFlags
		if e.deliveries > 0 {
			f = Redelivered
		}
		if counted {
			f |= Counted
		}
		if q.counting {
			f = f.WithCount(e.deliveries)
			if e.is(entryMaybe) {
				f |= Redelivered
			}
		}
		q.Delivered++
		if c.NoAck {
			q.handOver(seq, e)
			c.Sink.Deliver(seq, m, f|Owned)
		} else {
			q.hold(e)
			c.unacked++
			c.Sink.Deliver(seq, m, f)
			if q.absent > 0 && e.pos != 0 {
				// The queue is larger than memory: what consumers hold need not
				// stay in it.
				q.dropHeld(seq, e)
			}
		}
		if q.absent > 0 {
			q.readAhead()
		}
	}
	return false
}

// hold marks an entry as held by a consumer.
func (q *Queue) hold(e *entry) {
	if e.is(entryAhead) {
		e.flags &^= entryAhead
		q.ahead -= e.inMemory()
	}
	e.setState(stateUnacked)
	if e.deliveries < 1<<16-1 {
		e.deliveries++
	}
	q.unacked++
}

// dropHeld lets the body of an entry that a consumer holds leave memory.
func (q *Queue) dropHeld(seq uint64, e *entry) {
	e.msg.Release(q.host.Arena())
	e.msg = nil
	q.addWarm(-e.inMemory())
	q.order.chunks[(seq-q.order.base)>>chunkShift].resident--
}

// handOver ends an entry whose message goes to somebody who does not
// acknowledge: the reference is theirs.
func (q *Queue) handOver(seq uint64, e *entry) {
	if e.pos == 0 {
		q.order.remove(q.host.Arena(), seq)
		return
	}
	q.store.Leave(q, placeOf(seq, e))
	q.forget(seq, e)
}

// Resume offers the queue to a parked consumer again: its connection drained,
// or its channel's window moved.
func (q *Queue) Resume(c *Consumer) {
	if c.queue != q || c.waiting {
		return
	}
	c.offer()
	if q.ready > 0 {
		q.host.MarkDirty(q)
	}
}

// settled is the consumer's side of an ack, a requeue or a discard.
func (q *Queue) settled(c *Consumer) {
	if c == nil || c.unacked == 0 {
		return
	}
	c.unacked--
	if !c.waiting && c.queue == q && !c.windowFull() {
		c.offer()
	}
	if q.ready > 0 {
		q.host.MarkDirty(q)
	}
}

// Ack settles an unacked entry for good. Entries that are no longer there (the
// queue was purged of them or deleted) are ignored (QUE-11). c is the consumer
// that held it, nil for basic.get.
func (q *Queue) Ack(seq uint64, c *Consumer) {
	if q.stream != nil {
		q.credit(c)
		return
	}
	e := q.order.at(seq)
	if e == nil || e.state() != stateUnacked {
		return
	}
	q.over(seq, e)
	q.unacked--
	q.Acked++
	q.settled(c)
	if q.order.live == 0 {
		q.host.MarkDirty(q)
	}
}

// Requeue puts an unacked entry back in its place (BAS-13); a quorum queue puts it
// behind all that is ready, unless it came back too often (DLX-09). undelivered: it
// never reached the consumer, so it does not count as handed out.
func (q *Queue) Requeue(seq uint64, c *Consumer, undelivered bool) {
	if q.stream != nil {
		q.credit(c)
		return
	}
	e := q.order.at(seq)
	if e == nil || e.state() != stateUnacked {
		return
	}
	if undelivered && e.deliveries > 0 {
		e.deliveries--
	}
	if q.counting && !undelivered && q.exhausted(seq, e, c) {
		return
	}
	e.setState(stateReady)
	if e.msg == nil {
		q.addAbsent(1)
	}
	q.unacked--
	q.ready++
	q.readyBytes += int64(e.size)
	switch {
	case !q.counting:
		q.order.giveBack(seq)
		if e.deliveries > 1 && e.is(entryLogged) {
			q.store.Requeued(q, seq, e.deliveries)
		}
	case undelivered:
		q.order.giveBack(seq)
	default:
		q.order.giveBackLast(seq)
		if e.is(entryLogged) {
			q.store.Requeued(q, seq, e.deliveries)
		}
	}
	if e.deadline != 0 {
		// It may be overdue; the index forgot it if it was due while held.
		q.index(seq, e)
	}
	q.host.MarkDirty(q)
	q.settled(c)
}
