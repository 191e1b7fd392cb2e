//ringmq:hot

package queue

import (
	"sync/atomic"

	"ringmq/engine/core"
)

// DeliverFlags say how a message is handed to a Sink: flags in the lowest octet, and
// how often the message came back before in the others.
type DeliverFlags uint32

const (
	// Redelivered: the message was handed out before (BAS-15).
	Redelivered DeliverFlags = 1 << iota
	// Owned: the sink got the queue's reference and must release it. Without
	// it the message is borrowed for the duration of the call.
	Owned
	// Counted: the delivery took a place in the channel's shared window.
	Counted
	// Offset: the message comes from a stream, and its sequence number is its offset.
	Offset
)

// countShift is where the count begins in DeliverFlags.
const countShift = 8

// Count is how often the message was handed out and came back. Only queues that limit
// it tell (DLX-09); elsewhere it is 0.
func (f DeliverFlags) Count() int { return int(f >> countShift) }

// Extra reports that the delivery needs a header of the queue's making.
func (f DeliverFlags) Extra() bool { return f&^(Redelivered|Owned|Counted) != 0 }

// WithCount adds a count.
func (f DeliverFlags) WithCount(n uint16) DeliverFlags { return f | DeliverFlags(n)<<countShift }

// Sink is a consumer's way out. It is called on the queue's loop.
type Sink interface {
	// Full reports that the consumer's connection cannot take more now; the
	// consumer is parked until Resume.
	Full() bool
	// Deliver hands over one message.
	Deliver(seq uint64, m *core.Message, f DeliverFlags)
	// Cancelled says that the queue is gone (CAN-01).
	Cancelled()
}

// Window is the prefetch window that all consumers of a channel share
// (QOS-02). Any loop may use it.
type Window struct {
	limit atomic.Int32 // 0 = no limit
	used  atomic.Int32
}

// SetLimit changes the limit; 0 lifts it.
func (w *Window) SetLimit(n int32) { w.limit.Store(n) }

// Limited reports whether a limit is set.
func (w *Window) Limited() bool { return w.limit.Load() > 0 }

// Take reserves one place, false when the window is full. It never takes more
// than there is, not even for a moment: a consumer on another loop that met that
// moment would be parked although a place had just become free.
func (w *Window) Take() bool {
	for {
		used := w.used.Load()
		if used >= w.limit.Load() {
			return false
		}
		if w.used.CompareAndSwap(used, used+1) {
			return true
		}
	}
}

// Add counts deliveries that were made before the limit was set.
func (w *Window) Add(n int32) { w.used.Add(n) }

// Give returns n places.
func (w *Window) Give(n int32) { w.used.Add(-n) }

// Consumer is a subscription as its queue sees it; it belongs to the queue's
// loop. Fill in the exported fields before Subscribe.
type Consumer struct {
	Tag       string
	Sink      Sink
	Window    *Window // nil or unlimited: only Prefetch counts
	Prefetch  uint32  // 0 = unlimited
	Priority  int32
	NoAck     bool
	Exclusive bool
	Cursor    *Cursor // of a stream's consumer, nil otherwise

	queue      *Queue
	level      *level
	next, prev *Consumer // ring of those that may take messages
	unacked    uint32
	index      int  // in the queue's members
	waiting    bool // in the ring
}

// Queue is the queue that the consumer is subscribed to, nil when it is not.
func (c *Consumer) Queue() *Queue { return c.queue }

// Unacked is the number of messages that the consumer holds.
func (c *Consumer) Unacked() uint32 { return c.unacked }

func (c *Consumer) windowFull() bool {
	return !c.NoAck && c.Prefetch != 0 && c.unacked >= c.Prefetch
}

// level is the ring of consumers of one priority.
type level struct {
	priority  int32
	consumers int
	front     *Consumer
}

// offer puts a consumer at the end of its ring.
func (c *Consumer) offer() {
	if c.waiting || c.level == nil {
		return
	}
	c.waiting = true
	l := c.level
	if l.front == nil {
		c.next, c.prev = c, c
		l.front = c
		return
	}
	last := l.front.prev
	last.next, c.prev = c, last
	c.next, l.front.prev = l.front, c
}

// park takes a consumer out of its ring.
func (c *Consumer) park() {
	if !c.waiting {
		return
	}
	c.waiting = false
	l := c.level
	if c.next == c {
		l.front = nil
	} else {
		c.prev.next, c.next.prev = c.next, c.prev
		if l.front == c {
			l.front = c.next
		}
	}
	c.next, c.prev = nil, nil
}
