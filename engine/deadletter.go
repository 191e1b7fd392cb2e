package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// death is a message on its way from a queue to the dead letter exchange.
type death struct {
	q   *queue.Queue
	m   *core.Message
	why core.DeathReason
}

// DeadLetter implements queue.Host. Routing happens when the queues are at
// rest, never from inside a queue, so that a chain of dead letters cannot
// recurse.
func (s *Shard) DeadLetter(q *queue.Queue, m *core.Message, why core.DeathReason) {
	if !q.Settings.DeadLetter {
		m.Release(s.arena)
		return
	}
	s.deaths = append(s.deaths, death{q, m, why})
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
	until := s.Stats.DeadLettered + deathCopies
	for n < len(s.deaths) && n < deathBatch && s.Stats.DeadLettered < until {
		d := s.deaths[n]
		s.deaths[n] = death{}
		n++
		s.deadLetter(d)
		d.m.Release(s.arena)
	}
	if n == 0 {
		return
	}
	rest := copy(s.deaths, s.deaths[n:])
	clear(s.deaths[rest:])
	s.deaths = s.deaths[:rest]
}

// deadLetter publishes a copy of the message with its death recorded (DLX-02
// to DLX-06). Confirms are not used inside: at most once.
func (s *Shard) deadLetter(d death) {
	v := d.q.Space.(*VHost)
	set := &d.q.Settings
	x := v.Exchange([]byte(set.DeadExchange))
	if x == nil {
		s.Stats.DeadDropped++
		return
	}
	codec := s.Broker.codecs[d.m.Encoding]
	key := d.m.Key()
	if set.DeadKeySet {
		key = []byte(set.DeadKey)
	}
	s.deadHead = codec.AppendDeath(s.deadHead[:0], d.m, d.q.Name, d.why, set.DeadKeySet, s.env.wall())
	m := core.NewMessage(s.arena, []byte(set.DeadExchange), key, s.deadHead, d.m.BodyLen())
	if m == nil {
		s.Stats.DeadDropped++
		return
	}
	m.AppendBody(d.m.Body())
	m.Encoding = d.m.Encoding
	m.Priority = d.m.Priority
	m.Flags = d.m.Flags &^ core.FlagExpires // its time to live is spent
	history := codec.Deaths(m)
	queues, _ := s.Route(v, x, key, codec.Headers(m))
	for _, q := range queues {
		if cycles(history, q.Name) {
			s.Stats.DeadDropped++
			continue
		}
		s.Stats.DeadLettered++
		m.AddRef(1)
		s.Publish(q, m, nil, 0)
	}
	m.Release(s.arena)
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
