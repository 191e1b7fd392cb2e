package ring

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// lineLog collects log lines.
type lineLog struct {
	mu    sync.Mutex
	lines []string
}

func (w *lineLog) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, string(p))
	return len(p), nil
}

func (w *lineLog) count(part string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.lines {
		if bytes.Contains([]byte(line), []byte(part)) {
			n++
		}
	}
	return n
}

// TestOutOfDescriptors: accepting survives EMFILE, says so once and goes on when there is room again.
func TestOutOfDescriptors(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		// io_uring notes the limit when the accept is submitted, so it is lowered before.
		var old unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: old.Max}); err != nil {
			t.Fatal(err)
		}
		defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
		var log lineLog
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		g, addr := startGroup(t, o, &testApp{accept: func(*Loop, *Conn) Handler { return &echo{} }})
		first := dial(t, addr)
		first.Write([]byte("x"))
		mustRead(t, first, 1)

		var fillers []int
		release := func() {
			for _, fd := range fillers {
				unix.Close(fd)
			}
			fillers = nil
		}
		defer release()
		for {
			fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				break
			}
			fillers = append(fillers, fd)
		}
		unix.Close(fillers[0]) // room for the client's end only
		fillers = fillers[1:]
		c := dial(t, addr)
		eventually(t, "the log line", func() bool { return log.count("cannot accept") == 1 })
		retries := g.loops[0].Stats().Turns
		eventually(t, "some retries", func() bool { return g.loops[0].Stats().Turns > retries+5 })
		if n := log.count("cannot accept"); n != 1 {
			t.Errorf("the failure was logged %d times", n)
		}
		release()
		c.Write([]byte("y"))
		if got := mustRead(t, c, 1); got[0] != 'y' {
			t.Errorf("read %q", got)
		}
		eventually(t, "the good news", func() bool { return log.count("accepting connections again") == 1 })
	})
}

func TestStopAccepting(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, addr := startGroup(t, o, &testApp{accept: func(*Loop, *Conn) Handler { return &echo{} }})
		c := dial(t, addr)
		c.Write([]byte("x"))
		mustRead(t, c, 1)
		g.StopAccepting()
		g.StopAccepting()
		eventually(t, "the end of listening", func() bool {
			d, err := net.Dial("tcp", addr)
			if err == nil {
				d.Close()
			}
			return errors.Is(err, syscall.ECONNREFUSED)
		})
		c.Write([]byte("y"))
		mustRead(t, c, 1) // the connection lives on
		again, err := g.Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		d := dial(t, again.String())
		d.Write([]byte("z"))
		mustRead(t, d, 1)
	})
}

func TestListenErrors(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, addr := startGroup(t, o, &testApp{})
		if _, err := g.Listen(addr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a busy port gives %v", err)
		}
		for _, bad := range []string{"127.0.0.1", "127.0.0.1:notaport", "127.0.0.1:70000"} {
			if _, err := g.Listen(bad); err == nil {
				t.Errorf("Listen(%q) succeeds", bad)
			}
		}
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		before := openDescriptors(t)
		g, err := New(o, &testApp{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if err := g.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := g.Start(); err == nil {
			t.Error("Start after Shutdown succeeds")
		}
		if _, err := g.Listen("127.0.0.1:0"); !errors.Is(err, ErrStopped) {
			t.Errorf("Listen after Shutdown gives %v", err)
		}
		if after := openDescriptors(t); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		block := make(chan struct{})
		app := &testApp{}
		g, err := New(o, app)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(); err != nil {
			t.Fatal(err)
		}
		g.loops[0].Post(func() { <-block })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown returned %v with a loop still running", err)
		}
		close(block)
		stopGroup(t, g, app)
	})
}

func TestOptions(t *testing.T) {
	bad := []Options{
		{Backend: "kqueue"},
		{RecvBuffers: 3},
		{RecvBuffers: 65536},
		{OutHighMark: 10, OutLowMark: 20},
		{OutLowMark: -1},
		{Pin: true, Cores: []int{100_000}},
	}
	for _, o := range bad {
		if g, err := New(o, &testApp{}); err == nil {
			g.Shutdown(t.Context())
			t.Errorf("New accepts %+v", o)
		}
	}
	g, err := New(Options{}, &testApp{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Shutdown(t.Context())
	if (g.BackendReason() == "") != (g.Backend() == uringName) {
		t.Errorf("chose %s because %q", g.Backend(), g.BackendReason())
	}
	for errno := syscall.Errno(1); errno < 132; errno++ {
		if setupHint(errno) == "" {
			t.Errorf("no hint for %v", errno)
		}
	}
}

func TestStartFailure(t *testing.T) {
	boom := errors.New("boom")
	app := &testApp{}
	before := openDescriptors(t)
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	g, err := New(Options{Cores: []int{0, 1}, NewBackend: func(i int) (Backend, error) {
		b, err := newEpoll(i)
		if i == 1 {
			b = failingBackend{b, boom}
		}
		return b, err
	}}, app)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); !errors.Is(err, boom) {
		t.Errorf("Start returned %v", err)
	}
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if n := app.stops.Load(); n != 1 {
		t.Errorf("Stop was called %d times, want once: on the loop that had started", n)
	}
}

// failingBackend cannot be opened.
type failingBackend struct {
	Backend
	err error
}

func (f failingBackend) Open(*Port) error { return f.err }

func TestPlace(t *testing.T) {
	live := []int64{0, 0, 0}
	get := func(i int) int64 { return live[i] }
	var order []int
	for range 14 {
		i := place(get, len(live))
		live[i]++
		order = append(order, i)
	}
	want := []int{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0}
	for i := range want {
		if order[i] != want[i] {
			t.Fatalf("placed %v, want %v", order, want)
		}
	}
	live = []int64{9, 3, 8}
	if i := place(get, 3); i != 1 {
		t.Errorf("placed on %d, want the emptiest", i)
	}
}
