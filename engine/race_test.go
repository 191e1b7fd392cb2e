//go:build race

package engine

// seedShare divides the number of seeds: under the race detector each takes ten
// times as long.
const seedShare = 10
