package queue

import "ringmq/engine/core"

// Grave is what a deleted or purged queue left behind: entries whose messages
// are still to be released.
type Grave struct {
	order fifo
	next  uint64
	store Store
}

// Free releases up to n entries and reports whether the grave is empty.
func (g *Grave) Free(a core.Arena, n int) (empty bool) {
	for ; n > 0 && g.order.live > 0 && g.next < g.order.tail; n-- {
		seq := g.next
		g.next++
		if e := g.order.at(seq); e != nil {
			if e.msg != nil {
				e.msg.Release(a)
			}
			if e.pos != 0 {
				g.store.Drop(placeOf(seq, e))
			}
			g.order.remove(a, seq)
		}
		if g.next < g.order.base {
			g.next = g.order.base
		}
	}
	if g.order.live == 0 {
		g.order.release(a)
		return true
	}
	return false
}

// bury gives everything that the queue holds to a grave.
func (q *Queue) bury() {
	tail := q.order.tail
	q.host.Bury(&Grave{order: q.order, next: q.order.base, store: q.store})
	q.order = fifo{base: tail, head: tail, tail: tail}
	if q.Settings.MaxPriority > 0 {
		q.order.levels = newLevels(uint8(q.Settings.MaxPriority))
	}
	q.ready, q.unacked, q.readyBytes = 0, 0, 0
	q.addAbsent(-q.absent)
	q.addWarm(-int(q.warm))
	q.ahead = 0
	if s := q.stream; s != nil {
		s.hotFrom, s.hotBytes, s.back = tail, 0, readBack{}
	}
	q.deadlines = nil
}

// Purge drops every ready message and returns their number (QUE-12).
func (q *Queue) Purge(now int64) int {
	q.Settle(now, core.DispatchBatch)
	n := q.ready
	if n == 0 {
		return 0
	}
	if q.unacked == 0 {
		// Nothing is held: the whole content goes at once, and its memory
		// comes back over the next turns.
		if q.store != nil && q.Settings.Durable {
			q.store.Purged(q, q.order.base, q.order.tail-1)
		}
		q.bury()
		return n
	}
	for q.ready > 0 {
		q.over(q.takeFirst())
	}
	return n
}

// Delete empties the queue for good, tells its consumers, and returns the
// number of ready messages (QUE-10, QUE-11). Nothing is dead-lettered.
func (q *Queue) Delete(now int64) int {
	if q.deleted {
		return 0
	}
	q.Settle(now, core.DispatchBatch)
	n := q.ready
	q.deleted = true
	members := q.members
	q.levels, q.members = nil, nil
	for _, c := range members {
		c.queue, c.level, c.next, c.prev, c.waiting = nil, nil, nil, nil, false
	}
	q.bury()
	q.zeros = nil
	q.exclusive, q.active, q.standby = nil, nil, nil
	q.show()
	for _, c := range members {
		c.Sink.Cancelled()
	}
	return n
}
