package bench

import (
	"testing"
	"time"
)

func TestScheduleDueMatchesAt(t *testing.T) {
	for _, rate := range []float64{1, 3, 333.3, 5000, 20000, 100000, 1e6, 7654321} {
		s := newSchedule(1000, rate, 0, 1)
		for _, i := range []int64{0, 1, 2, 999, 1e6, 123456789} {
			at := s.at(i)
			if due := s.due(at); due <= i {
				t.Errorf("rate %v: at its own time message %d is not due (%d are)", rate, i, due)
			}
			if due := s.due(at - 1); due > i {
				t.Errorf("rate %v: message %d is due before its time", rate, i)
			}
		}
	}
}

func TestScheduleKeepsTheRate(t *testing.T) {
	for _, c := range []struct {
		rate      float64
		producers int
	}{{20000, 1}, {20000, 3}, {1e6, 2}, {10, 4}} {
		var sent int64
		for i := range c.producers {
			sent += newSchedule(0, c.rate, i, c.producers).due(int64(100 * time.Second))
		}
		want := c.rate * 100
		if diff := float64(sent) - want; diff < -10 || diff > float64(c.producers)*60 {
			t.Errorf("%v msg/s over %d producers: %d in 100 s", c.rate, c.producers, sent)
		}
	}
}

func TestScheduleBursts(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int64
	}{{100, 1}, {20000, 1}, {100000, 5}, {1e6, 50}} {
		s := newSchedule(0, c.rate, 0, 1)
		if s.burst != c.burst {
			t.Errorf("%v msg/s: bursts of %d, want %d", c.rate, s.burst, c.burst)
		}
		if s.at(c.burst-1) != s.at(0) || s.at(c.burst) == s.at(0) {
			t.Errorf("%v msg/s: a burst shares one time and only one burst does", c.rate)
		}
	}
}

func TestScheduleTakesTurns(t *testing.T) {
	a, b := newSchedule(0, 1000, 0, 2), newSchedule(0, 1000, 1, 2)
	if a.at(0) != 0 || b.at(0) != int64(time.Millisecond) || a.at(1) != int64(2*time.Millisecond) {
		t.Errorf("two producers at 1000/s send at %d, %d, %d ns", a.at(0), b.at(0), a.at(1))
	}
	if a.due(-5) != 0 {
		t.Error("messages are due before the start")
	}
}

func TestMarginFollowsOversleep(t *testing.T) {
	m := margin{max: 20000}
	// Nine in ten wake-ups are 6 us late, the tenth 15.
	for i := range 10000 {
		late := int64(6000)
		if i%10 == 0 {
			late = 15000
		}
		m.learn(late)
	}
	if m.ns < 5000 || m.ns > 16000 {
		t.Errorf("margin %d ns", m.ns)
	}
	for range 10000 {
		m.learn(1e6)
	}
	if m.ns != m.max {
		t.Errorf("margin %d is not held at its maximum", m.ns)
	}
	for range 10000 {
		m.learn(0)
	}
	if m.ns > 10*marginStep {
		t.Errorf("margin %d does not come down", m.ns)
	}
}

func TestPacerNeverReturnsEarly(t *testing.T) {
	p := newPacer(20 * time.Microsecond)
	defer p.end()
	for range 50 {
		until := nowNS() + 200000
		if now := p.wait(until); now < until {
			t.Fatalf("woke %d ns early", until-now)
		}
	}
	if past := nowNS() - 1000; p.wait(past) < past {
		t.Error("a time in the past went backwards")
	}
}

func TestConfirmWindow(t *testing.T) {
	w := newConfirmWindow(5)
	w.publish(5, 100)
	if w.free() != 0 {
		t.Fatalf("%d free in a full window", w.free())
	}
	var seen []int64
	settle := func(tag uint64, multiple bool) int64 {
		return w.settle(confirm{tag: tag, multiple: multiple}, func(at int64) { seen = append(seen, at) })
	}
	if settle(2, false) != 1 || w.free() != 0 {
		t.Error("number 2 alone must not open the window: number 1 is still out")
	}
	if settle(2, false) != 0 || settle(9, false) != 0 || settle(0, false) != 0 {
		t.Error("repeated or unknown numbers settled something")
	}
	if settle(3, true) != 2 || w.free() != 3 || w.low != 3 {
		t.Errorf("after multiple 3: %d free, low %d", w.free(), w.low)
	}
	w.publish(3, 200)
	if settle(0, true) != 5 || w.free() != 5 || w.low != 8 {
		t.Errorf("multiple 0 settles all: %d free, low %d", w.free(), w.low)
	}
	want := []int64{100, 100, 100, 100, 100, 200, 200, 200}
	if len(seen) != len(want) {
		t.Fatalf("send times %v", seen)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("send times %v, want %v", seen, want)
		}
	}
}
