//go:build race

package session091

// seedShare divides the number of seeds: under the race detector each takes ten
// times as long.
const seedShare = 8
