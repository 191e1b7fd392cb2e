package engine

import (
	"time"

	"golang.org/x/sys/unix"

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

	wallAt, wallOffset int64 // see wallMS
}

// Bind ties a shard to its loop. peers are all loops in the order of the
// broker's shards. It is called on the loop before its first turn.
func (s *Shard) Bind(l *ring.Loop, peers []*ring.Loop) {
	s.env = env{loop: l, peers: peers}
	s.arena = l.Slab()
	s.now = l.Now()
	s.touchEarly()
	s.startStore()
}

// shardTimer is a timer of the shard itself.
type shardTimer = ring.Timer

func (e *env) armTimer(t *shardTimer, at int64) {
	if e.loop != nil {
		e.loop.Arm(t, at)
	}
}

// refresh takes the loop's time, for what was posted and comes before the turn.
func (s *Shard) refresh() {
	if s.env.loop != nil {
		s.now = s.env.loop.Now()
	}
}

// diskPort is what a loop does for its log.
type diskPort struct {
	// write is nil when the loop cannot write files.
	write func(fd int, offset int64, buf []byte, sync bool, done func(error))
	post  func(f func())
	// hold tells that another thread does I/O for the loop: +1 and -1.
	hold func(delta int)
}

func (e *env) disk() diskPort {
	p := diskPort{post: func(f func()) { e.loop.Post(f) }, hold: e.loop.HoldSpin}
	if e.loop.WritesFiles() {
		p.write = e.loop.WriteFile
	}
	return p
}

// wallMS turns the loop's time into milliseconds since 1970. The wall clock is
// asked now and then only.
func (e *env) wallMS(now int64) int64 {
	if now-e.wallAt > int64(time.Second) || e.wallAt == 0 {
		e.wallAt, e.wallOffset = now, time.Now().UnixNano()-now
	}
	return (now + e.wallOffset) / int64(time.Millisecond)
}

// Prepare gives the shard the memory of its loop before the loop runs, for what
// comes back from the disk.
func (s *Shard) Prepare(l *ring.Loop) { s.arena = l.Slab() }

// held is how many bytes of the loop's message memory are in use. Any loop.
func (s *Shard) held() int64 {
	if s.env.loop == nil {
		return 0
	}
	return s.env.loop.Slab().Stats().LiveBytes
}

// monotonic is the loops' clock for whoever has no loop yet.
func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 1
	}
	return ts.Nano()
}

func wallMillis() int64 { return time.Now().UnixMilli() }

func nanoseconds(n int64) time.Duration { return time.Duration(n) }

// post runs f on the loop in one of its next turns. Any goroutine. It reports
// false, and f will not run, when the loop has stopped. Without a loop, in
// tests, f runs at once.
func (e *env) post(f func()) bool {
	if e.loop == nil {
		f()
		return true
	}
	return e.loop.Post(f)
}

// running reports that there is a loop. On that loop, or before it starts.
func (e *env) running() bool { return e.loop != nil }

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
