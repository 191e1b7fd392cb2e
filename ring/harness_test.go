package ring

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// testWait bounds every wait of these tests; it is reached only when something is broken.
const testWait = 20 * time.Second

// testApp is an App made of functions; nil ones do nothing.
type testApp struct {
	start       func(l *Loop)
	accept      func(l *Loop, c *Conn) Handler
	turn        func(l *Loop) bool
	beforeSleep func(l *Loop)
	release     func(l *Loop, token unsafe.Pointer)
	stops       atomic.Int64
}

func (a *testApp) Start(l *Loop) {
	if a.start != nil {
		a.start(l)
	}
}
func (a *testApp) Accept(l *Loop, c *Conn) Handler {
	if a.accept == nil {
		return nil
	}
	return a.accept(l, c)
}
func (a *testApp) Turn(l *Loop) bool { return a.turn != nil && a.turn(l) }
func (a *testApp) BeforeSleep(l *Loop) {
	if a.beforeSleep != nil {
		a.beforeSleep(l)
	}
}
func (a *testApp) Release(l *Loop, token unsafe.Pointer) {
	if a.release != nil {
		a.release(l, token)
	}
}
func (a *testApp) Stop(*Loop) { a.stops.Add(1) }

// testHandler is a Handler made of functions; nil ones do nothing.
type testHandler struct {
	data    func(c *Conn, p []byte)
	drained func(c *Conn)
	closed  func(c *Conn, reason error)
}

func (h *testHandler) Data(c *Conn, p []byte) {
	if h.data != nil {
		h.data(c, p)
	}
}
func (h *testHandler) Drained(c *Conn) {
	if h.drained != nil {
		h.drained(c)
	}
}
func (h *testHandler) Closed(c *Conn, reason error) {
	if h.closed != nil {
		h.closed(c, reason)
	}
}

// onBackends runs a test on io_uring (if the host allows it) and on epoll.
func onBackends(t *testing.T, f func(t *testing.T, o Options)) {
	for _, name := range []string{"uring", "epoll"} {
		t.Run(name, func(t *testing.T) {
			needBackend(t, name)
			f(t, Options{Cores: []int{0, 1}, Backend: name})
		})
	}
}

func needBackend(t testing.TB, name string) {
	if name == "uring" {
		if err := probeUring(); err != nil {
			t.Skipf("no io_uring here: %v", err)
		}
	}
}

// startGroup starts a group listening on loopback and stops it when the test ends, checking that
// nothing is left over.
func startGroup(t testing.TB, o Options, app *testApp) (*Group, string) {
	t.Helper()
	procs := runtime.GOMAXPROCS(0) // Start changes it
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	g, err := New(o, app)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := g.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopGroup(t, g, app) })
	return g, addr.String()
}

func stopGroup(t testing.TB, g *Group, app *testApp) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	if err := g.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if n := app.stops.Load(); n != int64(len(g.loops)) {
		t.Errorf("Stop was called %d times on %d loops", n, len(g.loops))
	}
	for i, l := range g.loops {
		s := l.Stats()
		if s.Connections != 0 || s.OutChunksLive != 0 || s.SharedLive != 0 || g.live[i].Load() != 0 {
			t.Errorf("loop %d is left with %+v, live %d", i, s, g.live[i].Load())
		}
		if l.Post(func() {}) {
			t.Errorf("loop %d takes posts after its end", i)
		}
	}
}

// dial connects a client.
func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, testWait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(testWait)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// await receives from a channel or fails the test.
func await[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testWait):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

// onLoop runs f on the loop and waits for it.
func onLoop(t testing.TB, l *Loop, f func()) {
	t.Helper()
	done := make(chan struct{})
	if !l.Post(func() { f(); close(done) }) {
		t.Fatal("the loop has stopped")
	}
	await(t, done, "a posted function")
}

// eventually waits for a condition that other threads bring about.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(testWait); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func mustRead(t testing.TB, c io.Reader, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	if _, err := io.ReadFull(c, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// openDescriptors counts this process's descriptors.
func openDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// pattern fills n bytes that depend on their position.
func pattern(n, start int) []byte {
	p := make([]byte, n)
	for i := range p {
		x := start + i
		p[i] = byte(x ^ x>>8 ^ x>>16)
	}
	return p
}

// echo is a handler that writes back what it gets.
type echo struct{ closed chan error }

func (e *echo) Data(c *Conn, p []byte) { c.Write(p) }
func (e *echo) Drained(*Conn)          {}
func (e *echo) Closed(_ *Conn, reason error) {
	if e.closed != nil {
		e.closed <- reason
	}
}
