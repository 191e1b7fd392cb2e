package crash

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"ringmq/test/harness"
)

// TestKillAtCommit is test 20, for transactions that were answered: the broker is killed the moment a commit-ok is there, so
// that an answer that left too early is found out. The disk is slow for it, so that too early is early enough.
func TestKillAtCommit(t *testing.T) {
	const rounds = 12
	binary, err := harness.FaultsBinary()
	if err != nil {
		t.Fatal(err)
	}
	seed := firstSeed(t)
	for _, backend := range harness.Backends() {
		t.Run(backend, func(t *testing.T) {
			if why := harness.Refused(backend); why != "" {
				t.Skip(why)
			}
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 5))
			h := topology(seed)
			opts := harness.Options{Backend: backend, Cores: "0,1", Data: folder(t), HTTP: "off",
				Binary: binary, Env: []string{"RINGMQ_TEST_FAULT=delay:3"}}
			for round := range rounds + 1 {
				b, err := harness.Launch(opts)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Kill() })
				if err := declare(h, b, round > 0); err != nil {
					t.Fatalf("round %d: %v\n%s", round, err, b.Output())
				}
				if round == rounds {
					drain(t, h, b)
					continue
				}
				if err := killAtCommit(newRun(h, b), 3+rng.Int64N(60), rng); err != nil {
					t.Fatalf("round %d: %v\n%s", round, err, b.Output())
				}
				if b.ExitCode() != -1 {
					t.Fatalf("the broker ended by itself\n%s", b.Output())
				}
				h.Add(Event{Kind: Killed})
			}
			report := h.Check()
			if text := h.Error(report); text != "" {
				t.Fatal(text)
			}
			if c := report.Counts; c.Confirmed == 0 || c.Acked == c.Drained || c.Undone == 0 || c.Redelivered == 0 {
				t.Errorf("something never happened: %+v", c)
			}
		})
	}
}

// killAtCommit lets transactions move messages between queues, of both loops, and ends the broker at the n-th commit-ok.
func killAtCommit(r *run, n int64, rng *rand.Rand) error {
	var commits atomic.Int64
	r.atCommit = func() {
		if commits.Add(1) == n {
			r.ending.Store(true)
			_ = r.b.Kill()
		}
	}
	for i, queue := range []int{qTx, qDirect, qFan1, qFan2} {
		own := rand.New(rand.NewPCG(rng.Uint64(), 1))
		all := []place{to(r.h, rTx), to(r.h, rDirect), to(r.h, rFan)}
		r.start(fmt.Sprintf("transactions %d", i), func() error { return r.transact(queue, all, own) })
	}
	r.groups.Wait()
	return r.problem
}
