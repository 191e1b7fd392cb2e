package session091

import (
	"sync"

	"ringmq/engine"
	"ringmq/engine/queue"
)

// totals adds up what the loops know.
type totals struct {
	connections, channels, consumers, queues, exchanges   int
	ready, unacked                                        int
	published, unroutable, remote, dead, deadDropped      uint64
	counts                                                queue.Counts
	unconfirmed, heldDeliveries, stashBytes, partialBytes int
}

// Counters reads the broker's figures. Any goroutine but a loop's may call it.
func (s *Server) Counters() []Counter {
	var mu sync.Mutex
	var t totals
	s.Broker.VHosts(func(v *engine.VHost) {
		v.Exchanges(func(*engine.Exchange) { t.exchanges++ })
	})
	s.onLoops(func(lp *loopState) {
		mu.Lock()
		defer mu.Unlock()
		t.addLoop(lp)
	})
	gauge := func(name string, v int, help string) Counter {
		return Counter{Name: "ringmq_" + name, Help: help, Kind: "gauge", Value: float64(v)}
	}
	count := func(name string, v uint64, help string) Counter {
		return Counter{Name: "ringmq_" + name + "_total", Help: help, Kind: "counter", Value: float64(v)}
	}
	return []Counter{
		gauge("connections", t.connections, "Open client connections."),
		gauge("channels", t.channels, "Open channels."),
		gauge("consumers", t.consumers, "Consumers of all queues."),
		gauge("queues", t.queues, "Queues."),
		gauge("exchanges", t.exchanges, "Exchanges, the predeclared ones included."),
		gauge("messages_ready", t.ready, "Messages that could be delivered."),
		gauge("messages_unacknowledged", t.unacked, "Messages that consumers hold."),
		gauge("deliveries_held", t.heldDeliveries, "Deliveries that channels remember until they are acknowledged."),
		gauge("publishes_unconfirmed", t.unconfirmed, "Publishes in confirm mode whose queues have not all answered."),
		gauge("input_waiting_bytes", t.stashBytes+t.partialBytes, "Bytes received and not yet parsed: cut-off frames and connections that wait."),
		count("connections_opened", s.opened.Load(), "Connections accepted."),
		count("login_failures", s.loginFailures.Load(), "Logins refused."),
		count("messages_published", t.published, "Messages received from publishers."),
		count("messages_unroutable", t.unroutable, "Messages that reached no queue."),
		count("messages_forwarded", t.remote, "Messages handed to a queue of another loop."),
		count("messages_enqueued", t.counts.Published, "Messages given to queues, those that they refused included."),
		count("messages_delivered", t.counts.Delivered, "Messages handed to consumers and basic.get."),
		count("messages_acknowledged", t.counts.Acked, "Messages acknowledged."),
		count("messages_expired", t.counts.Expired, "Messages that expired."),
		count("messages_dropped", t.counts.Dropped, "Messages dropped by length limits."),
		count("messages_refused", t.counts.Refused, "Messages turned away by length limits."),
		count("messages_dead_lettered", t.dead, "Dead letters that reached a queue."),
		count("messages_dead_dropped", t.deadDropped, "Dead letters without an exchange, or that closed a cycle."),
	}
}

// addLoop runs on the loop.
func (t *totals) addLoop(lp *loopState) {
	st := &lp.shard.Stats
	t.published += st.Published
	t.unroutable += st.Unroutable
	t.remote += st.Remote
	t.dead += st.DeadLettered
	t.deadDropped += st.DeadDropped
	t.counts.Add(&st.Gone)
	for c := range lp.conns {
		t.connections++
		t.channels += c.channels
		t.stashBytes += len(c.stash) - c.stashAt
		t.partialBytes += len(c.carry)
		c.each(func(ch *channel) {
			t.heldDeliveries += ch.unacked.count
			t.unconfirmed += len(ch.confirms.slots)
		})
	}
	lp.srv.Broker.VHosts(func(v *engine.VHost) {
		v.Queues(func(q *queue.Queue) {
			if q.Shard != lp.shard.Index || q.Deleted() {
				return
			}
			t.queues++
			t.ready += q.Ready()
			t.unacked += q.Unacked()
			t.consumers += q.Consumers()
			t.counts.Add(&q.Counts)
		})
	})
}
