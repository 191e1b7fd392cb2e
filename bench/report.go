package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// direction says which way a metric improves.
type direction string

const (
	higherIsBetter direction = "higher"
	lowerIsBetter  direction = "lower"
	neutral        direction = ""
)

// notAvailable marks a figure that could not be had.
var notAvailable = math.NaN()

// Metric is one figure of a run. Value is nil when it could not be had.
type Metric struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Value  *float64  `json:"value"`
	Better direction `json:"better,omitempty"`
	Goal   float64   `json:"goal,omitempty"` // what Value has to reach; 0: none
}

// Result is one scenario on one broker, of one round or the median of several.
type Result struct {
	Title    string   `json:"title"`
	Settings string   `json:"settings"`
	Broker   string   `json:"broker"`
	Sync     string   `json:"sync,omitempty"`
	Round    int      `json:"round"` // from 1; 0: median
	Metrics  []Metric `json:"metrics"`
	Notes    []string `json:"notes,omitempty"`
}

func (r *Result) add(name, unit string, value float64, better direction) {
	m := Metric{Name: name, Unit: unit, Better: better}
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		m.Value = &value
	}
	r.Metrics = append(r.Metrics, m)
}

// addGoal adds a figure that has a goal, or renews it.
func (r *Result) addGoal(name, unit string, value float64, better direction, goal float64) {
	fresh := &Result{}
	fresh.add(name, unit, value, better)
	fresh.Metrics[0].Goal = goal
	if old := r.find(name, unit); old != nil {
		*old = fresh.Metrics[0]
	} else {
		r.Metrics = append(r.Metrics, fresh.Metrics[0])
	}
}

// value is the metric's value, notAvailable if there is none.
func (r *Result) value(name, unit string) float64 {
	if m := r.find(name, unit); m != nil && m.Value != nil {
		return *m.Value
	}
	return notAvailable
}

// note adds a line of text under the figures.
func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// addUsage adds CPU and kernel entries per message between two readings.
func (r *Result) addUsage(before, after usage, messages float64) {
	elapsed := after.at.Sub(before.at).Seconds()
	perMessage, cores, enters := notAvailable, notAvailable, notAvailable
	if before.serverOK && after.serverOK {
		cpu := after.server.since(before.server)
		perMessage = float64(cpu.Microseconds()) / messages
		cores = cpu.Seconds() / elapsed
	}
	if before.entersOK && after.entersOK {
		enters = (after.enters - before.enters) / messages
	}
	client := after.client - before.client
	r.add("server CPU", "us/msg", perMessage, lowerIsBetter)
	r.add("server CPU", "cores", cores, neutral)
	r.add("generator CPU", "us/msg", float64(client.Microseconds())/messages, neutral)
	r.add("kernel entries", "/msg", enters, lowerIsBetter)
}

// find returns the metric of that name and unit, nil if there is none.
func (r *Result) find(name, unit string) *Metric {
	for i := range r.Metrics {
		if r.Metrics[i].Name == name && r.Metrics[i].Unit == unit {
			return &r.Metrics[i]
		}
	}
	return nil
}

// Environment is what the figures depend on besides the brokers.
type Environment struct {
	Time     string   `json:"time"`
	Kernel   string   `json:"kernel"`
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	MemoryMB int64    `json:"memory_mb"`
	Commit   string   `json:"commit"`
	Go       string   `json:"go"`
	Seed     int64    `json:"seed"`
	Brokers  []string `json:"brokers"`
}

func readEnvironment(o *Options) Environment {
	e := Environment{
		Time: time.Now().UTC().Format(time.RFC3339), Cores: runtime.NumCPU(),
		Go: runtime.Version(), Seed: o.Seed, CPU: cpuModel(), Commit: commit(),
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		e.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		e.MemoryMB = int64(info.Totalram) * int64(info.Unit) >> 20
	}
	return e
}

func cpuModel() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// commit is the revision this binary was built from.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	return revision + dirty
}

func (e Environment) print(w io.Writer) {
	fmt.Fprintf(w, "machine   %s, %d cores, %d MiB, Linux %s\n", e.CPU, e.Cores, e.MemoryMB, e.Kernel)
	fmt.Fprintf(w, "generator commit %s, %s, seed %d, %s\n", e.Commit, e.Go, e.Seed, e.Time)
	for i, b := range e.Brokers {
		fmt.Fprintf(w, "broker %c  %s\n", 'A'+i, b)
	}
}

// row is one printed line of a comparison.
type row struct {
	name  string
	cells []string
}

// printComparison prints one scenario, a column per broker and, with two, the
// ratio of the first to the second.
func printComparison(w io.Writer, sides []*Result) {
	first := sides[0]
	fmt.Fprintf(w, "\n%s: %s\n", first.Title, first.Settings)
	head := row{cells: nil}
	for _, s := range sides {
		name := s.Broker
		if s.Sync != "" {
			name += " (sync " + s.Sync + ")"
		}
		head.cells = append(head.cells, name)
	}
	if len(sides) == 2 {
		head.cells = append(head.cells, "ratio A/B")
	}
	rows := []row{head}
	for _, m := range first.Metrics {
		line := row{name: strings.TrimSpace(m.Name+" "+m.Unit) + formatGoal(&m)}
		for i, s := range sides {
			cell := formatMetric(s.find(m.Name, m.Unit))
			if i == 0 {
				cell += judge(&m) // the other side has not set itself this goal
			}
			line.cells = append(line.cells, cell)
		}
		if len(sides) == 2 {
			line.cells = append(line.cells, formatRatio(&m, sides[1].find(m.Name, m.Unit)))
		}
		rows = append(rows, line)
	}
	printRows(w, rows)
	for i, s := range sides {
		for _, n := range s.Notes {
			if len(sides) > 1 {
				n = string(rune('A'+i)) + ": " + n
			}
			fmt.Fprintf(w, "  note: %s\n", n)
		}
	}
}

func printRows(w io.Writer, rows []row) {
	nameWidth := 0
	widths := make([]int, len(rows[0].cells))
	for _, r := range rows {
		nameWidth = max(nameWidth, len(r.name))
		for i, c := range r.cells {
			widths[i] = max(widths[i], len(c))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		fmt.Fprintf(&line, "  %-*s", nameWidth, r.name)
		for i, c := range r.cells {
			fmt.Fprintf(&line, "  %*s", widths[i], c)
		}
		fmt.Fprintln(w, line.String())
	}
}

func formatGoal(m *Metric) string {
	switch {
	case m.Goal == 0:
		return ""
	case m.Better == lowerIsBetter:
		return ", goal at most " + formatNumber(m.Goal)
	}
	return ", goal at least " + formatNumber(m.Goal)
}

// judge says whether a metric reaches its goal; nothing without either.
func judge(m *Metric) string {
	if m.Goal == 0 || m.Value == nil {
		return ""
	}
	if *m.Value == m.Goal || (*m.Value < m.Goal) == (m.Better == lowerIsBetter) {
		return " reached"
	}
	return " missed"
}

func formatMetric(m *Metric) string {
	if m == nil || m.Value == nil {
		return "n/a"
	}
	return formatNumber(*m.Value)
}

// formatNumber prints about three significant digits, with thousands apart.
func formatNumber(v float64) string {
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a < 0.01:
		return fmt.Sprintf("%.2g", v)
	case a < 10:
		return fmt.Sprintf("%.2f", v)
	case a < 1000:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", math.Abs(v))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}

// formatRatio prints a/b and which way that points.
func formatRatio(a, b *Metric) string {
	if a == nil || b == nil || a.Value == nil || b.Value == nil || *b.Value == 0 {
		return "n/a"
	}
	ratio := *a.Value / *b.Value
	word := ""
	if a.Better != neutral && math.Abs(ratio-1) > 0.02 {
		word = " worse"
		if (a.Better == higherIsBetter) == (ratio > 1) {
			word = " better"
		}
	}
	return formatNumber(ratio) + word
}

// document is the JSON output.
type document struct {
	Environment Environment `json:"environment"`
	Medians     []*Result   `json:"medians"`
	Rounds      []*Result   `json:"rounds"`
}

func writeJSON(path string, stdout io.Writer, d document) error {
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	if path == "-" {
		_, err = stdout.Write(raw)
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}
