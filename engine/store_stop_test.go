package engine

import (
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/ring"
	"ringmq/wal/crashfs"
)

// counter counts the answers to its publishes.
type counter struct{ accepted, refused int }

func (c *counter) Settled(_ uint64, ok bool) {
	if ok {
		c.accepted++
	} else {
		c.refused++
	}
}

// stopping is two loops, with one confirmed message in a queue of the second one that a client of the first one
// holds.
type stopping struct {
	*world
	t     *testing.T
	disks map[int]*crashfs.FS
	defs  *simDefs
	a, b  *Shard
	q     *queue.Queue
	seq   uint64
}

var stopOptions = simOptions{sync: "always", segment: 1 << 20}

func newStopping(t *testing.T, args core.Args) *stopping {
	p := &stopping{t: t, disks: map[int]*crashfs.FS{}, defs: newSimDefs()}
	var err error
	if p.world, err = openWorld(2, stopOptions, 1, 1e12, p.disks, p.defs, nil); err != nil {
		t.Fatal(err)
	}
	for i, slab := range ring.NewSlabs(2) {
		p.world.b.Shards[i].arena = slab
	}
	p.a, p.b = p.world.b.Shards[0], p.world.b.Shards[1]
	p.q = p.declare("q", p.b, args)
	p.publish(p.q)
	got := queue.GotNone
	p.turn(p.a, func() {
		p.a.Get(p.q, false, func(g queue.Got, state queue.GotState, _ bool) { p.seq, got = g.Seq, state })
	})
	p.quiet()
	if got != queue.GotOne {
		t.Fatal("nothing to hold")
	}
	return p
}

func (p *stopping) declare(name string, near *Shard, args core.Args) *queue.Queue {
	q, err := p.v.DeclareQueue(name, queue.Settings{Durable: true, Args: args}, nil, near, false)
	if err != nil {
		p.t.Fatal(err)
	}
	p.quiet()
	return q
}

func (p *stopping) message() *core.Message {
	m := core.NewMessage(p.a.arena, nil, nil, nil, 10)
	m.AppendBody(make([]byte, 10))
	m.Flags = core.FlagPersistent
	return m
}

func (p *stopping) publish(q *queue.Queue) {
	var asked counter
	p.turn(p.a, func() { p.a.Publish(q, p.message(), &asked, 1) })
	p.quiet()
	if asked.accepted != 1 {
		p.t.Fatal("not confirmed")
	}
}

// restart stops in order and tells how many messages come back.
func (p *stopping) restart() int {
	p.t.Helper()
	if err := p.close(); err != nil {
		p.t.Fatal(err)
	}
	p.free()
	again, err := openWorld(2, stopOptions, 2, 2e12, p.disks, p.defs.reborn(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer again.free()
	return int(again.report.Messages)
}

// An orderly stop carries out what clients said last, although it is still on its way between two loops.
func TestStopWithFullMailboxes(t *testing.T) {
	for _, c := range []struct {
		name string
		args core.Args
		last func(p *stopping) // in the last turn of the first loop
		want int
	}{
		{"nothing", nil, func(*stopping) {}, 1},
		{"acknowledged", nil, func(p *stopping) { p.a.Ack(p.q, p.seq, 1, nil) }, 0},
		{"published", nil, func(p *stopping) { p.a.Publish(p.q, p.message(), nil, 0) }, 2},
		{"published, more than a mailbox holds", nil, func(p *stopping) {
			for range 4 * core.MailboxSlots {
				p.a.Publish(p.q, p.message(), nil, 0)
			}
		}, 1 + 4*core.MailboxSlots},
		{"dead-lettered to the other loop", dlx("", "dead", nil), func(p *stopping) { p.a.Discard(p.q, p.seq, nil) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newStopping(t, c.args)
			if c.args != nil {
				p.declare("dead", p.a, nil)
			}
			p.turn(p.a, func() { c.last(p) })
			if n := p.restart(); n != c.want {
				t.Errorf("%d messages come back, want %d", n, c.want)
			}
		})
	}
}

// A stop waits for dead letters that are on their way, but not for ever.
func TestWhenQuiet(t *testing.T) {
	p := newStopping(t, nil)
	defer p.free()
	st, told := p.a.store, 0
	ask := func() { st.whenQuiet(func() { told++ }) }
	key := dyingKey{p.q.ID, 1}
	st.dying[key] = struct{}{}
	ask()
	if p.turn(p.a, nil); told != 0 {
		t.Error("quiet, and a dead letter is on its way")
	}
	delete(st.dying, key)
	if p.turn(p.a, nil); told != 1 {
		t.Errorf("told %d times that it is quiet", told)
	}
	st.dying[key] = struct{}{}
	ask()
	p.now += int64(quietMax)
	if p.turn(p.a, nil); told != 2 {
		t.Error("waits longer than it may")
	}
}
