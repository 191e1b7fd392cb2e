package bench

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// base is the zero of every stamp in this process.
var base = time.Now()

// nowNS is monotonic time since base, in nanoseconds.
func nowNS() int64 { return int64(time.Since(base)) }

// burstInterval is the shortest time between two sends. Above 20,000 sends a
// second the generator's wake-ups would themselves be the load on a small
// machine, so faster rates go out as bursts at this interval.
const burstInterval = 50 * time.Microsecond

// schedule is an open loop: send number i goes out at a time that depends on
// nothing but i.
type schedule struct {
	start int64   // ns since base
	rate  float64 // messages per second of this producer
	burst int64   // messages that share one send time
}

// newSchedule makes a schedule from start on for one of count producers that
// share rate, shifted so that they take turns.
func newSchedule(start int64, rate float64, index, count int) schedule {
	own := rate / float64(count)
	burst := max(1, int64(own*burstInterval.Seconds()+0.5))
	step := float64(burst) / own * 1e9
	return schedule{start: start + int64(step*float64(index)/float64(count)), rate: own, burst: burst}
}

// at is the intended send time of message i.
func (s schedule) at(i int64) int64 {
	return s.start + int64(float64(i-i%s.burst)/s.rate*1e9)
}

// due is how many messages should have been sent by now.
func (s schedule) due(now int64) int64 {
	if now < s.start {
		return 0
	}
	i := int64(float64(now-s.start)*s.rate/1e9) / s.burst * s.burst
	// Floating point may be one burst off either way.
	for s.at(i) <= now {
		i += s.burst
	}
	for i > 0 && s.at(i-s.burst) > now {
		i -= s.burst
	}
	return i
}

// margin learns how late the kernel wakes this thread, so that the sleep ends
// early enough and the busy wait after it stays short. It follows the 90th
// percentile of the oversleep: up nine steps when a wake-up came later than
// the margin, down one when earlier.
type margin struct {
	ns, max int64
}

const marginStep = 100 // ns

func (m *margin) learn(oversleep int64) {
	if oversleep > m.ns {
		m.ns += 9 * marginStep
	} else {
		m.ns -= marginStep
	}
	m.ns = min(max(m.ns, 0), m.max)
}

// pacer waits for send times on its own thread.
type pacer struct {
	margin margin
	spun   int64 // ns of busy waiting
}

// newPacer locks the calling goroutine to its thread and asks the kernel for
// the finest timers there (the default rounds up by 50 us). The same goroutine
// calls end.
func newPacer(spinMax time.Duration) *pacer {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return &pacer{margin: margin{ns: spinMax.Nanoseconds() / 2, max: spinMax.Nanoseconds()}}
}

// end gives the thread back as it was. It must not die with the goroutine: a
// started server may be tied to the life of the thread that forked it.
func (p *pacer) end() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // 0: the default
	runtime.UnlockOSThread()
}

// wait returns the time, at or after until. It sleeps for all but the margin.
func (p *pacer) wait(until int64) int64 {
	now := nowNS()
	if sleep := until - now - p.margin.ns; sleep > 0 {
		ts := unix.NsecToTimespec(sleep)
		_ = unix.Nanosleep(&ts, nil) // a signal only makes it shorter
		woke := nowNS()
		p.margin.learn(woke - now - sleep)
		now = woke
	}
	spinFrom := now
	for now < until {
		now = nowNS()
	}
	p.spun += now - spinFrom
	return now
}
