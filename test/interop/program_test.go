//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringmq/test/harness"
)

const (
	installMax = 4 * time.Minute // a registry that hangs must not hold up the run
	scriptMax  = 2 * time.Minute // each scenario has a limit of its own; this is for a hung runtime
	appMax     = 4 * time.Minute // an application takes half a minute when the machine has nothing else to do
)

// program is a command in a folder.
type program struct {
	dir  string
	argv []string
}

// with is the program with further arguments.
func (p program) with(args ...string) program {
	return program{p.dir, slices.Concat(p.argv, args)}
}

// run runs the program with further arguments for at most limit and returns what it printed. A line `ask WHAT`
// calls answer, which may be nil, and then gives the program a line to read. It runs in a process group of its
// own, so that nothing that it started outlives it.
func (p program) run(limit time.Duration, answer func(what string) error, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.argv[0], slices.Concat(p.argv[1:], args)...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer reader.Close()
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	_ = writer.Close()
	if err != nil {
		return "", err
	}
	printed := make(chan string, 1)
	go func() {
		out, err := converse(reader, stdin, answer)
		if err != nil {
			out += err.Error()
			_ = cmd.Cancel()
		}
		printed <- out
	}()
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done within %v", limit)
	}
	_ = cmd.Cancel() // what it left running also holds the output open
	return <-printed, err
}

// converse collects what a program prints until it closes its output.
func converse(stdout io.Reader, stdin io.Writer, answer func(what string) error) (string, error) {
	var out bytes.Buffer
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		out.WriteString(line)
		if err != nil {
			return out.String(), nil
		}
		what, isQuestion := strings.CutPrefix(strings.TrimSpace(line), "ask ")
		if !isQuestion || answer == nil {
			continue
		}
		if err := answer(what); err != nil {
			return out.String(), err
		}
		if _, err := io.WriteString(stdin, "done\n"); err != nil {
			return out.String(), err
		}
	}
}

// install runs one step of installing a client and skips the test when it fails.
func install(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	out, err := program{dir, []string{name}}.run(installMax, nil, args...)
	if err != nil {
		const most = 2000
		t.Skipf("not run: the client cannot be installed: %s: %v\n%s", name, err, out[max(0, len(out)-most):])
	}
}

// build compiles our own source, whose failure is not a reason to skip.
func build(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("not run: %v", err)
	}
	if out, err := (program{dir, []string{name}}).run(installMax, nil, args...); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// abs is the path of a file of this package for a program that runs in another folder.
func abs(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// alarm is the configuration file of a broker, whose disk-free-limit is re-read on SIGHUP.
type alarm string

const (
	limitNone = "0"
	limitHuge = "4000000GiB" // more room than any disk has: it raises the alarm
)

func (a alarm) write(limit string) error {
	return os.WriteFile(string(a), fmt.Appendf(nil, "disk-free-limit = %q\n", limit), 0o600)
}

// set changes the limit of a running broker and waits until it holds.
func (a alarm) set(b *harness.Broker, limit string, up float64) error {
	if err := a.write(limit); err != nil {
		return err
	}
	if err := syscall.Kill(b.PID, syscall.SIGHUP); err != nil {
		return err
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if m, err := b.Metrics(); err == nil && m["ringmq_alarm"] == up {
			return nil
		}
	}
	return errors.New("the alarm did not change")
}

// answer carries out what a scenario asks for.
func (a alarm) answer(b *harness.Broker) func(string) error {
	return func(what string) error {
		switch what {
		case "alarm-on":
			return a.set(b, limitHuge, 1)
		case "alarm-off":
			return a.set(b, limitNone, 0)
		}
		return fmt.Errorf("a scenario asks for %q", what)
	}
}
