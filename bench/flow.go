package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// flowSpec is what a scenario asks of the flow.
type flowSpec struct {
	exchange, kind string // empty: the default exchange, keys are queue names
	queues         []string
	bindings       []binding
	keys           []string // routing keys; with the default exchange the queues

	producers, consumers int
	sizes                []int
	rate                 float64 // messages/s over all producers; 0: as fast as can be
	stamped              bool    // bodies carry the intended time, consumers record latency
	copies               int64   // deliveries per message; 0 means 1
	durable              bool    // durable queues also for transient messages
	late                 bool    // the scenario adds the consumers itself, after a fill
}

type binding struct{ queue, key string }

// flow is producers, consumers and the queues between them, on one target.
type flow struct {
	o    *Options
	t    *target
	spec flowSpec

	control   *conn
	producers []*producer
	consumers []*consumer

	started int64       // ns since base
	quiet   atomic.Bool // producers end, consumers go on
	stopped atomic.Bool // everything ends
	// The measured window in ns since base, 0 while unknown.
	from, to atomic.Int64

	keep     bool // leave the queues where they are when all is closed
	group    sync.WaitGroup
	failures chan error
}

// measuring reports whether an event at ns since base counts.
func (f *flow) measuring(at int64) bool {
	from, to := f.from.Load(), f.to.Load()
	return from != 0 && at >= from && (to == 0 || at < to)
}

// lagging reports whether producers must wait for consumers (--max-lag).
func (f *flow) lagging() bool {
	if f.o.MaxLag == 0 || len(f.consumers) == 0 {
		return false
	}
	return f.published()-f.delivered()/f.copies() > f.o.MaxLag
}

// copies is how many deliveries one publish leads to.
func (f *flow) copies() int64 { return max(f.spec.copies, 1) }

func (f *flow) published() (n int64) {
	for _, p := range f.producers {
		n += p.published.Load()
	}
	return n
}

func (f *flow) confirmed() (n int64) {
	for _, p := range f.producers {
		n += p.confirmed.Load()
	}
	return n
}

func (f *flow) nacked() (n int64) {
	for _, p := range f.producers {
		n += p.nacked.Load()
	}
	return n
}

func (f *flow) delivered() (n int64) {
	for _, k := range f.consumers {
		n += k.delivered.Load()
	}
	return n
}

// newFlow declares the queues and opens all connections. The caller closes
// the flow, also after an error (then it is nil).
func newFlow(ctx context.Context, t *target, o *Options, spec flowSpec) (*flow, error) {
	f := &flow{o: o, t: t, spec: spec, failures: make(chan error, 2*spec.producers+spec.consumers)}
	if err := f.open(ctx); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *flow) open(ctx context.Context) error {
	var err error
	if f.control, err = f.t.open(ctx); err != nil {
		return err
	}
	if err := f.declare(); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(f.o.Seed), 0))
	for i := range f.spec.consumers {
		if f.spec.late {
			break
		}
		if err := f.addConsumer(ctx, i); err != nil {
			return err
		}
	}
	for i := range f.spec.producers {
		if err := f.addProducer(ctx, i, rng); err != nil {
			return err
		}
	}
	return nil
}

func (f *flow) declare() error {
	durable := f.o.Persistent || f.spec.durable
	if f.spec.exchange != "" {
		if err := f.control.deleteExchange(f.spec.exchange); err != nil {
			return err
		}
		if err := f.control.declareExchange(f.spec.exchange, f.spec.kind, durable); err != nil {
			return err
		}
	}
	for _, q := range f.spec.queues {
		if _, err := f.control.deleteQueue(q); err != nil {
			return err
		}
		if err := f.control.declareQueue(q, durable, f.o.queueArgs); err != nil {
			return err
		}
	}
	for _, b := range f.spec.bindings {
		if err := f.control.bindQueue(b.queue, f.spec.exchange, b.key); err != nil {
			return err
		}
	}
	return nil
}

// share deals items to one of count takers; with fewer items than takers,
// takers share.
func share(items []string, index, count int) []string {
	if len(items) <= count {
		return []string{items[index%len(items)]}
	}
	var own []string
	for i := index; i < len(items); i += count {
		own = append(own, items[i])
	}
	return own
}

func (f *flow) addConsumer(ctx context.Context, i int) error {
	c, err := f.t.open(ctx)
	if err != nil {
		return err
	}
	k := &consumer{c: c, flow: f, ackEvery: f.o.ackEvery, latency: newHistogram()}
	k.scan = scanner{frameMax: c.frameMax, wantStamps: f.spec.stamped}
	f.consumers = append(f.consumers, k)
	if f.o.ackEvery != 0 {
		if err := c.qos(f.o.prefetch()); err != nil {
			return err
		}
	}
	for n, q := range share(f.spec.queues, i, f.spec.consumers) {
		if err := c.consume(q, fmt.Sprintf("c%d", n), f.o.ackEvery == 0); err != nil {
			return err
		}
	}
	c.reserve()
	return c.setReadTimeout(0)
}

func (f *flow) addProducer(ctx context.Context, i int, rng *rand.Rand) error {
	c, err := f.t.open(ctx)
	if err != nil {
		return err
	}
	p := &producer{c: c, flow: f, window: f.o.Confirm, stamped: f.spec.stamped, quota: -1,
		confirms: newHistogram(), pacing: newHistogram()}
	f.producers = append(f.producers, p)
	if p.window > 0 {
		if err := c.confirmMode(); err != nil {
			return err
		}
	}
	keys := f.spec.keys
	if f.spec.exchange == "" {
		keys = share(keys, i, f.spec.producers)
	}
	template := publish{exchange: f.spec.exchange, persistent: f.o.Persistent, mandatory: f.o.Mandatory}
	p.batch = newBatch(template, keys, f.spec.sizes, f.o.BatchBytes, c.frameMax, rng)
	p.paced = f.spec.rate > 0
	return c.setReadTimeout(0)
}

// start lets consumers, then producers go.
func (f *flow) start() {
	for _, k := range f.consumers {
		f.spawn(k.run)
	}
	begin := nowNS() + int64(10*time.Millisecond)
	for i, p := range f.producers {
		if p.paced {
			p.sched = newSchedule(begin, f.spec.rate, i, len(f.producers))
		}
		f.spawn(p.run)
		if p.window == 0 {
			f.spawn(p.watch)
		}
	}
}

func (f *flow) spawn(run func() error) {
	f.group.Add(1)
	go func() {
		defer f.group.Done()
		if err := run(); err != nil {
			f.failures <- err
		}
	}()
}

// sleep waits for d, less if something fails or ctx ends.
func (f *flow) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-f.failures:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tally is the flow's counters and the processes' usage at one moment.
type tally struct {
	published, confirmed, nacked, delivered int64
	usage                                   usage
}

func (f *flow) tally() tally {
	return tally{f.published(), f.confirmed(), f.nacked(), f.delivered(), f.t.usage()}
}

// measure runs warm-up and measured time and returns the two ends.
func (f *flow) measure(ctx context.Context) (before, after tally, err error) {
	f.started = nowNS()
	f.start()
	if err = f.sleep(ctx, time.Duration(f.o.Warmup)); err != nil {
		return
	}
	before = f.tally()
	f.from.Store(nowNS())
	if err = f.sleep(ctx, time.Duration(f.o.Duration)); err != nil {
		return
	}
	f.to.Store(nowNS())
	after = f.tally()
	return
}

// stallLimit is how long nothing may move before a run has failed.
const stallLimit = 60 * time.Second

// await waits until so many messages are settled and so many delivered. It
// gives up, with false, when nothing has moved for stallLimit.
func (f *flow) await(ctx context.Context, settled, delivered int64) (bool, error) {
	last, moved := int64(-1), time.Now()
	for f.confirmed()+f.nacked() < settled || f.delivered() < delivered {
		if err := f.sleep(ctx, 5*time.Millisecond); err != nil {
			return false, err
		}
		if sum := f.delivered() + f.confirmed() + f.nacked(); sum != last {
			last, moved = sum, time.Now()
		}
		if time.Since(moved) > stallLimit {
			return false, nil
		}
	}
	return true, nil
}

// stop ends producers and consumers. Their histograms may be read after it.
func (f *flow) stop() {
	f.quiet.Store(true)
	f.stopped.Store(true)
	for _, p := range f.producers {
		p.c.abort()
	}
	for _, k := range f.consumers {
		k.c.abort()
	}
	f.group.Wait()
}

// close stops the flow, deletes what it declared and closes everything.
func (f *flow) close() {
	f.stop()
	for _, p := range f.producers {
		p.c.close()
	}
	for _, k := range f.consumers {
		k.c.close()
	}
	if f.control == nil {
		return
	}
	if f.keep {
		f.control.close()
		return
	}
	for _, q := range f.spec.queues {
		if _, err := f.control.deleteQueue(q); err != nil {
			f.control.close()
			return
		}
	}
	if f.spec.exchange != "" {
		if err := f.control.deleteExchange(f.spec.exchange); err != nil {
			f.control.close()
			return
		}
	}
	_ = f.control.bye()
}

// drain waits until every published message was delivered, or for limit, and
// returns how many deliveries are missing.
func (f *flow) drain(ctx context.Context, limit time.Duration) (int64, error) {
	deadline := time.Now().Add(limit)
	for {
		missing := f.published()*f.copies() - f.delivered()
		if missing <= 0 || time.Now().After(deadline) {
			return max(missing, 0), nil
		}
		if err := f.sleep(ctx, 10*time.Millisecond); err != nil {
			return missing, err
		}
	}
}

// rates adds what every flow reports.
func (f *flow) rates(r *Result, before, after tally) {
	d := after.usage.at.Sub(before.usage.at).Seconds()
	published := float64(after.published - before.published)
	delivered := float64(after.delivered - before.delivered)
	confirmed := float64(after.confirmed - before.confirmed)
	messages := published
	if len(f.consumers) > 0 {
		messages = delivered
		r.add("delivered", "msg/s", delivered/d, higherIsBetter)
	}
	r.add("published", "msg/s", published/d, higherIsBetter)
	if f.o.Confirm > 0 {
		r.add("confirmed", "msg/s", confirmed/d, higherIsBetter)
		if n := after.nacked - before.nacked; n > 0 {
			r.add("refused", "msg/s", float64(n)/d, lowerIsBetter)
		}
		if len(f.consumers) == 0 {
			messages = confirmed
		}
	}
	r.addUsage(before.usage, after.usage, messages)
	if len(f.consumers) > 0 {
		r.add("backlog at the end", "msg", float64(after.published*f.copies()-after.delivered), neutral)
	}
}

// confirmLatency merges the producers' histograms. REQUIRES: stopped.
func (f *flow) confirmLatency() *histogram {
	h := newHistogram()
	for _, p := range f.producers {
		h.merge(p.confirms)
	}
	return h
}

// pacingError merges the lateness of all producers. REQUIRES: stopped.
func (f *flow) pacingError() (h *histogram, spun int64) {
	h = newHistogram()
	for _, p := range f.producers {
		h.merge(p.pacing)
		spun += p.spun
	}
	return h, spun
}

// latency merges the consumers' histograms. REQUIRES: stopped.
func (f *flow) latency() *histogram {
	h := newHistogram()
	for _, k := range f.consumers {
		h.merge(k.latency)
	}
	return h
}
