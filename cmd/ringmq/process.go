package main

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"
)

const (
	// fileLimitLow is the number of descriptors under which a broker with many clients runs out.
	fileLimitLow = 65536

	// fileLimitTiny is the number under which one with a few runs out.
	fileLimitTiny = 4096
)

// fileLimit is what raiseFileLimit found and did.
type fileLimit struct {
	limit uint64
	what  string // what failed; empty without an error
	err   error
}

// raiseFileLimit lifts the soft limit on open files to the hard one: every connection is a
// descriptor, and the usual soft limit of 1024 is meant for programs that use select.
func raiseFileLimit() fileLimit {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fileLimit{what: "the limit on open files cannot be read", err: err}
	}
	if limit.Cur < limit.Max {
		raised := unix.Rlimit{Cur: limit.Max, Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil {
			return fileLimit{limit.Cur, "the limit on open files cannot be raised", err}
		}
		limit = raised
	}
	return fileLimit{limit: limit.Cur}
}

// report logs what is worth it: a limit that is too low for anything as a warning, one that is
// too low for many clients as information.
func (f fileLimit) report(log *slog.Logger) {
	if f.err != nil {
		log.Warn(f.what, "limit", f.limit, "error", f.err)
		return
	}
	level := slog.LevelInfo
	if f.limit < fileLimitTiny {
		level = slog.LevelWarn
	}
	if f.limit < fileLimitLow {
		log.Log(context.Background(), level,
			"few open files are allowed: each connection takes one; raise the hard limit (ulimit -Hn, LimitNOFILE=) for many clients",
			"limit", f.limit, "wanted", fileLimitLow)
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
