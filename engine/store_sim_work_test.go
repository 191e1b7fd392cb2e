package engine

import (
	"fmt"
	"slices"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// simPublisher is a channel in confirm mode. It implements Origin.
type simPublisher struct {
	m      *simModel
	number int
	home   *Shard
	token  uint64
	asked  map[uint64]*simAnswer
}

// simAnswer is what a publish waits for.
type simAnswer struct {
	to      []*lineage
	pending uint32
	refused bool
}

// Settled implements Origin.
func (p *simPublisher) Settled(token uint64, ok bool) {
	a := p.asked[token]
	if a == nil || a.pending == 0 {
		p.m.fail("an answer to nothing")
	}
	a.pending--
	a.refused = a.refused || !ok
	p.answered(token, a)
}

// answered takes the word for the deed once all queues have spoken.
func (p *simPublisher) answered(token uint64, a *simAnswer) {
	if a.pending > 0 {
		return
	}
	delete(p.asked, token)
	for _, l := range a.to {
		if !a.refused && !p.m.deaf {
			l.answered = true
			l.sure = l.staysSure() && !l.over()
		}
	}
}

// over reports that a client did something after which a message may be gone.
func (l *lineage) over() bool {
	for _, c := range l.copies {
		if c.ended {
			return true
		}
	}
	return l.purged || l.q.deleting
}

// live is a number of rounds.
func (m *simModel) live(rounds int) {
	w := m.w
	for range rounds {
		w.now += int64(m.rng.IntN(20)) * 1e6
		for _, i := range m.rng.Perm(len(w.b.Shards)) {
			s := w.b.Shards[i]
			w.turn(s, func() { m.work(s) })
			if m.rng.IntN(3) == 0 {
				w.tick(s)
				s.store.keep(w.now)
			}
		}
		if m.rng.IntN(3) > 0 {
			w.defs.advance(m.rng.IntN(3))
		}
		w.steps(m.rng.IntN(12))
		if w.failed != nil {
			m.fail("a log failed: %v", w.failed)
		}
	}
}

// work is a turn of a shard's clients.
func (m *simModel) work(s *Shard) {
	for range m.rng.IntN(4) {
		switch m.rng.IntN(14) {
		case 0:
			m.declare(s)
		case 1, 2, 3, 4:
			for range 1 + m.rng.IntN(8) {
				m.publish(s)
			}
		case 5:
			m.subscribe(s)
		case 6, 7, 8:
			m.settle(s)
		case 9:
			m.get(s)
		case 10:
			m.pageOut(s)
		case 11:
			if m.rng.IntN(4) == 0 {
				m.unsubscribe(s)
			}
		case 12:
			if m.rng.IntN(6) == 0 {
				m.purge(s)
			}
		case 13:
			if m.rng.IntN(10) == 0 {
				m.delete(s)
			} else if s.store.beginCheckpoint(false) && m.rng.IntN(2) == 0 {
				s.store.stepCheckpoint()
			}
		}
	}
	if s.store.absent < 0 {
		m.fail("%d bodies are absent", s.store.absent)
	}
}

// declare makes a queue of some kind, and the one that takes its dead letters.
func (m *simModel) declare(s *Shard) {
	if len(m.queues) > 12 {
		return
	}
	m.named++
	sq := &simQueue{name: fmt.Sprintf("q%d", m.named), durable: true, ttl: -1}
	args := core.Args{}
	switch n := m.rng.IntN(12); {
	case n < 4:
		sq.kind = "plain"
		if m.rng.IntN(3) == 0 {
			sq.kind, sq.counting = "quorum", true
			args["x-queue-type"], args["x-delivery-limit"] = text("quorum"), number(-1)
		}
	case n == 4:
		sq.kind, sq.durable = "transient", false
	case n == 5:
		sq.kind, sq.limited = "short", true
		args["x-max-length"] = number(int64(m.rng.IntN(20)))
	case n == 6:
		sq.kind, sq.limited = "refusing", true
		args["x-max-length"], args["x-overflow"] = number(int64(m.rng.IntN(20))), text("reject-publish")
	case n == 7:
		sq.kind, sq.limited = "refusing to another", true
		args["x-max-length"], args["x-overflow"] = number(int64(m.rng.IntN(20))), text("reject-publish-dlx")
		sq.dlq = m.deadQueue()
	default:
		sq.kind = "dying"
		sq.dlq = m.deadQueue()
		if n < 10 {
			sq.ttl = int64(m.rng.IntN(200))
			args["x-message-ttl"] = number(sq.ttl)
		}
		if n == 10 {
			sq.limited = true
			args["x-max-length"] = number(int64(m.rng.IntN(20)))
		}
	}
	if sq.dlq != "" {
		args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = text(""), text(sq.dlq)
	}
	m.make(s, sq, args)
}

func (m *simModel) make(s *Shard, sq *simQueue, args core.Args) {
	q, err := m.w.v.DeclareQueue(sq.name, queue.Settings{Durable: sq.durable, Args: args}, nil, m.shard(), false)
	if err != nil {
		m.fail("%v", err)
	}
	sq.q = q
	if m.fault == faultNoLease {
		q.Leased(1 << 62)
	}
	m.queues = append(m.queues, sq)
	s.WhenDefined(func(err error) { sq.defined = err == nil })
}

// deadQueue is a queue for dead letters: one for each shard that there may be. It is
// durable before it is used: what it is to take must not depend on it.
func (m *simModel) deadQueue() string {
	name := fmt.Sprintf("dead%d", m.rng.IntN(3))
	for _, sq := range m.queues {
		if sq.name == name {
			return name
		}
	}
	m.make(m.shard(), &simQueue{name: name, durable: true, ttl: -1, kind: "dead"}, nil)
	return name
}

// pick chooses a queue.
func (m *simModel) pick(ok func(*simQueue) bool) *simQueue {
	var list []*simQueue
	for _, sq := range m.queues {
		if !sq.deleting && ok(sq) {
			list = append(list, sq)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[m.rng.IntN(len(list))]
}

// publish gives a message to one queue or to several.
func (m *simModel) publish(s *Shard) {
	var p *simPublisher
	for _, i := range m.rng.Perm(len(m.pubs)) {
		if m.pubs[i].home == s {
			p = m.pubs[i]
			break
		}
	}
	if p == nil || s.Congested() {
		return
	}
	id := m.nextID
	m.nextID++
	size := []int{8, 8 + m.rng.IntN(100), 8 + m.rng.IntN(3000), 8 + m.rng.IntN(100)}[m.rng.IntN(4)]
	if m.rng.IntN(200) == 0 {
		size = 40000
	}
	msg := core.NewMessage(s.arena, nil, []byte("key"), nil, max(size, 8))
	msg.AppendBody(simBody(id, size))
	if m.rng.IntN(5) > 0 {
		msg.Flags |= core.FlagPersistent
	}
	if m.rng.IntN(10) == 0 {
		msg.Flags |= core.FlagExpires
		msg.TTL = int64(m.rng.IntN(300))
	}
	p.token++
	a := &simAnswer{}
	var queues []*queue.Queue
	for range 1 + m.rng.IntN(2)*m.rng.IntN(4) {
		sq := m.pick(func(sq *simQueue) bool { return sq.kind != "dead" && !slices.Contains(queues, sq.q) })
		if sq == nil {
			continue
		}
		queues = append(queues, sq.q)
		a.to = append(a.to, m.lineage(id, size, sq, p, msg))
		msg.AddRef(1)
	}
	p.asked[p.token] = a
	if len(queues) > 0 && m.fault == faultDropRecord && m.rng.IntN(50) == 0 {
		msg.AddRef(int32(-len(queues)))
	} else {
		var full bool
		var pending uint32
		pending, a.refused, full = s.PublishAll(queues, msg, p, p.token)
		a.pending += pending
		if full {
			m.fail("the disk is full")
		}
	}
	msg.Release(s.arena)
	if m.fault == faultEarlyConfirm {
		a.refused = false
		for _, l := range a.to {
			l.sure = l.staysSure() && l.q.defined && a.pending == uint32(len(a.to)) && !l.over()
		}
	}
	p.answered(p.token, a)
}

func (m *simModel) lineage(id uint64, size int, sq *simQueue, p *simPublisher, msg *core.Message) *lineage {
	l := &lineage{simKey: simKey{id, sq.name}, q: sq, pub: p.number, size: size, copies: map[string]*simCopy{}}
	l.keeps = sq.durable && (msg.Persistent() || sq.counting)
	ttl := sq.ttl
	if msg.Flags&core.FlagExpires != 0 && (ttl < 0 || msg.TTL < ttl) {
		ttl = msg.TTL
	}
	if ttl >= 0 {
		l.expiry = m.w.now + ttl*1e6
	}
	m.known[l.simKey] = l
	return l
}

// pageOut is shortness of memory.
func (m *simModel) pageOut(s *Shard) {
	if m.rng.IntN(2) == 0 {
		s.store.pageOut(int64(m.rng.IntN(100000)), m.rng.IntN(2) == 0)
		return
	}
	for _, q := range s.listed {
		q.PageOut(m.rng.IntN(2) == 0, m.rng.IntN(2) == 0)
	}
}

// purge empties a queue.
func (m *simModel) purge(s *Shard) {
	sq := m.pick(func(sq *simQueue) bool { return sq.kind != "dead" })
	if sq == nil {
		return
	}
	var done []*simCopy
	life := m.life
	s.OnDurable(sq.q.Shard, func(at *Shard) {
		if sq.q.Deleted() {
			return
		}
		at.Observe(sq.q) // as Purge does: consumers come first
		for _, l := range m.known {
			if l.q != sq {
				continue
			}
			c := l.copy(sq.name)
			if c.held || c.settled {
				continue // held, or on its way to another queue
			}
			l.sure, l.purged = false, true
			if l.answered && !sq.far && sq.dlq == "" && sq.durable {
				done = append(done, c)
			}
		}
		sq.q.Purge(at.now)
	}, func() {
		for _, c := range done {
			c.durable = c.durable || life == m.life && !m.deaf
		}
	})
}

// delete deletes a queue.
func (m *simModel) delete(s *Shard) {
	sq := m.pick(func(sq *simQueue) bool { return sq.kind != "dead" })
	if sq == nil {
		return
	}
	sq.deleting = true
	for _, l := range m.known {
		if l.q == sq {
			l.sure = false
		}
	}
	s.On(sq.q.Shard, func(at *Shard) { at.DeleteQueue(sq.q) }, func() {
		s.WhenDefined(func(error) {
			m.queues = slices.DeleteFunc(m.queues, func(o *simQueue) bool { return o == sq })
		})
	})
}

// finish ends the last life: everything is deleted, and nothing may be left of it.
func (m *simModel) finish() {
	w := m.w
	m.hangUp()
	if !w.quiet() {
		m.fail("does not come to rest")
	}
	for _, s := range w.b.Shards {
		w.v.Queues(func(q *queue.Queue) {
			if q.Shard == s.Index {
				s.DeleteQueue(q)
			}
		})
	}
	if !w.quiet() {
		m.fail("does not come to rest")
	}
	for i, s := range w.b.Shards {
		if n := s.store.wal.Stats().LiveCount; n != 0 {
			m.fail("log %d: %d records of nothing are live", i, n)
		}
		if len(s.store.dying) != 0 {
			m.fail("%d messages die for ever", len(s.store.dying))
		}
		if s.Stats.Lost+s.Stats.Unstored != 0 {
			m.fail("%d lost, %d not stored", s.Stats.Lost, s.Stats.Unstored)
		}
	}
	if n := w.arena.blocks(); n != 0 {
		m.fail("%d blocks of memory are left", n)
	}
	for _, p := range m.pubs {
		if len(p.asked) != 0 {
			m.fail("%d publishes were never answered", len(p.asked))
		}
	}
	w.free()
}
