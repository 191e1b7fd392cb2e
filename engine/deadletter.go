package engine

import (
	"slices"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// death is a message on its way from a queue to the dead letter exchange.
type death struct {
	q *queue.Queue
	queue.Dead
	only []*queue.Queue // that still have to take it, nil for those of its route
}

// DeadLetter implements queue.Host. Routing happens when the queues are at
// rest, never from inside a queue, so that a chain of dead letters cannot
// recurse.
func (s *Shard) DeadLetter(q *queue.Queue, d queue.Dead) {
	if d.Logged {
		s.store.dying[dyingKey{q.ID, d.Seq}] = struct{}{}
	}
	s.deaths = append(s.deaths, death{q: q, Dead: d})
}

// mourning reports that the next dead letter waits for its body.
func (s *Shard) mourning() bool { return s.store != nil && s.store.mourns != nil }

// waits reports that a dead letter is not sent yet: a disk had no room for the last
// one, and it must not be given up for that.
func (s *Shard) waits(d *death) bool { return d.Logged && s.now < s.deathsAfter }

// deathsReady reports that dead letters could be sent at once.
func (s *Shard) deathsReady() bool {
	return len(s.deaths) > 0 && !s.mourning() && !s.waits(&s.deaths[0])
}

// deathBatch bounds how many dead letters are routed at a time, and deathCopies
// how many queues they may have gone to before the rest waits.
const (
	deathBatch  = 4096
	deathCopies = 8192
)

// runDeaths routes the messages that died, in order.
func (s *Shard) runDeaths() {
	n := 0
	until := s.Stats.DeadLettered + s.Stats.Released + deathCopies
	for n < len(s.deaths) && n < deathBatch && s.Stats.DeadLettered+s.Stats.Released < until && !s.mourning() {
		d := s.deaths[n]
		if d.Msg == nil || s.waits(&d) {
			break
		}
		s.deaths[n] = death{}
		n++
		s.deadLetter(d)
		d.Msg.Release(s.arena)
	}
	if n == 0 {
		s.mournNext()
		return
	}
	s.deaths = without(s.deaths, n)
	s.mournNext()
}

// without takes the first n, which are cleared, off a list. Moving the rest down keeps
// the memory in use; moving a million down for each few that leave would take longer
// than all else, so a long list just begins later.
func without(list []death, n int) []death {
	if len(list)-n > 2*deathBatch {
		return list[n:]
	}
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}

// mournNext asks for the body of the next dead letter if it is not in memory.
func (s *Shard) mournNext() {
	if s.deathsReady() && s.deaths[0].Msg == nil {
		s.store.mourn()
	}
}

// deadLetter publishes a copy of the message with its death recorded (DLX-02
// to DLX-06). A message that the log keeps is done in its old queue only after
// the log has it in the new ones, so that a crash leaves it in one of them.
func (s *Shard) deadLetter(d death) {
	if !s.deadRouted(d) && d.Pos != 0 {
		s.store.buried(d.q, d.Place)
	}
}

// deadRouted sends the copies out; it reports whether the old place is kept until
// they arrived.
func (s *Shard) deadRouted(d death) (kept bool) {
	if holds(d.q) {
		return s.release(d)
	}
	v := d.q.Space.(*VHost)
	set := &d.q.Rules
	x := v.Exchange([]byte(set.DeadExchange))
	surely := set.AtLeastOnce && d.Logged
	if x == nil {
		return s.unrouted(d, surely)
	}
	codec := s.Broker.codecs[d.Msg.Encoding]
	key := d.Msg.Key()
	if set.DeadKeySet {
		key = []byte(set.DeadKey)
	}
	s.deadHead = codec.AppendDeath(s.deadHead[:0], d.Msg, d.q.Name, d.Why, set.DeadKeySet, s.env.wall())
	m := core.NewMessage(s.arena, []byte(set.DeadExchange), key, s.deadHead, d.Msg.BodyLen())
	if m == nil {
		s.Stats.DeadDropped++
		return false
	}
	m.AppendBody(d.Msg.Body())
	m.Encoding = d.Msg.Encoding
	m.Priority = d.Msg.Priority
	m.Flags = d.Msg.Flags &^ core.FlagExpires // its time to live is spent
	history := codec.Deaths(m)
	queues := stillThere(d.only)
	if d.only == nil {
		queues = s.routeDead(v, x, m, set.DeadKeySet)
	}
	if len(queues) == 0 && d.only == nil && surely {
		m.Release(s.arena)
		return s.unrouted(d, true)
	}
	h := s.handoverOf(d, queues)
	if surely {
		if h == nil {
			h = s.newHandover(&d)
		}
		h.queues = slices.Clone(queues)
	}
	for i, q := range queues {
		if cycles(history, q.Name) {
			s.Stats.DeadDropped++
			continue
		}
		s.Stats.DeadLettered++
		m.AddRef(1)
		h = s.deadTo(q, m, &d, h, uint64(i+1))
	}
	m.Release(s.arena)
	if h == nil {
		return false
	}
	h.Settled(0, true) // the one that was counted for ourselves
	return true
}

// unrouted is the end of a dead letter that has no queue to go to; surely: not yet. It
// reports whether the old place is kept.
func (s *Shard) unrouted(d death, surely bool) (kept bool) {
	if surely {
		s.keepDeath(d.q, d.Place, d.Why, nil)
		return true
	}
	s.Stats.DeadDropped++
	return false
}

// deadTo gives a copy to one queue; token is its number among them, from 1. It returns the handover, which is made if there
// is none and the copy is not in the log yet.
func (s *Shard) deadTo(q *queue.Queue, m *core.Message, d *death, h *handover, token uint64) *handover {
	if h != nil {
		switch s.Publish(q, m, h, token) {
		case Pending:
			h.left++
		case NoSpace:
			h.unstored = true
		case Refused:
			h.refuse(token)
		}
		return h
	}
	parked := 0
	if s.store != nil {
		parked = len(s.store.parked)
	}
	out := s.Publish(q, m, nil, 0)
	switch {
	case !d.Logged:
	case out == NoSpace:
		h = s.newHandover(d)
		h.unstored = true
	case len(s.store.parked) > parked:
		// It waits in memory: the old place must not end before it is stored.
		h = s.newHandover(d)
		h.left++
		s.store.parked[parked].targets[0].origin = h
	}
	return h
}

// handover is a dead letter that other loops must have before its old place is
// given up. It implements Origin.
type handover struct {
	s    *Shard
	q    *queue.Queue
	p    queue.Place
	why  core.DeathReason
	left int
	// unstored: some queue could not take it for want of room on the disk.
	unstored bool
	// queues are all that it goes to, and turned those that turned it away; only for
	// the strategy at-least-once.
	queues, turned []*queue.Queue
}

// refuse notes which queue turned the dead letter away.
func (h *handover) refuse(token uint64) {
	if h.queues != nil && token > 0 {
		h.turned = append(h.turned, h.queues[token-1])
	}
}

func (s *Shard) newHandover(d *death) *handover {
	return &handover{s: s, q: d.q, p: d.Place, why: d.Why, left: 1}
}

// handoverOf is nil when nothing has to wait: the message is not kept by the log,
// or all its new places are in the same log, behind which the old one's end will
// stand, and their queues are durable already.
func (s *Shard) handoverOf(d death, queues []*queue.Queue) *handover {
	if !d.Logged {
		return nil
	}
	for _, q := range queues {
		if q.Shard != s.Index || !s.defined(q) {
			return s.newHandover(&d)
		}
	}
	return nil
}

// noteUnstored tells a dead letter's handover that it was not refused by a queue: it
// must not be given up.
func noteUnstored(o Origin) {
	if h, ok := o.(*handover); ok {
		h.unstored = true
	}
}

// Settled implements Origin.
func (h *handover) Settled(token uint64, accepted bool) {
	if !accepted {
		h.refuse(token)
	}
	if h.left--; h.left > 0 {
		return
	}
	switch {
	case h.unstored:
	case len(h.turned) > 0 && h.q.Rules.AtLeastOnce && !h.q.Deleted():
		h.s.keepDeath(h.q, h.p, h.why, h.turned)
		return
	default:
		h.s.store.buried(h.q, h.p)
		return
	}
	// Once more, later: a queue that took it already gets it twice, which is better
	// than never.
	s := h.s
	s.deaths = append(s.deaths, death{q: h.q, Dead: queue.Dead{Why: h.why, Place: h.p}})
	s.deathsAfter = s.now + int64(spaceEvery)
	s.store.keepLater(spaceEvery)
}

// cycles reports whether sending the message to a queue would close a cycle in
// which nobody rejected it (DLX-06). history is newest first.
func cycles(history []core.Death, queueName string) bool {
	for _, d := range history {
		if d.Reason == core.DiedRejected.String() {
			return false
		}
		if d.Queue == queueName {
			return true
		}
	}
	return false
}
