package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// routeDead finds the queues of a dead-lettered copy: by the key of the queue it
// died in, or else by all keys that its sender gave it (DLX-02).
func (s *Shard) routeDead(v *VHost, x *Exchange, m *core.Message, rekeyed bool) []*queue.Queue {
	codec := s.Broker.codecs[m.Encoding]
	if !rekeyed {
		if more := codec.MoreKeys(m); len(more) > 0 {
			return s.RouteAll(v, x, m.Key(), more, codec.Headers(m))
		}
	}
	queues, _ := s.Route(v, x, m.Key(), codec.Headers(m))
	return queues
}
