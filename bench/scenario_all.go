package bench

import "time"

// allSteps is the set behind BENCHMARKS.md. Each entry is a scenario with
// the flags that make it; flags about targets, rounds and times are kept from
// the command line. recovery and bigqueue, which need long fills and servers of
// their own, are not in it.
func allSteps(o *Options) []step {
	with := func(title string, run scenario, change func(*Options)) step {
		own := *o
		change(&own)
		if o.Quick {
			own.Duration = min(own.Duration, seconds(time.Second))
			own.Warmup = min(own.Warmup, seconds(200*time.Millisecond))
			own.Messages, own.Connections = min(own.Messages, 50000), min(own.Connections, 200)
		}
		return step{title: title, o: &own, run: run}
	}
	flow := func(title string, size, ackEvery int) step {
		return with(title, throughput, func(o *Options) { o.Sizes, o.ackEvery = []int{size}, ackEvery })
	}
	confirmed := func(title string, window int) step {
		s := with(title, confirmBeside, func(o *Options) {
			o.Sizes, o.Window, o.Producers, o.Consumers = []int{1024}, window, 0, 0
		})
		s.derive = confirmRatios
		return s
	}
	paced := func(title string, rate float64) step {
		return with(title, latency, func(o *Options) { o.Sizes, o.Rate = []int{1024}, rate })
	}
	plain := func(*Options) {}
	return []step{
		flow("16 B auto-ack", 16, 0),
		flow("16 B ack each", 16, 1),
		flow("16 B ack every 100", 16, 100),
		flow("1 KiB auto-ack", 1024, 0),
		flow("1 KiB ack each", 1024, 1),
		flow("1 KiB ack every 100", 1024, 100),
		with("16 B auto-ack, four pairs", throughput, func(o *Options) {
			o.Sizes, o.Producers, o.Consumers, o.Queues = []int{16}, 4, 4, "bench-throughput-{1..4}"
		}),
		confirmed("1 KiB persistent, 1 unconfirmed", 1),
		confirmed("1 KiB persistent, 100 unconfirmed", 100),
		confirmed("1 KiB persistent, 1,000 unconfirmed", 1000),
		with("fan-out one to ten, 16 B", fanout, plain),
		with("topic, 1,000 bindings, 16 B", topic, plain),
		paced("latency at 5,000/s, 1 KiB", 5000),
		paced("latency at 20,000/s, 1 KiB", 20000),
		with("idle connections", idle, func(o *Options) { o.Connections = orDefault(o.Connections, 10000) }),
		with("churn", churn, func(o *Options) { o.Connections = 0 }),
	}
}
