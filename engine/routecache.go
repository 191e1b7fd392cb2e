//ringmq:hot

package engine

import (
	"bytes"
	"hash/maphash"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// cachedRoute remembers where a key of an exchange led at one epoch.
type cachedRoute struct {
	exchange *Exchange
	epoch    uint64
	hash     uint64
	key      []byte
	queues   []*queue.Queue
}

// routeCache is a direct-mapped cache of routing results, one for each shard:
// no lock, no allocation once its slots are warm.
type routeCache struct {
	seed  maphash.Seed
	slots []cachedRoute
}

func (r *routeCache) init() { r.seed = maphash.MakeSeed() }

// Route finds the queues of a message that is published to x with a key. h
// gives access to its headers and may be nil where no headers exchange can be
// reached. The result is valid until the next call; keyed tells that it holds
// for every message with this exchange and key until the vhost's epoch changes.
func (s *Shard) Route(v *VHost, x *Exchange, key []byte, h core.Fields) (queues []*queue.Queue, keyed bool) {
	epoch := v.epoch.Load()
	r := &s.routes
	if r.slots == nil {
		r.slots = make([]cachedRoute, core.RouteCacheEntries)
	}
	hash := maphash.Bytes(r.seed, key)
	slot := &r.slots[hash%core.RouteCacheEntries]
	if slot.exchange == x && slot.epoch == epoch && slot.hash == hash && bytes.Equal(slot.key, key) {
		return slot.queues, true
	}
	queues, keyed = v.route(x, key, nil, h, &s.scratch)
	if keyed && len(queues) <= core.RouteCacheQueuesMax && x.Name != "" {
		slot.exchange, slot.epoch, slot.hash = x, epoch, hash
		slot.key = append(slot.key[:0], key...)
		slot.queues = append(slot.queues[:0], queues...)
	}
	return queues, keyed
}
