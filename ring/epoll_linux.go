//ringmq:hot

package ring

import (
	"io"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const epollName = "epoll"

const (
	// epollBatch bounds the events of one turn.
	epollBatch = 256
	// epollReads bounds the receives of one connection in one turn; the event comes again.
	epollReads = 1
	// epollBufferMin is the least size of the one receive buffer, which no connection keeps.
	epollBufferMin = turnConnBytes
	// epollIovecs bounds one gathered send.
	epollIovecs = 256
	// epollSends bounds the sends of one connection in one turn.
	epollSends = 4
)

// Event data: the top byte tells what it is, the rest is a tag or an index.
const (
	epollConn = iota
	epollListener
	epollBell
	epollKindShift = 56
	epollTagMask   = 1<<epollKindShift - 1
)

// Bits of Conn.io.
const (
	epollRegistered = 1 << iota
	epollReading
	epollWriting // waits for room in the socket
	epollGone
)

// epoll is the backend for hosts that refuse io_uring. It is level-triggered: a bounded read needs no
// bookkeeping, what is left reports itself again. Sends go out directly at the end of the turn and wait
// for EPOLLOUT only when the socket is full.
type epoll struct {
	port   *Port
	fd     int
	bell   bell
	buffer []byte
	iovecs []iovec
	msghdr *unix.Msghdr
	events [epollBatch]unix.EpollEvent

	listeners []*Listener
}

func newEpoll(int) (Backend, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	return &epoll{fd: -1, bell: b}, nil
}

// Name returns "epoll".
func (e *epoll) Name() string { return epollName }

// Bell ends a blocked Poll.
func (e *epoll) Bell() { e.bell.ring() }

// Quiet looks for events without taking them.
func (e *epoll) Quiet() bool { return e.waitEvents(e.events[:1], 0) == 0 }

// Adopt reads the addresses; TCP_NODELAY came with the listener.
func (e *epoll) Adopt(fd int) (local, remote netip.AddrPort, err error) { return socketAddrs(fd) }

// Refuse closes a descriptor.
func (e *epoll) Refuse(fd int) { closeSocket(fd) }

// SetReading turns the interest in input on or off.
func (e *epoll) SetReading(c *Conn, on bool) {
	if on {
		c.io |= epollReading
	} else {
		c.io &^= epollReading
	}
	e.update(c)
}

// update tells the kernel what is of interest about a connection. Errors and hang-ups always are.
func (e *epoll) update(c *Conn) {
	if c.io&epollGone != 0 || c.io&(epollRegistered|epollReading|epollWriting) == 0 {
		return
	}
	var ev unix.EpollEvent
	if c.io&epollReading != 0 {
		ev.Events = unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if c.io&epollWriting != 0 {
		ev.Events |= unix.EPOLLOUT
	}
	*eventData(&ev) = epollConn<<epollKindShift | c.Tag()
	op := unix.EPOLL_CTL_MOD
	if c.io&epollRegistered == 0 {
		c.io |= epollRegistered
		op = unix.EPOLL_CTL_ADD
	}
	if err := e.control(op, int(c.fd), &ev); err != 0 {
		// ENOMEM or the limit on watches: the connection cannot be served.
		c.reason = err
		c.Abort()
	}
}

func (e *epoll) control(op, fd int, ev *unix.EpollEvent) syscall.Errno {
	e.port.CountSyscall()
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(e.fd), uintptr(op), uintptr(fd),
		uintptr(unsafe.Pointer(ev)), 0, 0)
	return errno
}

// eventData is the 64-bit data word, which package unix splits in two.
func eventData(ev *unix.EpollEvent) *uint64 { return (*uint64)(unsafe.Pointer(&ev.Fd)) }

// waitEvents is epoll_pwait; wait in ns as in Poll, rounded up to whole milliseconds.
func (e *epoll) waitEvents(dst []unix.EpollEvent, wait int64) int {
	var n uintptr
	var errno syscall.Errno
	p := uintptr(unsafe.Pointer(&dst[0]))
	e.port.CountSyscall()
	if wait == 0 {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.fd), p, uintptr(len(dst)), 0, 0, 0)
	} else {
		ms := int64(-1)
		if wait > 0 {
			ms = min((wait+999_999)/1e6, 1<<30)
		}
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.fd), p, uintptr(len(dst)), uintptr(ms), 0, 0)
	}
	if errno != 0 {
		must(errno == syscall.EINTR, "epoll_pwait failed")
		return 0
	}
	return int(n)
}

// Poll waits and handles the events.
func (e *epoll) Poll(wait int64) int {
	n := e.waitEvents(e.events[:], wait)
	e.port.Tick()
	for i := range e.events[:n] {
		ev := &e.events[i]
		data := *eventData(ev)
		switch data >> epollKindShift {
		case epollConn:
			// An earlier event of this batch may have ended the connection: then the tag is void.
			if c := e.port.Conn(data & epollTagMask); c != nil && c.io&epollGone == 0 {
				e.onConn(c, ev.Events)
			}
		case epollListener:
			e.onAccept(e.listeners[data&epollTagMask])
		}
	}
	return n
}

func (e *epoll) onConn(c *Conn, events uint32) {
	if events&unix.EPOLLOUT != 0 && c.io&epollWriting != 0 {
		c.io &^= epollWriting
		c.SetSending(false)
		e.Send(c)
		if c.io&epollWriting == 0 {
			e.update(c)
		}
	}
	if c.io&epollReading != 0 {
		if events&^unix.EPOLLOUT != 0 {
			e.receive(c)
		}
		return
	}
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		e.ended(c, socketError(int(c.fd)))
	}
}

// receive reads until the socket is empty or the bound is reached.
func (e *epoll) receive(c *Conn) {
	for range epollReads {
		e.port.CountSyscall()
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&e.buffer[0])),
			uintptr(len(e.buffer)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == syscall.EAGAIN:
			return
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			e.ended(c, errno)
			return
		case n == 0:
			e.ended(c, io.EOF)
			return
		}
		e.port.Received(c, e.buffer[:n])
		if int(n) < len(e.buffer) || c.io&(epollReading|epollGone) != epollReading {
			return
		}
	}
}

// ended reports the end of input and loses interest in it, or the level would report for ever.
func (e *epoll) ended(c *Conn, err error) {
	if c.io&epollReading != 0 {
		c.io &^= epollReading
		e.update(c)
	}
	e.port.Ended(c, err)
}

// Send sends until everything is out, the socket is full or the bound is reached.
func (e *epoll) Send(c *Conn) {
	for range epollSends {
		count, bytes := e.port.Gather(c, e.iovecs)
		e.port.CountSyscall()
		n, errno := sendNow(c.fd, e.iovecs[:count], e.msghdr)
		if errno != 0 && !sendTransient(errno) {
			e.port.Sent(c, 0, errno)
			return
		}
		if n < bytes {
			c.SetSending(true)
			c.io |= epollWriting
			e.update(c)
		}
		e.port.Sent(c, n, nil)
		if c.Sending() || c.Pending() == 0 {
			return
		}
	}
}

// ShutdownWrite sends FIN. An error means that the connection is already gone; its input will tell.
func (e *epoll) ShutdownWrite(c *Conn) { shutdownSocket(c.fd, unix.SHUT_WR) }

// Detach closes at once: nothing is ever in flight. Closing removes the descriptor from the set.
func (e *epoll) Detach(c *Conn, reset bool) {
	c.io |= epollGone
	c.SetSending(false)
	if reset {
		resetOnClose(int(c.fd))
	} else {
		shutdownSocket(c.fd, unix.SHUT_RDWR)
	}
	closeSocket(int(c.fd))
	e.port.Detached(c)
}
