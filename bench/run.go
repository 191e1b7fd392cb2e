package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// Exit codes of Main.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs `ringmq bench` with args (without the word bench) and returns the
// exit code: 0 done, 1 something failed, 2 the flags make no sense. It stops
// the servers that it started also on SIGINT and SIGTERM.
func Main(args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout, stderr)
	if errors.Is(err, errHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "ringmq bench: %v (see ringmq bench --help)\n", err)
		return exitUsage
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "ringmq bench: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// run connects or starts the brokers, runs the steps and reports.
func run(ctx context.Context, o *Options, stdout, stderr io.Writer) (err error) {
	// Blocked system calls give their processor away and need a free one on
	// return; a few spare ones make that a matter of nanoseconds.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 6))

	text := stdout
	if o.JSON == "-" {
		text = stderr
	}
	targets, err := openTargets(ctx, o, text)
	defer func() {
		for _, t := range targets {
			err = errors.Join(err, t.stop())
		}
	}()
	if err != nil {
		return err
	}
	r := &runner{targets: targets, progress: stderr}
	if o.Quiet {
		r.progress = nil
	}
	env := readEnvironment(o)
	for _, t := range targets {
		env.Brokers = append(env.Brokers, t.describe())
	}
	env.print(text)
	for _, s := range steps(o) {
		medians, err := r.runStep(ctx, s)
		if err != nil {
			return err
		}
		printComparison(text, medians)
	}
	if o.JSON != "" {
		return writeJSON(o.JSON, stdout, document{env, r.medians, r.rounds})
	}
	return nil
}

// describe is the broker's line in the report.
func (t *target) describe() string {
	parts := []string{t.name, t.endpoint.addr}
	if t.pid != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", t.pid))
	} else {
		parts = append(parts, "pid unknown: CPU n/a")
	}
	if t.counters == "" {
		parts = append(parts, "no counters page: kernel entries n/a")
	}
	if t.sync != "" {
		parts = append(parts, "sync "+t.sync)
	}
	return strings.Join(append(parts, t.settings...), ", ")
}

// openTargets returns the brokers of the run, those already up also with an
// error, so that the caller can stop them.
func openTargets(ctx context.Context, o *Options, log io.Writer) ([]*target, error) {
	var targets []*target
	var a *target
	var err error
	if o.URL != "" {
		a, err = openTarget(ctx, o, o.URL, o.PID, o.Counters, log)
	} else {
		a, err = startSelf(ctx, o)
	}
	if a != nil {
		targets = append(targets, a)
	}
	if err != nil || o.VS == "" {
		return targets, err
	}
	b, err := openTarget(ctx, o, o.VS, o.VSPID, o.VSCounters, log)
	if b != nil {
		targets = append(targets, b)
	}
	return targets, err
}

// scenario runs one set of options on one broker.
type scenario func(ctx context.Context, t *target, o *Options) (*Result, error)

// steps lists what a scenario name stands for. The names are checked when the
// flags are parsed.
func steps(o *Options) []step {
	one := map[string]scenario{
		"hello": hello, "throughput": throughput, "latency": latency, "fanout": fanout,
		"topic": topic, "idle": idle, "churn": churn, "soak": soak,
		"confirm": confirmBeside, "recovery": recovery, "bigqueue": bigqueue,
	}
	if o.Scenario == "all" {
		return allSteps(o)
	}
	s := step{title: o.Scenario, o: o, run: one[o.Scenario]}
	if o.Scenario == "confirm" {
		s.derive = confirmRatios
	}
	return []step{s}
}
