package engine

import (
	"time"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/ring"
)

// This file is the engine's only contact with package ring: mailboxes, time,
// timers and memory of the loop that a shard runs on.

type mailbox = ring.Mailbox[Command]

func newMailbox() *mailbox { return ring.NewMailbox[Command](core.MailboxSlots) }

// env is the loop as the shard sees it.
type env struct {
	loop  *ring.Loop
	peers []*ring.Loop
}

// Bind ties a shard to its loop. peers are all loops in the order of the
// broker's shards. It is called on the loop before its first turn.
func (s *Shard) Bind(l *ring.Loop, peers []*ring.Loop) {
	s.env = env{loop: l, peers: peers}
	s.arena = l.Slab()
	s.now = l.Now()
}

func (e *env) wake(shard int) { e.peers[shard].Wake() }

// wall is the time in seconds since 1970.
func (e *env) wall() int64 { return time.Now().Unix() }

// queueTimer is the timer of one queue, kept in its Slot.
type queueTimer struct {
	ring.Timer
	at int64
}

// schedule arms the queue's timer, or moves it to an earlier time.
func (e *env) schedule(s *Shard, q *queue.Queue, at int64) {
	if e.loop == nil {
		return
	}
	if q.Shard == s.Index {
		e.arm(s, q, at)
	}
}

func (e *env) arm(s *Shard, q *queue.Queue, at int64) {
	t, _ := q.Slot.(*queueTimer)
	if t == nil {
		t = &queueTimer{}
		t.Fire = func(now int64) {
			s.Tick(now)
			s.due(q)
		}
		q.Slot = t
	}
	if t.Armed() && t.at <= at {
		return
	}
	t.at = at
	e.loop.Arm(&t.Timer, at)
}

// forget stops the timer of a queue that is gone.
func (e *env) forget(q *queue.Queue) {
	if t, ok := q.Slot.(*queueTimer); ok && t.Armed() {
		e.loop.Disarm(&t.Timer)
	}
}
