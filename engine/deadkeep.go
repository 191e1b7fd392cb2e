package engine

import (
	"slices"
	"time"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// With the dead letter strategy at-least-once a dead letter that reaches no queue, or
// that one of its queues refuses, is kept and offered again, to those that did not take
// it. Its place in the log stays its old one, its body is read back when it is its turn,
// and it counts for its queue's limits as if it were still there, which bounds what can
// gather. Each source has a list of its own: a target that is full holds up nobody else's.

const (
	// keptEvery is how long a source waits after one of its dead letters was refused,
	// keptSoon between two of its turns otherwise.
	keptEvery = 500 * time.Millisecond
	keptSoon  = 5 * time.Millisecond
	// keptBatch is how many of a source are offered at a time, keptTotal how many of all.
	keptBatch = 256
	keptTotal = 1024
)

// keptDeaths are a shard's.
type keptDeaths struct {
	lists []*keptList
	of    map[*queue.Queue]*keptList
	timer shardTimer
}

// keptList are those of one source, without bodies.
type keptList struct {
	q     *queue.Queue
	list  []death
	after int64 // not offered before, monotonic nanoseconds
}

// keepDeath keeps a dead letter for later. only are the queues that still have to take it,
// nil for those that it is routed to then.
func (s *Shard) keepDeath(q *queue.Queue, p queue.Place, why core.DeathReason, only []*queue.Queue) {
	k := &s.kept
	l := k.of[q]
	if l == nil {
		if k.of == nil {
			k.of = map[*queue.Queue]*keptList{}
		}
		l = &keptList{q: q}
		k.of[q] = l
		k.lists = append(k.lists, l)
	}
	q.Owe(p.Size)
	l.list = append(l.list, death{q: q, Dead: queue.Dead{Why: why, Place: p}, only: only})
	l.after = s.now + int64(keptEvery)
	s.armKept(l.after)
}

func (s *Shard) armKept(at int64) {
	k := &s.kept
	if k.timer.Fire == nil {
		k.timer.Fire = s.offerKept
	}
	if !k.timer.Armed() {
		s.env.armTimer(&k.timer, at)
	}
}

// offerKept gives the oldest of each source another try.
func (s *Shard) offerKept(now int64) {
	s.Tick(now)
	k := &s.kept
	left, next, at := keptTotal, int64(0), 0
	for _, l := range k.lists {
		if left > 0 && l.after <= now {
			left -= s.offerOf(l, min(left, keptBatch))
			l.after = now + int64(keptSoon) // unless one is refused
		}
		if len(l.list) == 0 {
			delete(k.of, l.q)
			continue
		}
		if next == 0 || l.after < next {
			next = l.after
		}
		k.lists[at] = l
		at++
	}
	clear(k.lists[at:])
	k.lists = k.lists[:at]
	if at > 1 {
		// Whoever came too late this time is first the next.
		k.lists = append(k.lists[1:], k.lists[0])
	}
	if next != 0 {
		s.armKept(max(next, now+int64(keptSoon)))
	}
	s.env.wake(s.Index)
}

// offerOf gives the first n of a source back to the dead letters, and says how many.
func (s *Shard) offerOf(l *keptList, n int) int {
	n = min(n, len(l.list))
	for _, d := range l.list[:n] {
		l.q.Paid(d.Size)
		if l.q.Deleted() {
			s.store.buried(l.q, d.Place) // gone with its queue (QUE-11)
			continue
		}
		s.deaths = append(s.deaths, d)
	}
	rest := copy(l.list, l.list[n:])
	clear(l.list[rest:])
	l.list = l.list[:rest]
	return n
}

// stillThere are the queues of a kept dead letter that exist.
func stillThere(queues []*queue.Queue) []*queue.Queue {
	return slices.DeleteFunc(queues, func(q *queue.Queue) bool {
		if h, ok := q.Space.(*holding); ok {
			return h.x.deleted.Load()
		}
		return q.Space.(*VHost).Queue([]byte(q.Name)) != q
	})
}
