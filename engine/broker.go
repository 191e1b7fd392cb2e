package engine

import (
	"sync"
	"sync/atomic"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// Codec reads and writes the protocol header of stored messages; each session
// package provides the one for its encoding.
type Codec interface {
	// Headers gives access to a message's header fields. The result is valid
	// until the next call on the same shard.
	Headers(m *core.Message) core.Fields
	// MoreKeys are the routing keys that the message carries beside its own; nil
	// for most. They are views into the message.
	MoreKeys(m *core.Message) [][]byte
	// Deaths lists the message's dead-letter history, newest first.
	Deaths(m *core.Message) []core.Death
	// AppendDeath appends to dst the message's header with a death recorded
	// in it (spec C.7). wall is the time in seconds since 1970.
	AppendDeath(dst []byte, m *core.Message, queueName string, why core.DeathReason, rekeyed bool, wall int64) []byte
	// Delay is for how many milliseconds the message asks to be held, 0 for not at
	// all (XT-02).
	Delay(m *core.Message) int64
	// Release appends to dst the header of a message that was held and is to be
	// routed now, and says what else it asks for. wallMS is the time in
	// milliseconds since 1970.
	Release(dst []byte, m *core.Message, wallMS int64) ReleasedMessage
}

// ReleasedMessage is what a message that was held is from then on.
type ReleasedMessage struct {
	Head []byte   // its header
	Keys [][]byte // its further keys: views into the message
	// Expires: it has a time to live of its own, TTL in milliseconds from now.
	Expires bool
	TTL     int64
}

// Broker is everything that exists, on all loops.
type Broker struct {
	Shards []*Shard

	codecs  [1]Codec
	vhosts  sync.Map // name -> *VHost
	catalog catalog
	// transientIDs is the last number of a queue that is not durable.
	transientIDs atomic.Uint64
	// queuesOn counts the queues of each shard, for placement.
	queuesOn []atomic.Int64

	storage *StorageOptions // nil until OpenStorage
	pressed atomic.Int32    // shards whose publishers should wait: IsBehind
	budget  atomic.Int64    // bytes of messages in memory, of all shards; 0 = no bound

	admin admin

	alarms     atomic.Uint32 // of Alarm
	alarmHooks []func()
}

// NewBroker makes a broker with one shard for each loop and the vhost "/".
// codec091 is the codec of core.Encoding091.
func NewBroker(shards int, codec091 Codec) *Broker {
	b := &Broker{queuesOn: make([]atomic.Int64, shards)}
	b.codecs[core.Encoding091] = codec091
	for i := range shards {
		b.Shards = append(b.Shards, newShard(b, i, shards))
	}
	for _, s := range b.Shards {
		for _, peer := range b.Shards {
			if s != peer {
				peer.in[s.Index] = &s.out[peer.Index]
			}
		}
	}
	b.vhosts.Store("/", newVHost(b, "/"))
	return b
}

// VHost finds a vhost, nil if there is none.
func (b *Broker) VHost(name string) *VHost {
	v, ok := b.vhosts.Load(name)
	if !ok {
		return nil
	}
	return v.(*VHost)
}

// VHosts calls f for each vhost.
func (b *Broker) VHosts(f func(*VHost)) {
	b.vhosts.Range(func(_, v any) bool {
		f(v.(*VHost))
		return true
	})
}

// placementSlack is how many more queues than the emptiest shard the shard of
// the declaring connection may hold before a new queue goes elsewhere. Near is
// better, a function call instead of a mailbox, as long as one connection that
// declares everything does not put everything on one core.
const placementSlack = 16

// placeQueue chooses the shard of a new queue.
func (b *Broker) placeQueue(near *Shard) *Shard {
	least := near.Index
	for i := range b.queuesOn {
		if b.queuesOn[i].Load() < b.queuesOn[least].Load() {
			least = i
		}
	}
	chosen := near.Index
	if b.queuesOn[chosen].Load() > b.queuesOn[least].Load()+placementSlack {
		chosen = least
	}
	b.queuesOn[chosen].Add(1)
	return b.Shards[chosen]
}

func (b *Broker) queueGone(q *queue.Queue) { b.queuesOn[q.Shard].Add(-1) }
