package queue

import "ringmq/engine/core"

// Type is a kind of queue as clients name it in x-queue-type (spec C.1).
type Type uint8

// The types.
const (
	Classic Type = iota
	// Quorum queues are durable, count how often they handed a message out, and have a delivery limit.
	Quorum
	// Stream queues keep what was consumed.
	Stream
)

// String is the name of the type in x-queue-type.
func (t Type) String() string { return [...]string{"classic", "quorum", "stream"}[t] }

// Rules are what a queue does with its messages: its arguments and the policies
// that apply to it, taken together. Unlike the rest of the settings they may change
// while the queue lives.
type Rules struct {
	TTL          int64 // message time to live in ms, -1 = none
	Expires      int64 // ms without use until the queue is deleted, 0 = never
	MaxLength    int64 // ready messages, -1 = none
	MaxBytes     int64 // body bytes of ready messages, -1 = none
	Overflow     Overflow
	DeadLetter   bool
	DeadExchange string
	DeadKey      string
	DeadKeySet   bool
	// AtLeastOnce is the dead letter strategy of that name: a dead letter that its
	// target refuses stays, and is offered again.
	AtLeastOnce bool
	// DeliveryLimit is how often a message may come back before it is dead-lettered,
	// -1 = as often as it likes.
	DeliveryLimit int64
	// ConsumerTimeout is how long a consumer may hold a delivery, ms; 0 = for ever,
	// -1 = as the broker says.
	ConsumerTimeout int64
	// MaxAge is how long a stream keeps a message, ms; 0 = for ever.
	MaxAge int64
}

// NoRules are those of a queue that was declared without arguments.
func NoRules() Rules {
	return Rules{TTL: -1, MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1, ConsumerTimeout: -1}
}

// SetRules changes what the queue does from now on, to messages that it holds as
// well (POL-04). now is monotonic nanoseconds. The queue's loop only; the caller
// asks for nothing else.
func (q *Queue) SetRules(r Rules, now int64) {
	old := q.Rules
	if q.stream != nil {
		r = streamRules(r)
		q.stream.sweepAt = 0
	}
	q.Rules = r
	q.timeout.Store(r.ConsumerTimeout)
	q.limited = q.stream == nil && (r.MaxLength >= 0 || r.MaxBytes >= 0)
	if r.TTL != old.TTL && q.order.live > 0 {
		q.beginRetime()
	}
	if r.Expires != old.Expires {
		if at := q.ExpiresAt(); at != 0 {
			q.host.Schedule(q, max(at, now))
		}
	}
	q.host.MarkDirty(q)
}

// ConsumerTimeout is Rules.ConsumerTimeout for other loops: any may ask.
func (q *Queue) ConsumerTimeout() int64 { return q.timeout.Load() }

// retimeBatch bounds how many entries one Settle gives their new deadline.
const retimeBatch = 8192

// beginRetime has every entry's deadline formed again, as the time to live of the
// queue is another now. The index of deadlines starts anew.
func (q *Queue) beginRetime() {
	q.deadlines = q.deadlines[:0]
	q.zeros = q.zeros[:0]
	q.retiming = true
	q.retimeAt, q.retimeEnd = q.order.base, q.order.tail
}

// retime does a part of that and reports whether there is more.
func (q *Queue) retime(now int64) (more bool) {
	f := &q.order
	seq, wall := max(q.retimeAt, f.base), q.host.WallMillis()
	for n := 0; seq < q.retimeEnd && seq < f.tail; n++ {
		if n == retimeBatch {
			q.retimeAt = seq
			return true
		}
		index := seq - f.base
		c := f.chunks[index>>chunkShift]
		if c == nil {
			seq = f.base + (index | chunkMask) + 1
			continue
		}
		if e := &c.entries[index&chunkMask]; e.state() != stateGone {
			e.flags &^= entryIndexed
			q.retimeEntry(seq, e, now, wall)
		}
		seq++
	}
	q.retiming = false
	return false
}

// retimeEntry forms an entry's deadline from the time when its message came. Of one
// whose body is on the disk that time is not at hand: it is put right when the body
// is read back (Fill), before anybody gets it.
func (q *Queue) retimeEntry(seq uint64, e *entry, now, wall int64) {
	ttl, passed := q.Rules.TTL, int64(0)
	if m := e.msg; m != nil {
		if m.Flags&core.FlagExpires != 0 && (ttl < 0 || m.TTL < ttl) {
			ttl = m.TTL
		}
		passed = max(0, wall-m.Arrival)
	}
	at := int64(0)
	if ttl >= 0 {
		at = max(now+(ttl-passed)*int64(1e6), neverDue+1)
	}
	if at == e.deadline && e.is(entryIndexed) {
		return
	}
	e.deadline = at
	e.flags &^= entryIndexed // a record in the index that says otherwise is not believed
	if at != 0 && e.state() == stateReady {
		q.index(seq, e)
	}
}
