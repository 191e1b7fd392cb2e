package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// failAt runs a fixed scenario in which the nth call of the disk fails, then cuts the
// power or kills the process, and checks what is recovered. It reports the call that
// failed, "" if the scenario made fewer calls.
func failAt(base *world, n int, cause error, kill bool) (string, error) {
	fs := base.fs.Clone()
	w := newWorld(rand.New(rand.NewPCG(99, 4)), fs)
	w.model.ops = slices.Clone(base.model.ops)
	w.cause = cause
	fs.Fail(n, cause)
	if err := w.open(); err != nil {
		if !errors.Is(err, cause) {
			return "", fmt.Errorf("open: %w", err)
		}
		// The operator tries again.
		if err := w.open(); err != nil {
			return "", fmt.Errorf("second open: %w", err)
		}
	}
	for i := 0; i < 1400 && w.problem == nil && w.failed == nil; i++ {
		w.step()
	}
	if w.problem != nil {
		return "", w.problem
	}
	// After a failure the log refuses everything, promises nothing and stays calm.
	if w.failed != nil {
		if !errors.Is(w.failed, cause) && !errors.Is(cause, crashfs.ErrShort) {
			return "", fmt.Errorf("failed with %v", w.failed)
		}
		committed := w.log.Committed()
		if _, err := w.log.Append(kindMessage, nil, nil); !errors.Is(err, wal.ErrFailed) {
			return "", fmt.Errorf("append after the failure: %v", err)
		}
		for range 200 {
			w.step()
		}
		w.dev.Drain()
		if w.problem != nil || w.log.Committed() != committed {
			return "", fmt.Errorf("after the failure: committed %v, then %v; %v", committed, w.log.Committed(), w.problem)
		}
	}
	failed := ""
	if names := fs.Failed(); len(names) > 0 {
		failed = names[0]
	}
	promised := w.promised()
	w.log.Free()
	if kill {
		w.fs = fs.Kill()
	} else {
		w.fs = fs.Crash(w.rng)
	}
	if err := w.recovered(promised); err != nil {
		return failed, err
	}
	w.log.Free()
	return failed, nil
}

// TestFailEachCall is test 4: each call fails once, in each way, and nothing hangs,
// panics, or is promised and lost.
func TestFailEachCall(t *testing.T) {
	t.Parallel()
	// A log that a power cut ended, so that opening it has something to do.
	base := newWorld(rand.New(rand.NewPCG(98, 4)), crashfs.New())
	if err := base.open(); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		base.step()
	}
	if err := base.crash(); err != nil {
		t.Fatal(err)
	}
	base.log.Free()
	base.fs = base.fs.Clone()
	w := newWorld(rand.New(rand.NewPCG(99, 4)), base.fs.Clone())
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	for range 1400 {
		w.step()
	}
	want := w.fs.CallCounts()
	w.log.Free()
	stride := 1
	if raceEnabled || testing.Short() {
		stride = 7
	}
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.EINTR, crashfs.ErrShort} {
		hit := map[string]int{}
		for n := 1; ; n += stride {
			name, err := failAt(base, n, cause, n%2 == 0)
			if err != nil {
				t.Fatalf("%v at call %d (%s): %v", cause, n, name, err)
			}
			if name == "" {
				t.Logf("%v: %d calls, %v", cause, n-1, hit)
				break
			}
			hit[name]++
		}
		for name, count := range want {
			if hit[name] == 0 && count >= stride {
				t.Errorf("%v: no %q failed, the scenario has %d", cause, name, count)
			}
		}
	}
}

// TestSyncFailure is test 5: behind a failed sync nothing is confirmed, the failure is
// told once, and the next start is honest, though the kernel answers the next sync with
// success and shows the lost pages until its cache is dropped.
func TestSyncFailure(t *testing.T) {
	for _, how := range []string{"power cut", "process dies"} {
		t.Run(how, func(t *testing.T) {
			fs := crashfs.New()
			w := newWorld(rand.New(rand.NewPCG(1, 1)), fs)
			if err := w.open(); err != nil {
				t.Fatal(err)
			}
			safe := mustPublish(t, w, 100, 0)
			w.log.Flush()
			w.dev.Drain()
			if w.committed <= safe {
				t.Fatalf("committed %v, published %v", w.committed, safe)
			}
			mustPublish(t, w, 100, 0)
			w.log.Flush()
			fs.Fail(2, syscall.EIO) // the write, then its sync
			w.dev.Drain()
			var io *wal.IOError
			if !errors.As(w.failed, &io) || !errors.Is(io, syscall.EIO) || io.File == "" || w.log.Err() != w.failed {
				t.Fatalf("failed: %v, Err: %v", w.failed, w.log.Err())
			}
			before := w.committed
			if _, err := w.publish(100, 0); !errors.Is(err, wal.ErrFailed) {
				t.Fatalf("publish after the failure: %v", err)
			}
			if err := w.ack(0, 0, 0); !errors.Is(err, wal.ErrFailed) {
				t.Fatalf("ack after the failure: %v", err)
			}
			calls := fs.CallCounts()["sync"]
			w.log.Flush()
			w.log.Sync()
			w.dev.Drain()
			if w.committed != before || w.problem != nil || fs.CallCounts()["sync"] != calls {
				t.Fatalf("something went on after the failure: %v, %v", w.committed, w.problem)
			}
			closed := errors.New("not called")
			w.log.Close(func(err error) { closed = err })
			if !errors.Is(closed, syscall.EIO) {
				t.Fatalf("close: %v", closed)
			}
			w.log.Free()
			if how == "power cut" {
				w.fs = fs.Crash(w.rng)
			} else {
				w.fs = fs.Kill()
			}
			if err := w.recovered(before); err != nil {
				t.Fatal(err)
			}
			if how == "process dies" && w.report.End > before {
				t.Errorf("recovered up to %v from pages that the disk never had", w.report.End)
			}
			w.log.Free()
		})
	}
}

func mustPublish(t *testing.T, w *world, n int, queues ...int) wal.Position {
	t.Helper()
	p, err := w.publish(n, queues...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
