package wal_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
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

// TestPowerCut is test 2 of the reliability notes: nothing that was committed is lost,
// nothing comes back, nothing is invented, in whatever state the power leaves the disk.
func TestPowerCut(t *testing.T) {
	var total tally
	n, first := seedCount(t, 5000), firstSeed(t)
	for seed := first; seed < first+uint64(n); seed++ {
		w, err := powerCut(seed, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		total.add(w.total)
	}
	if n >= 100 && (total.recycled == 0 || total.removed == 0 || total.moved == 0 || total.fetched == 0 ||
		total.checkpoints == 0 || total.cuts == 0 || total.discarded == 0 || total.large == 0) {
		t.Errorf("something never happened: %+v", total)
	}
	t.Logf("%d seeds from %d: %+v", n, first, total)
}
