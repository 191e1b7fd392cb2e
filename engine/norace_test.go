//go:build !race

package engine

const seedShare = 1
