package session091

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"ringmq/frame/amqp091"
	"ringmq/ring"
)

// bareBackend is the least I/O that a loop runs on: the test hands bytes in, and
// what goes out is counted and forgotten. It allocates nothing.
type bareBackend struct {
	port *ring.Port
	dial []int
	iov  [64]unix.Iovec
	out  int
}

func (b *bareBackend) Name() string                { return "bare" }
func (b *bareBackend) Listen(*ring.Listener)       {}
func (b *bareBackend) Unlisten(l *ring.Listener)   { b.port.Unlistened(l) }
func (b *bareBackend) Refuse(int)                  {}
func (b *bareBackend) SetReading(*ring.Conn, bool) {}
func (b *bareBackend) ShutdownWrite(*ring.Conn)    {}
func (b *bareBackend) Quiet() bool                 { return true }
func (b *bareBackend) Bell()                       {}
func (b *bareBackend) Close()                      {}

// Open implements ring.Backend.
func (b *bareBackend) Open(p *ring.Port) error {
	b.port = p
	return nil
}

// Adopt implements ring.Backend.
func (b *bareBackend) Adopt(int) (local, remote netip.AddrPort, err error) {
	here := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 5672)
	return here, here, nil
}

// Send implements ring.Backend.
func (b *bareBackend) Send(c *ring.Conn) {
	for c.Pending() > 0 {
		_, n := b.port.Gather(c, b.iov[:])
		b.out += n
		b.port.Sent(c, n, nil)
	}
}

// Detach implements ring.Backend.
func (b *bareBackend) Detach(c *ring.Conn, _ bool) { b.port.Detached(c) }

// Poll implements ring.Backend.
func (b *bareBackend) Poll(int64) int {
	b.port.Tick()
	n := len(b.dial)
	for _, fd := range b.dial {
		b.port.AcceptHere(fd)
	}
	b.dial = b.dial[:0]
	return n
}

// bareServer is a server on one bare loop.
type bareServer struct {
	testing.TB
	*Server
	backend *bareBackend
	lp      *loopState
	now     int64
	fds     int
}

func newBareServer(tb testing.TB) *bareServer {
	s := &bareServer{TB: tb, Server: NewServer(Options{ChannelMax: 2047, Loops: 1}), backend: &bareBackend{}, now: 1e12}
	group, err := ring.New(ring.Options{
		Cores:      []int{0},
		NewBackend: func(int) (ring.Backend, error) { return s.backend, nil },
		Clock:      func() int64 { return s.now },
	}, s.Server)
	if err != nil {
		tb.Fatal(err)
	}
	s.Bind(group.Loops())
	if err := group.Drive(); err != nil {
		tb.Fatal(err)
	}
	s.lp = s.loops[0]
	return s
}

func (s *bareServer) turn() {
	s.now += 1000
	s.backend.port.Turn()
}

// accept makes a connection that has said nothing yet.
func (s *bareServer) accept() *conn {
	known := map[*conn]bool{}
	for c := range s.lp.conns {
		known[c] = true
	}
	s.fds++
	s.backend.dial = append(s.backend.dial, s.fds)
	s.turn()
	for c := range s.lp.conns {
		if !known[c] {
			return c
		}
	}
	s.Fatal("the connection was not accepted")
	return nil
}

// give hands bytes to a connection as if they had been received.
func (s *bareServer) give(c *conn, p []byte) { s.backend.port.Received(c.rc, p) }

// handshakeBytes are what a client sends until its connection is open and has
// channel 1.
func handshakeBytes() []byte {
	b := append([]byte(nil), amqp091.ProtocolHeader[:]...)
	b = startOk().Append(b, 0)
	b = (&amqp091.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072}).Append(b, 0)
	b = (&amqp091.ConnectionOpen{VirtualHost: []byte("/")}).Append(b, 0)
	return (&amqp091.ChannelOpen{}).Append(b, 1)
}

// open makes a connection with channel 1 and runs methods on it.
func (s *bareServer) open(methods ...amqp091.Method) *conn {
	c := s.accept()
	b := handshakeBytes()
	for _, m := range methods {
		b = m.Append(b, 1)
	}
	s.give(c, b)
	s.turn()
	if c.state != stateOpen || c.channel(1) == nil || c.channel(1).closing {
		s.Fatalf("state %s after the handshake: %s", c.state, c.lastError)
	}
	return c
}
