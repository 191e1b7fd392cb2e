package ring

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// listenBacklog is cut to net.core.somaxconn by the kernel.
	listenBacklog = 4096
	// acceptRetryNS is the pause after accept ran into a limit (descriptors, memory).
	acceptRetryNS = 100e6
)

// Listener is one listening socket. The first loop accepts on all of them and deals the connections out.
type Listener struct {
	fd      int
	index   int // in Loop.listeners, for completion and event data
	addr    net.Addr
	closing bool // Unlisten was called
	closed  bool
	failing bool // the failure was logged
	retry   Timer
}

// Descriptor returns the listening descriptor. Backends only.
func (ln *Listener) Descriptor() int { return ln.fd }

// Index names the listener in completion and event data. Backends only.
func (ln *Listener) Index() int { return ln.index }

// Closing reports that Unlisten was called. Backends only.
func (ln *Listener) Closing() bool { return ln.closing }

// listen makes a listening TCP socket. An empty host means every address of both families.
func listen(addr string, nonblock bool) (*Listener, error) {
	ta, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("ring: listening on %q: %w", addr, err)
	}
	v4 := ta.IP.To4() != nil
	ln, err := listenOn(ta, v4, nonblock)
	if err == syscall.EAFNOSUPPORT && ta.IP == nil { // a host without IPv6
		ln, err = listenOn(ta, true, nonblock)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: ta, Err: err}
	}
	return ln, nil
}

func listenOn(ta *net.TCPAddr, v4, nonblock bool) (*Listener, error) {
	family, sa := sockaddrOf(ta, v4)
	kind := unix.SOCK_STREAM | unix.SOCK_CLOEXEC
	if nonblock {
		kind |= unix.SOCK_NONBLOCK
	}
	fd, err := unix.Socket(family, kind, unix.IPPROTO_TCP)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Listener, error) {
		_ = unix.Close(fd) // nothing was sent on it
		return nil, err
	}
	// Accepted sockets inherit all but the first two: one call here instead of one per connection.
	options := []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, boolInt(ta.IP != nil)},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	}
	for _, o := range options {
		if o.level == unix.IPPROTO_IPV6 && family != unix.AF_INET6 {
			continue
		}
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fail(err)
		}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return fail(err)
	}
	if err := unix.Listen(fd, listenBacklog); err != nil {
		return fail(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return fail(err)
	}
	return &Listener{fd: fd, addr: net.TCPAddrFromAddrPort(addrPortOf(bound))}, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sockaddrOf(ta *net.TCPAddr, v4 bool) (family int, sa unix.Sockaddr) {
	if v4 {
		s := &unix.SockaddrInet4{Port: ta.Port}
		copy(s.Addr[:], ta.IP.To4())
		return unix.AF_INET, s
	}
	s := &unix.SockaddrInet6{Port: ta.Port}
	copy(s.Addr[:], ta.IP.To16())
	if ta.Zone != "" {
		if ifi, err := net.InterfaceByName(ta.Zone); err == nil {
			s.ZoneId = uint32(ifi.Index)
		}
	}
	return unix.AF_INET6, s
}

// addrPortOf converts a socket address; an IPv4 peer of a dual-stack socket comes out as IPv4.
func addrPortOf(sa unix.Sockaddr) netip.AddrPort {
	switch s := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.Addr).Unmap(), uint16(s.Port))
	}
	return netip.AddrPort{}
}

// socketAddrs reads both ends' addresses. A peer that has already gone has none: ENOTCONN.
func socketAddrs(fd int) (local, remote netip.AddrPort, err error) {
	l, err := unix.Getsockname(fd)
	if err != nil {
		return local, remote, err
	}
	r, err := unix.Getpeername(fd)
	if err != nil {
		return local, remote, err
	}
	return addrPortOf(l), addrPortOf(r), nil
}

// startListening begins to accept on the group's listeners. First loop only.
func (l *Loop) startListening(listeners []*Listener) {
	for _, ln := range listeners {
		if l.stopping || ln.closing {
			ln.closing, ln.closed = true, true
			l.backend.Refuse(ln.fd)
			continue
		}
		ln.index = len(l.listeners)
		ln.retry.Fire = func(int64) {
			if !ln.closing {
				l.backend.Listen(ln)
			}
		}
		l.listeners = append(l.listeners, ln)
		l.listening++
		l.backend.Listen(ln)
	}
}

func (l *Loop) unlisten(ln *Listener) {
	if ln.closing {
		return
	}
	ln.closing = true
	l.Disarm(&ln.retry)
	l.backend.Unlisten(ln)
}

func (l *Loop) unlistened(ln *Listener) {
	must(!ln.closed, "a listener is closed twice")
	ln.closed = true
	l.listening--
	if l.stopping {
		l.checkStopped()
	}
}

// accepted deals a new descriptor out.
func (l *Loop) accepted(ln *Listener, fd int) {
	if ln != nil {
		if ln.closing {
			l.backend.Refuse(fd)
			return
		}
		if ln.failing {
			ln.failing = false
			l.group.options.Log.Info("accepting connections again", "address", ln.addr.String())
		}
	}
	index := l.group.placeNext()
	if index == l.index {
		l.adopt(fd)
		return
	}
	peer := l.group.loops[index]
	if !peer.Post(func() { peer.adopt(fd) }) {
		l.group.left(index)
		l.backend.Refuse(fd)
	}
}

// acceptFailed pauses accepting: running out of descriptors must neither spin nor end the service.
func (l *Loop) acceptFailed(ln *Listener, errno syscall.Errno) {
	if ln.closing {
		return
	}
	if !ln.failing {
		ln.failing = true
		l.group.options.Log.Error("cannot accept connections; trying again until it works",
			"address", ln.addr.String(), "error", errno.Error(), "hint", acceptHint(errno))
	}
	l.Arm(&ln.retry, l.now+acceptRetryNS)
}

func acceptHint(errno syscall.Errno) string {
	switch errno {
	case syscall.EMFILE:
		return "the process is out of descriptors: raise LimitNOFILE or ulimit -n"
	case syscall.ENFILE:
		return "the system is out of descriptors: raise fs.file-max"
	case syscall.ENOBUFS, syscall.ENOMEM:
		return "the system is short of memory"
	}
	return ""
}

// adopt makes a connection of a descriptor that was placed on this loop.
func (l *Loop) adopt(fd int) {
	if l.stopping {
		l.group.left(l.index)
		l.backend.Refuse(fd)
		return
	}
	local, remote, err := l.backend.Adopt(fd)
	if err != nil { // reset before we looked at it: an everyday event
		l.stats.refused.add(1)
		l.group.left(l.index)
		l.backend.Refuse(fd)
		return
	}
	c := &Conn{loop: l, fd: int32(fd), local: local, remote: remote, lastRead: l.now}
	l.place(c)
	l.stats.connections.add(1)
	l.stats.accepted.add(1)
	c.handler = l.app.Accept(l, c)
	if c.handler == nil {
		l.stats.refused.add(1)
		c.handler = refused{}
		c.flags |= connClosing | connClosedTold | connAbort
		l.end(c)
		return
	}
	if c.flags&(connPaused|connAbort) == 0 {
		l.backend.SetReading(c, true)
	}
}

// place gives the connection a slot and a generation.
func (l *Loop) place(c *Conn) {
	l.slotGen = (l.slotGen + 1) & 0xffffff
	c.gen = l.slotGen
	if n := len(l.freeSlots); n > 0 {
		c.slot = l.freeSlots[n-1]
		l.freeSlots = l.freeSlots[:n-1]
		l.slots[c.slot] = c
		return
	}
	c.slot = uint32(len(l.slots))
	l.slots = append(l.slots, c)
}

// refused is the handler of a connection that the application did not want.
type refused struct{}

func (refused) Data(*Conn, []byte)  {}
func (refused) Drained(*Conn)       {}
func (refused) Closed(*Conn, error) {}
