package ring

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollListBytes is the mapping of the scatter list and its msghdr.
const epollListBytes = epollIovecs*unsafe.Sizeof(iovec{}) + unsafe.Sizeof(unix.Msghdr{})

// Open makes the epoll set and the buffers.
func (e *epoll) Open(p *Port) error {
	e.port = p
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll_create: %w", err)
	}
	e.fd = fd
	size := max(p.Options().RecvBufferSize, epollBufferMin)
	buffer := mapPages(uintptr(size))
	list := mapPages(epollListBytes)
	if buffer == nil || list == nil {
		return fmt.Errorf("mapping the receive buffer: %w", syscall.ENOMEM)
	}
	e.buffer = unsafe.Slice((*byte)(buffer), size)
	e.iovecs = unsafe.Slice((*iovec)(list), epollIovecs)
	e.msghdr = (*unix.Msghdr)(unsafe.Add(list, epollIovecs*unsafe.Sizeof(iovec{})))
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}
	*eventData(&ev) = epollBell << epollKindShift
	if errno := e.control(unix.EPOLL_CTL_ADD, e.bell.fd, &ev); errno != 0 {
		return fmt.Errorf("epoll_ctl: %w", errno)
	}
	return nil
}

// Listen watches a listener.
func (e *epoll) Listen(ln *Listener) {
	for len(e.listeners) <= ln.Index() {
		e.listeners = append(e.listeners, nil)
	}
	e.listeners[ln.Index()] = ln
	ev := unix.EpollEvent{Events: unix.EPOLLIN}
	*eventData(&ev) = epollListener<<epollKindShift | uint64(ln.Index())
	if errno := e.control(unix.EPOLL_CTL_ADD, ln.Descriptor(), &ev); errno != 0 {
		e.port.AcceptFailed(ln, errno)
	}
}

// Unlisten closes a listener.
func (e *epoll) Unlisten(ln *Listener) {
	closeSocket(ln.Descriptor())
	e.port.Unlistened(ln)
}

// epollAccepts bounds the connections taken in one turn.
const epollAccepts = 64

func (e *epoll) onAccept(ln *Listener) {
	if ln.Closing() {
		return
	}
	for range epollAccepts {
		e.port.CountSyscall()
		fd, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(ln.Descriptor()), 0, 0,
			unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0, 0)
		switch {
		case errno == 0:
			e.port.Accepted(ln, int(fd))
			if ln.Closing() { // the application may stop accepting from inside Accept
				return
			}
		case errno == syscall.EAGAIN:
			return
		case !acceptTransient(errno):
			// Out of the set until the loop calls Listen again, or the level would report for ever.
			if gone := e.control(unix.EPOLL_CTL_DEL, ln.Descriptor(), nil); gone != 0 {
				return
			}
			e.port.AcceptFailed(ln, errno)
			return
		}
	}
}

// socketError takes the pending error of a socket; one that hung up without an error counts as reset.
func socketError(fd int) syscall.Errno {
	v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil || v == 0 {
		return syscall.ECONNRESET
	}
	return syscall.Errno(v)
}

// Close frees the set, the buffers and the bell; after a failed Open, what there is of them.
func (e *epoll) Close() {
	if e.fd >= 0 {
		_ = unix.Close(e.fd) // an epoll set has nothing to report at close
	}
	if e.buffer != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(&e.buffer[0]), uintptr(len(e.buffer))) // our own mapping
	}
	if e.msghdr != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(&e.iovecs[0]), epollListBytes)
	}
	e.bell.close()
}
