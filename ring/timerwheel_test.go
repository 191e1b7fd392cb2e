package ring

import (
	"math"
	"math/rand/v2"
	"testing"
)

const tickNS = 1 << timerTickBits

// wheelModel is the slow obvious counterpart: it knows of each timer only for
// when it was armed.
type wheelModel struct {
	t      *testing.T
	rng    *rand.Rand
	wheel  timerWheel
	timers []Timer
	due    []int64 // moment asked for, -1 if not armed
	tick   []int64 // the tick in which it must fire
	order  []int   // fired in this advance
	now    int64
	inside bool // within advance
	late   []bool
}

func newWheelModel(t *testing.T, seed uint64, count int) *wheelModel {
	m := &wheelModel{t: t, rng: rand.New(rand.NewPCG(seed, 9)), timers: make([]Timer, count),
		due: make([]int64, count), tick: make([]int64, count), late: make([]bool, count), now: int64(seed) * 123_456_789}
	m.wheel.init(m.now)
	for i := range m.timers {
		m.due[i] = -1
		m.timers[i].Fire = func(now int64) { m.fired(i, now) }
	}
	return m
}

func (m *wheelModel) fired(i int, now int64) {
	switch {
	case m.due[i] < 0:
		m.t.Fatalf("timer %d fired but is not armed", i)
	case now < m.due[i]:
		m.t.Fatalf("timer %d fired at %d, asked for %d", i, now, m.due[i])
	case m.late[i]:
		m.t.Fatalf("timer %d was armed by a Fire and fired in the same advance", i)
	case now != m.now || m.timers[i].Armed():
		m.t.Fatalf("timer %d: now %d of %d, armed %v", i, now, m.now, m.timers[i].Armed())
	}
	m.due[i] = -1
	m.order = append(m.order, i)
	for m.rng.IntN(2) == 0 {
		m.change()
	}
	if m.rng.IntN(4) == 0 {
		m.arm(i, now-5)
	}
}

func (m *wheelModel) arm(i int, at int64) {
	m.wheel.arm(&m.timers[i], at)
	m.due[i] = max(at, 0)
	m.late[i] = m.inside
	soonest := m.now / tickNS
	if m.inside {
		soonest++
	}
	m.tick[i] = max((m.due[i]+tickNS-1)/tickNS, soonest)
}

// change arms or disarms some timer.
func (m *wheelModel) change() {
	i := m.rng.IntN(len(m.timers))
	if m.rng.IntN(3) == 0 {
		m.wheel.disarm(&m.timers[i])
		m.due[i] = -1
		return
	}
	m.arm(i, m.now-2*tickNS+m.rng.Int64N(1<<(10+m.rng.IntN(40))))
}

// check compares what the wheel says of itself with the list.
func (m *wheelModel) check() {
	earliest := int64(math.MaxInt64)
	for i, at := range m.due {
		if m.timers[i].Armed() != (at >= 0) {
			m.t.Fatalf("timer %d: armed %v, due %d", i, m.timers[i].Armed(), at)
		}
		if at >= 0 {
			earliest = min(earliest, at)
		}
	}
	next := m.wheel.next()
	switch {
	case earliest == math.MaxInt64:
		if next != -1 {
			m.t.Fatalf("next = %d with nothing armed", next)
		}
	case next < 0 || next > max(earliest, m.now)+tickNS:
		m.t.Fatalf("next = %d, earliest %d, now %d", next, earliest, m.now)
	}
}

func (m *wheelModel) advance(to int64) {
	m.now, m.order, m.inside = to, m.order[:0], true
	clear(m.late)
	before := append([]int64(nil), m.tick...)
	m.wheel.advance(to)
	m.inside = false
	for i, at := range m.due {
		if at >= 0 && (m.tick[i] <= to/tickNS) {
			m.t.Fatalf("timer %d, due %d, tick %d, did not fire at %d", i, at, m.tick[i], to)
		}
	}
	// In the order of ticks, and none early. One that was armed anew after it had
	// fired has a new tick by now, which is why the old ones count.
	last := int64(0)
	for _, i := range m.order {
		if before[i] < last || before[i] > to/tickNS {
			m.t.Fatalf("timer %d of tick %d fired after tick %d at %d", i, before[i], last, to)
		}
		last = before[i]
	}
}

func TestTimerWheelModel(t *testing.T) {
	for seed := range uint64(20) {
		m := newWheelModel(t, seed, 60)
		for range 3000 {
			for m.rng.IntN(4) != 0 {
				m.change()
			}
			m.check()
			to := m.now
			switch m.rng.IntN(4) {
			case 0:
				to += m.rng.Int64N(3 * tickNS)
			case 1:
				to += m.rng.Int64N(1 << (10 + m.rng.IntN(38)))
			case 2:
				to = max(to, m.wheel.next())
			}
			m.advance(to)
			m.check()
		}
	}
}

func TestTimerWheelOrder(t *testing.T) {
	var w timerWheel
	w.init(7 * tickNS)
	var got []int
	at := []int64{900, 3, 64, 3, 65, 5000, 4096, 8, 100_000, 3}
	timers := make([]Timer, len(at))
	for i := range timers {
		timers[i].Fire = func(int64) { got = append(got, i) }
		w.arm(&timers[i], (7+at[i])*tickNS)
	}
	w.advance((7 + 200_000) * tickNS)
	want := []int{1, 3, 9, 7, 2, 4, 0, 6, 5, 8}
	if len(got) != len(want) {
		t.Fatalf("fired %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("fired %v, want %v", got, want)
		}
	}
}

// A Fire takes another that is due in the same tick out, and moves a third.
func TestTimerWheelFireChangesOthers(t *testing.T) {
	var w timerWheel
	w.init(0)
	var timers [3]Timer
	var count [3]int
	timers[0].Fire = func(now int64) {
		count[0]++
		w.disarm(&timers[1])
		w.arm(&timers[2], now)
		w.arm(&timers[0], 0)
	}
	timers[1].Fire = func(int64) { count[1]++ }
	timers[2].Fire = func(int64) { count[2]++ }
	for i := range timers {
		w.arm(&timers[i], tickNS)
	}
	w.advance(tickNS)
	if count != [3]int{1, 0, 0} {
		t.Fatalf("first turn: %v", count)
	}
	if w.next() > tickNS*2 {
		t.Fatalf("next = %d", w.next())
	}
	w.advance(2 * tickNS)
	if count != [3]int{2, 0, 1} || !timers[0].Armed() || !timers[2].Armed() {
		t.Fatalf("second turn: %v", count)
	}
	w.disarm(&timers[0])
	w.advance(3 * tickNS)
	if count != [3]int{2, 0, 2} || w.next() != -1 {
		t.Fatalf("third turn: %v, next %d", count, w.next())
	}
}

// Extremes: before the clock's zero, the end of time, a clock that stands or
// goes back.
func TestTimerWheelExtremes(t *testing.T) {
	var w timerWheel
	w.init(50 * tickNS)
	fired := 0
	far := Timer{Fire: func(int64) { fired++ }}
	past := Timer{Fire: func(int64) { fired++ }}
	w.arm(&far, math.MaxInt64)
	if next := w.next(); next < 50*tickNS {
		t.Fatalf("next = %d", next)
	}
	w.arm(&past, math.MinInt64)
	if next := w.next(); next > 50*tickNS {
		t.Fatalf("next = %d", next)
	}
	w.advance(10 * tickNS)
	if fired != 0 {
		t.Fatal("fired though the clock went back")
	}
	w.advance(50 * tickNS)
	if fired != 1 || past.Armed() || !far.Armed() {
		t.Fatalf("fired %d", fired)
	}
	w.disarm(&past)
	w.disarm(&far)
	w.disarm(&far)
	if w.next() != -1 {
		t.Fatal("something is still armed")
	}
}

// Sleeping until next, as a loop does, reaches a far timer in a few wakes.
func TestTimerWheelWakesSeldom(t *testing.T) {
	var w timerWheel
	w.init(1)
	fired := int64(0)
	timer := Timer{Fire: func(now int64) { fired = now }}
	const at = int64(3600e9 + 12345)
	w.arm(&timer, at)
	wakes := 0
	for fired == 0 {
		w.advance(w.next())
		wakes++
	}
	if wakes > timerRows || fired < at || fired >= at+tickNS {
		t.Fatalf("%d wakes, fired at %d", wakes, fired)
	}
}

func TestAllocsTimerWheel(t *testing.T) {
	var w timerWheel
	w.init(0)
	now := int64(0)
	timers := make([]Timer, 1000)
	for i := range timers {
		timers[i].Fire = func(now int64) { w.arm(&timers[i], now+int64(i)*1e6) }
		w.arm(&timers[i], int64(i)*1e6)
	}
	if got := testing.AllocsPerRun(1000, func() {
		now += 3e6
		w.advance(now)
		w.disarm(&timers[5])
		w.arm(&timers[5], now+1e9)
		w.next()
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// A hundred thousand heartbeats that are moved on and never fire.
func BenchmarkTimerWheelHeartbeats(b *testing.B) {
	var w timerWheel
	w.init(0)
	timers := make([]Timer, 100_000)
	for i := range timers {
		timers[i].Fire = func(int64) { b.Error("fired") }
		w.arm(&timers[i], 60e9+int64(i)*1000)
	}
	now, i := int64(0), 0
	for b.Loop() {
		now += 10_000
		w.arm(&timers[i], now+60e9)
		w.advance(now)
		if i++; i == len(timers) {
			i = 0
		}
	}
}

func BenchmarkTimerWheelArmDisarm(b *testing.B) {
	var w timerWheel
	w.init(0)
	var t Timer
	for b.Loop() {
		w.arm(&t, 30e9)
		w.disarm(&t)
	}
}

func BenchmarkTimerWheelIdleTurn(b *testing.B) {
	var w timerWheel
	w.init(0)
	var t Timer
	w.arm(&t, 1<<62)
	now := int64(0)
	for b.Loop() {
		now += 100
		w.advance(now)
		if w.next() < 0 {
			b.Fatal("lost")
		}
	}
}
