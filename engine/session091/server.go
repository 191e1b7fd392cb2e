package session091

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/frame/amqp091"
	"ringmq/ring"
)

// Options of the AMQP 0-9-1 server.
type Options struct {
	ChannelMax       uint16        // offered in tune; 0 = no limit
	FrameMax         uint32        // bytes, offered in tune
	Heartbeat        time.Duration // offered in tune, whole seconds
	MessageSizeMax   int64         // bytes of body; larger publishes are refused
	HandshakeTimeout time.Duration
	ConsumerTimeout  time.Duration // that a delivery may be held, whole ms; 0 = for ever
	Version          string
	Loops            int // as many as the ring group has
	Log              *slog.Logger
}

// Server is a broker that speaks AMQP 0-9-1 on the loops of a ring.Group: it
// implements ring.App.
type Server struct {
	Broker *engine.Broker

	opts  Options
	log   *slog.Logger
	codec codec
	loops []*loopState
	group []*ring.Loop

	draining      atomic.Bool
	loginFailures atomic.Uint64
	opened        atomic.Uint64

	consumerTimeout atomic.Int64 // ms, 0 = for ever
}

// loopState is the server's part on one loop.
type loopState struct {
	srv   *Server
	loop  *ring.Loop
	shard *engine.Shard

	conns      map[*conn]struct{}
	resume     []*conn // continue parsing in this turn
	resuming   []*conn
	stalled    []*conn    // wait for another loop to catch up
	behind     []*conn    // wait for a disk to catch up
	confirming []*channel // have confirms to send at the end of the turn
	paced      []paced    // publishers that wait for consumers
	paceTimer  ring.Timer
	replies    replyTable // consumers of direct reply-to
	stashes    stashPool
	chunks     chunkPool
	holders    holders
	fields     fields
	scratch    []byte
	headExtra  []byte // see headWith
}

// NewServer makes a server. Its group of loops is bound by Bind before the
// group starts.
func NewServer(o Options) *Server {
	if o.FrameMax == 0 {
		o.FrameMax = 131072
	}
	if o.HandshakeTimeout == 0 {
		o.HandshakeTimeout = 10 * time.Second
	}
	if o.MessageSizeMax == 0 {
		o.MessageSizeMax = 128 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: o, log: o.Log}
	s.consumerTimeout.Store(o.ConsumerTimeout.Milliseconds())
	return s
}

// Bind tells the server its loops, before they start.
func (s *Server) Bind(loops []*ring.Loop) {
	s.group = loops
	s.Broker = engine.NewBroker(len(loops), codec{})
	s.Broker.OnAlarm(s.alarmChanged)
	s.Broker.OnVHostDeleted(s.vhostDeleted)
	s.loops = make([]*loopState, len(loops))
	for i, l := range loops {
		s.Broker.Shards[i].Prepare(l)
		s.loops[i] = &loopState{srv: s, loop: l, shard: s.Broker.Shards[i], conns: map[*conn]struct{}{}}
	}
}

// Start implements ring.App.
func (s *Server) Start(l *ring.Loop) { s.loops[l.Index()].shard.Bind(l, s.group) }

// Accept implements ring.App.
func (s *Server) Accept(l *ring.Loop, rc *ring.Conn) ring.Handler {
	if s.draining.Load() {
		return nil
	}
	lp := s.loops[l.Index()]
	c := &conn{srv: s, lp: lp, shard: lp.shard, rc: rc, since: time.Now()}
	c.name = rc.RemoteAddr().String() + " -> " + rc.LocalAddr().String()
	c.timer.Fire = c.fire
	c.arm(timerHandshake, s.opts.HandshakeTimeout)
	lp.conns[c] = struct{}{}
	s.opened.Add(1)
	return c
}

// Turn implements ring.App: what other loops sent, what connections may
// continue, what queues can deliver.
func (s *Server) Turn(l *ring.Loop) (more bool) {
	lp := s.loops[l.Index()]
	lp.shard.Begin(l.Now())
	lp.unstall()
	lp.unbehind()
	lp.unpace()
	lp.continueParsing()
	inspecting := lp.inspect()
	more = lp.shard.Settle()
	lp.flushConfirms()
	// A stalled publisher goes on by itself in the next turn; while another
	// loop is what it waits for, that loop's bell ends the sleep.
	return more || inspecting || len(lp.resume) > 0 || len(lp.stalled) > 0 && !lp.shard.Congested()
}

// BeforeSleep implements ring.App.
func (s *Server) BeforeSleep(l *ring.Loop) { s.loops[l.Index()].shard.End() }

// Release implements ring.App.
func (s *Server) Release(l *ring.Loop, token ring.Token) {
	core.FromToken(token).Release(l.Slab())
}

// Stop implements ring.App.
func (s *Server) Stop(*ring.Loop) {}

// unstall lets publishers go on when no other loop lags any more.
func (lp *loopState) unstall() {
	if len(lp.stalled) == 0 || lp.shard.Congested() {
		return
	}
	for i, c := range lp.stalled {
		lp.stalled[i] = nil
		c.stalled = false
		c.wake()
	}
	lp.stalled = lp.stalled[:0]
}

// unbehind lets publishers go on whose messages' disk has caught up.
func (lp *loopState) unbehind() {
	if len(lp.behind) == 0 {
		return
	}
	kept := lp.behind[:0]
	for _, c := range lp.behind {
		if c.state < stateDying && c.behindOn.IsBehind() {
			kept = append(kept, c)
			continue
		}
		c.behind = false
		c.wake()
	}
	clear(lp.behind[len(kept):])
	lp.behind = kept
}

func (lp *loopState) continueParsing() {
	lp.resume, lp.resuming = lp.resuming[:0], lp.resume
	for i, c := range lp.resuming {
		lp.resuming[i] = nil
		c.proceed()
	}
	lp.resuming = lp.resuming[:0]
}

func (lp *loopState) flushConfirms() {
	for i, ch := range lp.confirming {
		lp.confirming[i] = nil
		ch.dirty = false
		if ch.c.state == stateOpen {
			ch.flushConfirms()
		}
	}
	lp.confirming = lp.confirming[:0]
}

// CheckLogin reports whether a user may log in from an address; any goroutine
// may call it. The one user of this version is guest, from loopback addresses
// only (SEC-05).
func (s *Server) CheckLogin(user, password string, from netip.Addr) bool {
	return s.refusal(user, password, from) == ""
}

// refusal is why a login is refused, for the log; empty when it is not.
func (s *Server) refusal(user, password string, from netip.Addr) string {
	switch {
	case user != "guest" || password != "guest":
		return "wrong user or password"
	case !from.Unmap().IsLoopback():
		return "guest may log in from loopback only"
	}
	return ""
}

func (s *Server) countLoginFailure() { s.loginFailures.Add(1) }

// onLoops runs f on every loop and waits for all; it reports false when the
// loops have stopped. Any goroutine but a loop's may call it.
func (s *Server) onLoops(f func(*loopState)) bool {
	var wg sync.WaitGroup
	ok := true
	for _, lp := range s.loops {
		wg.Add(1)
		if !lp.loop.Post(func() { f(lp); wg.Done() }) {
			ok = false
			wg.Done()
		}
	}
	wg.Wait()
	return ok
}

// Drain tells every client that the broker goes (CON-19) and waits until they
// left or ctx ends. New connections are refused from now on.
func (s *Server) Drain(ctx context.Context, reason string) {
	s.draining.Store(true)
	s.onLoops(func(lp *loopState) {
		for c := range lp.conns {
			c.force("broker forced connection closure with reason '" + reason + "'")
		}
	})
	for ctx.Err() == nil {
		left := atomic.Int64{}
		if !s.onLoops(func(lp *loopState) { left.Add(int64(len(lp.conns))) }) || left.Load() == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// force closes a connection by order of an operator (CON-19).
func (c *conn) force(text string) {
	if c.state == stateOpen {
		c.fail(amqp091.ConnectionForced, 0, text)
		return
	}
	if c.state < stateOpen {
		c.abort()
	}
}
