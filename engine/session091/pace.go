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

	// paceTick is how often a pause is looked at.
	paceTick = int64(time.Millisecond)

	// paceDrain is how many messages a tick must have drained for the pause to
	// go on: a quarter of a million a second.
	paceDrain = 256

	// paceRest is how long a publisher is left alone after a pause that did
	// not help.
	paceRest = int64(50 * time.Millisecond)
)

// paced is a publisher that waits for a queue's consumers.
type paced struct {
	c         *conn
	q         *queue.Queue
	since     int64  // start of this tick, monotonic nanoseconds
	delivered uint64 // of the queue at that time
}

// pace pauses a publisher whose queue is far ahead of active consumers.
func (c *conn) pace(q *queue.Queue) {
	now := c.shard.Now()
	if c.stalled || now < c.paceFrom || q.Consumers() == 0 {
		return
	}
	c.stalled = true
	lp := c.lp
	lp.paced = append(lp.paced, paced{c, q, now, q.Delivered})
	lp.armPace(now)
}

func (lp *loopState) armPace(now int64) {
	if !lp.paceTimer.Armed() {
		if lp.paceTimer.Fire == nil {
			lp.paceTimer.Fire = func(int64) {} // its turn does the work
		}
		lp.loop.Arm(&lp.paceTimer, now+paceTick)
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
			p.since, p.delivered = now, p.q.Delivered
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
	if p.q.Ready() < paceResume || p.q.Consumers() == 0 || p.c.state >= stateDying {
		return true
	}
	ticks := (now - p.since) / paceTick
	if ticks > 0 && p.q.Delivered-p.delivered < uint64(ticks)*paceDrain {
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
