package engine

import (
	"slices"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// simSink is a consumer, or with no subscription what basic.get took.
type simSink struct {
	m    *simModel
	sq   *simQueue
	home *Shard
	sub  *Subscription
	full bool
	over bool
	held []simHeld
	last map[int]uint64 // of each publisher, the last one that came for the first time
}

// simHeld is a message that a client has and did not settle.
type simHeld struct {
	seq uint64
	l   *lineage
	c   *simCopy
	sub *Subscription
	sq  *simQueue
}

// Full implements queue.Sink.
func (k *simSink) Full() bool { return k.full }

// Cancelled implements queue.Sink.
func (k *simSink) Cancelled() {
	k.over = true
	k.m.sinks = slices.DeleteFunc(k.m.sinks, func(o *simSink) bool { return o == k })
}

// Deliver implements queue.Sink.
func (k *simSink) Deliver(seq uint64, msg *core.Message, f queue.DeliverFlags) {
	redelivered := f&queue.Redelivered != 0
	l := k.take(seq, msg, redelivered, k.sub.Consumer.NoAck)
	k.counts(l, f.Count())
	if k.sq.name == l.root && !redelivered && !k.sq.disordered && k.sub != nil {
		if l.id < k.last[l.pub] {
			k.m.fail("message %d of %s is delivered after %d", l.id, l.root, k.last[l.pub])
		}
		k.last[l.pub] = l.id
	}
	if f&queue.Owned != 0 {
		msg.Release(k.home.arena)
	}
}

// counts judges how often a message is said to have come back.
func (k *simSink) counts(l *lineage, n int) {
	c := l.copy(k.sq.name)
	switch {
	case !k.sq.counting && n != 0:
		k.m.fail("message %d of %s comes with a count", l.id, l.root)
	case n >= c.handed:
		k.m.fail("message %d of %s was handed out %d times before and came back %d times", l.id, l.root, c.handed-1, n)
	case k.sq.counting && !l.crashed && n < c.returned:
		k.m.fail("message %d of %s was sent back %d times, and counts %d", l.id, l.root, c.returned, n)
	}
}

// take notes a message that came.
func (k *simSink) take(seq uint64, msg *core.Message, redelivered, noAck bool) *lineage {
	l := k.m.lineageOf(msg, k.sq.name)
	c := k.m.received(l, k.sq.name, redelivered)
	c.handed++
	c.life = k.m.life
	if noAck {
		c.settled, c.ended, l.sure = true, true, false
		return l
	}
	c.held = true
	k.held = append(k.held, simHeld{seq, l, c, k.sub, k.sq})
	return l
}

// subscribe adds a consumer.
func (m *simModel) subscribe(s *Shard) {
	sq := m.pick(func(sq *simQueue) bool { return true })
	if sq == nil || len(m.sinks) > 10 || sq.kind == "dead" && m.rng.IntN(4) > 0 {
		return
	}
	k := &simSink{m: m, sq: sq, home: s, sub: &Subscription{Queue: sq.q}, last: map[int]uint64{}}
	k.sub.Consumer.Prefetch = uint32(m.rng.IntN(3) * m.rng.IntN(40))
	k.sub.Consumer.NoAck = m.rng.IntN(5) == 0
	sq.far = sq.far || sq.q.Shard != s.Index
	sq.leaky = sq.leaky || k.sub.Consumer.NoAck && sq.q.Shard != s.Index
	s.Subscribe(k.sub, k, func(err *core.Error) {
		if k.over = err != nil; !k.over {
			m.sinks = append(m.sinks, k)
		}
	})
}

// unsubscribe ends a channel: what it holds goes back.
func (m *simModel) unsubscribe(s *Shard) {
	for _, k := range slices.Clone(m.sinks) {
		if k.home == s && m.rng.IntN(2) == 0 {
			m.leave(k)
			return
		}
	}
}

func (m *simModel) leave(k *simSink) {
	k.sq.disordered = true
	k.home.Abandon(k.sub)
	k.home.Unsubscribe(k.sub, nil)
	k.over = true
	m.sinks = slices.DeleteFunc(m.sinks, func(o *simSink) bool { return o == k })
	m.giveBack(k)
}

func (m *simModel) giveBack(k *simSink) {
	for _, h := range k.held {
		h.c.held = false
		k.home.Requeue(h.sq.q, h.seq, h.sub, false)
	}
	k.held = nil
}

// hangUp ends all clients.
func (m *simModel) hangUp() {
	for _, k := range slices.Clone(m.sinks) {
		m.leave(k)
	}
	for _, k := range m.getters {
		if k != nil {
			m.giveBack(k)
		}
	}
}

// settle settles some of what the clients of a shard hold, and fills or drains
// their connections.
func (m *simModel) settle(s *Shard) {
	list := slices.Clone(m.sinks)
	if k := m.getters[s.Index]; k != nil {
		list = append(list, k)
	}
	for _, k := range list {
		if k.home != s {
			continue
		}
		if k.sub != nil && m.rng.IntN(8) == 0 {
			if k.full = !k.full; !k.full {
				s.Resume(k.sub)
			}
		}
		for n := m.rng.IntN(20); n > 0 && len(k.held) > 0; n-- {
			at := 0
			if m.rng.IntN(3) == 0 {
				at = m.rng.IntN(len(k.held))
			}
			h := k.held[at]
			k.held = slices.Delete(k.held, at, at+1)
			h.c.held = false
			m.settleOne(s, h)
		}
	}
}

func (m *simModel) settleOne(s *Shard, h simHeld) {
	switch n := m.rng.IntN(6); {
	case n == 0:
		h.c.returned++
		s.Requeue(h.sq.q, h.seq, h.sub, false)
		return
	case n == 1:
		h.c.settled = true
		if h.sq.dlq != "" {
			s.Discard(h.sq.q, h.seq, h.sub)
			return
		}
		h.c.ended, h.l.sure = true, false
		s.Discard(h.sq.q, h.seq, h.sub)
	default:
		h.c.settled, h.c.ended, h.l.sure = true, true, false
		if m.fault == faultSkipAck && m.rng.IntN(50) == 0 {
			break
		}
		s.Ack(h.sq.q, h.seq, 1, h.sub)
	}
	if m.rng.IntN(2) == 0 {
		life := m.life
		s.OnDurable(h.sq.q.Shard, func(*Shard) {}, func() {
			// It may be what a crash brought back and another client has now.
			h.c.durable = h.c.durable || life == m.life && !m.deaf && h.c.settled
		})
	}
}

// get takes one message without a consumer.
func (m *simModel) get(s *Shard) {
	sq := m.pick(func(*simQueue) bool { return true })
	if sq == nil || sq.kind == "dead" && m.rng.IntN(4) > 0 {
		return
	}
	noAck := m.rng.IntN(4) == 0
	sq.far = sq.far || sq.q.Shard != s.Index
	sq.leaky = sq.leaky || noAck && sq.q.Shard != s.Index
	k := m.getters[s.Index]
	if k == nil {
		k = &simSink{m: m, home: s}
		m.getters[s.Index] = k
	}
	s.Get(sq.q, noAck, func(g queue.Got, state queue.GotState, _ bool) {
		if state != queue.GotOne {
			return
		}
		k.sq = sq
		k.take(g.Seq, g.Message, g.Redelivered, noAck)
		if noAck {
			g.Message.Release(s.arena)
		}
	})
}
