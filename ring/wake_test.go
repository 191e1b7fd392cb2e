package ring

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestPost: functions posted by many goroutines all run, each goroutine's in order.
func TestPost(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, _ := startGroup(t, o, &testApp{})
		const posters, each = 8, 2_000
		var next [posters]int
		var wg sync.WaitGroup
		for p := range posters {
			wg.Go(func() {
				for i := range each {
					ok := g.loops[0].Post(func() {
						if next[p] != i {
							t.Errorf("poster %d: %d ran in place of %d", p, i, next[p])
						}
						next[p]++
					})
					if !ok {
						t.Error("Post refused")
					}
					if i%100 == 0 { // let the loop fall asleep now and then
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		onLoop(t, g.loops[0], func() {
			for p, n := range next {
				if n != each {
					t.Errorf("poster %d: %d of %d ran", p, n, each)
				}
			}
		})
	})
}

// TestWakeBetweenLoops bounces a counter between two loops by mailboxes. A lost wake-up would end it.
func TestWakeBetweenLoops(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		const rounds = 20_000
		boxes := [2]*Mailbox[int]{NewMailbox[int](8), NewMailbox[int](8)} // by receiver
		done := make(chan struct{})
		var staged [2]bool
		app := &testApp{}
		app.turn = func(l *Loop) bool {
			in, out := boxes[l.index], boxes[1-l.index]
			var v int
			for in.Pop(&v) {
				if v == rounds {
					close(done)
					break
				}
				v++
				staged[l.index] = out.Push(&v)
			}
			in.Done()
			return false
		}
		app.beforeSleep = func(l *Loop) {
			if staged[l.index] {
				staged[l.index] = false
				boxes[1-l.index].Flush()
				l.group.loops[1-l.index].Wake()
			}
		}
		g, _ := startGroup(t, o, app)
		start := time.Now()
		g.loops[0].Post(func() {
			first := 1
			staged[0] = boxes[1].Push(&first)
		})
		await(t, done, "the end of the bouncing")
		s := g.loops[0].Stats()
		t.Logf("%v per hop, %d sleeps, %d bells in %d turns", time.Since(start)/rounds, s.Sleeps, s.Bells, s.Turns)
		if s.Bells > s.Turns {
			t.Errorf("%d bells for %d turns: more than one per sleep", s.Bells, s.Turns)
		}
	})
}

// TestTimers: timers fire on a loop that is otherwise asleep, never early, and stay quiet when disarmed.
func TestTimers(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, _ := startGroup(t, o, &testApp{})
		l := g.loops[1]
		fired := make(chan int, 10)
		timers := make([]Timer, 4)
		onLoop(t, l, func() {
			base := l.Now()
			for i, ms := range []int64{30, 5, 60, 15} {
				at := base + ms*1e6
				timers[i].Fire = func(now int64) {
					if now < at || l.Now() != now {
						t.Errorf("timer %d fires %d ns early (loop at %d, now %d)", i, at-now, l.Now(), now)
					}
					fired <- i
				}
				l.Arm(&timers[i], at)
			}
			l.Disarm(&timers[3])
			if timers[3].Armed() || !timers[0].Armed() {
				t.Error("Armed is wrong")
			}
		})
		for _, want := range []int{1, 0, 2} {
			if got := await(t, fired, "a timer"); got != want {
				t.Errorf("timer %d fired in place of %d", got, want)
			}
		}
		onLoop(t, l, func() {})
		if len(fired) != 0 {
			t.Error("a disarmed timer fired")
		}
	})
}

// TestIdleLoopSleeps: a loop without work makes no turns.
func TestIdleLoopSleeps(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, _ := startGroup(t, o, &testApp{})
		onLoop(t, g.loops[1], func() {})
		before := g.loops[1].Stats().Turns
		time.Sleep(50 * time.Millisecond)
		if n := g.loops[1].Stats().Turns - before; n > 10 {
			t.Errorf("an idle loop made %d turns in 50 ms", n)
		}
	})
}

// TestTurnIsRepeated: more = true keeps the loop turning without any event.
func TestTurnIsRepeated(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		var left atomic.Int64
		done := make(chan struct{})
		app := &testApp{turn: func(l *Loop) bool {
			if l.index != 0 || left.Load() == 0 {
				return false
			}
			if left.Add(-1) == 0 {
				close(done)
			}
			return true
		}}
		g, _ := startGroup(t, o, app)
		g.loops[0].Post(func() { left.Store(1000) })
		await(t, done, "the last turn")
	})
}

// TestSpin: with a budget and a free core the loop finds quick answers without blocking.
func TestSpin(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		o.Cores, o.Spin = []int{0}, 2*time.Millisecond
		g, addr := startGroup(t, o, &testApp{accept: func(*Loop, *Conn) Handler { return &echo{} }})
		if g.spinNS == 0 {
			t.Skip("a single core: spinning is off")
		}
		c := dial(t, addr)
		for i := range 500 {
			p := pattern(10, i)
			c.Write(p)
			mustRead(t, c, 10)
		}
		if s := g.loops[0].Stats(); s.Bells+s.Sleeps == 0 {
			t.Errorf("the loop never tried to sleep: %+v", s)
		}
	})
}

func TestSpinIsOffWithoutAFreeCore(t *testing.T) {
	allowed, err := allowedCores()
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Options{Cores: allowed, Spin: time.Second}, &testApp{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Shutdown(t.Context())
	if g.spinNS != 0 {
		t.Error("as many loops as cores, and they would spin")
	}
}
