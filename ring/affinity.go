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
