package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// Subscription joins a consumer's two ends: the queue's shard, which decides
// what it gets, and the connection's shard, which writes it. When both are the
// same, a delivery is a function call.
type Subscription struct {
	// Consumer is the queue's side; the queue's loop owns it once subscribed.
	Consumer queue.Consumer
	Queue    *queue.Queue

	// The connection's side, owned by the connection's loop.
	local queue.Sink
	home  *Shard
	owed  uint32 // bytes delivered and not yet returned to the queue's window
	owing bool   // on the list of this turn
	gone  bool   // the channel or connection ended

	remote remoteSink
}

// consumer is the queue's side, nil for basic.get.
func (sub *Subscription) consumer() *queue.Consumer {
	if sub == nil {
		return nil
	}
	return &sub.Consumer
}

// remoteSink is how a queue reaches a consumer on another loop. The queue's
// loop owns it.
type remoteSink struct {
	shard    *Shard // of the queue
	sub      *Subscription
	inFlight int // bytes handed over and not yet returned
}

// Full implements queue.Sink.
func (r *remoteSink) Full() bool { return r.inFlight >= core.RemoteWindowBytes }

// Deliver implements queue.Sink.
func (r *remoteSink) Deliver(seq uint64, m *core.Message, f queue.DeliverFlags) {
	if f&queue.Owned == 0 {
		// The entry keeps its reference; the message must outlive the trip
		// even if the queue is deleted meanwhile.
		m.AddRef(1)
	}
	r.inFlight += m.BodyLen() + core.MessageOverheadBytes
	r.shard.send(r.sub.home.Index, &Command{op: opDeliver, sub: r.sub, seq: seq, m: m, flags: uint8(f), n: uint32(f) >> 8})
}

// Cancelled implements queue.Sink.
func (r *remoteSink) Cancelled() {
	r.shard.send(r.sub.home.Index, &Command{op: opCancelled, sub: r.sub})
}

func (r *remoteSink) credit(n int) {
	full := r.Full()
	r.inFlight -= n
	if full && !r.Full() {
		r.sub.Queue.Resume(&r.sub.Consumer)
	}
}

// deliverHere is the far end of remoteSink.Deliver. The command carries a
// reference of its own.
func (s *Shard) deliverHere(c *Command) {
	sub, m, f := c.sub, c.m, queue.DeliverFlags(c.n)<<8|queue.DeliverFlags(c.flags)
	cost := uint32(m.BodyLen() + core.MessageOverheadBytes)
	if sub.gone {
		noAck := f&queue.Owned != 0
		m.Release(s.arena)
		if !noAck {
			s.Requeue(sub.Queue, c.seq, sub, true)
		}
		return
	}
	sub.local.Deliver(c.seq, m, f|queue.Owned)
	sub.owed += cost
	if !sub.owing {
		sub.owing = true
		s.owing = append(s.owing, sub)
	}
}

// returnCredit gives windows back for what connections took. A connection that
// is full keeps its consumers' windows until it drained (ResumeLocal).
func (s *Shard) returnCredit() {
	for i, sub := range s.owing {
		s.owing[i] = nil
		sub.owing = false
		if sub.owed > 0 && (sub.gone || !sub.local.Full()) {
			s.send(sub.Queue.Shard, &Command{op: opCredit, sub: sub, n: sub.owed})
			sub.owed = 0
		}
	}
	s.owing = s.owing[:0]
}

// Subscribe adds a consumer to a queue; done is told on this shard whether the
// queue accepted it: nil, or why not. consume-ok must be written by done before
// anything else, so that it precedes the first delivery (BAS-04).
func (s *Shard) Subscribe(sub *Subscription, sink queue.Sink, done func(*core.Error)) {
	sub.local, sub.home = sink, s
	q := sub.Queue
	if q.Shard == s.Index {
		sub.Consumer.Sink = sink
		done(s.subscribe(sub))
		return
	}
	sub.remote = remoteSink{shard: s.Broker.Shards[q.Shard], sub: sub}
	sub.Consumer.Sink = &sub.remote
	var err *core.Error
	s.On(q.Shard, func(at *Shard) { err = at.subscribe(sub) }, func() { done(err) })
}

func (s *Shard) subscribe(sub *Subscription) *core.Error {
	q := sub.Queue
	v := q.Space.(*VHost)
	if q.Deleted() {
		return v.NoQueue(q.Name)
	}
	if !q.Subscribe(&sub.Consumer) {
		return core.Refuse(core.AccessRefused, "queue '%s' in vhost '%s' in exclusive use", q.Name, v.Name)
	}
	q.Touch(s.now)
	return nil
}

// Unsubscribe removes a consumer. done, which may be nil, runs on this shard
// after every delivery that was under way (BAS-05).
func (s *Shard) Unsubscribe(sub *Subscription, done func()) {
	if done == nil {
		done = func() {}
	}
	s.On(sub.Queue.Shard, func(at *Shard) { sub.Queue.Unsubscribe(&sub.Consumer, at.now) }, done)
}

// Abandon says that the consumer's channel is gone: what is still on its way
// goes back to the queue.
func (s *Shard) Abandon(sub *Subscription) { sub.gone = true }

// Resume offers a consumer messages again after its connection drained or its
// channel's window moved.
func (s *Shard) Resume(sub *Subscription) {
	if sub.Queue.Shard == s.Index {
		sub.Queue.Resume(&sub.Consumer)
		return
	}
	if sub.owed > 0 {
		s.send(sub.Queue.Shard, &Command{op: opCredit, sub: sub, n: sub.owed})
		sub.owed = 0
	}
	s.send(sub.Queue.Shard, &Command{op: opResume, sub: sub})
}

// SetWindow puts a consumer under its channel's shared window.
func (s *Shard) SetWindow(sub *Subscription, w *queue.Window) {
	s.On(sub.Queue.Shard, func(*Shard) { sub.Queue.SetWindow(&sub.Consumer, w) }, func() {})
}

// On runs fn on another shard and then done on this one. When the shard is
// this one both run at once.
func (s *Shard) On(shard int, fn func(at *Shard), done func()) {
	if shard == s.Index {
		fn(s)
		done()
		return
	}
	home := s.Index
	s.send(shard, &Command{op: opCall, fn: func(at *Shard) {
		fn(at)
		at.send(home, &Command{op: opCall, fn: func(*Shard) { done() }})
	}})
}
