package main

import (
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryLimit is how much memory the process may hold: bytes, or, when negative, a share of what
// there is, in percent.
type memoryLimit int64

// memoryLimitMin is the least that the broker can work with: buffers of connections, the Go runtime
// and a few messages.
const memoryLimitMin = 64 << 20

func parseMemoryLimit(text string) (memoryLimit, error) {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseUint(share, 10, 8)
		if err != nil || n < 1 || n > 100 {
			return 0, errShape
		}
		return -memoryLimit(n), nil
	}
	n, err := parseByteSize(text)
	if err != nil {
		return 0, err
	}
	if n < memoryLimitMin {
		return 0, fmt.Errorf("want at least %s", byteSize(memoryLimitMin))
	}
	return memoryLimit(n), nil
}

// String is the limit as the flag takes it.
func (m memoryLimit) String() string {
	if m < 0 {
		return strconv.FormatInt(int64(-m), 10) + "%"
	}
	return byteSize(m).String()
}

// bytes is the limit of a process that has that much memory to itself; a share of too little is the
// least that works, so that the default always starts.
func (m memoryLimit) bytes(total int64) int64 {
	if m >= 0 {
		return int64(m)
	}
	return max(total/100*int64(-m), memoryLimitMin)
}

// limits are the limits that o asks for, in bytes.
func (b *broker) limits(o *serveOptions) (limits, error) {
	total, err := memoryTotal("")
	if err != nil && o.MemoryLimit < 0 {
		return limits{}, err
	}
	lim := limits{memory: o.MemoryLimit.bytes(total), disk: int64(o.DiskFreeLimit)}
	if err == nil && lim.memory > total {
		b.log.Warn("the memory limit is more than there is: the system may end the broker before it is reached",
			"memory_limit", byteText(lim.memory), "memory", byteText(total))
	}
	return lim, nil
}

// limitGoHeap makes the garbage collector work harder before its leavings crowd out messages, which
// lie outside of its heap. An operator's own GOMEMLIMIT stands.
func limitGoHeap(limit int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 2)
	}
}

// memoryTotal is what the process may use at most: the machine's memory, or the limit of its control
// group or of one above it. root is where proc and sys are; tests have their own.
func memoryTotal(root string) (int64, error) {
	text, err := os.ReadFile(root + "/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("how much memory there is cannot be read: %w; give --memory-limit as a size", err)
	}
	total := int64(0)
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kib); err == nil {
			total = kib << 10
		}
	}
	if total == 0 {
		return 0, fmt.Errorf("%s/proc/meminfo has no MemTotal; give --memory-limit as a size", root)
	}
	groups, err := os.ReadFile(root + "/proc/self/cgroup")
	if err != nil {
		return total, nil // a system without control groups
	}
	for line := range strings.Lines(strings.TrimSpace(string(groups))) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		switch {
		case parts[1] == "": // version 2
			total = min(total, groupLimit(root+"/sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			total = min(total, groupLimit(root+"/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return total, nil
}

// groupLimit is the least limit of a control group and those above it. Inside of a container the
// group's path may be that of the outside, which is not there; its top is then the group itself.
func groupLimit(top, group, file string) int64 {
	least := int64(1<<63 - 1)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		text, err := os.ReadFile(top + path.Join(at, file))
		if err == nil {
			// "max" is no number and no limit.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
		}
		if at == "/" {
			return least
		}
	}
}
