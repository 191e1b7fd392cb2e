package engine

import (
	"time"

	"ringmq/engine/queue"
)

// With the dead letter strategy at-least-once a dead letter that reaches no queue, or
// that one of its queues refuses, is kept and offered again. Its place in the log stays
// its old one, its body is read back when it is its turn, and it counts for its queue's
// limits as if it were still there, which bounds what can gather.

const (
	// keptEvery is how often kept dead letters are offered again while they are refused,
	// keptSoon while they are taken.
	keptEvery = 500 * time.Millisecond
	keptSoon  = 5 * time.Millisecond
	// keptBatch is how many are offered at a time.
	keptBatch = 256
)

// keptDeaths are a shard's.
type keptDeaths struct {
	list    []death // without bodies
	timer   shardTimer
	refused bool // since the last time some were offered
}

// keepDeath keeps a dead letter for later.
func (s *Shard) keepDeath(q *queue.Queue, p queue.Place, d queue.Dead) {
	k := &s.kept
	q.Owe(p.Size)
	k.refused = true
	k.list = append(k.list, death{q, queue.Dead{Why: d.Why, Place: p}})
	s.offerKeptIn(keptEvery)
}

func (s *Shard) offerKeptIn(after time.Duration) {
	k := &s.kept
	if k.timer.Fire == nil {
		k.timer.Fire = s.offerKept
	}
	if !k.timer.Armed() {
		s.env.armTimer(&k.timer, s.now+int64(after))
	}
}

// offerKept gives the oldest another try.
func (s *Shard) offerKept(now int64) {
	s.Tick(now)
	k := &s.kept
	n := min(len(k.list), keptBatch)
	for _, d := range k.list[:n] {
		d.q.Paid(d.Size)
		if d.q.Deleted() {
			s.store.buried(d.q, d.Place) // gone with its queue (QUE-11)
			continue
		}
		s.deaths = append(s.deaths, d)
	}
	rest := copy(k.list, k.list[n:])
	clear(k.list[rest:])
	k.list = k.list[:rest]
	if rest > 0 {
		after := keptSoon
		if k.refused {
			after = keptEvery
		}
		s.offerKeptIn(after)
	}
	k.refused = false
	s.env.wake(s.Index)
}
