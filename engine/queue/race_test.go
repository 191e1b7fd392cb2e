//go:build race

package queue

// seedShare divides the number of seeds: under the race detector each takes ten
// times as long.
const seedShare = 10
