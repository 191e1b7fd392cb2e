package bench

import (
	"context"
	"fmt"
)

// topic: a topic exchange with many bindings, of which each message matches
// one. Half the patterns end in a one-word wildcard, half in an any-words one.
func topic(ctx context.Context, t *target, o *Options) (*Result, error) {
	queues := o.queues("bench-topic-{1..10}")
	spec := flowSpec{
		exchange: "bench-topic", kind: "topic", queues: queues,
		sizes: o.sizes(16), rate: o.Rate,
		producers: orDefault(o.Producers, 1), consumers: orUnset(o.Consumers, 1),
	}
	for i := range o.Bindings {
		wildcard := "*"
		if i%2 == 1 {
			wildcard = "#"
		}
		spec.bindings = append(spec.bindings, binding{queues[i%len(queues)], fmt.Sprintf("site.%d.%s", i, wildcard)})
		spec.keys = append(spec.keys, fmt.Sprintf("site.%d.temperature", i))
	}
	r, err := runFlow(ctx, t, o, spec)
	if err == nil {
		r.Settings = fmt.Sprintf("%d bindings, one match per message, %s", o.Bindings, r.Settings)
	}
	return r, err
}
