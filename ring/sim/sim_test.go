package sim

import (
	"bytes"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"ringmq/ring"
)

// testApp is a small application with all that the loops offer: echo, shared
// output, mailboxes between loops, timers.
type testApp struct {
	loops    int
	boxes    [][]*ring.Mailbox[parcel] // from, to
	sessions [][]*session              // per loop
	started  int
	stopped  int
	released int
	accept   func(l *ring.Loop, c *ring.Conn) *session
}

// parcel is a block of bytes on its way to another loop.
type parcel struct {
	block unsafe.Pointer
	n     int
}

// session is the handler of one connection.
type session struct {
	app     *testApp
	conn    *ring.Conn
	mode    string
	got     []byte
	drained int
	closed  int
	reason  error
	timer   ring.Timer
}

func newTestApp(loops int) *testApp {
	a := &testApp{loops: loops, sessions: make([][]*session, loops)}
	for range loops {
		var row []*ring.Mailbox[parcel]
		for range loops {
			row = append(row, ring.NewMailbox[parcel](8))
		}
		a.boxes = append(a.boxes, row)
	}
	return a
}

func (a *testApp) Start(*ring.Loop) { a.started++ }
func (a *testApp) Stop(*ring.Loop)  { a.stopped++ }

func (a *testApp) Accept(l *ring.Loop, c *ring.Conn) ring.Handler {
	s := &session{app: a, conn: c, mode: "echo"}
	if a.accept != nil {
		made := a.accept(l, c)
		if made == nil {
			return nil
		}
		s = made
		s.app, s.conn = a, c
	}
	a.sessions[l.Index()] = append(a.sessions[l.Index()], s)
	return s
}

func (a *testApp) Turn(l *ring.Loop) (more bool) {
	for from := range a.boxes {
		box := a.boxes[from][l.Index()]
		var p parcel
		for box.Pop(&p) {
			a.sessions[l.Index()][0].conn.WriteShared(unsafe.Slice((*byte)(p.block), p.n), p.block)
		}
		box.Done()
	}
	return false
}

func (a *testApp) BeforeSleep(l *ring.Loop) {
	for to, box := range a.boxes[l.Index()] {
		if box.Flush() {
			a.world(to).Wake()
		}
	}
}

// world finds a loop by index, through any session's.
func (a *testApp) world(index int) *ring.Loop { return a.sessions[index][0].conn.Loop() }

func (a *testApp) Release(l *ring.Loop, token unsafe.Pointer) {
	a.released++
	l.Slab().Free(token)
}

func (s *session) Data(c *ring.Conn, p []byte) {
	switch s.mode {
	case "echo":
		c.Write(p)
	case "shared":
		block := c.Loop().Slab().Alloc(len(p))
		copy(unsafe.Slice((*byte)(block), len(p)), p)
		c.WriteShared(unsafe.Slice((*byte)(block), len(p)), block)
	case "relay": // to the first connection of the next loop
		to := (c.Loop().Index() + 1) % s.app.loops
		block := c.Loop().Slab().Alloc(len(p))
		copy(unsafe.Slice((*byte)(block), len(p)), p)
		if !s.app.boxes[c.Loop().Index()][to].Push(&parcel{block, len(p)}) {
			panic("mailbox full")
		}
	case "goodbye":
		c.Write(p)
		c.Write([]byte("bye"))
		c.Close()
	case "keep":
		s.got = append(s.got, p...)
	}
}

func (s *session) Drained(*ring.Conn) { s.drained++ }

func (s *session) Closed(_ *ring.Conn, reason error) {
	s.closed++
	s.reason = reason
}

func mode(name string) func(*ring.Loop, *ring.Conn) *session {
	return func(*ring.Loop, *ring.Conn) *session { return &session{mode: name} }
}

// closeWorld ends the world and checks that nothing is left.
func closeWorld(t *testing.T, w *World, app *testApp) {
	t.Helper()
	w.Close()
	if app.started != app.loops || app.stopped != app.loops {
		t.Errorf("%d starts and %d stops of %d loops", app.started, app.stopped, app.loops)
	}
	for i, l := range w.Loops() {
		l.Slab().Collect()
		stats := l.Stats()
		if stats.Connections != 0 || stats.SharedLive != 0 || l.Slab().Stats().LiveBlocks != 0 {
			t.Errorf("loop %d: left behind: %+v, slab %+v", i, stats, l.Slab().Stats())
		}
	}
	for _, row := range app.sessions {
		for _, s := range row {
			if s.closed != 1 {
				t.Errorf("Closed was called %d times", s.closed)
			}
		}
	}
}

// Whatever goes in comes out, in order and whole, for many seeds and kinds of output.
func TestEchoKeepsEveryByte(t *testing.T) {
	for seed := range uint64(30) {
		for _, kind := range []string{"echo", "shared"} {
			app := newTestApp(2)
			app.accept = mode(kind)
			w := New(seed, 2, app)
			var peers [5]*Peer
			var sent, got [5][]byte
			for i := range peers {
				peers[i] = w.Dial(i % 2)
				peers[i].SetWindow(2000 + 9000*i)
			}
			for range 200 {
				i := w.Rand().IntN(len(peers))
				piece := make([]byte, 1+w.Rand().IntN(5000))
				for j := range piece {
					piece[j] = byte(len(sent[i]) + j*7)
				}
				peers[i].Write(piece)
				sent[i] = append(sent[i], piece...)
				w.Step()
				j := w.Rand().IntN(len(peers))
				got[j] = append(got[j], peers[j].Read()...)
			}
			for range 10_000 {
				w.Settle()
				moved := false
				for i, p := range peers {
					b := p.Read()
					moved = moved || len(b) > 0
					got[i] = append(got[i], b...)
				}
				if !moved {
					break
				}
			}
			for i := range peers {
				if !bytes.Equal(sent[i], got[i]) {
					t.Fatalf("seed %d, %s, peer %d: sent %d bytes, got %d", seed, kind, i, len(sent[i]), len(got[i]))
				}
			}
			closeWorld(t, w, app)
		}
	}
}

// runStory plays a mixed story and returns its trace.
func runStory(seed uint64) (trace uint64, log string) {
	app := newTestApp(3)
	w := New(seed, 3, app)
	w.Log = func(line string) { log += line + "\n" }
	var peers []*Peer
	for i := range 6 {
		peers = append(peers, w.Dial(i%3))
	}
	for range 100 {
		p := peers[w.Rand().IntN(len(peers))]
		switch w.Rand().IntN(12) {
		case 0:
			p.Reset()
		case 1:
			p.Close()
		case 2:
			w.Advance(time.Second)
		default:
			p.Write(make([]byte, 100))
		}
		w.Step()
		p.Read()
	}
	w.Settle()
	w.Close()
	return w.Trace(), log
}

func TestSameSeedSameStory(t *testing.T) {
	traces := make(map[uint64]bool)
	for seed := range uint64(8) {
		trace, log := runStory(seed)
		if again, logAgain := runStory(seed); again != trace || log != logAgain {
			t.Fatalf("seed %d: two stories:\n%s\nand\n%s", seed, log, logAgain)
		}
		traces[trace] = true
	}
	if len(traces) != 8 {
		t.Errorf("8 seeds gave %d stories", len(traces))
	}
}

func TestRelayBetweenLoops(t *testing.T) {
	for seed := range uint64(20) {
		app := newTestApp(2)
		app.accept = func(l *ring.Loop, _ *ring.Conn) *session {
			return &session{mode: []string{"relay", "keep"}[l.Index()]}
		}
		w := New(seed, 2, app)
		from, to := w.Dial(0), w.Dial(1)
		w.Settle()
		var want, got []byte
		for i := range 40 {
			piece := fmt.Appendf(nil, "message %d;", i)
			want = append(want, piece...)
			from.Write(piece)
			w.Settle()
			got = append(got, to.Read()...)
			if !bytes.Equal(got, want) {
				t.Fatalf("seed %d: Settle left %d of %d bytes on their way", seed, len(want)-len(got), len(want))
			}
		}
		closeWorld(t, w, app)
	}
}

func TestBackPressure(t *testing.T) {
	app := newTestApp(1)
	w := New(3, 1, app)
	p := w.Dial(0)
	p.SetWindow(0)
	p.Write(make([]byte, 1<<20))
	w.Settle()
	s := app.sessions[0][0]
	if !s.conn.Full() || s.conn.Pending() != 1<<20 || s.drained != 0 {
		t.Fatalf("pending %d, full %v, drained %d", s.conn.Pending(), s.conn.Full(), s.drained)
	}
	p.SetWindow(64 << 10)
	total := 0
	for total < 1<<20 {
		w.Settle()
		n := len(p.Read())
		if n == 0 || n > 64<<10 {
			t.Fatalf("%d bytes came through a window of 64 KiB", n)
		}
		total += n
	}
	w.Settle()
	if s.drained != 1 || s.conn.Pending() != 0 {
		t.Fatalf("drained %d times, pending %d", s.drained, s.conn.Pending())
	}
	closeWorld(t, w, app)
}

func TestOrderlyClose(t *testing.T) {
	for seed := range uint64(20) {
		app := newTestApp(1)
		app.accept = mode("goodbye")
		w := New(seed, 1, app)
		p := w.Dial(0)
		p.Write([]byte("x"))
		w.Settle()
		if got := string(p.Read()); got != "xbye" || !p.EOF() || p.Closed() {
			t.Fatalf("seed %d: got %q, EOF %v, closed %v", seed, got, p.EOF(), p.Closed())
		}
		p.Close()
		w.Settle()
		if s := app.sessions[0][0]; s.reason != nil || !p.Closed() || p.WasReset() {
			t.Fatalf("seed %d: reason %v, closed %v", seed, s.reason, p.Closed())
		}
		closeWorld(t, w, app)
	}
}

// A peer that never answers our FIN is given up after a while.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	app := newTestApp(1)
	app.accept = mode("goodbye")
	w := New(1, 1, app)
	p := w.Dial(0)
	p.Write([]byte("x"))
	w.Settle()
	w.Run(10*time.Second, 100*time.Millisecond)
	if !p.Closed() {
		t.Fatal("still open after ten seconds")
	}
	closeWorld(t, w, app)
}

func TestPeerEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(*Peer)
		reason error
		kept   string
	}{
		{"close", (*Peer).Close, io.EOF, "last words"},
		{"close of the sending side", (*Peer).CloseWrite, io.EOF, "last words"},
		{"reset", (*Peer).Reset, syscall.ECONNRESET, ""},
	} {
		app := newTestApp(1)
		app.accept = mode("keep")
		w := New(5, 1, app)
		p := w.Dial(0)
		w.Settle()
		p.Write([]byte("last words"))
		c.end(p)
		w.Settle()
		s := app.sessions[0][0]
		if s.reason != c.reason || s.closed != 1 || string(s.got) != c.kept || !p.Closed() {
			t.Errorf("%s: reason %v, closed %d, got %q, peer closed %v", c.name, s.reason, s.closed, s.got, p.Closed())
		}
		closeWorld(t, w, app)
	}
}

func TestRefusedConnection(t *testing.T) {
	app := newTestApp(1)
	app.accept = func(*ring.Loop, *ring.Conn) *session { return nil }
	w := New(1, 1, app)
	p := w.Dial(0)
	w.Settle()
	if !p.EOF() || !p.Closed() {
		t.Error("a refused peer sees no end")
	}
	closeWorld(t, w, app)
}

func TestClockIsTheTests(t *testing.T) {
	app := newTestApp(1)
	w := New(1, 1, app)
	w.Dial(0)
	w.Settle()
	l := w.Loops()[0]
	s := app.sessions[0][0]
	var fired []int64
	s.timer.Fire = func(now int64) { fired = append(fired, now) }
	start := w.Now()
	l.Arm(&s.timer, start+int64(5*time.Second))
	w.Settle()
	w.Advance(4 * time.Second)
	w.Settle()
	if len(fired) != 0 {
		t.Fatal("fired early")
	}
	w.Advance(1002 * time.Millisecond)
	w.Settle()
	if len(fired) != 1 || fired[0] != w.Now() || s.timer.Armed() {
		t.Fatalf("fired at %v, now %d", fired, w.Now())
	}
	closeWorld(t, w, app)
}
