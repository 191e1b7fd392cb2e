package conformance

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"ringmq/test/harness"
)

// waitMax bounds every wait for an event that must come.
const waitMax = 15 * time.Second

func TestMain(m *testing.M) { harness.Main(m) }

var uniqueCount atomic.Uint64

// unique is a name that no other test of this or an earlier run uses.
func unique(prefix string) string {
	return fmt.Sprintf("%s-%x-%x", prefix, os.Getpid(), uniqueCount.Add(1))
}

// eventually polls a condition that has no event to wait for, such as a count in another connection's queue.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(waitMax)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", waitMax, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
