package ring

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// allowedCores lists the processors that this process may use.
func allowedCores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("ring: reading the processor affinity: %w", err)
	}
	var cores []int
	for i := 0; len(cores) < set.Count(); i++ {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores, nil
}

// pinThread binds the calling thread to one processor.
func pinThread(core int) error {
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("ring: pinning a loop to core %d: %w", core, err)
	}
	return nil
}

// checkCores verifies that every wanted core is allowed.
func checkCores(wanted, allowed []int) error {
	for _, w := range wanted {
		found := false
		for _, a := range allowed {
			found = found || a == w
		}
		if !found {
			return fmt.Errorf("ring: core %d is not available to this process (available: %v)", w, allowed)
		}
	}
	return nil
}

// loopSliceNS is the scheduling slice that a loop's thread asks for. A short slice does not mean less
// processor time; it means an earlier turn: since Linux 6.12 a thread that wakes with a shorter slice
// goes before one in the middle of a longer. Older kernels ignore it.
const loopSliceNS = 100_000

// askShortSlice requests it for the calling thread. There is nothing to do when it is refused.
func askShortSlice() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return
	}
	attr.Runtime = loopSliceNS
	_ = unix.SchedSetAttr(0, attr, 0)
}
