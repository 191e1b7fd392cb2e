package ring

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEcho(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		closed := make(chan error, 1)
		var conn *Conn
		app := &testApp{accept: func(_ *Loop, c *Conn) Handler { conn = c; return &echo{closed: closed} }}
		g, addr := startGroup(t, o, app)
		c := dial(t, addr)
		for i, size := range []int{1, 100, 5_000, 300_000, 7} {
			p := pattern(size, i)
			go c.Write(p)
			if got := mustRead(t, c, size); !bytes.Equal(got, p) {
				t.Fatalf("size %d: the echo differs", size)
			}
		}
		onLoop(t, g.loops[0], func() {
			if conn.LocalAddr().String() != addr || conn.RemoteAddr().String() != c.LocalAddr().String() {
				t.Errorf("addresses %v <- %v, want %v <- %v", conn.LocalAddr(), conn.RemoteAddr(), addr, c.LocalAddr())
			}
			if conn.BytesIn() != 305_108 || conn.BytesOut() != 305_108 || conn.Pending() != 0 {
				t.Errorf("counted %d in, %d out, %d pending", conn.BytesIn(), conn.BytesOut(), conn.Pending())
			}
			if v, err := unix.GetsockoptInt(conn.Descriptor(), unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil || v == 0 {
				t.Errorf("TCP_NODELAY is %d (%v)", v, err)
			}
		})
		c.Close()
		if err := await(t, closed, "Closed"); err != io.EOF {
			t.Errorf("reason %v, want io.EOF", err)
		}
	})
}

func TestManyConnections(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		g, addr := startGroup(t, o, &testApp{accept: func(*Loop, *Conn) Handler { return &echo{} }})
		const conns, rounds = 200, 20
		var wg sync.WaitGroup
		fail := make(chan error, conns)
		for i := range conns {
			c := dial(t, addr)
			wg.Go(func() {
				for r := range rounds {
					p := pattern(1+(i*37+r*911)%4000, i+r)
					if _, err := c.Write(p); err != nil {
						fail <- err
						return
					}
					got := make([]byte, len(p))
					if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, p) {
						fail <- fmt.Errorf("connection %d round %d: %v", i, r, err)
						return
					}
				}
			})
		}
		wg.Wait()
		select {
		case err := <-fail:
			t.Fatal(err)
		default:
		}
		for i, l := range g.loops {
			if n := l.Stats().Accepted; n != conns/2 {
				t.Errorf("loop %d got %d connections of %d", i, n, conns)
			}
		}
	})
}

func TestIPv6AndAllAddresses(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		app := &testApp{}
		remote := make(chan string, 1)
		app.accept = func(_ *Loop, c *Conn) Handler { remote <- c.RemoteAddr().Addr().String(); return &echo{} }
		g, _ := startGroup(t, o, app)
		all, err := g.Listen(":0")
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"127.0.0.1", "::1"} {
			c, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(all.(*net.TCPAddr).Port)))
			if err != nil {
				if host == "::1" {
					t.Skipf("no IPv6 here: %v", err)
				}
				t.Fatal(err)
			}
			if got := await(t, remote, "Accept"); got != host {
				t.Errorf("a peer at %s is seen as %s", host, got)
			}
			c.Close()
		}
	})
}
