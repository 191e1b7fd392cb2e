package wal_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage gather: the simulated disks are made and thrown away by the
// thousand, and memory is not what these tests are short of.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
