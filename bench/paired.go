package bench

import (
	"context"
	"fmt"
	"io"
	"sort"
	"time"
)

// step is one scenario with its settings, runnable on any target.
type step struct {
	title string
	o     *Options
	run   scenario
	// derive, if any, computes what follows from other figures anew, so that a
	// ratio in the report is one of medians.
	derive func(*Result)
}

// runner runs steps over targets in alternating rounds.
type runner struct {
	targets  []*target
	progress io.Writer // nil: silent
	rounds   []*Result
	medians  []*Result
}

// runStep runs one step on every target, A B A B ..., so that whatever else
// the machine does in these minutes meets both sides, and returns the medians
// in target order.
func (r *runner) runStep(ctx context.Context, s step) ([]*Result, error) {
	perTarget := make([][]*Result, len(r.targets))
	for round := 1; round <= s.o.Rounds; round++ {
		for i, t := range r.targets {
			result, err := s.run(ctx, t, s.o)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", s.title, t.name, err)
			}
			result.Title, result.Broker, result.Sync, result.Round = s.title, t.name, t.sync, round
			perTarget[i] = append(perTarget[i], result)
			r.rounds = append(r.rounds, result)
			r.show(result)
			if err := pause(ctx, time.Duration(s.o.Settle)); err != nil {
				return nil, err
			}
		}
	}
	var medians []*Result
	for _, results := range perTarget {
		m := medianResult(results)
		if s.derive != nil {
			s.derive(m)
		}
		medians = append(medians, m)
	}
	r.medians = append(r.medians, medians...)
	return medians, nil
}

// show prints one round's leading figure.
func (r *runner) show(result *Result) {
	if r.progress == nil || len(result.Metrics) == 0 {
		return
	}
	m := result.Metrics[0]
	fmt.Fprintf(r.progress, "  .. %s, %s, round %d: %s %s %s\n",
		result.Title, result.Broker, result.Round, m.Name, formatMetric(&m), m.Unit)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// medianResult takes the median of each metric on its own. A metric that some
// round lacks is the median of the others.
func medianResult(rounds []*Result) *Result {
	last := rounds[len(rounds)-1]
	if len(rounds) == 1 {
		return last
	}
	m := &Result{Title: last.Title, Settings: last.Settings, Broker: last.Broker, Sync: last.Sync, Notes: last.Notes}
	for _, metric := range last.Metrics {
		var values []float64
		for _, r := range rounds {
			if found := r.find(metric.Name, metric.Unit); found != nil && found.Value != nil {
				values = append(values, *found.Value)
			}
		}
		metric.Value = nil
		if len(values) > 0 {
			v := median(values)
			metric.Value = &v
		}
		m.Metrics = append(m.Metrics, metric)
	}
	return m
}

// median sorts values and returns the middle, or the mean of the middle two.
func median(values []float64) float64 {
	sort.Float64s(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}
