package bench

import (
	"context"
	"fmt"
	"math"
	"time"
)

const (
	confirmProducersMax = 4 // connections by default, as far as the window goes round
	groupRecords        = 256

	// The goals of a broker that promises no more than the disk has.
	confirmRatioMax = 1.3
	groupShareMin   = 300.0 / 1100
)

// confirmProducers is how many connections share the window.
func (o *Options) confirmProducers() int {
	return orDefault(o.Producers, min(confirmProducersMax, o.Window))
}

// confirmBeside: what a durable confirm costs, beside the bare loops of what
// it cannot do without: a synced write on the same file system and a round trip
// over loopback, half of them before the broker's turn and half after it.
// Nobody consumes unless asked: the queues are deleted after the round.
func confirmBeside(ctx context.Context, t *target, o *Options) (*Result, error) {
	own := *o
	own.Persistent = true
	producers := o.confirmProducers()
	own.Confirm = o.Window / producers
	queues := o.queues(fmt.Sprintf("bench-confirm-{1..%d}", producers))
	spec := flowSpec{
		queues: queues, keys: queues, sizes: o.sizes(1024), rate: o.Rate,
		producers: producers, consumers: orUnset(o.Consumers, 0),
	}
	b, err := newBareLoops(ctx, o, spec)
	defer b.close()
	if err != nil {
		return nil, err
	}
	half := time.Duration(o.Duration) / 4 // of each loop's time
	if err := b.run(ctx, half); err != nil {
		return nil, err
	}
	r, err := confirmTurn(ctx, t, &own, spec)
	if err != nil {
		return nil, err
	}
	if err := b.run(ctx, half); err != nil {
		return nil, err
	}
	b.report(r)
	confirmRatios(r)
	return r, nil
}

// confirmTurn is the broker's part.
func confirmTurn(ctx context.Context, t *target, o *Options, spec flowSpec) (*Result, error) {
	f, err := newFlow(ctx, t, o, spec)
	if err != nil {
		return nil, err
	}
	defer f.close()
	before, after, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	f.stop()
	r := &Result{Settings: fmt.Sprintf("%d unconfirmed in all, %s", o.Window, describe(o, spec))}
	if o.Window == 1 {
		f.confirmLatency().addTo(r, "confirm")
		f.rates(r, before, after)
	} else {
		f.rates(r, before, after)
		f.confirmLatency().addTo(r, "confirm")
	}
	return r, nil
}

// bareLoops are what the broker is held against: for a window of 1 a round trip
// and one message per sync, for larger ones many messages per sync.
type bareLoops struct {
	records int // per sync
	dir     string
	disk    *diskFile
	syncs   [2]*histogram // by diskMode
	// The two of a window of 1, nil with larger ones: the round trip alone, and
	// one with a sync on the way. The second costs more than the sum of its parts,
	// because whoever waits for a disk has gone to sleep: it shows how much of the
	// broker's time no program could save.
	trip, synced *tripLoop
}

// tripLoop is a loopback with its times.
type tripLoop struct {
	name  string
	loop  *loopback
	times *histogram
}

func newBareLoops(ctx context.Context, o *Options, spec flowSpec) (*bareLoops, error) {
	b := &bareLoops{records: 1, dir: o.dataDir()}
	for _, m := range diskModes {
		b.syncs[m] = newHistogram()
	}
	body := spec.sizes[0]
	if o.Window > 1 {
		b.records = groupRecords
	}
	var err error
	if b.disk, err = newDiskFile(b.dir, max(b.records*body, 1)); err != nil || o.Window > 1 {
		return b, err
	}
	p := publish{key: spec.keys[0], body: make([]byte, body), persistent: true}
	request := len(appendPublish(nil, 1, p, frameMaxWanted))
	mode := writeSync
	if b.disk.has(directSync) {
		mode = directSync
	}
	b.trip, err = newTripLoop(ctx, "bare loopback", request, nil)
	if err == nil {
		b.synced, err = newTripLoop(ctx, "bare loopback with "+mode.String(), request, func() error { return b.disk.commit(mode) })
	}
	return b, err
}

func newTripLoop(ctx context.Context, name string, request int, work func() error) (*tripLoop, error) {
	l, err := newLoopback(ctx, request, work)
	if err != nil {
		return nil, err
	}
	return &tripLoop{name, l, newHistogram()}, nil
}

// run gives each loop its turn of d.
func (b *bareLoops) run(ctx context.Context, d time.Duration) error {
	for _, m := range diskModes {
		if !b.disk.has(m) {
			continue
		}
		if err := b.disk.run(ctx, m, d, b.syncs[m]); err != nil {
			return err
		}
	}
	for _, t := range []*tripLoop{b.trip, b.synced} {
		if t == nil {
			continue
		}
		if err := t.loop.run(ctx, d, t.times); err != nil {
			return err
		}
	}
	return nil
}

// bareSync names the figures of one way to sync.
func bareSync(m diskMode) string { return "bare " + m.String() }

func (b *bareLoops) report(r *Result) {
	both := func(name string, h *histogram) {
		r.add(name+" p50", "us", h.quantile(0.5), neutral)
		r.add(name+" p99", "us", h.quantile(0.99), neutral)
	}
	for _, m := range diskModes {
		switch h := b.syncs[m]; {
		case h.count() == 0:
			r.note("%s is refused in %s", m, b.dir)
		case b.records > 1:
			r.add(bareSync(m), "records/s", float64(b.records)/h.mean()*1e6, neutral)
		default:
			both(bareSync(m), h)
		}
	}
	for _, t := range []*tripLoop{b.trip, b.synced} {
		if t != nil {
			both(t.name, t.times)
		}
	}
	r.note("bare loops in %s on %s, %d octets per sync into a file written full before", b.dir, fileSystem(b.dir), len(b.disk.chunk))
}

// close ends what newBareLoops has made, also after its error.
func (b *bareLoops) close() {
	for _, t := range []*tripLoop{b.trip, b.synced} {
		if t != nil {
			t.loop.close()
		}
	}
	if b.disk != nil {
		_ = b.disk.close() // the figures are made
	}
}

// confirmRatios computes how the broker stands to the bare loops, from the
// figures that r has: with one unconfirmed its median against the sum of
// theirs, with more the share that it reaches of each group commit.
func confirmRatios(r *Result) {
	if loop := r.value("bare loopback p50", "us"); !math.IsNaN(loop) {
		sync := notAvailable
		for _, m := range diskModes {
			if p50 := r.value(bareSync(m)+" p50", "us"); math.IsNaN(sync) || p50 < sync {
				sync = p50
			}
		}
		r.addGoal("confirm p50 / (best bare sync p50 + loopback p50)", "", r.value("confirm p50", "us")/(sync+loop), lowerIsBetter, confirmRatioMax)
		return
	}
	for _, m := range diskModes {
		if bare := r.value(bareSync(m), "records/s"); !math.IsNaN(bare) {
			r.addGoal("confirmed / "+bareSync(m), "", r.value("confirmed", "msg/s")/bare, higherIsBetter, groupShareMin)
		}
	}
}
