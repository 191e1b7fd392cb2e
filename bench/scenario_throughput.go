package bench

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// orDefault is v, or d when the flag was left at zero.
func orDefault(v, d int) int {
	if v == 0 {
		return d
	}
	return v
}

// orUnset is v, or d when the flag was left at -1.
func orUnset(v, d int) int {
	if v < 0 {
		return d
	}
	return v
}

func (o *Options) messages(d int64) int64 {
	if o.Messages == 0 {
		return d
	}
	return o.Messages
}

func (o *Options) sizes(d int) []int {
	if len(o.Sizes) == 0 {
		return []int{d}
	}
	return o.Sizes
}

func (o *Options) queues(d string) []string {
	pattern := o.Queues
	if pattern == "" {
		pattern = d
	}
	names, _ := expandNames(pattern) // checked in finish
	return names
}

// throughput: as many messages as go from producers through queues to
// consumers.
func throughput(ctx context.Context, t *target, o *Options) (*Result, error) {
	queues := o.queues("bench-throughput")
	return runFlow(ctx, t, o, flowSpec{
		queues: queues, keys: queues, sizes: o.sizes(16), rate: o.Rate,
		producers: orDefault(o.Producers, 1), consumers: orUnset(o.Consumers, 1),
	})
}

// runFlow measures a flow and reports rates, cost and confirm latency.
func runFlow(ctx context.Context, t *target, o *Options, spec flowSpec) (*Result, error) {
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
	r := &Result{Settings: describe(o, spec)}
	f.rates(r, before, after)
	f.confirmLatency().addTo(r, "confirm")
	return r, nil
}

// describe words the settings of a timed flow.
func describe(o *Options, spec flowSpec) string {
	return fmt.Sprintf("%s, %v after %v", describeFlow(o, spec), time.Duration(o.Duration), time.Duration(o.Warmup))
}

// describeFlow words the settings of any flow.
func describeFlow(o *Options, spec flowSpec) string {
	parts := []string{fmt.Sprintf("%d producers, %d consumers, %d queues", spec.producers, spec.consumers, len(spec.queues))}
	parts = append(parts, fmt.Sprintf("%s B", strings.Trim(strings.ReplaceAll(fmt.Sprint(spec.sizes), " ", ","), "[]")))
	if o.Persistent {
		parts = append(parts, "persistent")
	} else {
		parts = append(parts, "transient")
	}
	if spec.consumers > 0 {
		parts = append(parts, describeAcks(o))
	}
	if o.Confirm > 0 {
		parts = append(parts, fmt.Sprintf("confirm window %d", o.Confirm))
	}
	if spec.rate > 0 {
		parts = append(parts, fmt.Sprintf("%s msg/s open loop", formatNumber(spec.rate)))
	}
	if o.QueueArgs != "" {
		parts = append(parts, o.QueueArgs)
	}
	return strings.Join(parts, ", ")
}

func describeAcks(o *Options) string {
	switch o.ackEvery {
	case 0:
		return "auto-ack"
	case ackPerRead:
		return fmt.Sprintf("ack per read, prefetch %d", o.prefetch())
	}
	return fmt.Sprintf("ack every %d, prefetch %d", o.ackEvery, o.prefetch())
}
