package session091

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"ringmq/engine"
	"ringmq/frame/amqp091"
	"ringmq/ring"
)

// state of a connection. The order matters: everything from stateOpen on has
// finished the handshake.
type state uint8

const (
	stateHeader  state = iota // waits for the protocol header
	stateStart                // start sent, waits for start-ok
	stateTune                 // tune sent, waits for tune-ok
	stateTuned                // waits for connection.open
	stateOpen                 // running
	stateClosing              // connection.close sent: reads on for close and close-ok only
	stateDying                // nothing is read any more; the socket goes after a delay
	stateDead                 // Closed was called, or everything was given up
)

// conn is one AMQP 0-9-1 connection. It belongs to its loop.
type conn struct {
	srv   *Server
	lp    *loopState
	shard *engine.Shard
	rc    *ring.Conn

	state     state
	waiting   bool   // for an answer of another loop
	stalled   bool   // publishes wait: another loop is congested, or consumers lag
	getting   bool   // waiting is for the answer to a basic.get
	behind    bool   // publishes wait for the disk of behindOn
	choked    bool   // the client does not read its answers
	queued    bool   // on the loop's list of connections to resume
	blocked   bool   // published while an alarm is up (block.go)
	blockTold bool   // an alarm is up and the client knows, if it wants to
	publisher bool   // it has published
	heartbeat uint16 // seconds, 0 = none
	caps      capabilities

	frameMax   uint32 // largest frame that may be sent either way, with its overhead
	channelMax uint16 // 0 = no limit
	channels   int    // open ones

	// The body frame that is arriving in parts.
	stream     *channel
	streamLeft uint32
	streamEnd  bool // only its end octet is missing

	low  []*channel          // channels with small numbers
	high map[uint16]*channel // the others

	carry    []byte // a frame that is not complete yet
	stash    []byte // not parsed because the connection waits or stalls
	stashAt  int    // of stash, parsed already
	behindOn *engine.Shard
	paceFrom int64 // pacing is not tried again before, monotonic nanoseconds
	fanout   int   // queues that publishes went to since parsing last paused for it

	vhost     *engine.VHost
	seat      *engine.Seat // under the limits, nil before open and after the end
	user      string
	since     time.Time
	exclusive map[string]struct{} // names of exclusive queues declared here
	// exclusiveKept is how many names the last sweep left.
	exclusiveKept int

	timer   ring.Timer
	timerDo timerPurpose
	// For telling a silent peer: BytesOut when it last moved and when that was,
	// and when reading was last resumed, monotonic nanoseconds.
	outSeen          uint64
	outAt, resumedAt int64

	clientProps []byte   // table as the client sent it, for management
	blockedAt   *channel // where blocked was set
	name        string
	client      string // connection_name of the client properties
	lastError   string // why it failed, for tests and debuggers

	inputEnded bool // Closed was called
	endReason  error
}

// capabilities that the client announced in start-ok.
type capabilities struct {
	cancelNotify bool
	authClose    bool
	blocked      bool
}

type timerPurpose uint8

const (
	timerHandshake timerPurpose = iota
	timerHeartbeat
	timerCloseWait
	timerDrop
)

const lowChannels = 64

// channel finds an open channel, nil otherwise.
func (c *conn) channel(n uint16) *channel {
	if int(n) < len(c.low) {
		return c.low[n]
	}
	if n < lowChannels || c.high == nil {
		return nil
	}
	return c.high[n]
}

func (c *conn) setChannel(n uint16, ch *channel) {
	if n < lowChannels {
		for int(n) >= len(c.low) {
			c.low = append(c.low, nil)
		}
		c.low[n] = ch
		return
	}
	if ch == nil {
		delete(c.high, n)
		return
	}
	if c.high == nil {
		c.high = map[uint16]*channel{}
	}
	c.high[n] = ch
}

// each calls f for every channel; f may remove the one it gets.
func (c *conn) each(f func(*channel)) {
	for _, ch := range c.low {
		if ch != nil {
			f(ch)
		}
	}
	for _, ch := range c.high {
		f(ch)
	}
}

// stopped reports that no further frame may be handled now.
func (c *conn) stopped() bool {
	return c.waiting || c.stalled || c.behind || c.choked || c.blocked || c.state >= stateDying
}

// Data implements ring.Handler.
func (c *conn) Data(_ *ring.Conn, p []byte) {
	if c.state >= stateDying {
		return
	}
	c.shard.Tick(c.lp.loop.Now())
	if c.stopped() || len(c.stash) > 0 {
		c.keep(p)
		return
	}
	n := c.parse(p)
	if n < len(p) {
		c.keep(p[n:])
	}
}

// keep stores input that cannot be handled now and stops reading more.
func (c *conn) keep(p []byte) {
	if c.state >= stateDying {
		return
	}
	if c.stash == nil {
		c.stash = c.lp.stashes.get()
	}
	c.stash = append(c.stash, p...)
	c.rc.PauseRead()
}

// wake asks the loop to continue this connection's parsing in this turn.
func (c *conn) wake() {
	if !c.queued {
		c.queued = true
		c.lp.resume = append(c.lp.resume, c)
	}
}

// proceed parses what was kept, as far as possible now.
func (c *conn) proceed() {
	c.queued = false
	if c.inputEnded && c.state >= stateClosing {
		c.closed()
		return
	}
	if c.state >= stateDying || c.stopped() {
		return
	}
	if c.stashAt < len(c.stash) {
		// Nobody else touches the stash while parse runs.
		c.stashAt += c.parse(c.stash[c.stashAt:])
		if c.stashAt < len(c.stash) && c.state < stateDying {
			return
		}
	}
	c.dropStash()
	switch {
	case c.inputEnded:
		c.closed()
	case !c.stopped():
		c.resumedAt = c.lp.loop.Now()
		c.rc.ResumeRead()
	}
}

// dropStash gives the stash's memory back.
func (c *conn) dropStash() {
	if c.stash != nil {
		c.lp.stashes.put(c.stash)
	}
	c.stash, c.stashAt = nil, 0
}

// await runs fn on a queue's shard and done back here. Parsing stops meanwhile.
// done is not called if the connection ended in between.
func (c *conn) await(shard int, fn func(at *engine.Shard), done func()) {
	if shard == c.shard.Index {
		fn(c.shard)
		done()
		return
	}
	c.waiting = true
	c.shard.On(shard, fn, func() {
		c.waiting = false
		if c.state == stateDead {
			return
		}
		done()
		c.wake()
	})
}

// awaitDurable is await for what must be safe on the disk before it is answered.
func (c *conn) awaitDurable(shard int, fn func(at *engine.Shard), done func()) {
	c.waiting = true
	inside := true
	c.shard.OnDurable(shard, fn, func() {
		c.waiting = false
		if c.state == stateDead {
			return
		}
		done()
		if !inside {
			c.wake()
		}
	})
	inside = false
}

// send writes a whole method frame.
func (c *conn) send(n uint16, m amqp091.Method) {
	c.lp.scratch = m.Append(c.lp.scratch[:0], n)
	c.rc.Write(c.lp.scratch)
	c.checkChoke()
}

// chokeBytes is how much unread output stops a connection's own commands: it
// asked for the answers and does not read them. Deliveries stop far below.
const chokeBytes = 1 << 20

// checkChoke stops parsing until the client has read what it asked for.
func (c *conn) checkChoke() {
	if c.rc.Pending() > chokeBytes && !c.inputEnded {
		c.choked = true
	}
}

// fail ends the connection with connection.close. id is the method that
// provoked it, 0 for none.
func (c *conn) fail(code uint16, id amqp091.MethodID, text string) {
	if c.state >= stateClosing {
		return
	}
	text = amqp091.ReplyName(code) + " - " + text
	level := slog.LevelWarn
	if code == amqp091.ConnectionForced {
		level = slog.LevelInfo // an operator's wish is no error
	}
	c.srv.log.Log(context.Background(), level, "connection closed by the broker",
		"connection", c.name, "client", c.client, "user", c.user, "code", code, "text", text)
	c.lastError = text
	// Whoever hears of the close finds the exclusive queues gone.
	c.state = stateClosing
	c.endBlock()
	c.releaseThen(func() {
		if c.state != stateDead {
			c.send(0, &amqp091.ConnectionClose{
				ReplyCode: code, ReplyText: []byte(text),
				FailedClass: id.Class(), FailedMethod: id.Method(),
			})
		}
	})
	c.arm(timerCloseWait, closeWait)
	c.endIfDeaf()
}

// endIfDeaf ends a connection that failed after the peer was gone already.
func (c *conn) endIfDeaf() {
	if c.inputEnded {
		c.wake()
	}
}

// drop gives up on a peer that broke the handshake or the framing: nothing is
// read any more and the socket closes after a while, which slows down those
// who guess passwords. Pending output still leaves.
func (c *conn) drop(reason string) {
	if c.state >= stateDying {
		return
	}
	c.srv.log.Warn("connection dropped", "connection", c.name, "client", c.client, "reason", reason)
	c.lastError = reason
	c.release()
	c.state = stateDying
	c.carry = nil
	c.arm(timerDrop, dropDelay)
	c.endIfDeaf()
}

// release gives back everything the connection holds: channels, consumers,
// unacked messages, exclusive queues.
func (c *conn) release() { c.releaseThen(func() {}) }

// releaseThen is release with a function that runs here when the exclusive
// queues are gone on all loops.
func (c *conn) releaseThen(done func()) {
	c.each(func(ch *channel) { ch.end() })
	c.low, c.high, c.channels = nil, nil, 0
	c.leaveSeat()
	c.deleteExclusive(done)
}

// otherShards adds to list the shards of other loops that the channel holds
// something on.
func (ch *channel) otherShards(list []int) []int {
	for i := range ch.slots {
		sl := &ch.slots[i]
		if !sl.free && sl.queue.Shard != ch.c.shard.Index && !slices.Contains(list, sl.queue.Shard) {
			list = append(list, sl.queue.Shard)
		}
	}
	return list
}

// fence runs done when the shards have carried out all they were told before,
// so that what the client does next, on any connection, finds it done: a
// consumer gone, a message back in its queue. Parsing stops meanwhile. done
// must look at the connection's state, and is not called if it is dead.
func (c *conn) fence(shards []int, done func()) {
	left := len(shards)
	if left == 0 {
		done()
		return
	}
	c.waiting = true
	nothing := func(*engine.Shard) {}
	finish := func() {
		if left--; left > 0 {
			return
		}
		c.waiting = false
		c.wake()
		if c.state != stateDead {
			done()
		}
	}
	for _, n := range shards {
		// Twice, because deliveries that were under way come back to us before
		// the first answer and return to their queue after it.
		c.shard.On(n, nothing, func() { c.shard.On(n, nothing, finish) })
	}
}

// ownExclusive notes an exclusive queue of this connection. Those that went by
// themselves (auto-delete, expiry) are swept out whenever the list has doubled:
// a client that makes a queue for each answer lives for months.
func (c *conn) ownExclusive(name string) {
	if c.exclusive == nil {
		c.exclusive = map[string]struct{}{}
	}
	c.exclusive[name] = struct{}{}
	if len(c.exclusive) <= 2*c.exclusiveKept+16 {
		return
	}
	for name := range c.exclusive {
		if q := c.vhost.Queue([]byte(name)); q == nil || q.Owner != any(c) {
			delete(c.exclusive, name)
		}
	}
	c.exclusiveKept = len(c.exclusive)
}

// deleteExclusive removes the connection's exclusive queues; done runs here
// when all are gone.
func (c *conn) deleteExclusive(done func()) {
	left := 1
	one := func() {
		if left--; left == 0 {
			done()
		}
	}
	for name := range c.exclusive {
		q := c.vhost.Queue([]byte(name))
		if q == nil || q.Owner != any(c) {
			continue
		}
		left++
		c.shard.On(q.Shard, func(at *engine.Shard) { at.DeleteQueue(q) }, one)
	}
	c.exclusive = nil
	one()
}

// Drained implements ring.Handler: the connection can take deliveries again.
func (c *conn) Drained(*ring.Conn) {
	if c.choked {
		c.choked = false
		c.wake()
	}
	if c.state != stateOpen {
		return
	}
	c.each(func(ch *channel) {
		for _, k := range ch.consumers {
			c.shard.Resume(&k.sub)
		}
	})
}

// Closed implements ring.Handler. Input that was received before the end and
// not parsed yet, because the connection waited or was paused, still counts
// (CON-22): the end takes effect when it is used up. Only what stands behind a
// blocked publish is dropped with it: nothing of it was accepted, and what the
// connection holds must not wait for the alarm to end.
func (c *conn) Closed(_ *ring.Conn, reason error) {
	c.endReason = reason
	c.inputEnded = true
	if c.state == stateOpen && c.stashAt < len(c.stash) && !c.blocked {
		c.choked = false // nobody reads answers any more
		c.proceed()
		return
	}
	c.closed()
}

// closed is the end of the connection.
func (c *conn) closed() {
	if c.state == stateDead {
		return
	}
	if c.state == stateOpen || (c.state < stateOpen && c.state > stateHeader) {
		text := "closed by the server"
		if c.endReason != nil {
			text = c.endReason.Error()
		}
		c.srv.log.Warn("connection lost without close", "connection", c.name, "client", c.client, "user", c.user,
			"vhost", c.vhostName(), "reason", text)
	}
	if c.state < stateClosing {
		c.release()
	}
	c.state = stateDead
	c.lp.loop.Disarm(&c.timer)
	c.dropStash()
	c.carry = nil
	delete(c.lp.conns, c)
}

func (c *conn) vhostName() string {
	if c.vhost == nil {
		return ""
	}
	return c.vhost.Name
}

// reserveMax is the largest delivery that is written in one piece.
const reserveMax = ring.MaxReserve
