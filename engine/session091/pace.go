package session091

import (
	"time"

	"ringmq/engine/queue"
)

// A publisher that runs ahead of consumers which are busy draining its queue
// costs them the processor that they share: the backlog leaves the cache, then
// needs fresh pages, and everything gets slower. Such a publisher is paused
// until the queue is short again, but only as long as that helps: when
// consumers turn out to be slow of their own accord the pause ends at once and
// the queue does what queues are for. docs/decisions/0003 has the figures.
const (
	// paceReady is the backlog above which a publisher is paused, paceResume
	// the one below which it goes on.
	paceReady  = 32768
	paceResume = 16384

	// pacePublishes is how many publishes to another loop's queue go by between
	// two looks at it.
	pacePublishes = 64

	// paceTick is how often a pause is judged: long enough that a loop which
	// the scheduler put aside for a few milliseconds is not taken for idle
	// consumers.
	paceTick = int64(10 * time.Millisecond)

	// paceDrain is how many messages the queue's loop must have delivered in a
	// tick for the pause to go on, 200,000 a second, and paceDrainQueue how
	// many of them must be the queue's own.
	paceDrain      = 2000
	paceDrainQueue = 200

	// paceRest is how long a publisher is left alone after a pause that did
	// not help: one that never helps costs a publisher a twentieth of its rate.
	paceRest = int64(200 * time.Millisecond)
)

// paced is a publisher that waits for a queue's consumers.
type paced struct {
	c         *conn
	q         *queue.Queue
	since     int64  // start of this tick, monotonic nanoseconds
	delivered uint64 // of the queue at that time
	busy      uint64 // deliveries of its whole loop at that time
}

// mark begins a tick.
func (p *paced) mark(now int64) {
	p.since = now
	p.delivered = p.q.Seen.Delivered()
	p.busy = p.c.srv.Broker.Shards[p.q.Shard].Delivered()
}

// pace pauses a publisher whose queue is far ahead of active consumers.
func (c *conn) pace(q *queue.Queue) {
	now := c.shard.Now()
	if c.stalled || now < c.paceFrom || q.Seen.Consumers() == 0 {
		return
	}
	c.stalled = true
	lp := c.lp
	p := paced{c: c, q: q}
	p.mark(now)
	lp.paced = append(lp.paced, p)
	lp.armPace(now)
}

func (lp *loopState) armPace(now int64) {
	if !lp.paceTimer.Armed() {
		if lp.paceTimer.Fire == nil {
			lp.paceTimer.Fire = func(int64) {} // its turn does the work
		}
		lp.loop.Arm(&lp.paceTimer, now+int64(time.Millisecond))
	}
}

// unpace ends the pauses that are over.
func (lp *loopState) unpace() {
	if len(lp.paced) == 0 {
		return
	}
	now := lp.shard.Now()
	kept := lp.paced[:0]
	for _, p := range lp.paced {
		if p.over(now) {
			p.c.stalled = false
			p.c.wake()
			continue
		}
		if now-p.since >= paceTick {
			p.mark(now)
		}
		kept = append(kept, p)
	}
	clear(lp.paced[len(kept):])
	lp.paced = kept
	if len(kept) > 0 {
		lp.armPace(now)
	}
}

func (p *paced) over(now int64) bool {
	if p.q.Seen.Ready() < paceResume || p.q.Seen.Consumers() == 0 || p.c.state >= stateDying {
		return true
	}
	ticks := uint64((now - p.since) / paceTick)
	if ticks > 0 && (p.q.Seen.Delivered()-p.delivered < ticks*paceDrainQueue ||
		p.c.srv.Broker.Shards[p.q.Shard].Delivered()-p.busy < ticks*paceDrain) {
		p.c.paceFrom = now + paceRest
		return true
	}
	return false
}

// stashPool keeps the buffers of connections that wait, so that pausing does
// not feed the garbage collector.
type stashPool struct{ free [][]byte }

const (
	stashesKept   = 16
	stashBytesMax = 2 << 20
)

func (p *stashPool) get() []byte {
	n := len(p.free)
	if n == 0 {
		return nil
	}
	b := p.free[n-1]
	p.free[n-1] = nil
	p.free = p.free[:n-1]
	return b
}

func (p *stashPool) put(b []byte) {
	if len(p.free) < stashesKept && cap(b) <= stashBytesMax {
		p.free = append(p.free, b[:0])
	}
}
