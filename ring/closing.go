package ring

const (
	// flushBudgetNS is how long a closing connection may take to send what is pending.
	flushBudgetNS = 5e9
	// drainBudgetNS is how long we wait for the peer's FIN after ours. Closing with unread bytes in the
	// socket makes the kernel send a reset, which can destroy the last bytes on their way to the peer.
	drainBudgetNS = 1e9
	// lingerEveryNS paces the check of the two.
	lingerEveryNS = 100e6
)

// end queues a connection whose state changed; settle acts at a fixed place of the turn, so that no
// handler is called inside another.
func (l *Loop) end(c *Conn) {
	if c.flags&connEnding == 0 {
		c.flags |= connEnding
		l.ending = append(l.ending, c)
	}
}

// settle moves ending connections on and releases orphaned tokens.
func (l *Loop) settle() {
	for i := 0; i < len(l.ending); i++ { // Closed may end further connections
		c := l.ending[i]
		c.flags &^= connEnding
		c.settle()
	}
	clear(l.ending)
	l.ending = l.ending[:0]
	for i := 0; i < len(l.orphans); i++ {
		l.release(l.orphans[i])
	}
	clear(l.orphans)
	l.orphans = l.orphans[:0]
}

func (c *Conn) settle() {
	if c.flags&connClosedTold == 0 {
		c.flags |= connClosedTold
		c.handler.Closed(c, c.reason)
	}
	switch {
	case c.flags&connDetached != 0:
	case c.flags&connAbort != 0:
		c.detach(c.pending > 0)
	case c.pending > 0 || c.flags&connSending != 0:
		c.loop.linger(c, flushBudgetNS)
	case c.flags&connReadEnded != 0:
		c.detach(false)
	case c.flags&connFinishing == 0:
		c.flags |= connFinishing
		c.loop.backend.ShutdownWrite(c)
		if c.flags&connPaused != 0 { // somebody has to read the peer's FIN
			c.flags &^= connPaused
			c.loop.backend.SetReading(c, true)
		}
		c.deadline = 0
		c.loop.linger(c, drainBudgetNS)
	}
}

// detach gives the connection up. With output pending the stream is cut, so the peer gets a reset: it
// must not take the part it has for the whole.
func (c *Conn) detach(reset bool) {
	c.flags |= connDetached
	c.loop.backend.Detach(c, reset)
}

// detached ends the connection's life: nobody else refers to it.
func (c *Conn) detached() {
	l := c.loop
	must(c.flags&connDetached != 0 && l.slots[c.slot] == c, "a connection is detached twice")
	c.dropOutput()
	l.slots[c.slot] = nil
	l.freeSlots = append(l.freeSlots, c.slot)
	c.fd = -1
	l.stats.connections.add(-1)
	l.group.left(l.index)
	if l.stopping {
		l.checkStopped()
	}
}

// linger gives a connection a deadline, unless it has one.
func (l *Loop) linger(c *Conn, budget int64) {
	if c.deadline == 0 {
		c.deadline = l.now + budget
	}
	if c.flags&connLingering == 0 {
		c.flags |= connLingering
		l.lingering = append(l.lingering, c)
		if !l.lingerTimer.Armed() {
			l.Arm(&l.lingerTimer, l.now+lingerEveryNS)
		}
	}
}

// checkLingering aborts what is past its deadline.
func (l *Loop) checkLingering(now int64) {
	kept := l.lingering[:0]
	for _, c := range l.lingering {
		switch {
		case c.flags&connDetached != 0:
			c.flags &^= connLingering
		case c.deadline <= now:
			c.flags &^= connLingering
			c.Abort()
		default:
			kept = append(kept, c)
		}
	}
	clear(l.lingering[len(kept):])
	l.lingering = kept
	if len(kept) > 0 {
		l.Arm(&l.lingerTimer, now+lingerEveryNS)
	}
}

// stopGraceNS is how long connections that are already closing may finish when the loop stops.
const stopGraceNS = 500e6

// beginStop aborts the open connections and lets the turns go on until the last is gone.
func (l *Loop) beginStop() {
	if l.stopping {
		return
	}
	l.stopping = true
	for _, ln := range l.listeners {
		l.unlisten(ln)
	}
	for _, c := range l.slots {
		if c != nil && c.flags&connClosing == 0 {
			c.Abort()
		}
	}
	l.stopTimer.Fire = l.abortAll
	l.Arm(&l.stopTimer, l.now+stopGraceNS)
	l.checkStopped()
}

func (l *Loop) abortAll(int64) {
	for _, c := range l.slots {
		if c != nil {
			c.Abort()
		}
	}
}

// checkStopped ends the loop when nothing is left on it. A file operation in flight keeps it: somebody's
// batch would stay half acknowledged.
func (l *Loop) checkStopped() {
	l.stopped = l.listening == 0 && len(l.slots) == len(l.freeSlots) && l.files.inFlight == 0
}
