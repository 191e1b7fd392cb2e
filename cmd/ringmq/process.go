package main

import (
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"
)

// fileLimitLow is the number of descriptors under which a broker with many clients runs out.
const fileLimitLow = 65536

// raiseFileLimit lifts the soft limit on open files to the hard one: every connection is a
// descriptor, and the usual soft limit of 1024 is meant for programs that use select.
func raiseFileLimit(log *slog.Logger) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit on open files cannot be read", "error", err)
		return
	}
	if limit.Cur < limit.Max {
		raised := unix.Rlimit{Cur: limit.Max, Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil {
			log.Warn("the limit on open files cannot be raised", "limit", limit.Cur, "error", err)
		} else {
			limit = raised
		}
	}
	if limit.Cur < fileLimitLow {
		log.Warn("few open files are allowed: each connection takes one; raise the hard limit (ulimit -Hn, LimitNOFILE=)",
			"limit", limit.Cur, "wanted", fileLimitLow)
	}
}

// checkCores refuses processors that the process may not run on, before anything is opened.
func checkCores(o *serveOptions) error {
	if o.Cores == nil {
		return nil
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil // the loops will report it if pinning fails
	}
	for _, c := range o.Cores {
		if !allowed.IsSet(c) {
			return fmt.Errorf("%s: bad value %q: processor %d is not among those that this process may use (%s)",
				o.sources["cores"], o.Cores.String(), c, allowedCores(&allowed))
		}
	}
	return nil
}

func allowedCores(set *unix.CPUSet) string {
	var list coreList
	for c := range coreMax {
		if set.IsSet(c) {
			list = append(list, c)
		}
	}
	return list.String()
}
