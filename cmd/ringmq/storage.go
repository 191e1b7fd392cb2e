package main

import (
	"time"

	"ringmq/engine/defs"
)

// openDefinitions opens the catalog of vhosts, exchanges, queues and bindings, and makes it
// when it is missing. syncMode is --sync: only "off" spares the definitions the disk's answer,
// they are too few to gain from an interval. fatal is told when writing them has failed for
// good, trouble when there is no room for them and, with nil, when there is again.
func openDefinitions(path, syncMode string, fatal, trouble func(error)) (*defs.Store, error) {
	return defs.Open(path, defs.Options{
		NoSync:  syncMode == "off",
		Fatal:   fatal,
		Trouble: trouble,
		After:   time.After,
	})
}
