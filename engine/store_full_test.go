package engine

import (
	"bytes"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// TestFullDisk: without room messages are refused, acknowledgements go on, and with
// room messages are welcome again.
func TestFullDisk(t *testing.T) {
	p := newStoredPath(t, 1, false, nil)
	q := p.queues[0]
	published, out := 0, Pending
	for out == Pending && published < 3000 {
		p.body = make([]byte, 4000)
		if out = p.Publish(q, p.message(), p, 1); out == Pending {
			published++
		}
		p.turns(1)
		if published == 400 {
			p.w.disks[0].SetCapacity(1) // what is there stays, the ballast among it
		}
	}
	if out != NoSpace || !p.Full(q) || p.wal().Space() == nil {
		t.Fatalf("the outcome is %v after %d messages, full %v", out, published, p.Full(q))
	}
	p.turns(5)
	if p.settled != published || p.refused != 0 {
		t.Fatalf("%d of %d answered, %d refused", p.settled, published, p.refused)
	}
	for range published {
		var seq uint64
		got := false
		p.Get(q, false, func(g queue.Got, state queue.GotState, _ bool) {
			if seq, got = g.Seq, true; state != queue.GotOne {
				t.Fatal("nothing there")
			}
		})
		for !got {
			p.turns(1)
		}
		end := p.wal().End()
		p.Ack(q, seq, 1, nil)
		if p.wal().End() == end {
			t.Fatalf("acknowledgement %d of %d is not written: %d owed, %v", seq, published, len(p.store.owed), end)
		}
		p.store.keep(p.w.now) // the space of what is done comes back by checkpoints
		p.turns(1)
	}
	if len(p.store.owed) != 0 || q.Ready() != 0 {
		t.Errorf("%d records are owed, %d messages left", len(p.store.owed), q.Ready())
	}
	p.w.disks[0].SetCapacity(0)
	p.w.now += int64(spaceEvery)
	for range 20 {
		p.w.now += int64(keepEvery)
		p.store.keep(p.w.now)
		p.turns(1)
	}
	if out = p.Publish(q, p.message(), p, 1); out != Pending || p.Full(q) {
		t.Errorf("with room again: %v, full %v", out, p.Full(q))
	}
	p.turns(3)
	if p.settled != published+1 || p.refused != 0 {
		t.Errorf("%d answers, %d refused", p.settled, p.refused)
	}
	p.w.free()
}

// TestFullDiskDeadLetter: a dead letter waits for room, in its old place.
func TestFullDiskDeadLetter(t *testing.T) {
	p := newStoredPath(t, 1, false, nil)
	target := p.queues[0]
	args := core.Args{"x-dead-letter-exchange": text(""), "x-dead-letter-routing-key": text(target.Name)}
	q, err := p.w.v.DeclareQueue("source", queue.Settings{Durable: true, Args: args}, nil, p.Shard, false)
	if err != nil {
		t.Fatal(err)
	}
	p.w.defs.advance(10)
	p.body = make([]byte, 4000)
	for out, n := Pending, 0; out == Pending; n++ {
		if out = p.Publish(q, p.message(), p, 1); n == 400 {
			p.w.disks[0].SetCapacity(1)
		}
		p.turns(1)
	}
	seq, got := uint64(0), false
	p.Get(q, false, func(g queue.Got, state queue.GotState, _ bool) { seq, got = g.Seq, state == queue.GotOne })
	for !got {
		p.turns(1)
	}
	p.Discard(q, seq, nil)
	for range 5 {
		p.turns(3)
		p.w.now += int64(spaceEvery)
	}
	if len(p.store.dying) != 1 || target.Ready() != 0 || p.Stats.DeadDropped != 0 {
		t.Errorf("full: %d dying, %d arrived, %d dropped", len(p.store.dying), target.Ready(), p.Stats.DeadDropped)
	}
	p.w.disks[0].SetCapacity(0)
	for range 5 {
		p.w.now += int64(spaceEvery)
		p.store.keep(p.w.now)
		p.turns(3)
	}
	if len(p.store.dying) != 0 || target.Ready() != 1 {
		t.Errorf("room again: %d dying, %d arrived", len(p.store.dying), target.Ready())
	}
	p.w.free()
}

func (p *storedPath) wal() *walLog { return p.store.wal }

// TestParked: publishes that the log has no segment for wait, keep their order, and are
// answered.
func TestParked(t *testing.T) {
	p := newStoredPath(t, 1, false, nil)
	q := p.queues[0]
	p.body = make([]byte, 30000)
	for len(p.store.parked) == 0 {
		p.body[0]++
		if out := p.Publish(q, p.message(), p, 1); out != Pending {
			t.Fatalf("the outcome is %v", out)
		}
	}
	for range 3 {
		p.body[0]++
		if out := p.Publish(q, p.message(), p, 1); out != Pending {
			t.Fatalf("the outcome is %v", out)
		}
	}
	p.turn()
	if !p.IsBehind() {
		t.Error("publishers are not asked to pause")
	}
	sent := int(p.body[0])
	p.turns(40)
	if p.settled != sent || p.refused != 0 || len(p.store.parked) != 0 || p.IsBehind() {
		t.Errorf("%d of %d answered, %d refused, %d parked, behind %v", p.settled, sent, p.refused, len(p.store.parked), p.IsBehind())
	}
	for i := range sent {
		got := false
		p.Get(q, true, func(g queue.Got, state queue.GotState, _ bool) {
			got = true
			if state != queue.GotOne || int(g.Message.Body()[0]) != i+1 {
				t.Fatalf("message %d of %d: state %v, body %d", i+1, sent, state, g.Message.Body()[0])
			}
			g.Message.Release(p.arena)
		})
		for !got {
			p.turns(1)
		}
	}
	p.w.free()
}

// TestLostBody: a record that cannot be read any more costs one message, not the queue.
func TestLostBody(t *testing.T) {
	p := newStoredPath(t, 1, false, nil)
	q := p.queues[0]
	const messages, bad = 300, 100
	for i := range messages {
		p.body = bytes.Repeat([]byte{byte(i)}, 2000)
		p.Publish(q, p.message(), p, 1)
		p.turns(1)
	}
	for {
		if _, round := q.PageOut(true, false); round {
			break
		}
	}
	disk, hits := p.w.disks[0], 0
	for _, name := range disk.Names() {
		if at := bytes.Index(disk.Bytes(name), bytes.Repeat([]byte{bad}, 1000)); at >= 0 {
			disk.Flip(name, int64(at), 0xFF)
			hits++
		}
	}
	if hits != 1 {
		t.Fatalf("the message stands in %d places", hits)
	}
	sink, sub := &ackSink{}, &Subscription{Queue: q}
	sub.Consumer.Prefetch = 1
	p.Subscribe(sub, sink, func(*core.Error) {})
	for range 4 * messages {
		before := sink.n
		p.turns(1)
		if sink.n > before {
			p.Ack(q, sink.seq, 1, sub)
		}
	}
	if p.w.failed != nil || sink.n != messages-1 || p.Stats.Lost != 1 || q.Dropped != 1 || q.Ready()+q.Unacked() != 0 {
		t.Errorf("failed: %v; %d delivered, %d lost, %d dropped, %d left", p.w.failed, sink.n, p.Stats.Lost, q.Dropped, q.Ready()+q.Unacked())
	}
	p.w.free()
}
