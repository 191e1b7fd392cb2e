//ringmq:hot

package ring

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Token is what an App gets back when a WriteShared buffer is free again. It
// is opaque to the ring.
type Token = unsafe.Pointer

// App is what the loops run. Every method is called on the loop's own locked thread.
type App interface {
	// Start is called once, before the first turn.
	Start(l *Loop)
	// Accept takes a new connection; nil refuses it and it is closed at once.
	Accept(l *Loop, c *Conn) Handler
	// Turn is called once per turn, after I/O and timers: drain mailboxes, deliver. It may be called
	// when nothing happened and must be cheap then. more means there is work left: do not block.
	Turn(l *Loop) (more bool)
	// BeforeSleep is called in every turn after Turn, right before output is flushed: publish what was
	// staged for other loops and Wake them.
	BeforeSleep(l *Loop)
	// Release gives back the token of a WriteShared, never inside a call of the App or a Handler.
	Release(l *Loop, token Token)
	// Stop is the last call on the loop; all its connections are gone.
	Stop(l *Loop)
}

// Handler is one connection's logic. Calls come from the connection's loop only.
type Handler interface {
	// Data brings received bytes, valid during the call only; the handler takes or copies all it wants.
	// It may still be called a few times after PauseRead, never after Close or Abort.
	Data(c *Conn, p []byte)
	// Drained is called once when Pending has fallen under the low mark after reaching the high mark.
	Drained(c *Conn)
	// Closed is the last call and comes exactly once, never inside Close or Abort. reason is nil if we
	// closed, io.EOF if the peer did, else the errno. Output may still be leaving; writing is over.
	Closed(c *Conn, reason error)
}

// Loop is one event loop: a locked thread with its connections, timers and memory. The order of a turn:
//
//	poll: submit, wait, reap, handlers      (Data, Accept)
//	posted functions, Drained, timers
//	App.Turn                                (mailboxes, deliveries)
//	endings                                 (Closed)
//	App.BeforeSleep                         (publish to other loops, ring bells)
//	flush: one send per dirty connection
//
// It blocks only after a turn in which all of this found nothing to do and during which the sleeping
// word was set before the mailboxes were looked at: a peer that publishes later sees the word and rings.
type Loop struct {
	group   *Group
	app     App
	index   int
	backend Backend
	slab    *Slab

	now       int64 // ns, CLOCK_MONOTONIC, once per turn
	wheel     timerWheel
	wait      int64 // what the next Poll may wait, ns
	highMark  int
	lowMark   int
	lastEvent int64 // ns
	gap       int64 // ns, moving average between polls that found something
	collected int64 // ns, last Slab.Collect
	asleep    bool  // we set sleeping in this turn
	flushing  int   // connections that had output when the flush began
	stopping  bool  // connections are going, nothing new comes
	stopped   bool  // the last turn is over

	pool      chunkPool
	dirty     []*Conn          // have output
	notify    []*Conn          // are owed Drained
	ending    []*Conn          // changed state: settle them
	lingering []*Conn          // have a deadline
	orphans   []unsafe.Pointer // tokens whose bytes will not be sent
	slots     []*Conn
	freeSlots []uint32
	slotGen   uint32
	listening int // listeners not closed yet

	files fileState

	lingerTimer Timer
	stopTimer   Timer
	listeners   []*Listener // of the accepting loop

	_ cacheLinePad // apart from what other threads write
	// sleeping is 1 while this loop may be blocked and nobody has rung yet.
	sleeping atomic.Uint32
	posts    postbox
	_        cacheLinePad

	stats loopStats
}

// Index returns the loop's place in Group.Loops.
func (l *Loop) Index() int { return l.index }

// Now returns the time of this turn in ns of CLOCK_MONOTONIC. Loop thread only.
func (l *Loop) Now() int64 { return l.now }

// Slab returns the loop's message memory.
func (l *Loop) Slab() *Slab { return l.slab }

// Arm makes t fire at the given time (ns, see Now); an armed timer is moved. Loop thread only.
func (l *Loop) Arm(t *Timer, at int64) { l.wheel.arm(t, at) }

// Disarm takes t out. Loop thread only.
func (l *Loop) Disarm(t *Timer) { l.wheel.disarm(t) }

// turn is one iteration.
func (l *Loop) turn() {
	events := l.backend.Poll(l.wait)
	if events > 0 {
		l.gap += (l.now - l.lastEvent - l.gap) / 8
		l.lastEvent = l.now
	}
	if l.posts.any.Load() {
		l.runPosted()
	}
	if len(l.notify) > 0 {
		l.runNotify()
	}
	l.wheel.advance(l.now)
	if events == 0 {
		l.asleep = true
		l.sleeping.Store(1)
	}
	more := l.app.Turn(l)
	if len(l.ending)+len(l.orphans) > 0 {
		more = true
		l.settle()
	}
	l.app.BeforeSleep(l)
	if len(l.dirty) > 0 {
		more = true
		l.flush()
	}
	l.stats.turns.add(1)
	if l.asleep && !more && !l.leftovers() {
		l.prepareWait()
		return
	}
	l.wait = 0
	l.awake()
}

// leftovers reports that something came up behind the place where the turn handles it.
func (l *Loop) leftovers() bool {
	return len(l.notify)+len(l.ending)+len(l.orphans)+len(l.dirty) > 0 || l.posts.any.Load() || l.stopped
}

func (l *Loop) awake() {
	if l.asleep {
		l.asleep = false
		l.sleeping.Store(0)
	}
}

// tick is called by the backend's Poll when the wait is over.
func (l *Loop) tick() {
	l.awake()
	now := l.group.clock.now()
	if l.wait == 0 {
		l.stats.ran(now - l.now)
	}
	l.now = now
}

// collectEveryNS paces Slab.Collect, which takes back what other loops have freed.
const collectEveryNS = 100e6

// prepareWait decides how long the next Poll may block: until the next timer, unless spinning turns
// something up first.
func (l *Loop) prepareWait() {
	if l.now-l.collected >= collectEveryNS {
		l.collected = l.now
		l.slab.Collect()
	}
	now := l.group.clock.now()
	l.stats.ran(now - l.now)
	l.now = now
	if l.gap < l.group.spinNS && !l.mayDelayDisk() && l.spin() {
		l.wait = 0
		l.awake()
		return
	}
	next := l.wheel.next()
	switch {
	case next < 0:
		l.wait = -1
	case next > l.now:
		l.wait = next - l.now
	default:
		l.wait = 0
		l.awake()
		return
	}
	l.stats.sleeps.add(1)
}

// spin watches for events for at most the budget and reports whether there are any. The sleeping word
// stays set: peers ring, and the bell is one of the events.
func (l *Loop) spin() bool {
	l.stats.spins.add(1)
	end := l.now + l.group.spinNS
	if next := l.wheel.next(); next >= 0 && next < end {
		end = next
	}
	for l.group.clock.now() < end {
		for range 32 {
			if !l.backend.Quiet() || l.posts.any.Load() {
				return true
			}
		}
	}
	return false
}

func (l *Loop) markDirty(c *Conn) {
	c.flags |= connDirty
	l.dirty = append(l.dirty, c)
}

// flush sends the output of the connections that have any. What becomes dirty meanwhile waits.
func (l *Loop) flush() {
	n := len(l.dirty)
	l.flushing = n
	for i := 0; i < n; i++ {
		c := l.dirty[i]
		c.flags &^= connDirty
		if c.pending > 0 && c.flags&(connDetached|connSending) == 0 {
			l.backend.Send(c)
		}
	}
	rest := copy(l.dirty, l.dirty[n:])
	clear(l.dirty[rest:])
	l.dirty = l.dirty[:rest]
}

// release returns a token to the application.
func (l *Loop) release(token unsafe.Pointer) {
	l.stats.sharedLive.add(-1)
	l.app.Release(l, token)
}

// runNotify calls Drained where it is due.
func (l *Loop) runNotify() {
	for i := 0; i < len(l.notify); i++ {
		c := l.notify[i]
		c.flags &^= connNotify
		if c.flags&connMute != 0 || c.pending >= l.lowMark {
			continue // closing, or full again before we got here: the next time
		}
		c.flags &^= connFull
		c.handler.Drained(c)
	}
	clear(l.notify)
	l.notify = l.notify[:0]
}

// connOf finds the connection of a tag.
func (l *Loop) connOf(tag uint64) *Conn {
	slot := uint32(tag)
	if int(slot) >= len(l.slots) {
		return nil
	}
	c := l.slots[slot]
	if c == nil || c.gen != uint32(tag>>32)&0xffffff {
		return nil
	}
	return c
}

// run is the loop's goroutine. ready gets the outcome of opening; the loop goes on if it was nil.
func (l *Loop) run(ready chan<- error) {
	// Never unlocked: the thread has our affinity and our ring, so it ends with us.
	runtime.LockOSThread()
	if err := l.open(); err != nil {
		ready <- err
		l.group.exited(l)
		return
	}
	l.app.Start(l)
	ready <- nil
	for !l.stopped {
		l.turn()
	}
	l.shut()
	l.group.exited(l)
}
