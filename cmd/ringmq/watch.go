package main

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ringmq/engine"
)

const (
	watchEvery = 100 * time.Millisecond // memory, and the disk when it is nearly full
	diskEvery  = time.Second            // the disk otherwise
	stallEvery = time.Second

	// stallWarn and stallAlarm are how long one write or sync of a log may take before the operator
	// reads of it, and before the broker calls itself not ready.
	stallWarn    = time.Second
	stallAlarm   = 30 * time.Second
	stallWarnGap = time.Minute // between two warnings about one log
)

// limits are what SIGHUP can change while the watcher runs.
type limits struct {
	memory int64 // bytes of resident memory
	disk   int64 // bytes that stay free; 0 = off
}

// watchTarget is what the watcher reads and steers; *engine.Broker but in tests.
type watchTarget interface {
	SetAlarm(a engine.Alarm, on bool)
	SetMemoryBudget(bytes int64)
	StorageStats() []engine.StorageStats
}

// watcher looks at memory, disk and the logs, and raises and clears alarms.
type watcher struct {
	log      *slog.Logger
	target   watchTarget
	resident func() (bytes int64, ok bool) // memory of the process
	held     func() int64                  // of it, in use for messages
	free     func() (bytes int64, err error)

	limits  atomic.Pointer[limits]
	used    atomic.Int64 // resident bytes at the last look
	room    atomic.Int64 // free bytes at the last look
	alarms  atomic.Uint32
	stalled atomic.Bool

	diskDue    time.Time
	diskFailed bool
	warned     map[int]time.Time // last stall warning of a log

	gone func() bool // the data folder is not there any more; may be nil
	lost func()      // told of that; does not return

	stop chan struct{}
	done sync.WaitGroup
}

// newWatcher makes a watcher for the folder and has the first look, so that what is short already is
// known before the first client.
func newWatcher(target watchTarget, path string, held func() int64, lim limits, log *slog.Logger) *watcher {
	w := &watcher{
		log: log, target: target, resident: residentBytes, held: held,
		free:   func() (int64, error) { return diskFree(path) },
		warned: map[int]time.Time{}, stop: make(chan struct{}),
	}
	w.limits.Store(&lim)
	w.look(time.Now())
	return w
}

// start begins to look on. The loops run from now until close.
func (w *watcher) start() {
	w.done.Add(2)
	go w.every(watchEvery, w.look)
	// By itself: asking for the figures waits for the loops, and the alarms must not.
	go w.every(stallEvery, func(now time.Time) { w.lookAtLogs(now, w.target.StorageStats()) })
}

// close ends the watch. The alarms stay as they are. It may be called again.
func (w *watcher) close() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.done.Wait()
}

func (w *watcher) every(gap time.Duration, look func(now time.Time)) {
	defer w.done.Done()
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case now := <-tick.C:
			look(now)
		}
	}
}

// setLimits takes new limits; they hold from the next look on.
func (w *watcher) setLimits(lim limits) { w.limits.Store(&lim) }

func (w *watcher) look(now time.Time) {
	lim := *w.limits.Load()
	w.lookAtMemory(lim.memory)
	if !now.Before(w.diskDue) {
		w.lookAtDisk(now, lim.disk)
	}
}

// lookAtMemory tells the engine how much of the memory is left for messages and blocks publishers
// when all of it together is too much. Resident memory is what counts, because that is what the
// operator and the kernel see.
func (w *watcher) lookAtMemory(limit int64) {
	used, ok := w.resident()
	if !ok {
		return
	}
	w.used.Store(used)
	w.target.SetMemoryBudget(memoryBudget(limit, used, w.held()))
	switch {
	case used > limit:
		w.set(engine.AlarmMemory, true, "used", byteText(used), "limit", byteText(limit))
	case used < limit/100*93:
		w.set(engine.AlarmMemory, false, "used", byteText(used), "limit", byteText(limit))
	}
}

// memoryBudget is how many bytes of messages may stay in memory: most of the limit, less what the
// process needs for all else, and never so little that nothing moves.
func memoryBudget(limit, used, held int64) int64 {
	other := max(used-held, 0)
	return max(limit/100*85-other, limit/4)
}

// lookAtDisk blocks publishers while the disk has less room than it must keep. The nearer it comes
// to that the more often it is looked at: a disk fills at gigabytes a second.
func (w *watcher) lookAtDisk(now time.Time, limit int64) {
	w.diskDue = now.Add(diskEvery)
	if w.gone != nil && w.gone() {
		w.lost()
	}
	free, err := w.free()
	if err != nil {
		if !w.diskFailed {
			w.log.Warn("the free room of the disk cannot be read; the disk alarm stays as it is", "error", err)
		}
		w.diskFailed = true
		return
	}
	w.diskFailed = false
	w.room.Store(free)
	if limit > 0 && free < 2*limit {
		w.diskDue = now
	}
	switch {
	case free < limit:
		w.set(engine.AlarmDisk, true, "free", byteText(free), "limit", byteText(limit))
	case free >= limit+limit/20:
		w.set(engine.AlarmDisk, false, "free", byteText(free), "limit", byteText(limit))
	}
}

// set raises or clears an alarm and logs the change.
func (w *watcher) set(a engine.Alarm, on bool, facts ...any) {
	was := engine.Alarm(w.alarms.Load())
	if (was&a != 0) == on {
		return
	}
	if on {
		w.alarms.Store(uint32(was | a))
		w.log.Warn("alarm raised, publishers are blocked: "+a.String(), facts...)
	} else {
		w.alarms.Store(uint32(was &^ a))
		w.log.Info("alarm cleared: "+a.String(), facts...)
	}
	w.target.SetAlarm(a, on)
}

// lookAtLogs warns of a disk that is slow to answer. A write that hangs for long makes the broker
// not ready; publishers are not blocked for it, because those of other logs and of messages that
// are not persistent can go on.
func (w *watcher) lookAtLogs(now time.Time, list []engine.StorageStats) {
	stalled := false
	for i := range list {
		s := &list[i]
		stalled = stalled || s.InFlight > stallAlarm
		if s.InFlight > stallWarn && now.Sub(w.warned[s.Loop]) >= stallWarnGap {
			w.warned[s.Loop] = now
			w.log.Warn("the disk is slow: a write of the message log does not end", "loop", s.Loop,
				"since", s.InFlight.Round(time.Millisecond), "waiting", byteText(s.Backlog))
		}
	}
	if stalled == w.stalled.Load() {
		return
	}
	w.stalled.Store(stalled)
	if stalled {
		w.log.Error("alarm raised: the disk does not answer; /health says not ready", "limit", stallAlarm)
	} else {
		w.log.Info("alarm cleared: the disk answers")
	}
}

// names lists the alarms that are up.
func (w *watcher) names() []string {
	up := engine.Alarm(w.alarms.Load())
	var list []string
	if up&engine.AlarmMemory != 0 {
		list = append(list, "memory")
	}
	if up&engine.AlarmDisk != 0 {
		list = append(list, "disk")
	}
	if w.stalled.Load() {
		list = append(list, "sync")
	}
	return list
}

// diskFree is the room that the file system of a folder has for us.
func diskFree(path string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return int64(min(fs.Bavail*uint64(fs.Bsize), 1<<62)), nil
}
