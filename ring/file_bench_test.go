package ring

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// benchFileSize is what the benchmarks write over, again and again, as a log does with a recycled segment.
const benchFileSize = 16 << 20

var benchWriteSizes = []int{4 << 10, 64 << 10, 256 << 10}

// reportMedian reports the median of times as p50-us.
func reportMedian(b *testing.B, times []int64) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2])/1e3, "p50-us")
	b.ReportMetric(float64(times[len(times)*99/100])/1e3, "p99-us")
}

// BenchmarkWriteFile: one durable write at a time on a loop, with nothing else to do and with a loop that
// always has more to do, beside a thread that does the same with system calls.
func BenchmarkWriteFile(b *testing.B) {
	for _, open := range []struct {
		name  string
		flags int
	}{{"direct", unix.O_RDWR | unix.O_DIRECT}, {"buffered", unix.O_RDWR}} {
		for _, size := range benchWriteSizes {
			name := fmt.Sprintf("%s/%dKiB", open.name, size>>10)
			b.Run(name+"/loop", func(b *testing.B) { benchWriteLoop(b, open.flags, size, false) })
			b.Run(name+"/busyloop", func(b *testing.B) { benchWriteLoop(b, open.flags, size, true) })
			b.Run(name+"/syscalls", func(b *testing.B) { benchWriteSyscalls(b, open.flags, size) })
		}
	}
}

func benchWriteLoop(b *testing.B, flags, size int, busy bool) {
	needBackend(b, "uring")
	allowed, err := allowedCores()
	if err != nil {
		b.Fatal(err)
	}
	fd, _ := testFile(b, benchFileSize, flags)
	buf := mapped(b, size)
	copy(buf, pattern(size, 1))
	var running bool // the loop's
	app := &testApp{turn: func(*Loop) bool { return busy && running }}
	o := Options{Cores: allowed[len(allowed)-1:], Pin: true, Backend: "uring", Spin: 50 * time.Microsecond}
	g, _ := startGroup(b, o, app)
	l := g.loops[0]
	times := make([]int64, 0, b.N)
	done := make(chan error, 1)
	b.SetBytes(int64(size))
	b.ResetTimer()
	l.Post(func() {
		running = true
		var next func(error)
		started := int64(0)
		next = func(err error) {
			now := g.clock.now()
			if started != 0 {
				times = append(times, now-started)
			}
			if len(times) == b.N || err != nil {
				running = false
				done <- err
				return
			}
			started = now
			l.WriteFile(fd, int64(len(times)*size%benchFileSize), buf, true, next)
		}
		next(nil)
	})
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	reportMedian(b, times)
}

func benchWriteSyscalls(b *testing.B, flags, size int) {
	fd, _ := testFile(b, benchFileSize, flags)
	buf := mapped(b, size)
	copy(buf, pattern(size, 1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	times := make([]int64, 0, b.N)
	clock := newClock(nil)
	b.SetBytes(int64(size))
	b.ResetTimer()
	for i := range b.N {
		start := clock.now()
		if _, err := unix.Pwrite(fd, buf, int64(i*size%benchFileSize)); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(fd); err != nil {
			b.Fatal(err)
		}
		times = append(times, clock.now()-start)
	}
	b.StopTimer()
	reportMedian(b, times)
}
