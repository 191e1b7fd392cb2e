package engine

import (
	"strconv"
	"sync"
	"sync/atomic"

	"ringmq/engine/queue"
)

// ChangeKind says what a Change is about. The numbers are never given anew.
type ChangeKind uint8

// The kinds, in the order in which Load hands them over.
const (
	KindVHost ChangeKind = iota
	KindExchange
	KindQueue
	KindBinding
	KindMeta // the broker's own: counters
	KindPolicy
	KindLimits
	KindParameter
)

// Change is one change of the durable catalog: a record is put under a key, over
// what is there, or taken away. Key and Value are given away with it.
type Change struct {
	Kind   ChangeKind
	Delete bool
	Key    []byte
	Value  []byte // nothing when Delete
}

// Definitions keeps the durable catalog.
type Definitions interface {
	// Apply adds changes, atomic together, to what is written next, and returns
	// their number: 1, 2, 3 and so on. It never blocks and does not keep the
	// slice. Any goroutine; it is called under locks of the catalog.
	Apply(changes []Change) uint64
	// Durable is the number of the last change that is durable with all before
	// it. Any goroutine.
	Durable() uint64
	// Notify calls f once, on any goroutine and perhaps before it returns: with
	// nil when all up to n is durable, with an error when it could not be
	// written for now. It stays pending then and is tried again by itself.
	Notify(n uint64, f func(error))
	// Load hands over every record there is, kind by kind. Key and value are
	// valid during the call only. It is used before the first Apply.
	Load(f func(kind ChangeKind, key, value []byte) error) error
}

// catalog is the broker's part of the durable definitions. With no store, in
// tests, everything works and nothing is recorded.
type catalog struct {
	store Definitions // set before the loops run, never changed after
	// queueIDs is the id of the last durable queue that was made, ever. Log and
	// catalog know a queue by its id: one that was used again would give a new
	// queue the messages of a dead one.
	queueIDs atomic.Uint64
	// last is the number of the last change that was recorded.
	last atomic.Uint64
	// removing counts the removals that others may see already and that are not
	// recorded yet. What is made is recorded before anybody can see it.
	removing atomic.Int64
	// mu is taken after a vhost's lock. It makes the order of the numbers that
	// Apply gives the order in which last and the recorded counter grow.
	mu sync.Mutex
}

// transientID marks the ids of queues that are not durable. They have a counter
// of their own, which starts anew with the process.
const transientID = 1 << 63

// newQueueID is the id of a new queue.
func (b *Broker) newQueueID(durable bool) uint64 {
	if durable {
		return b.catalog.queueIDs.Add(1)
	}
	return transientID | b.transientIDs.Add(1)
}

// safe reports that the change n is durable. Any goroutine.
func (c *catalog) safe(n uint64) bool { return c.store == nil || c.store.Durable() >= n }

// used makes sure that an id is not given to a new queue. Any goroutine.
func (c *catalog) used(id uint64) {
	for last := c.queueIDs.Load(); last < id; last = c.queueIDs.Load() {
		if c.queueIDs.CompareAndSwap(last, id) {
			return
		}
	}
}

// metaQueueIDs is the key of the record that holds the last id of a durable
// queue, in decimal digits.
const metaQueueIDs = "last-queue-id"

// note adds a change to what record hands over. The vhost's lock is held.
func (v *VHost) note(c Change) { v.changes = append(v.changes, c) }

// record hands over what was noted, as one: a crash leaves all of it or
// nothing, so that no binding outlives its queue. It returns the number of the
// change, 0 if there was nothing. The vhost's lock is held.
func (v *VHost) record() uint64 {
	changes := v.changes
	if len(changes) == 0 {
		return 0
	}
	n := v.broker.catalog.record(changes)
	clear(changes)
	v.changes = changes[:0]
	return n
}

// remove takes things out of the catalog by f and records it, as one. The
// vhost's lock is held.
func (v *VHost) remove(f func()) {
	v.broker.catalog.removing.Add(1)
	f()
	v.record()
	v.broker.catalog.removing.Add(-1)
	v.dropHeld()
}

func (c *catalog) record(changes []Change) uint64 {
	if c.store == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range changes {
		if changes[i].Kind == KindQueue && !changes[i].Delete {
			last := strconv.AppendUint(nil, c.queueIDs.Load(), 10)
			changes = append(changes, Change{Kind: KindMeta, Key: []byte(metaQueueIDs), Value: last})
			break
		}
	}
	n := c.store.Apply(changes)
	c.last.Store(n)
	return n
}

// records reports whether changes are recorded at all; nothing is encoded for
// nobody.
func (c *catalog) records() bool { return c.store != nil }

// WhenDefined calls done on this loop when every change of the catalog so far is
// durable: at once, before it returns, when nothing is pending. done gets an
// error when the changes could not be written for now, for want of space; they
// stay in force and are written later. done is not called when the loop stops
// first.
func (s *Shard) WhenDefined(done func(error)) {
	c := &s.Broker.catalog
	if c.store == nil {
		done(nil)
		return
	}
	if c.removing.Load() > 0 {
		// The caller may have seen that something is gone: its number is not
		// given yet, but will be when the removal lets go of its vhost's lock.
		s.Broker.VHosts(func(v *VHost) {
			v.mu.Lock()
			defer v.mu.Unlock()
		})
	}
	last := c.last.Load()
	if c.store.Durable() >= last {
		done(nil)
		return
	}
	c.store.Notify(last, func(err error) { s.env.post(func() { done(err) }) })
}

// Reassigned records a queue's definition again after its Shard has changed.
// Any goroutine; the queue was restored.
func (b *Broker) Reassigned(q *queue.Queue) {
	v := vhostOf(q)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.has(q) {
		v.noteQueue(q)
		v.record()
	}
}
