package ring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how a group of loops is made. The zero value works.
type Options struct {
	Cores   []int         // one loop per entry (processor ids); empty = all allowed ones
	Pin     bool          // bind each loop's thread to its core
	Backend string        // "auto" or "", "uring", "epoll"
	Spin    time.Duration // watch for events so long before blocking; ignored when loops >= cores

	RecvBufferSize int // bytes per receive buffer; 0 = measured default
	RecvBuffers    int // receive buffers per loop (io_uring), a power of two; 0 = measured default

	OutHighMark int // bytes of pending output at which a connection is Full; 0 = 256 KiB
	OutLowMark  int // bytes under which Drained is called; 0 = a quarter of the high mark

	Log *slog.Logger // nil = silent

	// NewBackend, if set, supplies the loops' backends instead of the choice above (ring/sim, tests).
	NewBackend func(loopIndex int) (Backend, error)
	// Clock, if set, replaces CLOCK_MONOTONIC (ns). It is called on every loop.
	Clock func() int64
}

const (
	outHighMarkDefault = 256 << 10
	// The receive buffers of one loop are the most that the kernel can fill ahead of it: 2 MiB. Reads of
	// 64 KiB take 40 % less of the loop's time than reads of 16 KiB: 1 KiB messages at 0.85 instead of
	// 1.05 us of processor time each.
	recvBufferSizeDefault = 64 << 10
	recvBuffersDefault    = 32
	// turnInputBytes bounds what one turn receives, by completions or by reads.
	turnInputBytes = 256 << 10
	// turnConnBytes is one connection's share of it.
	turnConnBytes = 128 << 10
)

func (o *Options) fill() error {
	if o.RecvBufferSize == 0 {
		o.RecvBufferSize = recvBufferSizeDefault
	}
	if o.RecvBuffers == 0 {
		o.RecvBuffers = recvBuffersDefault
	}
	if n := o.RecvBuffers; n < 1 || n > 32768 || n&(n-1) != 0 {
		return fmt.Errorf("ring: RecvBuffers is %d, want a power of two up to 32768", n)
	}
	if o.OutHighMark == 0 {
		o.OutHighMark = outHighMarkDefault
	}
	if o.OutLowMark == 0 {
		o.OutLowMark = o.OutHighMark / 4
	}
	if o.OutLowMark > o.OutHighMark || o.OutLowMark < 1 {
		return fmt.Errorf("ring: OutLowMark %d must lie between 1 and OutHighMark %d", o.OutLowMark, o.OutHighMark)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Group is a set of loops with common listeners.
type Group struct {
	options Options
	app     App
	loops   []*Loop
	backend string
	reason  string
	spinNS  int64
	clock   clock
	live    []atomic.Int64 // connections placed per loop, those on their way included

	mu        sync.Mutex
	listeners []*Listener // guarded by mu until Start
	started   bool
	stopped   bool
	driven    bool          // by Drive: no threads
	done      chan struct{} // closed when the last loop has ended
	running   atomic.Int64
}

// ErrStopped is returned by operations on a group that was shut down.
var ErrStopped = errors.New("ring: the group has stopped")

// New probes the kernel and makes the loops; nothing runs yet. It fails if the options make no sense or
// backend "uring" was demanded and the kernel refuses it.
func New(o Options, app App) (*Group, error) {
	allowed, err := allowedCores()
	if err != nil {
		return nil, err
	}
	if len(o.Cores) == 0 {
		o.Cores = allowed
	}
	if o.Pin {
		if err := checkCores(o.Cores, allowed); err != nil {
			return nil, err
		}
	}
	if err := o.fill(); err != nil {
		return nil, err
	}
	g := &Group{options: o, app: app, clock: newClock(o.Clock), done: make(chan struct{})}
	if len(o.Cores) < len(allowed) {
		g.spinNS = o.Spin.Nanoseconds()
	}
	newBackend := o.NewBackend
	if newBackend == nil {
		if newBackend, g.reason, err = chooseBackend(o.Backend); err != nil {
			return nil, err
		}
		if g.reason != "" {
			g.options.Log.Warn("io_uring is not available, using epoll", "reason", g.reason)
		}
	}
	g.live = make([]atomic.Int64, len(o.Cores))
	slabs := NewSlabs(len(o.Cores))
	for i := range o.Cores {
		b, err := newBackend(i)
		if err != nil {
			for _, l := range g.loops {
				l.backend.Close()
			}
			return nil, err
		}
		g.loops = append(g.loops, newLoop(g, i, b, slabs[i]))
	}
	g.backend = g.loops[0].backend.Name()
	return g, nil
}

func newLoop(g *Group, index int, b Backend, slab *Slab) *Loop {
	l := &Loop{group: g, app: g.app, index: index, backend: b, slab: slab,
		highMark: g.options.OutHighMark, lowMark: g.options.OutLowMark, gap: time.Second.Nanoseconds()}
	l.lingerTimer.Fire = l.checkLingering
	l.files.backend, _ = b.(FileBackend)
	_, l.files.oneStepOn = b.(syncWriter)
	return l
}

// Backend returns "io_uring" or "epoll".
func (g *Group) Backend() string { return g.backend }

// BackendReason says why "auto" chose epoll: the errno and its likely cause. Empty otherwise.
func (g *Group) BackendReason() string { return g.reason }

// Loops returns the loops in the order of Options.Cores.
func (g *Group) Loops() []*Loop { return g.loops }

// Listen binds an address at once (a busy port is an error here); accepting starts with Start. An empty
// host means all addresses, port 0 a free one; the result is what was bound.
func (g *Group) Listen(addr string) (net.Addr, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return nil, ErrStopped
	}
	// A socket with O_NONBLOCK set makes io_uring answer EAGAIN instead of waiting.
	ln, err := listen(addr, g.backend == epollName)
	if err != nil {
		return nil, err
	}
	if !g.started {
		g.listeners = append(g.listeners, ln)
		return ln.addr, nil
	}
	if !g.loops[0].Post(func() { g.loops[0].startListening([]*Listener{ln}) }) {
		closeSocket(ln.fd)
		return nil, ErrStopped
	}
	return ln.addr, nil
}

// Start runs one locked (and, with Options.Pin, pinned) goroutine per loop and begins to accept when
// all of them are up. It sets GOMAXPROCS to loops + 2, so that neither a spinning nor a blocked loop
// ever keeps a processor from the rest of the program.
func (g *Group) Start() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started || g.stopped {
		return errors.New("ring: Start was called before")
	}
	g.started = true
	runtime.GOMAXPROCS(len(g.loops) + 2)
	g.running.Store(int64(len(g.loops)))
	ready := make(chan error, len(g.loops))
	for _, l := range g.loops {
		go l.run(ready)
	}
	var errs []error
	for range g.loops {
		if err := <-ready; err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		g.stopped = true
		for _, ln := range g.listeners {
			closeSocket(ln.fd)
		}
		g.postStop()
		<-g.done
		return err
	}
	accepting := g.listeners
	g.loops[0].Post(func() { g.loops[0].startListening(accepting) })
	return nil
}

// StopAccepting closes the listeners. Connections go on.
func (g *Group) StopAccepting() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopAcceptingLocked()
}

func (g *Group) stopAcceptingLocked() {
	if !g.started {
		for _, ln := range g.listeners {
			closeSocket(ln.fd)
		}
		g.listeners = nil
		return
	}
	l := g.loops[0]
	l.Post(func() {
		for _, ln := range l.listeners {
			l.unlisten(ln)
		}
	})
}

// Shutdown closes the listeners, aborts the remaining connections (those already closing get half a
// second more), stops the loops and waits for them or for ctx. Not to be called from a loop.
func (g *Group) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	if !g.stopped {
		g.stopped = true
		g.stopAcceptingLocked()
		if g.started {
			g.postStop()
		} else {
			for _, l := range g.loops {
				l.backend.Close()
			}
			close(g.done)
		}
	}
	driven := g.driven
	g.mu.Unlock()
	if driven {
		return nil
	}
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ring: waiting for the loops to stop: %w", ctx.Err())
	}
}

func (g *Group) postStop() {
	for _, l := range g.loops {
		l.Post(l.beginStop)
	}
}

// exited notes the end of a loop.
func (g *Group) exited(*Loop) {
	if g.running.Add(-1) == 0 {
		close(g.done)
	}
}

// placeNext chooses a loop for a connection and counts it there. Accepting loop only.
func (g *Group) placeNext() int {
	index := place(func(i int) int64 { return g.live[i].Load() }, len(g.loops))
	g.live[index].Add(1)
	return index
}

// left notes that a connection placed on a loop is gone.
func (g *Group) left(index int) { g.live[index].Add(-1) }

// open prepares the loop on its own thread.
func (l *Loop) open() error {
	if l.group.options.Pin && !l.group.driven {
		if err := pinThread(l.group.options.Cores[l.index]); err != nil {
			return l.openFailed(err)
		}
	}
	if !l.group.driven {
		askShortSlice()
	}
	l.now = l.group.clock.now()
	l.lastEvent = l.now
	l.wheel.init(l.now)
	if err := l.backend.Open(&Port{loop: l}); err != nil {
		return l.openFailed(err)
	}
	return nil
}

func (l *Loop) openFailed(err error) error {
	l.posts.close()
	l.backend.Close()
	return fmt.Errorf("ring: loop %d: %w", l.index, err)
}

// shut ends the loop: what was posted in time still runs, then nothing more is taken.
func (l *Loop) shut() {
	for _, f := range l.posts.close() {
		f()
	}
	l.drainFiles()
	l.settle()
	l.app.Stop(l)
	must(l.files.inFlight == 0, "App.Stop wrote to a file")
	must(len(l.slots) == len(l.freeSlots), "a stopped loop has connections")
	l.pool.close()
	l.backend.Close()
}
