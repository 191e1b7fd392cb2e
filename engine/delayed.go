package engine

import (
	"fmt"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// A delayed exchange (XT-02) keeps what it holds back in a queue of its own, which
// no name leads to. A message stays there for as long as its time to live, which is
// its delay, and leaves as dead letters do: so the log, the paging of bodies, the
// way to other loops and full disks are what they are for any queue.
//
//	publish ─ route ─▶ held ── due ──▶ release ─ route like x-delayed-type ─▶ queues

// holding is the Space of such a queue.
type holding struct {
	v *VHost
	x *Exchange
}

// holds reports that a queue keeps what an exchange holds back. Any loop.
func holds(q *queue.Queue) bool {
	_, ok := q.Space.(*holding)
	return ok
}

// vhostOf is the vhost of a queue of either sort.
func vhostOf(q *queue.Queue) *VHost {
	if h, ok := q.Space.(*holding); ok {
		return h.v
	}
	return q.Space.(*VHost)
}

// has reports that the catalog still has a queue. The lock is held.
func (v *VHost) has(q *queue.Queue) bool {
	if h, ok := q.Space.(*holding); ok {
		return !h.x.deleted.Load()
	}
	cur, ok := v.queues.Load().Get(q.Name)
	return ok && cur == q
}

// kept calls f for each queue that the log may know: those with a name, and those of
// delayed exchanges.
func (v *VHost) kept(f func(*queue.Queue)) {
	v.Queues(f)
	v.Exchanges(func(x *Exchange) {
		if x.held != nil {
			f(x.held)
		}
	})
}

// queueKey is the key of a queue's definition. What an exchange holds has one that no
// queue can have.
func (v *VHost) queueKey(q *queue.Queue) []byte {
	if holds(q) {
		return recordKey(v.Name, q.Name, "held")
	}
	return recordKey(v.Name, q.Name)
}

// heldSettings are those of the queue: what is due there is given to Host.DeadLetter.
func heldSettings(durable bool) queue.Settings {
	s := queue.Settings{Durable: durable, Rules: queue.NoRules()}
	s.DeadLetter = true
	return s
}

// addHeld gives a new delayed exchange its queue and notes it. The lock is held;
// nobody knows the exchange yet.
func (v *VHost) addHeld(x *Exchange) {
	least := 0
	for i := range v.broker.queuesOn {
		if v.broker.queuesOn[i].Load() < v.broker.queuesOn[least].Load() {
			least = i
		}
	}
	v.broker.queuesOn[least].Add(1)
	q := queue.New(x.Name, v.broker.newQueueID(x.Durable), least, heldSettings(x.Durable))
	v.attachHeld(x, q)
	v.noteQueue(q)
}

// attachHeld joins a delayed exchange and its queue.
func (v *VHost) attachHeld(x *Exchange, q *queue.Queue) {
	x.held = q
	q.Space = &holding{v, x}
	q.Attach(v.broker.Shards[q.Shard], 0)
}

// removeHeld takes the queue of an exchange that goes out of the catalog. Only within
// remove.
func (v *VHost) removeHeld(x *Exchange) {
	if x.held == nil {
		return
	}
	v.noteQueueGone(x.held)
	v.broker.queueGone(x.held)
	v.dropped = append(v.dropped, x.held)
}

// dropHeld empties the queues that were removed, each on its own loop, after that was
// recorded. The lock is held.
func (v *VHost) dropHeld() {
	for i, q := range v.dropped {
		s := v.broker.Shards[q.Shard]
		s.env.post(func() { s.drop(q) })
		v.dropped[i] = nil
	}
	v.dropped = v.dropped[:0]
}

// drop empties the queue of a delayed exchange that was removed. What is still on its
// way there is swallowed by it.
func (s *Shard) drop(q *queue.Queue) {
	s.refresh()
	q.Delete(s.now)
	s.env.forget(q)
	s.unlist(q)
	if s.store != nil && q.Known {
		delete(s.store.queues, q.ID)
		s.store.goneAt = s.Broker.catalog.last.Load()
	}
}

// holder is the exchange that a definition of such a queue belongs to.
func (r *restoring) holder(v *VHost, name string) (*Exchange, error) {
	x := v.Exchange([]byte(name))
	switch {
	case x == nil:
		return nil, v.NoExchange(name)
	case x.Kind != exchange.Delayed:
		return nil, fmt.Errorf("exchange '%s' in vhost '%s' holds nothing", name, v.Name)
	case x.held != nil:
		return nil, fmt.Errorf("exchange '%s' in vhost '%s' has a place for what it holds already", name, v.Name)
	}
	return x, nil
}

// holders checks that each delayed exchange has its queue.
func (r *restoring) holders() (err error) {
	r.b.VHosts(func(v *VHost) {
		v.Exchanges(func(x *Exchange) {
			if x.Kind == exchange.Delayed && x.held == nil {
				err = fmt.Errorf("exchange '%s' in vhost '%s' has no place for what it holds", x.Name, v.Name)
			}
		})
	})
	return err
}

// delayOf is for how many milliseconds a message asks to be held. h may be nil.
func delayOf(h core.Fields) int64 {
	if h == nil {
		return 0
	}
	v, ok := h.Lookup(exchange.DelayHeader)
	if !ok {
		return 0
	}
	return exchange.Delay(v)
}

// hold makes a message ready for the queue of a delayed exchange: its time to live is
// its delay there. It takes over the reference and returns one, of a copy when others
// have the message too; nil when memory is refused.
func (s *Shard) hold(m *core.Message) *core.Message {
	delay := s.Broker.codecs[m.Encoding].Delay(m)
	if m.Refs() > 1 {
		own := core.NewMessage(s.arena, m.Exchange(), m.Key(), m.Head(), m.BodyLen())
		if own != nil {
			own.AppendBody(m.Body())
			own.Encoding, own.Flags, own.Priority, own.Arrival = m.Encoding, m.Flags, m.Priority, m.Arrival
		}
		m.Release(s.arena)
		if m = own; m == nil {
			return nil
		}
	}
	m.Flags |= core.FlagExpires
	m.TTL = delay
	return m
}

// release routes a message whose time has come. It reports whether the place where it
// was held is kept until it arrived.
func (s *Shard) release(d death) (kept bool) {
	at := d.q.Space.(*holding)
	if at.x.deleted.Load() {
		return false
	}
	r := s.Broker.codecs[d.Msg.Encoding].Release(s.deadHead[:0], d.Msg, s.wallMS)
	s.deadHead = r.Head
	m := core.NewMessage(s.arena, d.Msg.Exchange(), d.Msg.Key(), r.Head, d.Msg.BodyLen())
	if m == nil {
		s.Stats.DeadDropped++
		return false
	}
	m.AppendBody(d.Msg.Body())
	m.Encoding = d.Msg.Encoding
	m.Priority = d.Msg.Priority
	m.Flags = d.Msg.Flags &^ core.FlagExpires
	if r.Expires {
		m.Flags |= core.FlagExpires
		m.TTL = r.TTL
	}
	queues := s.routeReleased(at, m, r.Keys)
	h := s.handoverOf(d, queues)
	for _, q := range queues {
		s.Stats.Released++
		m.AddRef(1)
		h = s.deadTo(q, m, &d, h, 0)
	}
	m.Release(s.arena)
	if h == nil {
		return false
	}
	h.Settled(0, true) // the one that was counted for ourselves
	return true
}

// routeReleased finds the queues of a message that was held, by the bindings of now.
func (s *Shard) routeReleased(at *holding, m *core.Message, more [][]byte) []*queue.Queue {
	h := s.Broker.codecs[m.Encoding].Headers(m)
	if len(more) > 0 {
		return s.RouteAll(at.v, at.x, m.Key(), more, h)
	}
	queues, _ := s.Route(at.v, at.x, m.Key(), h)
	return queues
}
