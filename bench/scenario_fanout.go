package bench

import "context"

// fanout: one exchange copies every message to every queue. Rates and costs
// count deliveries.
func fanout(ctx context.Context, t *target, o *Options) (*Result, error) {
	queues := o.queues("bench-fanout-{1..10}")
	spec := flowSpec{
		exchange: "bench-fanout", kind: "fanout", queues: queues, keys: []string{""},
		sizes: o.sizes(16), copies: int64(len(queues)), rate: o.Rate,
		producers: orDefault(o.Producers, 1), consumers: orUnset(o.Consumers, len(queues)),
	}
	for _, q := range queues {
		spec.bindings = append(spec.bindings, binding{q, ""})
	}
	return runFlow(ctx, t, o, spec)
}
