package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// excluded is the one test that cannot run: it raises a memory alarm through rabbitmqctl.
const excluded = "^TestConnection_Close_WhenMemoryAlarmIsActive$"

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// tally is what a run of the suite came to. Only top-level tests count.
type tally struct {
	passed, failed, skipped []string
	brokenPackages          []string            // failed without a failed test: build errors, a timeout, a crash
	output                  map[string][]string // package/test -> its output
}

// runSuite runs the client's tests in dir inside the namespace.
func runSuite(ctx context.Context, n namespace, dir string, o options) (*tally, error) {
	args := append(n.prefix(), "go", "test", "-json", "-tags", "integration", "-count=1", "-timeout", o.timeout.String(),
		"-skip", excluded)
	if o.run != "" {
		args = append(args, "-run", o.run)
	}
	args = append(args, "./...")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "AMQP_URL=amqp://guest:guest@127.0.0.1:5672/", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local")
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t, readErr := readEvents(stdout, o.verbose)
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return t, ctx.Err()
	case readErr != nil:
		return t, readErr
	case err != nil && len(t.failed)+len(t.brokenPackages) == 0:
		return t, fmt.Errorf("go test: %w", err)
	}
	return t, nil
}

func readEvents(r io.Reader, verbose bool) (*tally, error) {
	t := &tally{output: map[string][]string{}}
	failedIn := map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Println(lines.Text()) // build output is not JSON in every Go release
			continue
		}
		name := e.Package + " " + e.Test
		if e.Action == "output" || e.Action == "build-output" {
			t.output[name] = append(t.output[name], e.Output)
			if verbose {
				fmt.Print(e.Output)
			}
			continue
		}
		if strings.Contains(e.Test, "/") {
			// A subtest's output belongs to its test.
			top := e.Package + " " + e.Test[:strings.IndexByte(e.Test, '/')]
			if e.Action == "fail" {
				t.output[top] = append(t.output[top], t.output[name]...)
			}
			continue
		}
		switch {
		case e.Test == "" && e.Action == "fail" && !failedIn[e.Package]:
			t.brokenPackages = append(t.brokenPackages, name)
		case e.Test == "":
		case e.Action == "pass":
			t.passed = append(t.passed, name)
		case e.Action == "skip":
			t.skipped = append(t.skipped, name)
		case e.Action == "fail":
			failedIn[e.Package] = true
			t.failed = append(t.failed, name)
		}
	}
	return t, lines.Err()
}

// report prints the outcome and says whether it is a success.
func (t *tally) report(title string) bool {
	for _, name := range slices.Concat(t.failed, t.brokenPackages) {
		fmt.Printf("FAIL %s\n", name)
		for _, line := range t.output[name] {
			fmt.Print("    ", line)
		}
	}
	for _, name := range t.skipped {
		why := ""
		for _, line := range t.output[name] {
			if trimmed := strings.TrimSpace(line); strings.Contains(trimmed, "_test.go:") {
				why = trimmed
			}
		}
		fmt.Printf("skip %s  %s\n", name, why)
	}
	fmt.Printf("%s: %d passed, %d failed, %d skipped", title, len(t.passed), len(t.failed), len(t.skipped))
	if n := len(t.brokenPackages); n > 0 {
		fmt.Printf(", %d packages broken", n)
	}
	fmt.Println()
	return len(t.failed)+len(t.brokenPackages) == 0 && len(t.passed) > 0
}
