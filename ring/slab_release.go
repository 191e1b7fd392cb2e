//go:build !invariants

package ring

// slabChecks is false: released blocks are left as they are.
const slabChecks = false

func slabPoison(*blockHeader) {}

func slabCheckPoison(*blockHeader, uintptr) {}
