package bench

import (
	"context"
	"time"
)

const latencyDrain = 3 * time.Second // how long late messages are waited for

// latency: end to end time at a fixed rate, from the intended send time, so
// that a stall counts for every message that should have gone out in it.
func latency(ctx context.Context, t *target, o *Options) (*Result, error) {
	queues := o.queues("bench-latency")
	spec := flowSpec{
		queues: queues, keys: queues, sizes: stampSizes(o.sizes(1024)), rate: o.Rate, stamped: true,
		producers: orDefault(o.Producers, 1), consumers: max(orUnset(o.Consumers, 1), 1),
	}
	if spec.rate == 0 {
		spec.rate = 20000
	}
	f, err := newFlow(ctx, t, o, spec)
	if err != nil {
		return nil, err
	}
	defer f.close()
	before, after, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	missing, err := f.finishLatency(ctx)
	if err != nil {
		return nil, err
	}
	r := &Result{Settings: describe(o, spec)}
	h := f.latency()
	h.addTo(r, "latency")
	errs, spun := f.pacingError()
	r.add("pacing error p50", "us", errs.quantile(0.5), neutral)
	r.add("pacing error p99", "us", errs.quantile(0.99), neutral)
	r.add("pacing busy wait", "cores", float64(spun)/float64(nowNS()-f.started), neutral)
	f.rates(r, before, after)
	f.confirmLatency().addTo(r, "confirm")
	if missing > 0 {
		r.note("%d messages had not arrived %v after the last send; latency percentiles lack them", missing, latencyDrain)
	}
	return r, nil
}

// finishLatency stops the producers and lets what is under way arrive.
func (f *flow) finishLatency(ctx context.Context) (missing int64, err error) {
	f.quiet.Store(true)
	missing, err = f.drain(ctx, latencyDrain)
	f.stop()
	return missing, err
}

// stampSizes makes every size large enough for a stamp.
func stampSizes(sizes []int) []int {
	own := append([]int(nil), sizes...)
	for i, size := range own {
		own[i] = max(size, 8)
	}
	return own
}
