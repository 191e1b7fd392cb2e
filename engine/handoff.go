//ringmq:hot

package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// send gives a command to another shard, in order. c is copied.
func (s *Shard) send(to int, c *Command) {
	o := &s.out[to]
	if len(o.pending) == 0 && o.box.Push(c) {
		return
	}
	o.pending = append(o.pending, *c)
}

// flushPending moves what waited into mailboxes that have room again.
func (s *Shard) flushPending() {
	for i := range s.out {
		o := &s.out[i]
		if len(o.pending) == 0 {
			continue
		}
		if !o.move() {
			o.full.Store(true)
			o.move()
		}
	}
}

// move fills the mailbox from what is pending and reports whether that was all.
func (o *outbox) move() (all bool) {
	for o.taken < len(o.pending) && o.box.Push(&o.pending[o.taken]) {
		o.pending[o.taken] = Command{}
		o.taken++
	}
	if o.taken == len(o.pending) {
		o.pending, o.taken = o.pending[:0], 0
		if cap(o.pending) > 16*core.MailboxSlots {
			o.pending = nil
		}
		return true
	}
	if o.taken > len(o.pending)/2 {
		// The way may stay congested for long: what was taken must not pile up.
		rest := copy(o.pending, o.pending[o.taken:])
		clear(o.pending[rest:])
		o.pending, o.taken = o.pending[:rest], 0
	}
	return false
}

// drain runs the commands of the other shards, a bounded number of each.
func (s *Shard) drain() {
	var c Command
	for i, from := range s.in {
		if from == nil {
			continue
		}
		n := 0
		for n < core.MailboxBatch && from.box.Pop(&c) {
			n++
			if c.op == opPublish && s.store != nil && (c.q.Logs(c.m) || len(s.store.parked) > 0) {
				s.store.add(&c, i)
				continue
			}
			if s.store != nil {
				s.store.flushBatch()
				if c.op == opPublish && len(s.store.parked) > 0 {
					// It was parked just now: what is behind it must stay there.
					s.store.add(&c, i)
					continue
				}
			}
			s.run(&c, i)
		}
		if s.store != nil {
			s.store.flushBatch()
		}
		if n > 0 {
			from.box.Done()
			if from.full.Load() {
				from.full.Store(false)
				s.env.wake(i)
			}
		}
	}
}

// run executes a command of shard from.
func (s *Shard) run(c *Command, from int) {
	switch c.op {
	case opPublish:
		ok := c.q.Publish(c.m, s.now)
		if c.origin != nil {
			s.send(from, &Command{op: opConfirm, origin: c.origin, seq: c.seq, ok: ok})
		}
	case opConfirm:
		if c.n != 0 {
			noteUnstored(c.origin)
		}
		c.origin.Settled(c.seq, c.ok)
	case opDeliver:
		s.deliverHere(c)
	case opCredit:
		c.sub.remote.credit(int(c.n))
	case opAck:
		consumer := c.sub.consumer()
		for i := range uint64(c.n) {
			c.q.Ack(c.seq+i, consumer)
		}
	case opRequeue:
		c.q.Requeue(c.seq, c.sub.consumer(), c.ok)
	case opDiscard:
		c.q.Discard(c.seq, c.sub.consumer())
	case opResume:
		c.sub.Queue.Resume(&c.sub.Consumer)
	case opCancelled:
		c.sub.local.Cancelled()
	case opCall:
		c.fn(s)
	}
}

// Publish gives one reference of m to a queue, wherever it lives. origin is
// nil when nobody asks what became of it; otherwise it is told later if the
// outcome is Pending, with token.
func (s *Shard) Publish(q *queue.Queue, m *core.Message, origin Origin, token uint64) Outcome {
	if m.Arrival == 0 {
		m.Arrival = s.wallMS
	}
	if holds(q) {
		if m = s.hold(m); m == nil {
			return Refused
		}
	}
	if q.Shard == s.Index {
		if s.store != nil && (q.Logs(m) || len(s.store.parked) > 0) {
			return s.store.publish(m, target{q: q, origin: origin, token: token, from: s.Index})
		}
		if q.Publish(m, s.now) {
			return Accepted
		}
		return Refused
	}
	s.Stats.Remote++
	s.send(q.Shard, &Command{op: opPublish, q: q, m: m, origin: origin, seq: token})
	if origin == nil {
		return Accepted
	}
	return Pending
}

// PublishAll is Publish for several queues, each with a reference of its own: the
// log keeps one record for all queues of a shard. pending answers will come;
// refused tells that some queue turned the message away at once, and noSpace that
// it was for want of room on the disk.
func (s *Shard) PublishAll(queues []*queue.Queue, m *core.Message, origin Origin, token uint64) (pending uint32, refused, noSpace bool) {
	m.Arrival = s.wallMS
	var logged []target
	if s.store != nil {
		logged = s.store.lists.get()
	}
	for _, q := range queues {
		if s.store != nil && q.Shard == s.Index && q.Logs(m) && !holds(q) {
			logged = append(logged, target{q: q, origin: origin, token: token, from: s.Index})
			continue
		}
		switch s.Publish(q, m, origin, token) {
		case Refused:
			refused = true
		case NoSpace:
			noSpace = true
		case Pending:
			pending++
		}
	}
	if len(logged) > 0 {
		p, r, out := s.store.publishAll(m, logged)
		pending += p
		refused = refused || r
		noSpace = noSpace || out == NoSpace
	}
	if s.store != nil {
		s.store.lists.put(logged)
	}
	return pending, refused || noSpace, noSpace
}

// Pressed reports that some shard's publishers should wait, so that the others
// need not be asked for each message. Any loop.
func (s *Shard) Pressed() bool { return s.Broker.pressed.Load() != 0 }

// Behind is the shard of a queue if its disk is behind: publishers of persistent
// messages pause until IsBehind is false. Otherwise nil. Any loop.
func (s *Shard) Behind(q *queue.Queue) *Shard {
	if at := s.Broker.Shards[q.Shard]; at.IsBehind() {
		return at
	}
	return nil
}

// IsBehind reports that the shard's disk is behind, or that it is short of memory
// and its disk takes bodies slower than they come. When it has caught up all loops
// are woken. Any loop.
func (s *Shard) IsBehind() bool {
	return s.store != nil && (s.store.behind.Load() || s.store.tight.Load())
}

// Tight is like Behind for all messages: only shortness of memory counts.
func (s *Shard) Tight(q *queue.Queue) *Shard {
	if at := s.Broker.Shards[q.Shard]; at.store != nil && at.store.tight.Load() {
		return at
	}
	return nil
}

// Full reports that the log of a queue's shard takes no messages for want of room
// on the disk. Any loop.
func (s *Shard) Full(q *queue.Queue) bool {
	st := s.Broker.Shards[q.Shard].store
	return st != nil && st.noSpace.Load()
}

// Ack settles n entries from seq on. sub is the subscription that got them,
// nil for basic.get.
func (s *Shard) Ack(q *queue.Queue, seq uint64, n uint32, sub *Subscription) {
	if q.Shard == s.Index {
		consumer := sub.consumer()
		for i := range uint64(n) {
			q.Ack(seq+i, consumer)
		}
		return
	}
	s.send(q.Shard, &Command{op: opAck, q: q, seq: seq, sub: sub, n: n})
}

// Requeue returns an entry to its place. undelivered: it never reached the
// client.
func (s *Shard) Requeue(q *queue.Queue, seq uint64, sub *Subscription, undelivered bool) {
	if q.Shard == s.Index {
		q.Requeue(seq, sub.consumer(), undelivered)
		return
	}
	s.send(q.Shard, &Command{op: opRequeue, q: q, seq: seq, sub: sub, ok: undelivered})
}

// Discard rejects an entry without requeueing it.
func (s *Shard) Discard(q *queue.Queue, seq uint64, sub *Subscription) {
	if q.Shard == s.Index {
		q.Discard(seq, sub.consumer())
		return
	}
	s.send(q.Shard, &Command{op: opDiscard, q: q, seq: seq, sub: sub})
}
