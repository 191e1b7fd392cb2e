package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ringmq/engine/queue"
)

// This file is the store's housekeeping: checkpoints, compaction, space, the
// bodies that leave memory. All of it in small steps between other work.

const (
	// keepEvery is how often housekeeping looks around while there is activity,
	// compactEvery while a segment is being copied: 256 KiB each time, so at
	// most 50 MiB a second.
	keepEvery    = 50 * time.Millisecond
	compactEvery = 5 * time.Millisecond
	// spaceEvery is how often a full disk is asked again.
	spaceEvery = 500 * time.Millisecond
	// checkpointIdle is how long after the last activity a log gets a checkpoint,
	// so that the next start is quick and dead segments come back.
	checkpointIdle = 5 * time.Second
	// pageRest is how long paging pauses after it found nothing to take.
	pageRest = 50 * time.Millisecond
	// closeEvery is how often a log that is being closed looks whether it can be.
	closeEvery = time.Millisecond
	// pageEvery is how often paging goes on by itself when nothing else happens.
	pageEvery = time.Millisecond
	// tightShare is the part of its share by which a shard may be over it before
	// publishers wait.
	tightShare = 8
	// warmBytes is how much of what the log holds stays in memory as well, however
	// much memory there is: fresh pages for more cost more of the processor than
	// reading it back does.
	warmBytes = 128 << 20
	// pageQueues bounds the queues that one turn takes bodies from.
	pageQueues = 32
)

// keeper is the state of housekeeping.
type keeper struct {
	timer       shardTimer
	due         int64 // of the timer
	active      bool  // something was appended since the last look
	lastActive  int64
	lastSync    int64
	lastSpace   int64
	uncovered   bool // appended since the last checkpoint began
	paging      bool // more memory is held than may be, and bodies can leave it
	pageHeads   bool // nothing but the heads of queues is left to leave
	pageIdle    int  // queues in a row that had nothing to give
	pageAt      int  // of shard.listed
	pageRested  int64
	waitsForDef bool
}

type pagedCounts struct {
	in uint64 // bodies read back
}

// start begins the work on the loop.
func (st *store) start() {
	st.keeper.timer.Fire = st.keep
	st.keeper.active, st.keeper.uncovered = true, true
	st.keeper.lastActive = st.shard.now
	for _, q := range st.queues {
		q.Touch(st.shard.now)
		if at := q.NextDue(); at != 0 {
			st.shard.Schedule(q, at)
		}
		st.shard.MarkDirty(q)
	}
	st.keepLater(keepEvery)
}

// keepLater arms the timer. With --sync=interval it never runs less often than
// that interval.
func (st *store) keepLater(after time.Duration) {
	if st.opts.syncEvery > 0 {
		after = min(after, st.opts.syncEvery)
	}
	at := st.shard.now + int64(after)
	if !st.keeper.timer.Armed() || at < st.keeper.due {
		st.keeper.due = at
		st.shard.env.armTimer(&st.keeper.timer, at)
	}
}

// keep is one look around.
func (st *store) keep(now int64) {
	st.shard.Tick(now)
	if st.closing != nil {
		return
	}
	k := &st.keeper
	if k.active {
		k.active, k.uncovered = false, true
		k.lastActive = now
	}
	if st.opts.syncEvery > 0 && now-k.lastSync >= int64(st.opts.syncEvery) {
		k.lastSync = now
		st.wal.Sync()
	}
	if st.wal.Space() != nil && now-k.lastSpace >= int64(spaceEvery) {
		k.lastSpace = now
		st.wal.RetrySpace()
	}
	idle := k.uncovered && now-k.lastActive >= int64(checkpointIdle)
	if !st.checkpoint.open && (st.wal.CheckpointDue() || idle) && st.beginCheckpoint(false) {
		k.uncovered = false
	}
	if !st.waiters.empty() {
		st.release() // the definitions may not have been written when they were asked for
	}
	// What waits for a segment goes before what would only be copied into it.
	compacting := len(st.parked) == 0 && len(st.owed) == 0 && st.wal.Compact(st)
	switch {
	case compacting:
		st.keepLater(compactEvery)
	case k.uncovered || k.active || st.wal.Space() != nil || !st.waiters.empty() || len(st.parked) > 0 || len(st.owed) > 0 || len(st.shard.deaths) > 0 || st.checkpoint.open:
		st.keepLater(keepEvery)
	}
}

// turn is the store's part of a loop's turn, before queues are settled. It
// reports whether there is work left.
func (st *store) turn() (more bool) {
	if len(st.owed) > 0 {
		st.pay()
	}
	if st.closing != nil {
		if !st.closed {
			st.closeTurn()
		}
		return false
	}
	if len(st.parked) > 0 {
		st.unpark()
	}
	st.lookQuiet()
	return st.stepCheckpoint()
}

// flush ends a turn: what was appended leaves for the disk.
func (st *store) flush() {
	if st.closed {
		return
	}
	st.wal.Flush()
	behind := len(st.parked) > 0 || st.wal.Backlog() > behindBytes
	st.press(&st.behind, behind)
	switch {
	case st.closing != nil || st.quiet != nil:
		st.keepLater(closeEvery)
	case st.keeper.paging:
		st.keepLater(pageEvery)
	case st.keeper.active:
		st.keepLater(keepEvery)
	}
}

// Failed implements wal.Events.
func (st *store) Failed(err error) {
	st.opts.Fatal(fmt.Errorf("log %s: %w", logFolder(st.opts.Dir, st.shard.Index), err))
}

// spaceChanged is the log's word on whether it has room for messages.
func (st *store) spaceChanged(err error) {
	st.noSpace.Store(err != nil)
	if err != nil {
		st.opts.logNoSegment(st.shard.Index, err)
		st.keepLater(spaceEvery)
		return
	}
	st.opts.Log.Info("the disk has room again: persistent messages are accepted", "loop", st.shard.Index)
}

// logNoSegment says that a log gets no segment, and does not call a failing disk a full
// one.
func (o *StorageOptions) logNoSegment(loop int, err error) {
	text := "the disk does not take a new segment: persistent messages are refused until it does"
	var space *walSpaceError
	if errors.As(err, &space) && space.Full() {
		text = "no room on the disk: persistent messages are refused until there is"
	}
	o.Log.Error(text, "loop", loop, "error", err)
}

// Live implements wal.Mover.
func (st *store) Live(p walPosition, ref walRef) bool {
	q := st.queues[ref.Queue]
	return q != nil && q.StandsAt(ref.Seq, uint64(p))
}

// Moved implements wal.Mover.
func (st *store) Moved(from, to walPosition, ref walRef, first bool) {
	was, is := st.queues[ref.Queue].Move(ref.Seq, uint64(to), first)
	st.wal.Retain(to, cost(is))
	st.wal.Release(from, cost(was))
}

// page lets bodies leave memory when the shards hold more than they may. While
// that is slower than what comes in, publishers wait; when nothing can leave, they
// do not: then it is the memory alarm's business.
func (st *store) page() {
	s, k := st.shard, &st.keeper
	over, share := s.overBudget()
	k.paging = over > 0 && s.now >= k.pageRested
	switch {
	case k.paging:
		over = st.pageOut(over, true)
	case st.warm > warmBytes && s.now >= k.pageRested:
		st.pageOut(st.warm-warmBytes, false)
	}
	st.press(&st.tight, k.paging && over > share/tightShare)
}

// press sets or clears one of the reasons why publishers to this shard wait.
func (st *store) press(reason *atomic.Bool, on bool) {
	if reason.Load() == on {
		return
	}
	reason.Store(on)
	b := st.shard.Broker
	if on {
		b.pressed.Add(1)
		return
	}
	b.pressed.Add(-1)
	b.caughtUp(st.shard)
}

// pageOut lets about over bytes of bodies leave memory, with spill also those that
// have to be written for it, and returns what is left to do. When no queue has
// anything to give, the messages at their heads go as well; if that is not enough
// either it rests.
func (st *store) pageOut(over int64, spill bool) int64 {
	s, k := st.shard, &st.keeper
	for n := 0; n < pageQueues && over > 0 && len(s.listed) > 0; n++ {
		if k.pageAt >= len(s.listed) {
			k.pageAt = 0
		}
		bytes, round := s.listed[k.pageAt].PageOut(spill, spill && k.pageHeads)
		over -= bytes
		switch {
		case bytes > 0:
			k.pageIdle = 0
		case !round:
			return over // the log takes no more for now
		default:
			k.pageIdle++
		}
		if round {
			k.pageAt++
		}
		if k.pageIdle >= len(s.listed) {
			k.pageIdle = 0
			if spill && !k.pageHeads {
				k.pageHeads = true
				return over
			}
			k.paging, k.pageHeads = false, false
			k.pageRested = s.now + int64(pageRest)
			break
		}
	}
	if over <= 0 {
		k.pageHeads = false
	}
	return over
}

// defined reports whether the queue itself is durable; if not, what waits for it
// is looked at again when it is.
func (s *Shard) defined(q *queue.Queue) bool {
	d := s.Broker.catalog.store
	if d == nil || q.DefSeq <= d.Durable() {
		return true
	}
	st := s.store
	if !st.keeper.waitsForDef {
		st.keeper.waitsForDef = true
		s.WhenDefined(func(err error) {
			st.keeper.waitsForDef = false
			if err == nil {
				st.release()
			}
		})
	}
	return false
}

// buried ends a message that died: it arrived where it had to, or nowhere.
func (st *store) buried(q *queue.Queue, p queue.Place) {
	if p.Logged {
		delete(st.dying, dyingKey{q.ID, p.Seq})
	}
	st.Leave(q, p)
}

// Purged implements queue.Store. What died before the purge and did not arrive in
// its new place yet is not done.
func (st *store) Purged(q *queue.Queue, first, last uint64) {
	if !q.Known {
		return
	}
	eachWithout(st.dyingOf(q), first, last, func(first, last uint64) {
		st.note(owed{queue: q.ID, first: first, last: last})
	})
}
