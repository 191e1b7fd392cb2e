//go:build race

package exchange

// poolsForget says that sync.Pool drops values at random, as it does under the
// race detector: then borrowed tables cost allocations now and then.
const poolsForget = true
