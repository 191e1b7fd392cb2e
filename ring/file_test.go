package ring

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileBlock is what O_DIRECT wants addresses, lengths and offsets to be multiples of.
const fileBlock = 4096

// mapped returns n bytes outside the Go heap, aligned to a page.
func mapped(t testing.TB, n int) []byte {
	t.Helper()
	p := mapPages(uintptr(n))
	if p == nil {
		t.Fatal("no memory")
	}
	t.Cleanup(func() { unix.MunmapPtr(p, uintptr(n)) })
	return unsafe.Slice((*byte)(p), n)
}

// testFile makes a zero-filled file of the test's own and opens it with the given flags.
func testFile(t testing.TB, size, flags int) (fd int, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EINVAL) && flags&unix.O_DIRECT != 0 {
		t.Skip("no O_DIRECT on this file system")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Fsync(fd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd, path
}

// startFiles starts one loop on io_uring.
func startFiles(t testing.TB, app *testApp) *Loop {
	t.Helper()
	needBackend(t, "uring")
	g, _ := startGroup(t, Options{Cores: []int{0}, Backend: "uring"}, app)
	return g.loops[0]
}

func TestWritesFiles(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, err := New(o, &testApp{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Shutdown(t.Context())
		for _, l := range g.loops {
			if got, want := l.WritesFiles(), g.Backend() == uringName; got != want {
				t.Errorf("%s: WritesFiles is %v before the start", g.Backend(), got)
			}
		}
	})
}

// TestWriteFile: each kind of operation completes once, without an error, outside of the call; the bytes
// are in the file.
func TestWriteFile(t *testing.T) {
	for _, open := range []struct {
		name  string
		flags int
	}{{"buffered", unix.O_RDWR}, {"direct", unix.O_RDWR | unix.O_DIRECT}} {
		t.Run(open.name, func(t *testing.T) {
			l := startFiles(t, &testApp{})
			fd, path := testFile(t, 64*fileBlock, open.flags)
			content := mapped(t, 64*fileBlock)
			copy(content, pattern(len(content), 3))
			done := make(chan error, 1)
			write := func(first, blocks int, sync bool) {
				t.Helper()
				onLoop(t, l, func() {
					inside := true
					l.WriteFile(fd, int64(first*fileBlock), content[first*fileBlock:][:blocks*fileBlock], sync, func(err error) {
						if inside {
							t.Error("done was called inside WriteFile")
						}
						done <- err
					})
					inside = false
				})
				if err := await(t, done, "the end of a write"); err != nil {
					t.Errorf("%d blocks at %d, sync %v: %v", blocks, first, sync, err)
				}
			}
			write(0, 1, true)   // durable by itself
			write(1, 31, false) // not durable
			write(32, 16, true) // durable, as is the one before now
			write(48, 16, false)
			write(0, 0, true)  // a sync alone
			write(0, 0, false) // nothing
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("the file differs from what was written (%v)", err)
			}
			onLoop(t, l, func() {
				if l.files.inFlight != 0 || len(l.files.ops) != 1 {
					t.Errorf("left: %d in flight, %d operations for one write at a time",
						l.files.inFlight, len(l.files.ops))
				}
			})
			if s := l.Stats(); s.FileWrites != 4 || s.FileSyncs != 3 {
				t.Errorf("counted %d writes and %d syncs, want 4 and 3", s.FileWrites, s.FileSyncs)
			}
		})
	}
}

// TestWriteFileChain: done may write again; many chains at once complete, each in its order.
func TestWriteFileChain(t *testing.T) {
	const chains, length = 40, 25
	l := startFiles(t, &testApp{})
	fd, path := testFile(t, chains*length*fileBlock, unix.O_RDWR)
	content := mapped(t, chains*length*fileBlock)
	copy(content, pattern(len(content), 11))
	done := make(chan struct{})
	left := chains
	onLoop(t, l, func() {
		for chain := range chains {
			step, running := 0, false
			var next func(error)
			next = func(err error) {
				if err != nil || running {
					t.Errorf("chain %d, step %d: %v, running %v", chain, step, err, running)
				}
				running = true
				if step == length {
					if left--; left == 0 {
						close(done)
					}
					return
				}
				at := (chain*length + step) * fileBlock
				step++
				l.WriteFile(fd, int64(at), content[at:][:fileBlock], step%8 == 0, next)
				running = false
			}
			next(nil)
		}
	})
	await(t, done, "the end of all chains")
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file differs from what was written (%v)", err)
	}
}

// TestWriteFileErrors: the errno is handed up.
func TestWriteFileErrors(t *testing.T) {
	l := startFiles(t, &testApp{})
	readOnly, _ := testFile(t, fileBlock, unix.O_RDONLY)
	writable, _ := testFile(t, fileBlock, unix.O_RDWR)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	buf := mapped(t, fileBlock)
	done := make(chan error, 1)
	for _, c := range []struct {
		name   string
		fd     int
		offset int64
		buf    []byte
		sync   bool
		want   error
	}{
		{"closed", 1 << 20, 0, buf, true, syscall.EBADF},
		{"closed, a sync alone", 1 << 20, 0, nil, true, syscall.EBADF},
		{"read only", readOnly, 0, buf, true, syscall.EBADF},
		{"read only, no sync", readOnly, 0, buf, false, syscall.EBADF},
		{"before the start", writable, -5, buf, false, syscall.EINVAL},
		{"a pipe cannot be synced", pipe[1], 0, nil, true, syscall.EINVAL},
		{"the loop goes on", writable, 0, buf, true, nil},
	} {
		onLoop(t, l, func() { l.WriteFile(c.fd, c.offset, c.buf, c.sync, func(err error) { done <- err }) })
		if err := await(t, done, c.name); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestWriteFileAtShutdown: the loop ends after its last file operation, those that done starts included.
func TestWriteFileAtShutdown(t *testing.T) {
	needBackend(t, "uring")
	app := &testApp{}
	g, err := New(Options{Cores: []int{0}, Backend: "uring"}, app)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	l := g.loops[0]
	fd, path := testFile(t, 64*fileBlock, unix.O_RDWR)
	content := mapped(t, 64*fileBlock)
	copy(content, pattern(len(content), 5))
	written := 0
	onLoop(t, l, func() {
		var next func(error)
		next = func(err error) {
			if err != nil || app.stops.Load() != 0 {
				t.Errorf("block %d: %v, Stop was called %d times", written, err, app.stops.Load())
			}
			if written < 64 {
				at := written * fileBlock
				written++
				l.WriteFile(fd, int64(at), content[at:][:fileBlock], true, next)
			}
		}
		l.beginStop() // nothing keeps the loop but what follows
		next(nil)
	})
	stopGroup(t, g, app)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the loop ended before its writes (%d of 64 begun, %v)", written, err)
	}
}

// TestWriteFileDoesNotSpin: the loop has a large spin budget and uses it, but not while a write of its own
// or somebody else's, as told by HoldSpin, is in flight.
func TestWriteFileDoesNotSpin(t *testing.T) {
	needBackend(t, "uring")
	app := &testApp{}
	o := Options{Cores: []int{0}, Backend: "uring", Spin: time.Hour}
	l := spinningLoop(t, o, app)
	fd, _ := testFile(t, 64*fileBlock, unix.O_RDWR)
	buf := mapped(t, fileBlock)
	spins := func() int64 { return l.Stats().Spins }
	before := spins()
	eventually(t, "a spin", func() bool { onLoop(t, l, func() {}); return spins() > before })

	done := make(chan struct{})
	var start, end int64
	onLoop(t, l, func() {
		start = spins()
		left := 64
		var next func(error)
		next = func(err error) {
			if end = spins(); left == 0 || err != nil {
				if err != nil {
					t.Error(err)
				}
				close(done)
				return
			}
			left--
			l.WriteFile(fd, int64(left*fileBlock), buf, true, next)
		}
		next(nil)
	})
	await(t, done, "the last write")
	if end != start {
		t.Errorf("%d spins during 64 writes", end-start)
	}

	onLoop(t, l, func() { l.HoldSpin(+1); start = spins() })
	for range 20 {
		onLoop(t, l, func() {})
	}
	onLoop(t, l, func() { end = spins(); l.HoldSpin(-1) })
	if end != start {
		t.Errorf("%d spins while others' I/O was in flight", end-start)
	}
	eventually(t, "a spin again", func() bool { onLoop(t, l, func() {}); return spins() > end })
}

// spinningLoop starts a loop that spins whenever it may.
func spinningLoop(t *testing.T, o Options, app *testApp) *Loop {
	t.Helper()
	g, err := New(o, app)
	if err != nil {
		t.Fatal(err)
	}
	g.spinNS = o.Spin.Nanoseconds() // also where there is no core to spare
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopGroup(t, g, app) })
	return g.loops[0]
}

// TestWriteFileBeforeInput: done is called before input is handled, also when the input came first.
func TestWriteFileBeforeInput(t *testing.T) {
	needBackend(t, "uring")
	order := make(chan string, 2)
	conns := make(chan *Conn, 1)
	g, addr := startGroup(t, Options{Cores: []int{0}, Backend: "uring"}, &testApp{accept: func(_ *Loop, c *Conn) Handler {
		conns <- c
		return &testHandler{data: func(*Conn, []byte) { order <- "input" }}
	}})
	l := g.loops[0]
	client := dial(t, addr)
	conn := await(t, conns, "the connection")
	onLoop(t, l, func() {
		u := l.backend.(*uring)
		waiting := func() int {
			n, err := unix.IoctlGetInt(conn.Descriptor(), unix.TIOCINQ)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		u.ring.Submit() // the receive is armed
		if _, err := client.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(testWait); waiting() == 0 && time.Now().Before(end); {
			runtime.Gosched()
		}
		for end := time.Now().Add(testWait); waiting() > 0 && time.Now().Before(end); {
			u.ring.Submit() // the receive completes
		}
		l.WriteFile(0, 0, nil, false, func(error) { order <- "write" })
		u.submitOnly()
	})
	first, second := await(t, order, "the first event"), await(t, order, "the second event")
	if first != "write" || second != "input" {
		t.Errorf("%s came before %s", first, second)
	}
}

// TestAllocsWriteFile: writing allocates nothing once the operation exists.
func TestAllocsWriteFile(t *testing.T) {
	fd, _ := testFile(t, 16*fileBlock, unix.O_RDWR)
	buf := mapped(t, 2*fileBlock)
	done, bell := make(chan struct{}, 1), make(chan struct{}, 1)
	var l *Loop
	left := 0
	var next func(error)
	next = func(err error) {
		if err != nil {
			t.Error(err)
		}
		if left == 0 {
			done <- struct{}{}
			return
		}
		left--
		l.WriteFile(fd, int64(left%8)*fileBlock, buf, left%2 == 0, next)
	}
	app := &testApp{turn: func(*Loop) bool {
		select {
		case <-bell:
			left = 10
			next(nil)
		default:
		}
		return false
	}}
	l = startFiles(t, app)
	round := func() {
		bell <- struct{}{}
		l.Wake()
		<-done
	}
	round()
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("%v allocations per ten writes", n)
	}
}

// TestRun: the job runs elsewhere, its result comes back to the loop; a loop that has stopped drops it.
func TestRun(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, err := New(o, &testApp{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(); err != nil {
			t.Fatal(err)
		}
		l := g.loops[1]
		failure := errors.New("it failed")
		release, result := make(chan struct{}), make(chan error, 1)
		onLoop(t, l, func() { l.Run(func() error { <-release; return failure }, func(err error) { result <- err }) })
		onLoop(t, l, func() {}) // the job blocks, the loop does not
		close(release)
		if err := await(t, result, "done"); err != failure {
			t.Errorf("done got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		ran := make(chan struct{})
		l.Run(func() error { close(ran); return nil }, func(error) { t.Error("done was called on a stopped loop") })
		await(t, ran, "the job")
	})
}
