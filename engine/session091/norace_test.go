//go:build !race

package session091

const seedShare = 1
