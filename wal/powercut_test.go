package wal_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// seedCount is how many seeds a test runs: in full by default, as many as the
// environment says, a tenth under the race detector.
func seedCount(t testing.TB, full int) int {
	if text := os.Getenv("RINGMQ_TEST_SEEDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if raceEnabled || testing.Short() {
		return full / 10
	}
	return full
}

// firstSeed lets a failure be run again alone.
func firstSeed(t testing.TB) uint64 {
	text := os.Getenv("RINGMQ_TEST_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// powerCut runs one seed: some rounds of random work on one disk, each ended by a power
// cut at a random call, or in between by the death of the process.
func powerCut(seed uint64, prepare func(*world)) (*world, error) {
	rng := rand.New(rand.NewPCG(seed, 0x7077))
	w := newWorld(rng, crashfs.New())
	w.opts.Sync = []wal.SyncMode{wal.SyncAlways, wal.SyncAlways, wal.SyncInterval, wal.SyncOff}[rng.IntN(4)]
	if rng.IntN(4) == 0 {
		w.opts.Compression, w.opts.CompressMin = wal.CompressS2, 64
	}
	if rng.IntN(2) == 0 {
		w.opts.SegmentFirst, w.opts.SegmentSize = 32<<10, 128<<10
	}
	if rng.IntN(2) == 0 {
		w.carry = wal.NewFileWriter() // as the writer's thread does it, on a disk with FUA
	}
	full := rng.IntN(8) == 0
	if full {
		w.fs.SetCapacity(int64(2+rng.IntN(5)) * 64 << 10)
	}
	if prepare != nil {
		prepare(w)
	}
	if err := w.open(); err != nil {
		return w, err
	}
	for round := range 1 + rng.IntN(3) {
		w.fs.CrashAt(1 + rng.IntN(250))
		for i := 0; i < 1500 && !w.fs.Crashed() && w.problem == nil; i++ {
			w.step()
		}
		if w.problem != nil {
			return w, fmt.Errorf("round %d: %w", round, w.problem)
		}
		end := w.crash
		if rng.IntN(4) == 0 {
			end = w.kill
		}
		if err := end(); err != nil {
			return w, fmt.Errorf("round %d: %w", round, err)
		}
		// A crash while recovering, before anything new is appended: what is found
		// must be the same.
		if rng.IntN(3) == 0 {
			end, promised := w.report.End, w.report.End
			if err := w.crash(); err != nil {
				return w, fmt.Errorf("round %d, second start: %w", round, err)
			}
			if w.report.End != end || promised > w.report.End {
				return w, fmt.Errorf("round %d: the second start ends at %v, the first at %v", round, w.report.End, end)
			}
		}
	}
	w.fs.SetCapacity(0)
	w.log.RetrySpace()
	w.dev.Drain()
	if _, err := w.publish(10, 0); err != nil {
		return w, err
	}
	if err := w.close(); err != nil {
		return w, err
	}
	w.fs = w.fs.Crash(rng)
	if err := w.recovered(w.log.End()); err != nil {
		return w, fmt.Errorf("after an orderly end: %w", err)
	}
	if !w.report.Clean || w.report.Cut != nil {
		return w, fmt.Errorf("after an orderly end: clean %v, cut %v", w.report.Clean, w.report.Cut)
	}
	w.log.Free()
	return w, nil
}

// progressSeeds is how often a long run says how far it is.
const progressSeeds = 50_000

// powerCuts runs n seeds on all processors. It returns the lowest seed that failed, and why.
func powerCuts(first, n uint64, progress func(format string, args ...any)) (total tally, failed uint64, failure error) {
	var next atomic.Uint64
	var mu sync.Mutex // of the results
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				at := next.Add(1) - 1
				if at >= n {
					return
				}
				w, err := powerCut(first+at, nil)
				mu.Lock()
				total.add(w.total)
				if err != nil && (failure == nil || first+at < failed) {
					failed, failure = first+at, err
				}
				if at > 0 && at%progressSeeds == 0 {
					progress("%d of %d seeds", at, n)
				}
				mu.Unlock()
				if err != nil {
					next.Store(n) // those before it are being run
				}
			}
		})
	}
	workers.Wait()
	return total, failed, failure
}

// TestPowerCut is test 2 of the reliability notes: nothing that was committed is lost,
// nothing comes back, nothing is invented, in whatever state the power leaves the disk.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	n, first := seedCount(t, 5000), firstSeed(t)
	total, seed, err := powerCuts(first, uint64(n), t.Logf)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if n >= 100 && (total.recycled == 0 || total.removed == 0 || total.moved == 0 || total.fetched == 0 ||
		total.checkpoints == 0 || total.cuts == 0 || total.discarded == 0 || total.large == 0) {
		t.Errorf("something never happened: %+v", total)
	}
	t.Logf("%d seeds from %d: %+v", n, first, total)
}
