//go:build !race

package exchange

const poolsForget = false
