package engine

import (
	"sync/atomic"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// Shard is one loop's part of the broker. All methods are for the loop that
// owns it, except where they say otherwise.
type Shard struct {
	Index  int
	Broker *Broker

	arena core.Arena
	env   env
	now   int64 // monotonic nanoseconds of this turn
	// wallMS is the time of this turn in milliseconds since 1970.
	wallMS int64
	store  *store // nil: everything is kept in memory

	out []outbox  // to each shard; the own one is unused
	in  []*outbox // of each other shard, to this one; the own one is nil

	dirty    []*queue.Queue
	settling []*queue.Queue // the list being worked on
	owing    []*Subscription
	deaths   []death
	// deathsAfter is when dead letters that the log keeps are sent again.
	deathsAfter int64
	kept        keptDeaths
	graves      []*queue.Grave
	early       []*queue.Queue // made before the loop ran: touchEarly
	listed      []*queue.Queue // all that were ever changed and exist
	getters     []getter       // basic.get that wait for the disk
	routes      routeCache
	scratch     routeScratch
	deadHead    []byte // scratch of dead lettering

	// Stats of this shard; the loop reads them for others.
	Stats ShardStats

	holds     atomic.Int64  // bytes of message memory in use, as of the last turn
	delivered atomic.Uint64 // by all queues, as of the last turn; any loop reads it
}

// Delivered counts the deliveries of the shard's queues. Any loop may ask.
func (s *Shard) Delivered() uint64 { return s.delivered.Load() }

// ShardStats counts what passed through a shard since it started.
type ShardStats struct {
	Published, Unroutable, Remote, DeadLettered, DeadDropped uint64
	// Released counts the copies of messages that an exchange had held back.
	Released uint64
	// Unstored counts messages that the log had no room for, Lost those whose
	// body could not be read back.
	Unstored, Lost uint64
	// Gone is what deleted queues had counted, so that sums over all queues
	// never fall.
	Gone queue.Counts
}

// outbox is the way to another shard: a bounded mailbox, and what did not fit
// into it. While anything is pending the shard is congested and its sessions
// stop reading publishes, which is what bounds it.
type outbox struct {
	box     *mailbox
	pending []Command
	taken   int // of pending, already moved to the mailbox

	// full asks the receiver to wake the sender when it has made room. The
	// sender sets it and looks once more whether there is room; the receiver
	// makes room and looks at it: one of the two sees the other, so a sender
	// that sleeps on a full mailbox is not forgotten.
	full atomic.Bool
}

func newShard(b *Broker, index, shards int) *Shard {
	s := &Shard{Index: index, Broker: b, out: make([]outbox, shards), in: make([]*outbox, shards)}
	for i := range s.out {
		if i != index {
			s.out[i].box = newMailbox()
		}
	}
	s.routes.init()
	return s
}

// Arena is the loop's off-heap memory.
func (s *Shard) Arena() core.Arena { return s.arena }

// Tick tells the time of this turn. Input is handled before Begin, so whoever
// brings it calls Tick first.
func (s *Shard) Tick(now int64) { s.now, s.wallMS = now, s.env.wallMS(now) }

// WallMillis is the time of this turn in milliseconds since 1970.
func (s *Shard) WallMillis() int64 { return s.wallMS }

// Now is the time of this turn in monotonic nanoseconds.
func (s *Shard) Now() int64 { return s.now }

// MarkDirty implements queue.Host.
func (s *Shard) MarkDirty(q *queue.Queue) {
	if !q.Dirty {
		q.Dirty = true
		s.dirty = append(s.dirty, q)
		if !q.Listed {
			s.list(q)
		}
	}
}

// list notes a queue that holds, or may soon hold, something.
func (s *Shard) list(q *queue.Queue) {
	q.Listed, q.ListAt = true, len(s.listed)
	s.listed = append(s.listed, q)
}

func (s *Shard) unlist(q *queue.Queue) {
	if !q.Listed {
		return
	}
	last := len(s.listed) - 1
	moved := s.listed[last]
	s.listed[q.ListAt], moved.ListAt = moved, q.ListAt
	s.listed[last] = nil
	s.listed = s.listed[:last]
	q.Listed = false
}

// Store implements queue.Host.
func (s *Shard) Store() queue.Store {
	if s.store == nil {
		return nil
	}
	return s.store
}

// Schedule implements queue.Host.
func (s *Shard) Schedule(q *queue.Queue, at int64) { s.env.schedule(s, q, at) }

// Bury implements queue.Host.
func (s *Shard) Bury(g *queue.Grave) { s.graves = append(s.graves, g) }

// Unused implements queue.Host: an auto-delete queue lost its last consumer
// (QUE-09).
func (s *Shard) Unused(q *queue.Queue) { s.DeleteQueue(q) }

// DeleteQueue removes a queue of this shard from the catalog and empties it.
// It returns the number of ready messages it held.
func (s *Shard) DeleteQueue(q *queue.Queue) int {
	if !q.Space.(*VHost).removeQueue(q) {
		return 0
	}
	n := q.Delete(s.now)
	s.Stats.Gone.Add(&q.Counts)
	s.env.forget(q)
	s.unlist(q)
	if s.store != nil && q.Known {
		delete(s.store.queues, q.ID)
		s.store.goneAt = s.Broker.catalog.last.Load()
	}
	return n
}

// due is the timer of a queue: messages or the queue itself may have expired.
func (s *Shard) due(q *queue.Queue) {
	if q.Deleted() {
		return
	}
	if at := q.ExpiresAt(); at != 0 && at <= s.now {
		s.DeleteQueue(q)
		return
	} else if at != 0 {
		s.Schedule(q, at)
	}
	// The timer is for whichever is first; what is not due yet needs it again.
	if at := q.NextDue(); at > s.now {
		s.Schedule(q, at)
	}
	s.MarkDirty(q)
}

// settleRounds bounds how often a turn follows the consequences of its own
// work (dead letters that make other queues dirty) before the sockets get
// their turn again.
const settleRounds = 4

// Begin starts a turn: take the time, move what waited for room, run what
// other shards sent.
func (s *Shard) Begin(now int64) {
	s.Tick(now)
	s.flushPending()
	s.drain()
	if len(s.getters) > 0 {
		s.retryGets()
	}
}

// Settle brings every queue that changed to rest. It reports whether work is
// left for the next turn.
func (s *Shard) Settle() (more bool) {
	if s.store != nil {
		more = s.store.turn()
		s.store.page()
	}
	for range settleRounds {
		s.runDeaths()
		if len(s.dirty) == 0 {
			break
		}
		s.dirty, s.settling = s.settling[:0], s.dirty
		sum := uint64(0)
		for i, q := range s.settling {
			s.settling[i] = nil
			q.Dirty = false
			if q.Deleted() {
				continue
			}
			before := q.Delivered
			if q.Settle(s.now, core.DispatchBatch) {
				s.MarkDirty(q)
			}
			sum += q.Delivered - before
		}
		if sum > 0 {
			s.delivered.Store(s.delivered.Load() + sum)
		}
		s.settling = s.settling[:0]
	}
	s.dig()
	return more || len(s.dirty) > 0 || s.deathsReady() || len(s.graves) > 0
}

// dig frees a bounded part of what deleted and purged queues left behind.
func (s *Shard) dig() {
	if len(s.graves) == 0 {
		return
	}
	if g := s.graves[0]; g.Free(s.arena, core.PurgeBatch) {
		s.graves[0] = nil
		s.graves = s.graves[1:]
	}
}

// End finishes a turn: return delivery windows, publish the mailboxes, wake
// the loops that sleep.
func (s *Shard) End() {
	s.returnCredit()
	if s.store != nil {
		s.store.flush()
		if len(s.dirty) > 0 || s.deathsReady() {
			// The log had at hand what a queue waited for: another turn.
			s.env.wake(s.Index)
		}
	}
	// What this turn sent and found no room for asks for room before the loop sleeps.
	s.flushPending()
	for i := range s.out {
		o := &s.out[i]
		if o.box != nil && o.box.Flush() {
			s.env.wake(i)
		}
	}
}

// Congested reports that some other shard takes its commands slower than this
// one makes them. Sessions then stop reading from publishers for the turn.
func (s *Shard) Congested() bool {
	for i := range s.out {
		if len(s.out[i].pending) > 0 {
			return true
		}
	}
	return false
}

// Observe brings a queue to rest before its state is told to anybody.
func (s *Shard) Observe(q *queue.Queue) {
	s.runDeaths()
	q.Settle(s.now, core.DispatchBatch)
	s.runDeaths()
}
