package engine

import "ringmq/engine/queue"

// This file is what sessions wait for: a message that basic.get found on the disk
// only, and the disk itself.

// getter is a basic.get whose message waits for the disk.
type getter struct {
	q     *queue.Queue
	noAck bool
	done  func(queue.Got, queue.GotState, bool)
}

// Get takes one message out of a queue, wherever it lives (BAS-09). done is
// called on this shard, at once if it can be; the message is borrowed during the
// call unless noAck, then its reference is the caller's. deleted tells that the
// queue is no more.
func (s *Shard) Get(q *queue.Queue, noAck bool, done func(g queue.Got, state queue.GotState, deleted bool)) {
	if q.Shard == s.Index {
		s.getHere(getter{q, noAck, done})
		return
	}
	home := s.Index
	s.send(q.Shard, &Command{op: opCall, fn: func(at *Shard) {
		at.getHere(getter{q, noAck, func(g queue.Got, state queue.GotState, deleted bool) {
			if state == queue.GotOne && !noAck {
				g.Message.AddRef(1) // for the way
			}
			at.send(home, &Command{op: opCall, fn: func(*Shard) {
				done(g, state, deleted)
				if state == queue.GotOne && !noAck {
					g.Message.Release(s.arena)
				}
			}})
		}})
	}})
}

func (s *Shard) getHere(g getter) {
	if g.q.Deleted() {
		g.done(queue.Got{}, queue.GotNone, true)
		return
	}
	s.Observe(g.q)
	got, state := g.q.Get(g.noAck, s.now)
	if state == queue.GotLater {
		s.getters = append(s.getters, g)
		return
	}
	g.done(got, state, false)
}

// retryGets tries the gets that waited.
func (s *Shard) retryGets() {
	list := s.getters
	s.getters = nil
	for _, g := range list {
		s.getHere(g)
	}
}

// OnDurable is On, but done runs only after everything that the other shard had
// given to its log by then is safe.
func (s *Shard) OnDurable(shard int, fn func(at *Shard), done func()) {
	home := s.Index
	run := func(at *Shard) {
		fn(at)
		if at.store == nil {
			at.reply(home, done)
			return
		}
		at.store.afterCommit(func() { at.reply(home, done) })
	}
	if shard == s.Index {
		run(s)
		return
	}
	s.send(shard, &Command{op: opCall, fn: run})
}

// reply runs done on a shard.
func (s *Shard) reply(home int, done func()) {
	if home == s.Index {
		done()
		return
	}
	s.send(home, &Command{op: opCall, fn: func(*Shard) { done() }})
}

// caughtUp wakes the loops whose publishers wait for this shard's disk.
func (b *Broker) caughtUp(s *Shard) {
	for i := range b.Shards {
		s.env.wake(i) // its own loop too: its publishers were looked at earlier in this turn
	}
}
