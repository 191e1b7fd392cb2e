package main

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ringmq/admin"
)

// appendProcessCounters appends what the process as a whole counts, under the names that
// Prometheus dashboards know. What cannot be read is left out rather than shown as zero.
func appendProcessCounters(out []admin.Counter, ioBackend, syncMode string, started time.Time) []admin.Counter {
	out = append(out, admin.Counter{
		Name: "ringmq_info", Kind: "gauge", Help: "Always 1; the labels tell version, network backend and --sync.", Value: 1,
		Labels: []admin.Label{{Name: "version", Value: version}, {Name: "io", Value: ioBackend}, {Name: "sync", Value: syncMode}},
	})
	add := func(name, kind, help string, v float64) {
		out = append(out, admin.Counter{Name: name, Help: help, Kind: kind, Value: v})
	}
	add("process_start_time_seconds", "gauge", "Start of the process in seconds since 1970, UTC.", float64(started.UnixMilli())/1e3)
	add("go_goroutines", "gauge", "Goroutines, those of the HTTP listener included.", float64(runtime.NumGoroutine()))
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	add("go_heap_objects_bytes", "gauge", "Bytes of the Go heap in objects.", float64(samples[0].Value.Uint64()))
	add("go_gc_cycles_total", "counter", "Garbage collections finished.", float64(samples[1].Value.Uint64()))
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err == nil {
		seconds := float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
		add("process_cpu_seconds_total", "counter", "Processor time of the process in seconds, user and system.", seconds)
	}
	if bytes, ok := residentBytes(); ok {
		add("process_resident_memory_bytes", "gauge", "Resident memory of the process in bytes.", float64(bytes))
	}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		add("process_open_fds", "gauge", "Open file descriptors of the process.", float64(len(list)-1)) // less the one that reads
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		add("process_max_fds", "gauge", "File descriptors that the process may open.", float64(limit.Cur))
	}
	return out
}

// residentBytes reads the second field of /proc/self/statm, which is in pages.
func residentBytes() (int64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
