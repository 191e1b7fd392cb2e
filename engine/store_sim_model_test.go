package engine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/wal/crashfs"
)

// The planted faults.
const (
	faultSkipAck      = "an acknowledgement is not passed on"
	faultDropRecord   = "a confirmed message is not stored"
	faultNoLease      = "deliveries do not wait for the lease"
	faultEarlyConfirm = "a confirm does not wait for the disk"
)

// simModel is the broker's clients with their memory.
type simModel struct {
	seed  uint64
	rng   *rand.Rand
	fault string
	life  int
	deaf  bool     // the clients are gone: nobody hears an answer
	past  []string // how lives ended
	opts  simOptions
	w     *world

	queues  []*simQueue // that exist, or may
	pubs    []*simPublisher
	sinks   []*simSink
	getters []*simSink // what basic.get took, by shard
	known   map[simKey]*lineage
	nextID  uint64
	named   int
}

// simKey names a message in the queue it was published to.
type simKey struct {
	id   uint64
	root string
}

// lineage is one message in one queue, and what came of it by dead lettering.
type lineage struct {
	simKey
	pub      int
	q        *simQueue
	keeps    bool  // it is to survive the broker
	sure     bool  // it must be somewhere
	answered bool  // the publisher was told that it is there
	purged   bool  // it may have gone with others
	gone     bool  // it must not be anywhere any more
	crashed  bool  // it went through a crash: it may be marked without reason
	twice    bool  // it was in several places
	expiry   int64 // monotonic nanoseconds, 0 = never
	size     int
	copies   map[string]*simCopy // by queue
}

// simCopy is what consumers did with a message of one queue.
type simCopy struct {
	handed   int
	returned int // by its client
	life     int // of the last time
	held     bool
	settled  bool // in this life
	ended    bool // settled, and it goes nowhere else
	durable  bool // for good
}

func (m *simModel) fail(format string, args ...any) {
	panic(simFailure{fmt.Sprintf(format, args...)})
}

func newSimModel(seed uint64, fault string) *simModel {
	m := &simModel{seed: seed, fault: fault, rng: rand.New(rand.NewPCG(seed, 11)), known: map[simKey]*lineage{}, nextID: 1}
	m.opts = simOptions{sync: "always", segment: []int64{32 << 10, 64 << 10, 256 << 10}[m.rng.IntN(3)]}
	if m.rng.IntN(4) == 0 {
		m.opts.compress = "s2"
	}
	if m.rng.IntN(8) == 0 {
		m.opts.sync = []string{"interval", "off"}[m.rng.IntN(2)]
	}
	return m
}

// body is what message id carries, size bytes but at least 8.
func simBody(id uint64, size int) []byte {
	b := binary.BigEndian.AppendUint64(nil, id)
	for i := len(b); i < size; i++ {
		b = append(b, byte(id)+byte(i)*7)
	}
	return b
}

// lineageOf finds what a message descends from: its history names the first queue.
func (m *simModel) lineageOf(msg *core.Message, in string) *lineage {
	root := in
	for line := range strings.Lines(string(msg.Head())) {
		if w := strings.Fields(line); len(w) == 3 && w[0] == "death" {
			root = w[1]
		}
	}
	if msg.BodyLen() < 8 {
		m.fail("a message of %d bytes in %s", msg.BodyLen(), in)
	}
	l := m.known[simKey{binary.BigEndian.Uint64(msg.Body()), root}]
	if l == nil {
		m.fail("a message in %s that nobody published: %x, root %s", in, msg.Body()[:8], root)
	}
	if string(msg.Body()) != string(simBody(l.id, l.size)) {
		m.fail("message %d in %s has another body", l.id, in)
	}
	return l
}

// String tells what clients know of a message.
func (l *lineage) String() string {
	text := fmt.Sprintf("%s queue, dead letters to %q, expires %d, through a crash %v;", l.q.kind, l.q.dlq, l.expiry, l.crashed)
	for in, c := range l.copies {
		text += fmt.Sprintf(" %s%+v", in, *c)
	}
	return text
}

func (l *lineage) copy(in string) *simCopy {
	c := l.copies[in]
	if c == nil {
		c = &simCopy{}
		l.copies[in] = c
	}
	return c
}

// received judges a message that a client or the inspector got from a queue.
func (m *simModel) received(l *lineage, in string, redelivered bool) *simCopy {
	c := l.copy(in)
	// A dead letter may be sent again by a queue that had it before a crash.
	loose := l.twice || l.crashed && in != l.root
	switch {
	case l.gone:
		m.fail("message %d of %s comes back in %s", l.id, l.root, in)
	case c.durable && !loose:
		m.fail("message %d of %s was done for good in %s and comes back: %s", l.id, l.root, in, l)
	case c.settled && !loose:
		m.fail("message %d of %s was settled in %s and comes back: %s", l.id, l.root, in, l)
	case c.handed > 0 && !redelivered && !loose:
		m.fail("message %d of %s was handed out in %s and is not marked: %s", l.id, l.root, in, l)
	case c.handed == 0 && redelivered && !l.crashed && !loose:
		m.fail("message %d of %s was never handed out in %s and is marked", l.id, l.root, in)
	}
	return c
}

// run lives through a number of lives.
func (m *simModel) run(cycles int) {
	defs, disks, now := newSimDefs(), map[int]*crashfs.FS{}, int64(1e12)
	shards := 1 + m.rng.IntN(3)
	for m.life = range cycles {
		if m.rng.IntN(4) == 0 {
			shards = 1 + m.rng.IntN(3)
		}
		m.open(shards, now, disks, defs)
		m.live(20 + m.rng.IntN(150))
		if m.life == cycles-1 {
			m.finish()
			return
		}
		m.end()
		defs, disks, now = m.w.defs, m.w.disks, m.w.now+int64(m.rng.IntN(1000))*1e6
	}
}

// open starts the next life, after a look at what it is going to find.
func (m *simModel) open(shards int, now int64, disks map[int]*crashfs.FS, defs *simDefs) {
	if m.life > 0 {
		clones := map[int]*crashfs.FS{}
		for i, fs := range disks {
			clones[i] = fs.Clone()
		}
		w, err := openWorld(shards, m.opts, m.seed, now, clones, defs.reborn(), nil)
		if err != nil {
			m.fail("does not open: %v", err)
		}
		m.inspect(w)
		w.free()
	}
	w, err := openWorld(shards, m.opts, m.seed+uint64(m.life)<<32, now, disks, defs.reborn(), nil)
	if err != nil {
		m.fail("does not open: %v", err)
	}
	m.w = w
	m.found()
}

// found takes up the queues of a new life.
func (m *simModel) found() {
	m.deaf = false
	var kept []*simQueue
	for _, sq := range m.queues {
		if sq.q = m.w.v.Queue([]byte(sq.name)); sq.q == nil {
			if sq.durable && sq.defined && !sq.deleting {
				m.fail("queue %s is gone", sq.name)
			}
			continue
		}
		if m.fault == faultNoLease {
			sq.q.Leased(1 << 62)
		}
		sq.defined, sq.deleting, sq.disordered, sq.far, sq.leaky = true, false, false, false, false
		kept = append(kept, sq)
	}
	m.queues, m.sinks, m.pubs = kept, nil, nil
	m.getters = make([]*simSink, len(m.w.b.Shards))
	for i := range 1 + m.rng.IntN(4) {
		m.pubs = append(m.pubs, &simPublisher{m: m, number: m.life*10 + i, home: m.shard(), asked: map[uint64]*simAnswer{}})
	}
}

func (m *simModel) shard() *Shard { return m.w.b.Shards[m.rng.IntN(len(m.w.b.Shards))] }

// end ends a life: by an orderly stop, by the death of the process, or by a power cut.
func (m *simModel) end() {
	w, clean, how := m.w, false, "power cut"
	switch n := m.rng.IntN(10); {
	case n < 2:
		m.hangUp()
		if !w.quiet() {
			m.fail("does not come to rest")
		}
		clean, how = true, "stop"
		m.stop()
	case n < 3:
		how = "hasty stop"
		m.hangUp()
		m.stop() // while everything is on its way
	case n < 6:
		how = "kill"
		m.takeDisks((*crashfs.FS).Kill)
	default:
		if m.rng.IntN(2) == 0 {
			for _, i := range slices.Sorted(maps.Keys(w.disks)) {
				w.disks[i].CrashAt(1 + m.rng.IntN(6))
			}
			w.steps(m.rng.IntN(20))
		}
		if m.opts.sync == "always" {
			m.takeDisks(func(fs *crashfs.FS) *crashfs.FS { return fs.Crash(m.rng) })
		} else {
			m.takeDisks((*crashfs.FS).Kill)
		}
	}
	w.free()
	m.past = append(m.past, fmt.Sprint(len(w.b.Shards), " loops, ", how))
	m.died(clean)
}

func (m *simModel) stop() {
	m.deaf = true
	if err := m.w.close(); err != nil {
		m.fail("closing: %v", err)
	}
	m.w.defs.advance(1 << 30)
	for i, fs := range m.w.disks {
		m.w.disks[i] = fs.Kill()
	}
}

func (m *simModel) takeDisks(take func(*crashfs.FS) *crashfs.FS) {
	for _, i := range slices.Sorted(maps.Keys(m.w.disks)) {
		m.w.disks[i] = take(m.w.disks[i])
	}
}

// died notes what the end of a broker means.
func (m *simModel) died(clean bool) {
	for _, l := range m.known {
		if !l.keeps {
			l.gone = true
		}
		l.crashed = l.crashed || !clean
		for _, c := range l.copies {
			c.held = false
			if clean && c.settled {
				c.durable = true
			}
			c.settled, c.ended = false, false
		}
	}
}

// simSight is a message as the inspector finds it.
type simSight struct {
	l  *lineage
	in string
}

// inspect drains a copy of the broker and compares it with the model.
func (m *simModel) inspect(w *world) {
	var seen []simSight
	ready := uint64(0)
	for _, s := range w.b.Shards {
		w.v.Queues(func(q *queue.Queue) {
			if q.Shard == s.Index {
				ready += uint64(q.Ready())
				sub := &Subscription{Queue: q}
				sub.Consumer.NoAck = true
				s.Subscribe(sub, &inspector{m: m, s: s, q: q, seen: &seen}, func(err *core.Error) {
					if err != nil {
						m.fail("the inspector is refused: %v", err)
					}
				})
			}
		})
	}
	if ready != w.report.Messages {
		m.fail("%d messages are reported, %d are ready", w.report.Messages, ready)
	}
	if !w.quiet() || w.failed != nil {
		m.fail("the inspected broker does not come to rest: %v", w.failed)
	}
	w.v.Queues(func(q *queue.Queue) {
		if q.Ready() != 0 || q.Unacked() != 0 {
			m.fail("%d, %d left in %s", q.Ready(), q.Unacked(), q.Name)
		}
	})
	for _, s := range w.b.Shards {
		if n := s.store.wal.Stats().LiveCount; n != 0 {
			m.fail("%d records of a drained log are live", n)
		}
		if s.store.absent != 0 {
			m.fail("%d bodies of nothing are absent", s.store.absent)
		}
		if s.Stats.Lost != 0 {
			m.fail("%d bodies are lost", s.Stats.Lost)
		}
	}
	m.compare(seen, w.now)
}

// compare judges what was found, and learns from it.
func (m *simModel) compare(seen []simSight, now int64) {
	found := map[*lineage]int{}
	places := map[simSight]int{}
	last := map[string]uint64{}
	leaky := map[string]bool{}
	for _, sq := range m.queues {
		leaky[sq.name] = sq.leaky
	}
	for _, s := range seen {
		found[s.l]++
		if places[s]++; places[s] > 1 && s.in == s.l.root {
			m.fail("message %d is twice in %s", s.l.id, s.in)
		}
		if s.in == s.l.root {
			line := fmt.Sprint(s.in, " ", s.l.pub)
			if s.l.id < last[line] {
				m.fail("message %d comes after %d in %s", s.l.id, last[line], s.in)
			}
			last[line] = s.l.id
		}
	}
	for _, l := range m.known {
		n := found[l]
		switch {
		case n == 0 && l.sure && !l.mayExpire(now) && !leaky[l.root] && !leaky[l.q.dlq]:
			m.fail("message %d of %s is lost: %s", l.id, l.root, l)
		case n == 0:
			l.gone, l.sure = true, false
		default:
			l.sure = l.staysSure()
			l.answered, l.purged = true, false
			l.twice = l.twice || n > 1
		}
	}
}

// mayExpire reports that nothing need be left of a message.
func (l *lineage) mayExpire(now int64) bool {
	return l.q.dlq == "" && l.expiry != 0 && now > l.expiry-5e6
}

// staysSure reports that nothing but a client ends a message.
func (l *lineage) staysSure() bool {
	return l.keeps && (!l.q.limited || l.q.dlq != "") && !l.q.deleting
}

// inspector takes everything.
type inspector struct {
	m    *simModel
	s    *Shard
	q    *queue.Queue
	seen *[]simSight
}

func (*inspector) Full() bool { return false }
func (*inspector) Cancelled() {}

func (i *inspector) Deliver(_ uint64, msg *core.Message, f queue.DeliverFlags) {
	l := i.m.lineageOf(msg, i.q.Name)
	i.m.received(l, i.q.Name, f&queue.Redelivered != 0)
	*i.seen = append(*i.seen, simSight{l, i.q.Name})
	msg.Release(i.s.arena)
}
