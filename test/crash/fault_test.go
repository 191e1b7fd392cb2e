package crash

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ringmq/test/harness"
)

// waitMax bounds every wait for something that must come.
const waitMax = 30 * time.Second

// awaitExit waits until the broker has ended by itself and returns its exit status.
func awaitExit(t *testing.T, b *harness.Broker) int {
	t.Helper()
	select {
	case <-b.Exited():
		return b.ExitCode()
	case <-time.After(waitMax):
		t.Fatalf("still running\n%s", b.Output())
		return 0
	}
}

// errorLines are the lines of level error in what a broker printed.
func errorLines(output string) []string {
	var found []string
	for line := range strings.SplitSeq(output, "\n") {
		if strings.Contains(line, "level=ERROR") {
			found = append(found, line)
		}
	}
	return found
}

// TestDiskFault is test 5: after a write or a sync failed nothing is confirmed, one line says what failed, the
// process ends with status 1, and the next start has everything that was confirmed. The failing sync takes the data along,
// so that a confirm in spite of it is found out.
func TestDiskFault(t *testing.T) {
	binary, err := harness.FaultsBinary()
	if err != nil {
		t.Fatal(err)
	}
	seed := firstSeed(t)
	for _, backend := range harness.Backends() {
		for _, c := range []struct{ name, fault, errno string }{
			{"sync", "sync:", "input/output error"},
			{"write", "write:", "input/output error"},
			{"write without room", "write:", "no space left on device"},
		} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				if why := harness.Refused(backend); why != "" {
					t.Skip(why)
				}
				rng := rand.New(rand.NewPCG(seed, 3))
				fault := c.fault + []string{"60", "100", "171"}[rng.IntN(3)]
				if strings.HasPrefix(c.errno, "no space") {
					fault += ":ENOSPC"
				}
				t.Logf("seed %d, fault %s", seed, fault)
				diskFault(t, harness.Options{Backend: backend, Cores: "0,1", Data: folder(t), HTTP: "off", Binary: binary,
					Env: []string{"RINGMQ_TEST_FAULT=" + fault}}, c.errno, rng)
			})
		}
	}
}

func diskFault(t *testing.T, opts harness.Options, errno string, rng *rand.Rand) {
	t.Helper()
	h := topology(rng.Uint64())
	b, err := harness.Launch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Kill() })
	if err := declare(h, b, false); err != nil {
		t.Fatal(err)
	}
	r := newRun(h, b)
	r.ending.Store(true) // it ends by itself
	load(r, rng, 25)
	if code := awaitExit(t, b); code != 1 {
		t.Errorf("exit status %d, want 1\n%s", code, b.Output())
	}
	r.await(t)
	h.Add(Event{Kind: Killed})
	lines := errorLines(b.Output())
	if len(lines) != 1 || !strings.Contains(lines[0], errno) {
		t.Errorf("want one error line with %q, got %d:\n%s", errno, len(lines), strings.Join(lines, "\n"))
	}

	opts.Env = nil
	if b, err = harness.Launch(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Kill() })
	if err := declare(h, b, true); err != nil {
		t.Fatal(err)
	}
	drain(t, h, b)
	if err := b.Stop(); err != nil {
		t.Fatalf("stopping: %v\n%s", err, b.Output())
	}
	report := h.Check()
	if text := h.Error(report); text != "" {
		t.Fatal(text)
	}
	if report.Counts.Confirmed == 0 || report.Counts.Unanswered == 0 {
		t.Errorf("the failure proves nothing: %+v", report.Counts)
	}
}
