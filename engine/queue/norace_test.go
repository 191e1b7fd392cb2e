//go:build !race

package queue

const seedShare = 1
