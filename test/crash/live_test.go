package crash

import (
	"math/rand/v2"
	"testing"
	"time"

	"ringmq/test/harness"
)

// TestLive runs the load of the other tests on a broker that nothing happens to. What the check finds here is no
// matter of durability; and a check that is too strict for a living broker is found out.
func TestLive(t *testing.T) {
	for _, backend := range harness.Backends() {
		t.Run(backend, func(t *testing.T) {
			if why := harness.Refused(backend); why != "" {
				t.Skip(why)
			}
			seed := firstSeed(t)
			t.Logf("seed %d", seed)
			h := topology(seed)
			b, err := harness.Launch(harness.Options{Backend: backend, Cores: "0,1", Data: folder(t), HTTP: "off"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Kill() })
			if err := declare(h, b, false); err != nil {
				t.Fatal(err)
			}
			r := newRun(h, b)
			load(r, rand.New(rand.NewPCG(seed, 4)), 0)
			// The load has no end of its own: a little of everything, however slow the machine is.
			for end := time.Now().Add(clientsMax); time.Now().Before(end) && (h.Seen(Rejected) < 20 || h.Seen(Requeued) < 20 || h.Seen(Confirmed) < 1000); {
				time.Sleep(20 * time.Millisecond)
			}
			r.end(t, nil)
			drain(t, h, b)
			if err := b.Stop(); err != nil {
				t.Fatalf("stopping: %v\n%s", err, b.Output())
			}
			report := h.Check()
			if text := h.Error(report); text != "" {
				t.Fatal(text)
			}
			c := report.Counts
			t.Logf("%+v", c)
			if c.Unanswered > 0 || c.Vanished > 0 || c.Nacked > 0 || c.Drained == 0 || c.DeadLettered == 0 || c.Requeued == 0 {
				t.Errorf("not what a living broker does: %+v", c)
			}
		})
	}
}
