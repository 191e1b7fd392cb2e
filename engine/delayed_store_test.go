package engine

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// XT-02: bodies that left memory come back for those that are due, in the order of
// their delays, wherever they stand in the log; one that cannot be read is no more.
func TestDelayedAbsent(t *testing.T) {
	const messages, bad = 700, 300
	p := newStoredPath(t, 1, false, nil)
	q := p.queues[0]
	err := p.w.v.DeclareExchange("x", "x-delayed-message", ExchangeSettings{Durable: true, Args: core.Args{"x-delayed-type": text("fanout")}})
	if err != nil {
		t.Fatal(err)
	}
	x := p.w.v.Exchange([]byte("x"))
	if err := p.w.v.Bind(x, q, "", nil); err != nil {
		t.Fatal(err)
	}
	p.w.defs.advance(1000)
	due := rand.New(rand.NewPCG(1, 2)).Perm(messages) // of each message, in steps of 10 ms
	body := func(i int) []byte {
		size := 50 << (i % 8) // up to 6400 B: one read is not always enough
		return bytes.Repeat(binary.BigEndian.AppendUint32(nil, 0xABCD0000|uint32(i)), size/4)
	}
	start := p.w.now
	for i, at := range due {
		head := "x-delay=" + number(int64(10_000+10*at)-(p.w.now-start)/1e6).String() + "\n"
		m := core.NewMessage(p.arena, []byte("x"), nil, []byte(head), len(body(i)))
		m.AppendBody(body(i))
		m.Flags = core.FlagPersistent
		queues, _ := p.Route(p.w.v, x, nil, textCodec{}.Headers(m))
		if out := p.Publish(queues[0], m, p, 1); out != Pending {
			t.Fatalf("message %d: %v", i, out)
		}
		p.turns(1)
	}
	if p.turns(3); p.settled != messages || p.refused != 0 || x.held.Ready() != messages {
		t.Fatalf("%d confirmed, %d refused, %d held", p.settled, p.refused, x.held.Ready())
	}
	for _, head := range []bool{false, true} {
		for round := false; !round; {
			_, round = x.held.PageOut(true, head)
		}
	}
	disk, hits := p.w.disks[0], 0
	for _, name := range disk.Names() {
		if at := bytes.Index(disk.Bytes(name), body(bad)); at >= 0 {
			disk.Flip(name, int64(at), 0xFF)
			hits++
		}
	}
	if hits != 1 {
		t.Fatalf("the message stands in %d places", hits)
	}
	wait := func(until int64) {
		p.w.now = start + until*1e6
		p.MarkDirty(x.held)
		p.turns(60)
	}
	order := make([]int, messages)
	for i, at := range due {
		order[at] = i
	}
	wait(10_000 + 10*messages/2 - 5)
	half := q.Ready()
	wait(10_000 + 10*messages)
	got := p.takeAll(q, body)
	want := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i == bad })
	if !slices.Equal(got, want) {
		t.Errorf("%v came, want %v", got, want)
	}
	if half != messages/2 && (half != messages/2-1 || due[bad] >= messages/2) {
		t.Errorf("%d came in the first half", half)
	}
	if p.w.failed != nil || p.Stats.Lost != 1 || len(p.store.dying)+len(p.deaths)+x.held.Ready() != 0 {
		t.Errorf("failed: %v; %d lost, %d dying, %d dead, %d held", p.w.failed, p.Stats.Lost, len(p.store.dying), len(p.deaths), x.held.Ready())
	}
	p.w.free()
}

// takeAll gets everything that is ready, and tells the numbers in the bodies.
func (p *storedPath) takeAll(q *queue.Queue, body func(int) []byte) (got []int) {
	p.Helper()
	for q.Ready() > 0 {
		before := len(got)
		p.Get(q, true, func(g queue.Got, state queue.GotState, _ bool) {
			if state != queue.GotOne {
				p.Fatal("nothing there")
			}
			got = append(got, int(binary.BigEndian.Uint32(g.Message.Body())&0xFFFF))
			if !bytes.Equal(g.Message.Body(), body(got[len(got)-1])) {
				p.Errorf("message %d has another body", got[len(got)-1])
			}
			g.Message.Release(p.arena)
		})
		// The first one waits until the log knows of its delivery.
		for n := 0; len(got) == before; n++ {
			if p.turns(1); n == 100 {
				p.Fatal("a message does not come")
			}
		}
	}
	return got
}

// XT-02: what is due waits, in its old place, for room on the disk.
func TestDelayedFullDisk(t *testing.T) {
	p := newStoredPath(t, 1, false, nil)
	q := p.queues[0]
	err := p.w.v.DeclareExchange("x", "x-delayed-message", ExchangeSettings{Durable: true, Args: core.Args{"x-delayed-type": text("fanout")}})
	if err != nil {
		t.Fatal(err)
	}
	x := p.w.v.Exchange([]byte("x"))
	if err := p.w.v.Bind(x, q, "", nil); err != nil {
		t.Fatal(err)
	}
	p.w.defs.advance(1000)
	held := 0
	for out := Pending; out == Pending && held < 3000; {
		m := core.NewMessage(p.arena, []byte("x"), nil, []byte("x-delay=1000\n"), 4000)
		m.AppendBody(make([]byte, 4000))
		m.Flags = core.FlagPersistent
		if out = p.Publish(x.held, m, p, 1); out == Pending {
			held++
		}
		p.turns(1)
		if held == 400 {
			p.w.disks[0].SetCapacity(1)
		}
	}
	p.w.now += 2e9
	p.MarkDirty(x.held)
	p.turns(5)
	if left := len(p.store.dying); q.Ready()+left != held || left == 0 || p.Stats.DeadDropped != 0 {
		t.Fatalf("full: %d held, %d came, %d wait, %d dropped", held, q.Ready(), left, p.Stats.DeadDropped)
	}
	p.w.disks[0].SetCapacity(0)
	for range 200 {
		p.w.now += int64(spaceEvery)
		p.store.keep(p.w.now)
		p.turns(3)
	}
	if q.Ready() != held || len(p.store.dying) != 0 || p.settled != held {
		t.Errorf("room again: %d of %d came, %d wait, %d confirmed", q.Ready(), held, len(p.store.dying), p.settled)
	}
	p.w.free()
}
