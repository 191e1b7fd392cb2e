package ring

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// closeCase is one way for a connection to end.
type closeCase struct {
	name   string
	server func(c *Conn, p []byte)            // on the first data
	client func(t *testing.T, c *net.TCPConn) // after the first data was sent
	reason func(err error) bool
}

func isErr(want error) func(error) bool { return func(err error) bool { return err == want } }

func TestEndings(t *testing.T) {
	reset := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) }
	readAll := func(want string) func(*testing.T, *net.TCPConn) {
		return func(t *testing.T, c *net.TCPConn) {
			if got, err := io.ReadAll(c); err != nil || string(got) != want {
				t.Errorf("the peer read %q, %v; want %q", got, err, want)
			}
		}
	}
	cases := []closeCase{
		{"peer closes", nil, func(_ *testing.T, c *net.TCPConn) { c.Close() }, isErr(io.EOF)},
		{"peer closes its side and reads the rest", func(c *Conn, p []byte) { c.Write(p) },
			func(t *testing.T, c *net.TCPConn) { c.CloseWrite(); readAll("hello")(t, c) }, isErr(io.EOF)},
		{"peer resets", nil, func(_ *testing.T, c *net.TCPConn) { c.SetLinger(0); c.Close() }, reset},
		{"we close", func(c *Conn, _ []byte) { c.Close() }, readAll(""), isErr(nil)},
		{"we write and close", func(c *Conn, p []byte) { c.Write(p); c.Close(); c.Write(p) }, readAll("hello"), isErr(nil)},
		{"we close twice and abort", func(c *Conn, _ []byte) { c.Close(); c.Close(); c.Abort() }, nil, isErr(nil)},
		{"we abort", func(c *Conn, _ []byte) { c.Abort(); c.Abort() }, readAll(""), isErr(nil)},
		{"we abort with output", func(c *Conn, p []byte) { c.Write(p); c.Abort() },
			func(t *testing.T, c *net.TCPConn) {
				if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the peer saw %v, want a reset: the stream was cut", err)
				}
			}, isErr(nil)},
		{"we pause and close", func(c *Conn, p []byte) { c.PauseRead(); c.Write(p); c.Close() }, readAll("hello"), isErr(nil)},
		{"we pause and abort", func(c *Conn, _ []byte) { c.PauseRead(); c.Abort() }, readAll(""), isErr(nil)},
	}
	onBackends(t, func(t *testing.T, o Options) {
		closed := make(chan error, 10)
		var server atomic.Pointer[func(c *Conn, p []byte)]
		data := func(c *Conn, p []byte) {
			if f := *server.Load(); f != nil {
				f(c, bytes.Clone(p))
			}
		}
		app := &testApp{accept: func(*Loop, *Conn) Handler {
			return &testHandler{data: data, closed: func(_ *Conn, reason error) { closed <- reason }}
		}}
		g, addr := startGroup(t, o, app)
		total := int64(0)
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				server.Store(&tc.server)
				c := dial(t, addr)
				if _, err := c.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
				total += int64(len("hello"))
				eventually(t, "the first data", func() bool { return totalIn(g) == total })
				if tc.client != nil {
					tc.client(t, c)
				}
				if err := await(t, closed, "Closed"); !tc.reason(err) {
					t.Errorf("Closed with %v", err)
				}
				c.Close()
				eventually(t, "the end of the connection", func() bool {
					return g.loops[0].Stats().Connections+g.loops[1].Stats().Connections == 0
				})
			})
		}
		if len(closed) != 0 {
			t.Errorf("Closed was called %d times too often", len(closed))
		}
	})
}

func totalIn(g *Group) (n int64) {
	for _, l := range g.loops {
		n += l.Stats().BytesIn
	}
	return n
}

// TestLastWordsSurvive: a server that answers and closes while the client is still sending must not
// reset the connection before the client has read the answer.
func TestLastWordsSurvive(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		answer := pattern(100, 1)
		_, addr := startGroup(t, o, &testApp{accept: func(*Loop, *Conn) Handler {
			return &testHandler{data: func(c *Conn, _ []byte) { c.Write(answer); c.Close() }}
		}})
		for range 50 {
			c := dial(t, addr)
			for range 5 {
				if _, err := c.Write(pattern(20_000, 0)); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, answer) {
				t.Fatalf("the client read %d bytes, %v", len(got), err)
			}
			c.Close()
		}
	})
}

// TestCloseWhileSending ends connections whose output is with the kernel: every token comes back once.
func TestCloseWhileSending(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		for _, how := range []string{"abort", "peer closes", "peer resets", "close and peer stalls"} {
			t.Run(how, func(t *testing.T) { closeWhileSending(t, o, how) })
		}
	})
}

func closeWhileSending(t *testing.T, o Options, how string) {
	block := mapPages(1 << 20)
	shared := unsafe.Slice((*byte)(block), 1<<20)
	var released, closedTimes atomic.Int64
	conns := make(chan *Conn, 1)
	app := &testApp{
		accept: func(_ *Loop, c *Conn) Handler {
			conns <- c
			return &testHandler{closed: func(*Conn, error) { closedTimes.Add(1) }}
		},
		release: func(_ *Loop, token unsafe.Pointer) {
			if token != block {
				t.Errorf("released token %p, want %p", token, block)
			}
			released.Add(1)
		},
	}
	g, addr := startGroup(t, o, app)
	client := dial(t, addr)
	c := await(t, conns, "Accept")
	const tokens = 20
	onLoop(t, c.Loop(), func() {
		for range tokens {
			c.WriteShared(shared, block) // 20 MiB: more than the sockets take
			c.Write([]byte("between"))
		}
	})
	eventually(t, "the first bytes", func() bool { return g.loops[c.Loop().Index()].Stats().BytesOut > 0 })
	switch how {
	case "abort":
		onLoop(t, c.Loop(), c.Abort)
	case "peer closes":
		client.Close()
	case "peer resets":
		client.SetLinger(0)
		client.Close()
	case "close and peer stalls":
		onLoop(t, c.Loop(), c.Close)
		if n := g.loops[c.Loop().Index()].Stats().Connections; n != 1 {
			t.Errorf("%d connections, want the one that is still sending", n)
		}
		return // the end of the group ends it; startGroup's cleanup looks for leaks
	}
	eventually(t, "the release of all tokens", func() bool { return released.Load() == tokens })
	eventually(t, "Closed", func() bool { return closedTimes.Load() == 1 })
	eventually(t, "the end", func() bool { return c.Loop().Stats().Connections == 0 })
	if released.Load() != tokens || closedTimes.Load() != 1 {
		t.Errorf("%d tokens released of %d, closed %d times", released.Load(), tokens, closedTimes.Load())
	}
}

func TestRefuse(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, addr := startGroup(t, o, &testApp{accept: func(_ *Loop, c *Conn) Handler { c.Write([]byte("x")); return nil }})
		if c, err := net.Dial("tcp", addr); err == nil { // the reset may come before Dial returns
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("a refused peer read %d bytes, %v", n, err)
			}
			c.Close()
		}
		eventually(t, "the end of the connection", func() bool {
			return g.loops[0].Stats().Refused == 1 && g.loops[0].Stats().Connections == 0
		})
	})
}

// TestNoDescriptorLeak opens and ends a thousand connections in every way.
func TestNoDescriptorLeak(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		var closedTimes atomic.Int64
		app := &testApp{accept: func(*Loop, *Conn) Handler {
			return &testHandler{
				data: func(c *Conn, p []byte) {
					switch p[0] {
					case 'a':
						c.Abort()
					case 'c':
						c.Close()
					case 'w':
						c.Write(p)
						c.Abort()
					}
				},
				closed: func(*Conn, error) { closedTimes.Add(1) },
			}
		}}
		g, addr := startGroup(t, o, app)
		before := openDescriptors(t)
		const workers, each = 4, 250
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					c, err := net.Dial("tcp", addr)
					if err != nil {
						t.Error(err)
						return
					}
					c.Write([]byte{"acwrn"[(w+i)%5]})
					if (w+i)%5 == 3 {
						c.(*net.TCPConn).SetLinger(0)
					}
					c.Close()
				}
			})
		}
		wg.Wait()
		eventually(t, "the end of all connections", func() bool {
			a, b := g.loops[0].Stats(), g.loops[1].Stats()
			return a.Accepted+a.Refused+b.Accepted+b.Refused >= workers*each && a.Connections+b.Connections == 0
		})
		a, b := g.loops[0].Stats(), g.loops[1].Stats()
		if n := closedTimes.Load(); n != a.Accepted+b.Accepted {
			t.Errorf("Closed was called %d times for %d connections", n, a.Accepted+b.Accepted)
		}
		if after := openDescriptors(t); after > before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

func TestShutdownWithOpenConnections(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		reasons := make(chan error, 10)
		app := &testApp{accept: func(*Loop, *Conn) Handler { return &echo{closed: reasons} }}
		g, addr := startGroup(t, o, app)
		var clients []net.Conn
		for range 10 {
			c := dial(t, addr)
			c.Write([]byte("x"))
			mustRead(t, c, 1)
			clients = append(clients, c)
		}
		stopGroup(t, g, app)
		for _, c := range clients {
			if _, err := io.ReadAll(c); err != nil {
				t.Errorf("the peer saw %v, want the end", err)
			}
			if err := await(t, reasons, "Closed"); err != nil {
				t.Errorf("Closed with %v", err)
			}
		}
		if _, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			t.Error("the port still accepts")
		}
		again, err := New(o, &testApp{})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Shutdown(t.Context())
		if _, err := again.Listen(addr); err != nil {
			t.Errorf("the port is not free after Shutdown: %v", err)
		}
	})
}

// TestLingeringEnds: a peer that neither reads nor closes holds a closing connection for a bounded
// time only, whether output is pending or we wait for its FIN.
func TestLingeringEnds(t *testing.T) {
	cases := []struct {
		name   string
		output int
		budget int64
	}{{"nothing pending", 0, drainBudgetNS}, {"output pending", 32 << 20, flushBudgetNS}}
	onBackends(t, func(t *testing.T, o Options) {
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				var now atomic.Int64
				now.Store(1e12)
				o.Clock = now.Load
				conns := make(chan *Conn, 1)
				_, addr := startGroup(t, o, &testApp{accept: func(_ *Loop, c *Conn) Handler { conns <- c; return &echo{} }})
				dial(t, addr)
				c := await(t, conns, "Accept")
				l := c.Loop()
				onLoop(t, l, func() { c.Write(make([]byte, tc.output)); c.Close() })
				// Until the loop has nothing left to do but to wait.
				eventually(t, "the linger timer", func() (armed bool) {
					onLoop(t, l, func() { armed = l.lingerTimer.Armed() && (tc.output > 0 || c.flags&connFinishing != 0) })
					return armed
				})
				now.Add(tc.budget - 10e6)
				for range 3 {
					onLoop(t, l, func() {})
				}
				if n := l.Stats().Connections; n != 1 {
					t.Errorf("%d connections before the budget is used up", n)
				}
				now.Add(2 * lingerEveryNS)
				eventually(t, "the end", func() bool {
					onLoop(t, l, func() {})
					return l.Stats().Connections == 0
				})
			})
		}
	})
}
