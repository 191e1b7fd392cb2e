package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/ring"
	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// The simulator is a broker without loops, goroutines or clocks, over disks that
// forget. A seed decides everything: who publishes what, which I/O is done when,
// and when the power goes. A model (store_sim_model_test.go) remembers what clients
// were told and judges what comes back.

// world is one life of a broker.
type world struct {
	b       *Broker
	v       *VHost
	rng     *rand.Rand
	now     int64 // monotonic nanoseconds
	arena   countedArena
	disks   map[int]*crashfs.FS
	devices map[int]*crashfs.Device
	defs    *simDefs
	failed  error
	report  StorageReport
}

// simWallOffset is what the wall clock is ahead of the monotonic one.
const simWallOffset = int64(1.7e18)

// simOptions are the settings of the logs.
type simOptions struct {
	sync, compress string
	segment        int64
}

// openWorld starts a broker on what the disks hold.
func openWorld(shards int, o simOptions, seed uint64, now int64, disks map[int]*crashfs.FS, defs *simDefs, device func(loop int) testDevice) (*world, error) {
	w := &world{now: now, rng: rand.New(rand.NewPCG(seed, 7)), disks: disks, defs: defs, devices: map[int]*crashfs.Device{}}
	if device == nil {
		device = func(loop int) testDevice { return w.devices[loop] }
	}
	w.b = NewBroker(shards, textCodec{})
	w.arena = newSimArena(core.FromToken)
	var peers []*ring.Loop
	for i := range shards {
		peers = append(peers, &ring.Loop{})
		if disks[i] == nil {
			disks[i] = crashfs.New()
		}
	}
	for i := range disks {
		w.devices[i] = crashfs.NewDevice(rand.New(rand.NewPCG(seed, uint64(100+i))))
	}
	for _, s := range w.b.Shards {
		s.env.peers, s.arena = peers, w.arena
		w.tick(s)
	}
	defs.opening = true
	if err := w.b.Restore(defs); err != nil {
		return w, err
	}
	w.v = w.b.VHost("/")
	var err error
	w.report, err = w.b.OpenStorage(StorageOptions{
		Sync: o.sync, Compress: o.compress, SegmentSize: o.segment,
		Fatal: func(err error) {
			if defs.opening {
				panic(simFailure{err.Error()})
			}
			w.failed = err
		},
		hooks: storageHooks{
			disk:   func(loop int) wal.Disk { return w.disks[loop] },
			device: device,
			clock:  func() (int64, int64) { return now, (now + simWallOffset) / 1e6 },
			loops:  func() []int { return slices.Sorted(maps.Keys(w.disks)) },
			remove: func(loop int) { delete(w.disks, loop) },
		},
	})
	if err != nil {
		return w, err
	}
	defs.opening = false
	for _, s := range w.b.Shards {
		s.store.start()
		// They come out of a map; a seed is to run the same way each time.
		slices.SortFunc(s.dirty, byID)
		slices.SortFunc(s.listed, byID)
		for i, q := range s.listed {
			q.ListAt = i
		}
	}
	return w, nil
}

func byID(a, b *queue.Queue) int { return cmp.Compare(a.ID, b.ID) }

// tick gives a shard the time.
func (w *world) tick(s *Shard) {
	s.env.wallAt, s.env.wallOffset = w.now, simWallOffset
	s.Tick(w.now)
}

// turn is one turn of a loop; work is what its sessions do.
func (w *world) turn(s *Shard, work func()) (more bool) {
	w.tick(s)
	s.Begin(w.now)
	for _, q := range slices.Clone(s.listed) {
		if at := q.NextDue(); at != 0 && at <= w.now {
			s.due(q)
		}
	}
	if work != nil {
		work()
	}
	if c := &s.store.checkpoint; c.open && c.at == 0 && !c.begun {
		slices.SortFunc(c.queues, byID) // they come out of a map
	}
	for range 3 {
		if more = s.Settle(); !more {
			break
		}
	}
	s.End()
	return more
}

// steps does some of the I/O that waits.
func (w *world) steps(n int) (done int) {
	loops := slices.Sorted(maps.Keys(w.devices))
	for range n {
		if w.failed != nil {
			return done
		}
		if w.devices[loops[w.rng.IntN(len(loops))]].Step() {
			done++
		}
	}
	return done
}

// quiet runs the loops until nothing happens any more.
func (w *world) quiet() bool {
	idle := 0
	for range 20000 {
		busy := false
		w.defs.advance(len(w.defs.waiting) + 1000)
		for _, s := range w.b.Shards {
			busy = w.turn(s, nil) || busy || len(s.dirty) > 0 || len(s.deaths) > 0 || len(s.getters) > 0
		}
		busy = w.steps(8*len(w.b.Shards)) > 0 || busy
		if idle++; busy {
			idle = 0
		}
		if w.failed != nil || idle > 6 {
			return true
		}
	}
	return false
}

// close ends the broker in order.
func (w *world) close() error {
	for _, step := range closeSteps {
		if err := w.onStores(step); err != nil {
			return err
		}
	}
	return nil
}

// onStores is Broker.onStores.
func (w *world) onStores(step func(*Shard, func(error))) error {
	left := len(w.b.Shards)
	var failed error
	for _, i := range w.rng.Perm(left) {
		w.tick(w.b.Shards[i])
		step(w.b.Shards[i], func(err error) {
			left--
			if err != nil {
				failed = err
			}
		})
	}
	for range 10000 {
		if left == 0 {
			return failed
		}
		w.now += 1e6
		w.defs.advance(len(w.defs.waiting) + 1)
		for _, s := range w.b.Shards {
			w.turn(s, nil)
		}
		w.steps(10)
	}
	return fmt.Errorf("%d logs do not close", left)
}

// free gives back what a dead broker holds outside of the Go heap.
func (w *world) free() { w.b.FreeStorage() }

// simDefs is a catalog whose changes become durable one by one.
type simDefs struct {
	records [KindMeta + 1]map[string][]byte // that are durable
	sets    [][]Change
	durable uint64
	waiting []simNotify
	opening bool // the broker waits for what it records
}

type simNotify struct {
	n uint64
	f func(error)
}

func newSimDefs() *simDefs {
	d := &simDefs{}
	for i := range d.records {
		d.records[i] = map[string][]byte{}
	}
	return d
}

// reborn is what the next process finds: what was durable.
func (d *simDefs) reborn() *simDefs {
	next := newSimDefs()
	for i := range d.records {
		maps.Copy(next.records[i], d.records[i])
	}
	return next
}

// advance makes n more changes durable and tells who waits.
func (d *simDefs) advance(n int) {
	for ; n > 0 && d.durable < uint64(len(d.sets)); n-- {
		for _, c := range d.sets[d.durable] {
			if c.Delete {
				delete(d.records[c.Kind], string(c.Key))
			} else {
				d.records[c.Kind][string(c.Key)] = c.Value
			}
		}
		d.durable++
	}
	list := d.waiting
	d.waiting = nil
	for _, x := range list {
		if x.n <= d.durable {
			x.f(nil)
		} else {
			d.waiting = append(d.waiting, x)
		}
	}
}

// Apply implements Definitions.
func (d *simDefs) Apply(changes []Change) uint64 {
	d.sets = append(d.sets, slices.Clone(changes))
	return uint64(len(d.sets))
}

// Durable implements Definitions.
func (d *simDefs) Durable() uint64 { return d.durable }

// Notify implements Definitions.
func (d *simDefs) Notify(n uint64, f func(error)) {
	d.waiting = append(d.waiting, simNotify{n, f})
	if d.opening {
		d.advance(len(d.sets))
	} else if d.durable >= n {
		d.advance(0)
	}
}

// Load implements Definitions.
func (d *simDefs) Load(f func(kind ChangeKind, key, value []byte) error) error {
	for kind, records := range d.records {
		for _, key := range slices.Sorted(maps.Keys(records)) {
			if err := f(ChangeKind(kind), []byte(key), bytes.Clone(records[key])); err != nil {
				return err
			}
		}
	}
	return nil
}

// simFailure is what a seed proves.
type simFailure struct{ text string }

// runSim runs one seed; it returns what is wrong, "" if nothing is.
func runSim(seed uint64, cycles int, fault string) (wrong string) {
	m := newSimModel(seed, fault)
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(simFailure)
			if !ok {
				fmt.Fprintf(os.Stderr, "seed %d, life %d\n", seed, m.life)
				panic(r)
			}
			wrong = fmt.Sprintf("seed %d, life %d of %d loops, after %v: %s", seed, m.life, shards(m.w), m.past, f.text)
		}
	}()
	m.run(cycles)
	return ""
}

func shards(w *world) int {
	if w == nil {
		return 0
	}
	return len(w.b.Shards)
}

// simSeeds is how many seeds a test tries, and from where on: RINGMQ_TEST_SEEDS asks for
// more, RINGMQ_TEST_SEED for one.
func simSeeds(tb testing.TB, usual uint64) (from, to uint64) {
	number := func(name string) (n uint64) {
		if text := os.Getenv(name); text != "" {
			var err error
			if n, err = strconv.ParseUint(text, 10, 64); err != nil {
				tb.Fatal(err)
			}
		}
		return n
	}
	if os.Getenv("RINGMQ_TEST_SEED") != "" {
		seed := number("RINGMQ_TEST_SEED")
		return seed, seed + 1
	}
	if n := number("RINGMQ_TEST_SEEDS"); n > 0 {
		return 0, n
	}
	return 0, usual
}

// TestSimulated drives brokers through many lives, on disks that forget.
func TestSimulated(t *testing.T) {
	from, to := simSeeds(t, 150/seedShare)
	for seed := from; seed < to; seed++ {
		if wrong := runSim(seed, 6, ""); wrong != "" {
			t.Fatal(wrong)
		}
	}
}

// TestSimulatedFaults: the simulator's judge is judged. Each planted fault is found.
func TestSimulatedFaults(t *testing.T) {
	for _, fault := range []string{faultSkipAck, faultDropRecord, faultNoLease, faultEarlyConfirm} {
		found := ""
		for seed := uint64(0); seed < 60 && found == ""; seed++ {
			found = runSim(seed, 6, fault)
		}
		if found == "" {
			t.Errorf("%s: not found", fault)
		} else {
			t.Logf("%s: %s", fault, found)
		}
	}
}

// simQueue is a queue as the model sees it.
type simQueue struct {
	q          *queue.Queue
	name       string
	durable    bool
	dlq        string // "" = what dies is gone
	ttl        int64  // ms, -1 = none
	limited    bool
	defined    bool // the declare was answered
	deleting   bool
	far        bool // it had clients on other loops: what they have is not known at once
	leaky      bool // what needs no ack may be on its way between loops when the broker ends
	counting   bool // a quorum queue
	disordered bool // deliveries that were under way came back
	kind       string
}
