package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ringmq/engine"
)

// fakeTarget is an engine that remembers what it was told.
type fakeTarget struct {
	calls  []string
	budget int64
}

func (f *fakeTarget) SetAlarm(a engine.Alarm, on bool) {
	f.calls = append(f.calls, fmt.Sprintf("%s %v", a, on))
}
func (f *fakeTarget) SetMemoryBudget(bytes int64)         { f.budget = bytes }
func (f *fakeTarget) StorageStats() []engine.StorageStats { return nil }

// watched is a watcher whose world is made of numbers.
type watched struct {
	*watcher
	target *fakeTarget
	log    *bytes.Buffer
	used   int64
	held   int64
	free   int64
	failed error
	looks  int // at the disk
}

func newWatched(lim limits) *watched {
	w := &watched{target: &fakeTarget{}, log: &bytes.Buffer{}}
	w.watcher = &watcher{
		log: slog.New(slog.NewTextHandler(w.log, nil)), target: w.target,
		resident: func() (int64, bool) { return w.used, true },
		held:     func() int64 { return w.held },
		free:     func() (int64, error) { w.looks++; return w.free, w.failed },
		warned:   map[int]time.Time{}, stop: make(chan struct{}),
	}
	w.setLimits(lim)
	return w
}

func (w *watched) took() string {
	text := strings.Join(w.target.calls, ", ")
	w.target.calls = nil
	return text
}

func TestWatchMemory(t *testing.T) {
	w := newWatched(limits{memory: 1000})
	w.free = 1
	for _, c := range []struct {
		used, limit int64
		want        string
		names       int
	}{
		{900, 1000, "", 0},
		{1000, 1000, "", 0},
		{1001, 1000, "low on memory true", 1},
		{1001, 1000, "", 1},
		{930, 1000, "", 1}, // not far enough below
		{929, 1000, "low on memory false", 0},
		{990, 1000, "", 0},
		{990, 900, "low on memory true", 1}, // a new limit
		{990, 2000, "low on memory false", 0},
	} {
		w.used = c.used
		w.setLimits(limits{memory: c.limit})
		w.look(time.Time{})
		if got := w.took(); got != c.want || len(w.names()) != c.names {
			t.Fatalf("%d of %d used: told %q, %v; want %q", c.used, c.limit, got, w.names(), c.want)
		}
	}
	if got := strings.Count(w.log.String(), "alarm raised"); got != 2 {
		t.Errorf("%d lines of raised alarms, want 2:\n%s", got, w.log)
	}
	if got := strings.Count(w.log.String(), "alarm cleared"); got != 2 {
		t.Errorf("%d lines of cleared alarms, want 2:\n%s", got, w.log)
	}
}

func TestMemoryBudget(t *testing.T) {
	for _, c := range []struct{ limit, used, held, want int64 }{
		{1000, 100, 0, 750},    // 850 less what is not messages
		{1000, 600, 500, 750},  // messages do not count against themselves
		{1000, 500, 600, 850},  // not all that is held is resident
		{1000, 900, 0, 250},    // the least
		{1000, 5000, 100, 250}, // as well
	} {
		if got := memoryBudget(c.limit, c.used, c.held); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	w := newWatched(limits{memory: 1000})
	w.used, w.held = 600, 500
	w.look(time.Time{})
	if w.target.budget != 750 {
		t.Errorf("the engine was told %d", w.target.budget)
	}
}

func TestWatchDisk(t *testing.T) {
	w := newWatched(limits{memory: 1000, disk: 100})
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		free, limit int64
		failed      error
		want        string
	}{
		{1000, 100, nil, ""},
		{100, 100, nil, ""},
		{99, 100, nil, "low on disk true"},
		{98, 100, nil, ""},
		{104, 100, nil, ""}, // not far enough above
		{0, 100, errors.New("stale"), ""},
		{0, 100, errors.New("stale"), ""},
		{105, 100, nil, "low on disk false"},
		{105, 500, nil, "low on disk true"}, // a new limit
		{105, 0, nil, "low on disk false"},  // off
		{0, 0, nil, ""},
	} {
		w.free, w.failed = c.free, c.failed
		w.setLimits(limits{memory: 1000, disk: c.limit})
		now = now.Add(diskEvery)
		w.look(now)
		if got := w.took(); got != c.want {
			t.Fatalf("%d free of %d: told %q, want %q", c.free, c.limit, got, c.want)
		}
	}
	if got := strings.Count(w.log.String(), "cannot be read"); got != 1 {
		t.Errorf("%d lines about a disk that cannot be asked, want 1", got)
	}
}

// A disk with room is asked once a second, one that is nearly full each time.
func TestWatchDiskPace(t *testing.T) {
	for _, c := range []struct {
		free int64
		want int
	}{{200, 1}, {199, 10}} {
		w := newWatched(limits{memory: 1000, disk: 100})
		w.free = c.free
		now := time.Unix(1000, 0)
		for range 10 {
			w.look(now)
			now = now.Add(watchEvery)
		}
		if w.looks != c.want {
			t.Errorf("%d free: %d looks in a second, want %d", c.free, w.looks, c.want)
		}
	}
}

func TestWatchLogs(t *testing.T) {
	w := newWatched(limits{memory: 1000})
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		after    time.Duration
		inFlight [2]time.Duration
		warnings int
		stalled  bool
	}{
		{0, [2]time.Duration{time.Second, 0}, 0, false},
		{time.Second, [2]time.Duration{2 * time.Second, 0}, 1, false},
		{time.Second, [2]time.Duration{3 * time.Second, 0}, 0, false},
		{time.Second, [2]time.Duration{4 * time.Second, 2 * time.Second}, 1, false}, // another log
		{27 * time.Second, [2]time.Duration{31 * time.Second, 0}, 0, true},
		{time.Second, [2]time.Duration{32 * time.Second, 0}, 0, true},
		{31 * time.Second, [2]time.Duration{63 * time.Second, 0}, 1, true},
		{time.Second, [2]time.Duration{0, 0}, 0, false},
	} {
		now = now.Add(c.after)
		w.log.Reset()
		w.lookAtLogs(now, []engine.StorageStats{{Loop: 0, InFlight: c.inFlight[0]}, {Loop: 1, InFlight: c.inFlight[1]}})
		if got := strings.Count(w.log.String(), "the disk is slow"); got != c.warnings || w.stalled.Load() != c.stalled {
			t.Fatalf("%+v: %d warnings, stalled %v:\n%s", c, got, w.stalled.Load(), w.log)
		}
	}
	if got := w.took(); got != "" {
		t.Errorf("a slow disk told the engine %q: it must block nobody", got)
	}
}

// The watcher asks the real world once before it starts, and ends when it is told to.
func TestWatcherLooksAtOnce(t *testing.T) {
	target := &fakeTarget{}
	w := newWatcher(target, t.TempDir(), func() int64 { return 0 },
		limits{memory: 1 << 50, disk: 1 << 61}, slog.New(slog.DiscardHandler))
	if got := strings.Join(target.calls, ", "); got != "low on disk true" {
		t.Errorf("told %q before the start", got)
	}
	if w.used.Load() <= 0 || w.room.Load() <= 0 || target.budget <= 0 {
		t.Errorf("used %d, free %d, budget %d", w.used.Load(), w.room.Load(), target.budget)
	}
	w.start()
	w.close()
	w.close()
}
