package session091

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// ConnInfo describes a connection for management.
type ConnInfo struct {
	Name, User, VHost, State string
	Channels                 int
	Local, Peer              netip.AddrPort
	Heartbeat                int // seconds
	FrameMax, ChannelMax     int
	ConnectedAt              time.Time
	BytesIn, BytesOut        uint64
	ClientProperties         map[string]any
	UserProvidedName         string
	Mechanism                string
	Loop                     int
}

// QueueInfo describes a queue for management.
type QueueInfo struct {
	Name, VHost                    string
	Durable, Exclusive, AutoDelete bool
	Ready, Unacked, Consumers      int
}

// Counter is one figure of the broker.
type Counter struct {
	Name, Help, Kind string // Kind: "counter" or "gauge"
	Value            float64
}

// Connections lists the connections of all loops by name. Any goroutine but a
// loop's may call it.
func (s *Server) Connections() []ConnInfo {
	var mu sync.Mutex
	var all []ConnInfo
	s.onLoops(func(lp *loopState) {
		mu.Lock()
		defer mu.Unlock()
		for c := range lp.conns {
			if c.state >= stateTune && c.state < stateDying {
				all = append(all, c.info())
			}
		}
	})
	slices.SortFunc(all, func(a, b ConnInfo) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// Queues lists the queues of all loops in any order. Any goroutine but a loop's may
// call it.
func (s *Server) Queues() []QueueInfo {
	var mu sync.Mutex
	var all []QueueInfo
	s.onLoops(func(lp *loopState) {
		mu.Lock()
		defer mu.Unlock()
		s.Broker.VHosts(func(v *engine.VHost) {
			v.Queues(func(q *queue.Queue) {
				if q.Shard != lp.shard.Index || q.Deleted() {
					return
				}
				set := &q.Settings
				all = append(all, QueueInfo{
					Name: q.Name, VHost: v.Name,
					Durable: set.Durable, Exclusive: set.Exclusive, AutoDelete: set.AutoDelete,
					Ready: q.Ready(), Unacked: q.Unacked(), Consumers: q.Consumers(),
				})
			})
		})
	})
	return all
}

func (c *conn) info() ConnInfo {
	props, _ := tableAny(c.clientProps, 0).(map[string]any)
	name, _ := props["connection_name"].(string)
	st := "running"
	if c.state == stateClosing {
		st = "closing"
	} else if c.state < stateOpen {
		st = "starting"
	} else if blocked := c.blockState(); blocked != "" {
		st = blocked
	}
	return ConnInfo{
		Name: c.name, User: c.user, VHost: c.vhostName(), State: st, Channels: c.channels,
		Local: c.rc.LocalAddr(), Peer: c.rc.RemoteAddr(), Heartbeat: int(c.heartbeat),
		FrameMax: int(c.frameMax), ChannelMax: int(c.channelMax), ConnectedAt: c.since,
		BytesIn: c.rc.BytesIn(), BytesOut: c.rc.BytesOut(),
		ClientProperties: props, UserProvidedName: name, Mechanism: "PLAIN", Loop: c.shard.Index,
	}
}

// tableAny is a field table as JSON would have it.
func tableAny(t amqp091.Table, depth int) any {
	out := map[string]any{}
	if depth > 8 {
		return out
	}
	for key, v := range t.All() {
		if _, dup := out[string(key)]; !dup {
			out[string(key)] = valueAny(v, depth+1)
		}
	}
	return out
}

func valueAny(v amqp091.Value, depth int) any {
	if t, ok := v.Table(); ok {
		return tableAny(t, depth)
	}
	if v.Tag == 'A' {
		items := []any{}
		if depth <= 8 {
			for item := range v.Array() {
				items = append(items, valueAny(item, depth+1))
			}
		}
		return items
	}
	cv := toValue(v)
	switch cv.Kind {
	case core.KindVoid:
		return nil
	case core.KindBool:
		return cv.Int != 0
	case core.KindInt, core.KindTime:
		return cv.Int
	case core.KindFloat:
		return cv.Float
	}
	return string(append([]byte(nil), cv.Str...))
}

// CloseConnection closes a connection by name for an operator. It reports
// whether there was one. Any goroutine but a loop's may call it.
func (s *Server) CloseConnection(name, reason string) bool {
	var mu sync.Mutex
	found := false
	if reason == "" {
		reason = "Closed via management plugin"
	}
	s.onLoops(func(lp *loopState) {
		for c := range lp.conns {
			if c.name == name && c.state < stateDying {
				c.force(reason)
				mu.Lock()
				found = true
				mu.Unlock()
			}
		}
	})
	return found
}
