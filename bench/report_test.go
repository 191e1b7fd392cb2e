package bench

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRatioOfMedians(t *testing.T) {
	side := func(values ...float64) *Result {
		var rounds []*Result
		for _, v := range values {
			r := &Result{Title: "x"}
			r.add("rate", "msg/s", v, higherIsBetter)
			r.add("cost", "us", 1/v, lowerIsBetter)
			rounds = append(rounds, r)
		}
		return medianResult(rounds)
	}
	a, b := side(100, 900, 200), side(50, 40, 1)
	cases := []struct{ name, unit, want string }{
		{"rate", "msg/s", "5.00 better"}, // 200 / 40; the mean would say 13
		{"cost", "us", "0.20 better"},
	}
	for _, c := range cases {
		if got := formatRatio(a.find(c.name, c.unit), b.find(c.name, c.unit)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := formatRatio(b.find(c.name, c.unit), a.find(c.name, c.unit)); !strings.HasSuffix(got, " worse") {
			t.Errorf("%s the other way: %q", c.name, got)
		}
	}
	if got := formatRatio(a.find("rate", "msg/s"), a.find("rate", "msg/s")); got != "1.00" {
		t.Errorf("equal sides: %q", got)
	}
}

func TestMissingFigures(t *testing.T) {
	a, b := &Result{}, &Result{}
	a.add("cpu", "us", math.NaN(), lowerIsBetter)
	b.add("cpu", "us", 4, lowerIsBetter)
	if got := formatMetric(a.find("cpu", "us")); got != "n/a" {
		t.Errorf("printed %q", got)
	}
	if got := formatRatio(b.find("cpu", "us"), a.find("cpu", "us")); got != "n/a" {
		t.Errorf("ratio with a missing figure: %q", got)
	}
	m := medianResult([]*Result{b, a, a})
	if v := m.find("cpu", "us").Value; v == nil || *v != 4 {
		t.Error("the median of the rounds that have the figure is 4")
	}
	var out bytes.Buffer
	printComparison(&out, []*Result{a, b})
	if !strings.Contains(out.String(), "n/a") {
		t.Errorf("report hides the missing figure:\n%s", out.String())
	}
}

func TestFormatNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.00123: "0.0012", 0.25: "0.25", 9.999: "10.00", 12.34: "12.3", 999.94: "999.9",
		1000: "1,000", 1234567.8: "1,234,568", -4321: "-4,321", 123: "123.0",
	} {
		if got := formatNumber(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestHistogram(t *testing.T) {
	h, other := newHistogram(), newHistogram()
	for i := int64(1); i <= 900; i++ {
		h.record(i*1000, 1)
	}
	other.record(950_000, 100)
	h.merge(other)
	if h.count() != 1000 {
		t.Fatalf("%d values", h.count())
	}
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > want/500 {
			t.Errorf("%s: %v us, want %v", name, got, want)
		}
	}
	near("p50", h.quantile(0.5), 500)
	near("p90", h.quantile(0.9), 900)
	near("p99", h.quantile(0.99), 950)
	near("max", h.max(), 950)
	h.record(-5, 1)
	h.record(int64(1)<<60, 1)
	if h.count() != 1002 {
		t.Error("values outside the range were dropped")
	}
	near("clamped max", h.max(), float64(latencyMax)/1e3)
	r := &Result{}
	newHistogram().addTo(r, "latency")
	if len(r.Metrics) != 0 {
		t.Error("an empty histogram made figures")
	}
}
