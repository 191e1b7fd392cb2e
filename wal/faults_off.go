//go:build !faults

package wal

// faulty is where a build for tests puts failing calls between a log and its folder.
func faulty(d Disk) (Disk, error) { return d, nil }
