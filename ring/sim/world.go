package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"ringmq/ring"
)

const (
	// windowDefault is how many unread bytes a peer takes.
	windowDefault = 1 << 20
	// settleRoundsMax ends a Settle that never comes to rest, which is an error of the app or of the
	// test: somebody answers every answer.
	settleRoundsMax = 1_000_000
	// descriptorFirst is the first number given out, high enough to be no real descriptor.
	descriptorFirst = 1_000_000
)

// Faults says how unkind the world is. The zero value is a kernel that does everything at once and whole.
type Faults struct {
	// DelayMax is the most polls that an arrival or a completion is late.
	DelayMax int
	// ShortPercent is how often a read or a send takes only a part.
	ShortPercent int
	// ReadMax bounds the bytes of one read; 0 stands for 16 KiB.
	ReadMax int
	// SkipPercent is how often a loop misses a Step, as one whose core is busy elsewhere.
	SkipPercent int
}

// Unkind is what New begins with.
var Unkind = Faults{DelayMax: 3, ShortPercent: 30, ReadMax: 8 << 10, SkipPercent: 20}

// World is a group of loops and everything outside them. One goroutine calls it.
type World struct {
	rng      *rand.Rand
	faults   Faults
	group    *ring.Group
	loops    []*ring.Loop
	backends []*backend
	// running and waits are what each loop's last turn ended with, see ring.Port.
	running []bool
	waits   []int64
	now     int64

	// links by descriptor, until both sides have closed.
	links map[int]*link
	// dials are descriptors not accepted yet, per loop.
	dials          [][]int
	descriptorNext int

	readMax int
	scratch []byte
	trace   uint64
	// Log, if set, is called with each event; for reading the story of a failed seed.
	Log func(line string)
}

// New makes a world of the given number of loops that run app, and starts them.
func New(seed uint64, loops int, app ring.App) *World {
	return NewWith(seed, loops, app, ring.Options{})
}

// NewWith is New with options for the loops: marks, buffer sizes, a log. Cores, backend and clock are
// the world's own.
func NewWith(seed uint64, loops int, app ring.App, o ring.Options) *World {
	w := &World{rng: rand.New(rand.NewPCG(seed, 0x72696e67)), now: int64(time.Hour), links: make(map[int]*link),
		running: make([]bool, loops), waits: make([]int64, loops), dials: make([][]int, loops),
		descriptorNext: descriptorFirst}
	w.SetFaults(Unkind)
	o.Cores, o.Pin, o.Spin = make([]int, loops), false, 0
	o.Clock = func() int64 { return w.now }
	o.NewBackend = func(index int) (ring.Backend, error) {
		b := &backend{world: w, index: index}
		w.backends = append(w.backends, b)
		return b, nil
	}
	var err error
	if w.group, err = ring.New(o, app); err != nil {
		panic("sim: " + err.Error()) // the options are ours
	}
	w.loops = w.group.Loops()
	if err = w.group.Drive(); err != nil {
		panic("sim: " + err.Error())
	}
	for i := range w.running {
		w.running[i] = true
	}
	return w
}

// Close shuts the group down: open connections are aborted, the loops stop. Call it once, at the end.
func (w *World) Close() {
	if err := w.group.Shutdown(context.Background()); err != nil {
		panic("sim: " + err.Error())
	}
	for round := 0; slices.Contains(w.running, true); round++ {
		if round == settleRoundsMax {
			panic("sim: the loops do not stop")
		}
		w.Step()
		w.Advance(time.Millisecond)
	}
}

// SetFaults changes how unkind the world is from now on.
func (w *World) SetFaults(f Faults) {
	w.faults = f
	if w.readMax = f.ReadMax; w.readMax <= 0 {
		w.readMax = 16 << 10
	}
}

// Loops returns the loops; the test may call what only a loop's own thread may, between two steps.
func (w *World) Loops() []*ring.Loop { return w.loops }

// Now is the world's clock in ns, which is what Loop.Now gives after the next step.
func (w *World) Now() int64 { return w.now }

// Rand is the world's source of randomness, for tests that want their own choices replayed too.
func (w *World) Rand() *rand.Rand { return w.rng }

// Advance moves the clock on. Timers fire with the next steps.
func (w *World) Advance(d time.Duration) { w.now += int64(d) }

// Trace is a digest of all events so far: equal for two runs of the same seed and calls.
func (w *World) Trace() uint64 { return w.trace }

// Dial connects a new peer to a loop. The loop accepts it in a later step; what the peer writes
// meanwhile waits.
func (w *World) Dial(loop int) *Peer {
	p := &Peer{world: w, window: windowDefault}
	p.link = &link{descriptor: w.descriptorNext, peer: p, loop: loop}
	w.descriptorNext++
	w.links[p.link.descriptor] = p.link
	w.dials[loop] = append(w.dials[loop], p.link.descriptor)
	return p
}

// Step runs one turn of every loop, in seeded order; a loop may miss its turn. It reports whether
// there is more to come without the test's doing.
func (w *World) Step() bool {
	busy := false
	for _, i := range w.rng.Perm(len(w.loops)) {
		if w.rng.IntN(100) < w.faults.SkipPercent {
			busy = true
			continue
		}
		w.running[i] = w.running[i] && w.backends[i].port.Turn()
		w.waits[i] = w.backends[i].port.Waits()
	}
	for i, b := range w.backends {
		busy = busy || w.running[i] && (w.waits[i] == 0 || !b.Quiet())
	}
	return busy
}

// Settle steps until nothing happens any more: all that the peers have sent is dealt with and all
// answers are with the peers (or wait for their windows). The clock stands still.
func (w *World) Settle() {
	for round := 0; w.Step(); round++ {
		if round == settleRoundsMax {
			panic("sim: the world does not come to rest")
		}
	}
}

// NextTimer is how long (ns) it is until a loop has a timer to look at; -1 if no timer is armed. It is
// exact after Settle.
func (w *World) NextTimer() int64 {
	next := int64(-1)
	for i, wait := range w.waits {
		if w.running[i] && wait >= 0 && (next < 0 || wait < next) {
			next = wait
		}
	}
	return next
}

// Run advances the clock by d in small steps and settles after each, as time passes for real.
func (w *World) Run(d, step time.Duration) {
	for ; d > 0; d -= step {
		w.Advance(min(d, step))
		w.Settle()
	}
}

// delay draws how many polls something is late.
func (w *World) delay() int {
	if w.faults.DelayMax <= 0 {
		return 0
	}
	return w.rng.IntN(w.faults.DelayMax + 1)
}

// some draws how many of n bytes are taken, at least one.
func (w *World) some(n int) int {
	if n > 1 && w.rng.IntN(100) < w.faults.ShortPercent {
		return 1 + w.rng.IntN(n-1)
	}
	return n
}

// dueOf draws when what the peer does now reaches the link's loop.
func (w *World) dueOf(l *link) uint64 { return w.backends[l.loop].due() }

// takeDialed takes the descriptors that a loop has to accept.
func (w *World) takeDialed(loop int) []int {
	taken := w.dials[loop]
	w.dials[loop] = nil
	return taken
}

// dialed reports whether a loop has descriptors to accept.
func (w *World) dialed(loop int) bool { return len(w.dials[loop]) > 0 }

// forget closes a descriptor on the loops' side.
func (w *World) forget(l *link) {
	l.gone = true
	l.peer.closed = true
	delete(w.links, l.descriptor)
}

// note adds an event to the trace.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", w.trace, w.now, line)
	w.trace = h.Sum64()
	if w.Log != nil {
		w.Log(line)
	}
}
