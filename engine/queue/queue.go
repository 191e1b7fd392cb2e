package queue

import (
	"slices"
	"sync/atomic"

	"ringmq/engine/core"
)

// Host is the shard that a queue belongs to.
type Host interface {
	// Arena is the loop's off-heap memory.
	Arena() core.Arena
	// Now is the time of this turn, monotonic nanoseconds.
	Now() int64
	// WallMillis is the time of this turn, ms since 1970.
	WallMillis() int64
	// MarkDirty asks for Settle before the turn ends. Cheap when repeated.
	MarkDirty(q *Queue)
	// Schedule asks for Settle at a time, monotonic nanoseconds.
	Schedule(q *Queue, at int64)
	// DeadLetter takes over a message that leaves without having been
	// acknowledged, for the queue's dead letter exchange.
	DeadLetter(q *Queue, d Dead)
	// Unused says that the last consumer of an auto-delete queue went.
	Unused(q *Queue)
	// Store is the shard's log, nil when everything is kept in memory. Any loop.
	Store() Store
	// Bury takes the memory of everything a deleted or purged queue held, to
	// be freed a bounded part at a time.
	Bury(g *Grave)
}

// Overflow says what happens above a length limit.
type Overflow uint8

// The overflow policies of x-overflow.
const (
	DropHead Overflow = iota
	RejectPublish
	RejectPublishDLX
)

// Settings are what a declare fixes about a queue.
type Settings struct {
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	Args       core.Args

	// Rules are those of the arguments alone; Queue.Rules are the ones in force.
	Rules
	Type         Type
	SingleActive bool  // only one consumer at a time gets messages
	MaxPriority  int16 // highest level of a queue with priorities, 0 = none
}

// Queue is one queue. Name, ID, Shard, Owner and Settings never change and may
// be read by any loop; all else belongs to the queue's loop.
type Queue struct {
	Name     string
	ID       uint64 // never used again for a durable queue; the log names it
	Shard    int
	Owner    any // connection that an exclusive queue belongs to, nil otherwise
	Settings Settings

	// Rules are in force; SetRules changes them. The queue's loop only.
	Rules Rules

	// Slot is the shard's own: whether the queue is on its dirty list, its timer.
	Slot any
	// Dirty is the shard's mark that Settle is already asked for.
	Dirty bool
	// Space is the vhost that the queue lives in; the engine's own.
	Space any
	// DefSeq is the number of the catalog change that made the queue durable, 0
	// if it is not recorded. Set before the queue can be found.
	DefSeq uint64
	// Known is the store's mark that it has met the queue, Listed the shard's
	// that it has; ListAt is the place in its list.
	Known, Listed bool
	ListAt        int
	// WasShard is the shard whose log still holds the queue's messages after the
	// number of loops fell, -1 otherwise. Used while starting only.
	WasShard int

	host       Host
	store      Store // nil: everything is in memory
	order      fifo
	deadlines  deadlineHeap
	levels     []*level
	ready      int
	unacked    int
	readyBytes int64
	members    []*Consumer
	exclusive  *Consumer
	active     *Consumer   // the one that gets messages, of a queue with SingleActive
	standby    []*Consumer // those behind it, in the order in which they came
	limited    bool
	zeros      []uint64 // entries without any time to live, until this Settle
	hadOne     bool     // had a consumer: auto-delete applies
	deleted    bool
	usedAt     int64

	retiming            bool // deadlines are being formed anew, see beginRetime
	retimeAt, retimeEnd uint64

	// Deliveries that a restart will know of: those below leased, and of messages
	// from leaseFrom on that are below leaseAsked.
	leased, leaseFrom, leaseAsked uint64
	deliveredTo                   uint64 // no recovered entry from here on was delivered

	stream    *stream // of a queue of that type, nil otherwise
	owed      int     // dead letters that count for the limits, see Owe
	owedBytes int64   // bytes of their bodies
	counting  bool    // a quorum queue: it tells and limits how often messages come back

	absent      int    // ready entries whose body is not in memory
	warm        int64  // bytes of bodies that are both in memory and in the log
	absentTally *int64 // the sums of absent and warm over queues, see Tally
	warmTally   *int64
	ahead       int    // bytes read back and not delivered yet
	aheadAt     uint64 // where reading back goes on
	pageAt      uint64 // where PageOut goes on
	loading     bool   // a Load is under way

	timeout atomic.Int64 // Rules.ConsumerTimeout

	// Seen is what other loops may look at, as of the last Settle.
	Seen Gauges

	Counts
}

// Counts is what a queue counts from its making on. Published counts all that
// it was given, what it refused included.
type Counts struct {
	Published, Delivered, Acked, Expired, Dropped, Refused uint64
}

// Add adds another queue's counts.
func (c *Counts) Add(o *Counts) {
	c.Published += o.Published
	c.Delivered += o.Delivered
	c.Acked += o.Acked
	c.Expired += o.Expired
	c.Dropped += o.Dropped
	c.Refused += o.Refused
}

// Gauges are a queue's figures for other loops: a little old, never torn.
type Gauges struct {
	ready     atomic.Int64
	consumers atomic.Int64
	delivered atomic.Uint64
}

// Ready is the number of messages that could be delivered.
func (g *Gauges) Ready() int64 { return g.ready.Load() }

// Consumers is the number of consumers.
func (g *Gauges) Consumers() int64 { return g.consumers.Load() }

// Delivered counts deliveries since the queue was made.
func (g *Gauges) Delivered() uint64 { return g.delivered.Load() }

func (q *Queue) show() {
	q.Seen.ready.Store(int64(q.ready))
	q.Seen.consumers.Store(int64(len(q.members)))
	q.Seen.delivered.Store(q.Delivered)
}

// New makes an empty queue. It may be called on any loop, before the queue is
// known to anybody; Attach binds it to its host.
func New(name string, id uint64, shard int, s Settings) *Queue {
	q := &Queue{
		Name: name, ID: id, Shard: shard, Settings: s, Rules: s.Rules, WasShard: -1,
		limited: s.MaxLength >= 0 || s.MaxBytes >= 0,
	}
	q.timeout.Store(s.ConsumerTimeout)
	if s.MaxPriority > 0 {
		q.order.levels = newLevels(uint8(s.MaxPriority))
	}
	q.counting = s.Type == Quorum
	if s.Type == Stream {
		q.stream, q.limited, q.Rules = &stream{}, false, streamRules(s.Rules)
	}
	return q
}

// Attach binds the queue to its shard. Any loop may call it once, before the
// queue can be found.
func (q *Queue) Attach(h Host, now int64) {
	q.host = h
	q.store = h.Store()
	q.usedAt = now
}

// Ready is the number of messages that could be delivered.
func (q *Queue) Ready() int { return q.ready }

// Unacked is the number of messages that consumers hold.
func (q *Queue) Unacked() int { return q.unacked }

// Consumers is the number of consumers.
func (q *Queue) Consumers() int { return len(q.members) }

// Deleted reports a queue that is gone.
func (q *Queue) Deleted() bool { return q.deleted }

// Subscribe adds a consumer. It refuses when exclusivity forbids it (BAS-03).
func (q *Queue) Subscribe(c *Consumer) bool {
	if q.exclusive != nil || (c.Exclusive && (len(q.members) > 0 || q.Settings.SingleActive)) {
		return false
	}
	c.queue = q
	if q.stream != nil {
		q.attach(c)
	}
	if q.Settings.SingleActive && q.active != nil {
		q.standby = append(q.standby, c)
	} else {
		q.activate(c)
	}
	c.index = len(q.members)
	q.members = append(q.members, c)
	q.hadOne = true
	if c.Exclusive {
		q.exclusive = c
	}
	c.offer()
	q.host.MarkDirty(q)
	return true
}

// activate lets a consumer take part in dispatch.
func (q *Queue) activate(c *Consumer) {
	c.level = q.levelOf(c.Priority)
	c.level.consumers++
	if q.Settings.SingleActive {
		q.active = c
	}
}

// deactivate is the end of that. Of a queue with a single active consumer the one
// that waited longest is next (CSM-02); what the old one holds stays held.
func (q *Queue) deactivate(c *Consumer) {
	if c.level == nil {
		if at := slices.Index(q.standby, c); at >= 0 {
			q.standby = slices.Delete(q.standby, at, at+1)
		}
		return
	}
	l := c.level
	c.level = nil
	if l.consumers--; l.consumers == 0 {
		at := slices.Index(q.levels, l)
		q.levels = slices.Delete(q.levels, at, at+1)
	}
	if q.active != c {
		return
	}
	q.active = nil
	if len(q.standby) > 0 {
		at := q.nextStandby()
		next := q.standby[at]
		q.standby = slices.Delete(q.standby, at, at+1)
		q.activate(next)
		next.offer()
		q.host.MarkDirty(q)
	}
}

// nextStandby is whose turn it is: who waited longest, of a quorum queue among those of
// the highest priority (CSM-02).
func (q *Queue) nextStandby() (at int) {
	if !q.counting {
		return 0
	}
	for i, c := range q.standby {
		if c.Priority > q.standby[at].Priority {
			at = i
		}
	}
	return at
}

func (q *Queue) levelOf(priority int32) *level {
	at := len(q.levels)
	for i, l := range q.levels {
		if l.priority == priority {
			return l
		}
		if l.priority < priority {
			at = i
			break
		}
	}
	q.levels = append(q.levels, nil)
	copy(q.levels[at+1:], q.levels[at:])
	q.levels[at] = &level{priority: priority}
	return q.levels[at]
}

// Unsubscribe removes a consumer; what it holds stays held (BAS-05).
func (q *Queue) Unsubscribe(c *Consumer, now int64) {
	if c.queue != q || q.deleted {
		return
	}
	c.park()
	if q.stream != nil {
		c.Cursor.remove()
	}
	q.deactivate(c)
	c.queue = nil
	last := len(q.members) - 1
	q.members[c.index] = q.members[last]
	q.members[c.index].index = c.index
	q.members[last] = nil
	q.members = q.members[:last]
	if q.exclusive == c {
		q.exclusive = nil
	}
	q.Touch(now)
	if last == 0 && q.hadOne && q.Settings.AutoDelete {
		q.host.Unused(q)
	}
}

// SetWindow changes the shared window of a consumer and offers it messages.
func (q *Queue) SetWindow(c *Consumer, w *Window) {
	c.Window = w
	q.Resume(c)
}

// Touch restarts the clock of x-expires (TTL-05).
func (q *Queue) Touch(now int64) {
	q.usedAt = now
	if at := q.ExpiresAt(); at != 0 {
		q.host.Schedule(q, at)
	}
}

// ExpiresAt is when an unused queue is to be deleted, 0 for never.
func (q *Queue) ExpiresAt() int64 {
	if q.Rules.Expires == 0 || len(q.members) > 0 {
		return 0
	}
	return q.usedAt + q.Rules.Expires*int64(1e6)
}

// Got is a message taken by basic.get.
type Got struct {
	Seq         uint64
	Message     *core.Message // borrowed unless NoAck was asked for; then owned
	Redelivered bool
	Count       uint16 // how often it came back, see DeliverFlags.Count
	Remaining   int
}

// GotState is the outcome of Get.
type GotState uint8

const (
	// GotNone: the queue has nothing ready.
	GotNone GotState = iota
	// GotOne: a message was taken.
	GotOne
	// GotLater: the next message waits for the disk; the queue will be marked
	// dirty when it is worth another try.
	GotLater
)

// Get takes one message outside of any consumer (BAS-09).
func (q *Queue) Get(noAck bool, now int64) (g Got, state GotState) {
	q.Touch(now)
	for q.Settle(now, core.DispatchBatch) && q.overdue(now) {
	}
	if q.ready == 0 {
		return Got{}, GotNone
	}
	seq, e := q.order.first()
	if e.pos != 0 && !q.deliverable(seq, e) {
		return Got{}, GotLater
	}
	q.order.taken(seq)
	q.ready--
	m := e.msg
	q.readyBytes -= int64(e.size)
	g = Got{Seq: seq, Message: m, Redelivered: e.deliveries > 0, Remaining: q.ready}
	if q.counting {
		g.Redelivered = g.Redelivered || e.is(entryMaybe)
		g.Count = e.deliveries
	}
	q.Delivered++
	if noAck {
		q.handOver(seq, e)
		return g, GotOne
	}
	q.hold(e)
	return g, GotOne
}
