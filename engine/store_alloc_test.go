package engine

import (
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/ring"
	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// storedPath is a shard with a log and durable queues, each with a consumer.
type storedPath struct {
	testing.TB
	*Shard
	w       *world
	queues  []*queue.Queue
	subs    []*Subscription
	sinks   []*ackSink
	body    []byte
	settled int
	refused int
}

// Settled implements Origin.
func (p *storedPath) Settled(_ uint64, ok bool) {
	p.settled++
	if !ok {
		p.refused++
	}
}

func newStoredPath(tb testing.TB, queues int, consumers bool, device func(loop int) testDevice) *storedPath {
	defs := newSimDefs()
	w, err := openWorld(1, simOptions{sync: "always", segment: 1 << 20}, 1, 1e12, map[int]*crashfs.FS{}, defs, device)
	if err != nil {
		tb.Fatal(err)
	}
	p := &storedPath{TB: tb, Shard: w.b.Shards[0], w: w, body: make([]byte, 100)}
	p.arena = ring.NewSlabs(1)[0]
	for i := range queues {
		q, err := w.v.DeclareQueue(string(rune('a'+i)), queue.Settings{Durable: true}, nil, p.Shard, false)
		if err != nil {
			tb.Fatal(err)
		}
		p.queues = append(p.queues, q)
		if consumers {
			sub, sink := &Subscription{Queue: q}, &ackSink{}
			p.Subscribe(sub, sink, func(err *core.Error) {
				if err != nil {
					tb.Fatal(err)
				}
			})
			p.subs, p.sinks = append(p.subs, sub), append(p.sinks, sink)
		}
	}
	defs.advance(1000)
	p.turns(10)
	return p
}

func (p *storedPath) message() *core.Message {
	m := core.NewMessage(p.arena, nil, nil, nil, len(p.body))
	m.AppendBody(p.body)
	m.Flags = core.FlagPersistent
	return m
}

// turn is a turn of the loop, with the disk's answer before the next one.
func (p *storedPath) turn() {
	p.w.tick(p.Shard)
	p.Begin(p.w.now)
	p.Settle()
	p.End()
}

func (p *storedPath) turns(n int) {
	for range n {
		p.turn()
		p.w.devices[0].Drain()
	}
}

// inline is a disk that takes everything at once and keeps nothing: for counting
// allocations. Results wait for Step.
type inline struct {
	write func(error)
	jobs  []func()
}

func (d *inline) Write(_ wal.File, _ int64, _ []byte, _ bool, done func(error)) { d.write = done }

func (d *inline) Read(wal.File, int64, []byte, func(int, error)) {}

func (d *inline) Run(job func() error, done func(error)) {
	d.jobs = append(d.jobs, func() { done(job()) })
}

func (d *inline) Step() bool {
	if done := d.write; done != nil {
		d.write = nil
		done(nil)
		return true
	}
	if n := len(d.jobs); n > 0 {
		job := d.jobs[0]
		d.jobs = d.jobs[1:]
		job()
		return true
	}
	return false
}

// storedSteps are the ways of a persistent message.
func storedSteps() []storedStep {
	return []storedStep{
		{"publish with confirm, acknowledge", 1},
		{"publish to three queues with confirm, acknowledge", 3},
	}
}

type storedStep struct {
	name   string
	queues int
}

func (s storedStep) run(tb testing.TB) (*storedPath, func()) {
	d := &inline{}
	p := newStoredPath(tb, s.queues, true, func(int) testDevice { return d })
	return p, func() {
		m := p.message()
		m.AddRef(int32(s.queues - 1))
		before := p.settled
		pending, refused, _ := p.PublishAll(p.queues, m, p, 1)
		if pending != uint32(s.queues) || refused {
			p.Fatalf("%d answers to come, refused %v", pending, refused)
		}
		p.turn()
		for d.Step() {
		}
		if p.settled != before+s.queues {
			p.Fatal("not confirmed")
		}
		for i, q := range p.queues {
			p.Ack(q, p.sinks[i].seq, 1, p.subs[i])
		}
	}
}

// TestAllocsStored: persistent messages allocate nothing from publish to
// acknowledgement, leases and segments aside.
func TestAllocsStored(t *testing.T) {
	for _, s := range storedSteps() {
		p, run := s.run(t)
		for range 500 {
			run()
		}
		if n := testing.AllocsPerRun(500, run); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
		p.w.free()
	}
}

func BenchmarkStored(b *testing.B) {
	for _, s := range storedSteps() {
		b.Run(s.name, func(b *testing.B) {
			_, run := s.run(b)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
