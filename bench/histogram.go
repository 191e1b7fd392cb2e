package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	latencyMax    = int64(5 * time.Minute) // ns; longer waits are recorded as this
	latencyDigits = 3                      // significant decimal digits kept
)

// histogram holds durations in nanoseconds with three significant digits. One
// goroutine writes; merge after it has ended.
type histogram struct {
	h *hdrhistogram.Histogram
}

func newHistogram() *histogram {
	return &histogram{hdrhistogram.New(1, latencyMax, latencyDigits)}
}

// record adds n times one duration. Values outside the range count as its ends:
// dropping them would hide exactly the worst ones.
func (h *histogram) record(ns, n int64) {
	_ = h.h.RecordValues(min(max(ns, 1), latencyMax), n)
}

func (h *histogram) merge(other *histogram) { h.h.Merge(other.h) }

func (h *histogram) count() int64 { return h.h.TotalCount() }

// quantile is the duration that the share q (0 to 1) of values do not exceed,
// in microseconds.
func (h *histogram) quantile(q float64) float64 {
	return float64(h.h.ValueAtPercentile(q*100)) / 1e3
}

func (h *histogram) mean() float64 { return h.h.Mean() / 1e3 }

func (h *histogram) max() float64 { return float64(h.h.Max()) / 1e3 }

// addTo puts the usual percentiles into a result, named "prefix p50" and so on.
func (h *histogram) addTo(r *Result, prefix string) {
	if h.count() == 0 {
		return
	}
	for _, q := range []struct {
		name  string
		value float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}} {
		r.add(prefix+" "+q.name, "us", h.quantile(q.value), lowerIsBetter)
	}
	r.add(prefix+" max", "us", h.max(), lowerIsBetter)
}
