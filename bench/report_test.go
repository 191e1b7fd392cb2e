package bench

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
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

func TestGoals(t *testing.T) {
	cases := []struct {
		value, goal float64
		better      direction
		want        string
	}{
		{1.2, 1.3, lowerIsBetter, " reached"},
		{1.3, 1.3, lowerIsBetter, " reached"},
		{1.4, 1.3, lowerIsBetter, " missed"},
		{0.8, 0.7, higherIsBetter, " reached"},
		{0.6, 0.7, higherIsBetter, " missed"},
		{notAvailable, 0.7, higherIsBetter, ""},
		{0.6, 0, higherIsBetter, ""},
	}
	for _, c := range cases {
		r := &Result{}
		r.addGoal("x", "", c.value, c.better, c.goal)
		if got := judge(&r.Metrics[0]); got != c.want {
			t.Errorf("%v with the goal %v: %q, want %q", c.value, c.goal, got, c.want)
		}
	}
}

// TestConfirmRatios: the report's ratio is of medians, and of the faster sync.
func TestConfirmRatios(t *testing.T) {
	round := func(confirm, write, direct, loop float64) *Result {
		r := &Result{}
		r.add("confirm p50", "us", confirm, lowerIsBetter)
		r.add("bare pwrite+fdatasync p50", "us", write, neutral)
		r.add("bare O_DIRECT+O_DSYNC p50", "us", direct, neutral)
		r.add("bare loopback p50", "us", loop, neutral)
		confirmRatios(r)
		return r
	}
	const name = "confirm p50 / (best bare sync p50 + loopback p50)"
	rounds := []*Result{round(100, 90, 60, 40), round(900, 90, 290, 10), round(120, 90, 70, 30)}
	for i, want := range []float64{1, 9, 1.2} {
		if got := rounds[i].value(name, ""); math.Abs(got-want) > 1e-9 {
			t.Errorf("round %d: %v, want %v", i, got, want)
		}
	}
	m := medianResult(rounds)
	confirmRatios(m)
	if got, want := m.value(name, ""), 120.0/(70+30); math.Abs(got-want) > 1e-9 || len(m.Metrics) != 5 {
		t.Errorf("of medians: %v, want %v; %d figures", got, want, len(m.Metrics))
	}
	if got := round(100, 90, notAvailable, 10).value(name, ""); got != 1 {
		t.Errorf("without O_DIRECT: %v, want 1", got)
	}
	if got := round(100, notAvailable, 90, 10).value(name, ""); got != 1 {
		t.Errorf("without the other: %v, want 1", got)
	}
	many := &Result{}
	many.add("confirmed", "msg/s", 300, higherIsBetter)
	many.add("bare pwrite+fdatasync", "records/s", 1000, neutral)
	confirmRatios(many)
	if got := many.value("confirmed / bare pwrite+fdatasync", ""); got != 0.3 || len(many.Metrics) != 3 {
		t.Errorf("share %v, %d figures, want 0.3 and no share of what was refused", got, len(many.Metrics))
	}
}

func TestRecoveryReport(t *testing.T) {
	const second = 1e9
	pass := func(took, read float64) recoveryPass {
		return recoveryPass{took: time.Duration(took * second), messages: 3, cpu: second, resident: 2048, peak: 4096,
			disk: readPass{read: 800e6, used: 600e6, took: time.Duration(read * second)}}
	}
	passes := []recoveryPass{pass(1, 1), pass(2, 0.5), pass(9, 4)}
	r := &Result{}
	recoveryReport(r, &Options{}, 400000, 1000, passes)
	for _, c := range []struct {
		name, unit string
		want       float64
	}{
		{"ready after", "s", 2}, {"files without zero blocks", "MB", 600}, {"files read by recovery", "MB/s", 300},
		{"files read by a bare reader", "MB/s", 800}, {"recovery / bare reader", "", 0.375},
		{"bodies recovered", "MB/s", 200}, {"messages recovered", "msg/s", 200000},
		{"server CPU", "s", 1}, {"resident after", "MiB", 2}, {"resident at most", "MiB", 4},
	} {
		if got := r.value(c.name, c.unit); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v %s, want %v", c.name, got, c.unit, c.want)
		}
	}
	acked := &Result{}
	recoveryReport(acked, &Options{Acked: true}, 400000, 1000, passes)
	if m := acked.find("ready after", "s"); m.Goal != recoveryAckedMax || acked.value("came back", "msg") != 3 || acked.find("files read by recovery", "MB/s") != nil {
		t.Errorf("acknowledged: %+v", acked.Metrics)
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
