package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const churnWorkers = 4

// churnPhases are the three things that are opened and closed, each for the
// measured time, by several workers.
var churnPhases = []struct {
	name string
	// worker opens what the whole phase shares and returns one round of the
	// churn and the clean-up.
	worker func(ctx context.Context, t *target, index int) (round func() error, end func(), err error)
}{
	{"connection open+close", churnConnection},
	{"channel open+close", churnChannel},
	{"queue declare+delete", churnQueue},
}

// churn: how fast short-lived things come and go, and what each costs.
func churn(ctx context.Context, t *target, o *Options) (*Result, error) {
	workers := orDefault(o.Connections, churnWorkers)
	r := &Result{Settings: fmt.Sprintf("%d workers, %v each", workers, time.Duration(o.Duration))}
	for _, phase := range churnPhases {
		before := t.usage()
		times, err := churnPhase(ctx, time.Duration(o.Duration), workers, func(i int) (func() error, func(), error) {
			return phase.worker(ctx, t, i)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", phase.name, err)
		}
		after := t.usage()
		n := float64(times.count())
		r.add(phase.name, "/s", n/after.at.Sub(before.at).Seconds(), higherIsBetter)
		r.add(phase.name+" p50", "us", times.quantile(0.5), lowerIsBetter)
		r.add(phase.name+" p99", "us", times.quantile(0.99), lowerIsBetter)
		cpu := notAvailable
		if before.serverOK && after.serverOK {
			cpu = float64(after.server.since(before.server).Microseconds()) / n
		}
		r.add(phase.name+" server CPU", "us", cpu, lowerIsBetter)
	}
	return r, nil
}

// churnPhase runs rounds on all workers for d, at least one each, and returns
// their durations.
func churnPhase(ctx context.Context, d time.Duration, workers int, begin func(int) (func() error, func(), error)) (*histogram, error) {
	var (
		group  sync.WaitGroup
		failed atomic.Pointer[error]
	)
	total, parts := newHistogram(), make([]*histogram, workers)
	deadline := time.Now().Add(d)
	for i := range workers {
		parts[i] = newHistogram()
		group.Add(1)
		go func() {
			defer group.Done()
			round, end, err := begin(i)
			if err == nil {
				defer end()
			}
			for err == nil && failed.Load() == nil {
				start := nowNS()
				if err = round(); err == nil {
					parts[i].record(nowNS()-start, 1)
				}
				if time.Now().After(deadline) || ctx.Err() != nil {
					break
				}
			}
			if err != nil {
				failed.Store(&err)
			}
		}()
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	for _, part := range parts {
		total.merge(part)
	}
	return total, ctx.Err()
}

func churnConnection(ctx context.Context, t *target, _ int) (func() error, func(), error) {
	round := func() error {
		c, err := t.open(ctx)
		if err != nil {
			return err
		}
		return c.bye()
	}
	return round, func() {}, nil
}

func churnChannel(ctx context.Context, t *target, _ int) (func() error, func(), error) {
	c, err := t.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	round := func() error {
		if err := c.openChannel(2); err != nil {
			return err
		}
		return c.closeChannel(2)
	}
	return round, func() { _ = c.bye() }, nil
}

func churnQueue(ctx context.Context, t *target, index int) (func() error, func(), error) {
	c, err := t.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	name := fmt.Sprintf("bench-churn-%d", index)
	round := func() error {
		if err := c.declareQueue(name, false, nil); err != nil {
			return err
		}
		_, err := c.deleteQueue(name)
		return err
	}
	return round, func() { _ = c.bye() }, nil
}
