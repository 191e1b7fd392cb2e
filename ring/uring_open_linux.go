package ring

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"ringmq/ring/uapi"
)

// uringListBytes is the mapping of the scatter lists: the iovecs, then the msghdrs.
const uringListBytes = uringIovecArena*unsafe.Sizeof(iovec{}) + uringMsghdrs*unsafe.Sizeof(unix.Msghdr{})

// Open makes the ring on the calling thread, registers the receive buffers and arms the bell.
func (u *uring) Open(p *Port) error {
	u.port = p
	r, errno := setupUring(uringEntries, uringCompletions)
	if errno != 0 {
		return fmt.Errorf("io_uring_setup: %w (%s)", errno, setupHint(errno))
	}
	u.ring = r
	_ = r.RegisterSelf() // a refusal only costs a few ns per enter
	o := p.Options()
	if u.bufs, errno = uapi.NewBufRing(r, 0, uint32(o.RecvBuffers), o.RecvBufferSize); errno != 0 {
		return fmt.Errorf("io_uring provided buffers: %w", errno)
	}
	if u.lists = mapPages(uringListBytes); u.lists == nil {
		return fmt.Errorf("mapping scatter lists: %w", syscall.ENOMEM)
	}
	u.iovecs = unsafe.Slice((*iovec)(u.lists), uringIovecArena)
	u.msghdrs = unsafe.Slice((*unix.Msghdr)(unsafe.Add(u.lists, uringIovecArena*unsafe.Sizeof(iovec{}))), uringMsghdrs)
	u.armBell()
	return nil
}

func (u *uring) armBell() {
	s := u.sqe()
	uapi.PrepPollMultishot(s, int32(u.bell.fd), unix.POLLIN)
	s.UserData = uringOpBell << uringOpShift
}

// Listen arms a multishot accept.
func (u *uring) Listen(ln *Listener) {
	for len(u.listeners) <= ln.Index() {
		u.listeners = append(u.listeners, nil)
		u.accepting = append(u.accepting, false)
	}
	u.listeners[ln.Index()] = ln
	u.accepting[ln.Index()] = true
	s := u.sqe()
	uapi.PrepAcceptMultishot(s, int32(ln.Descriptor()), unix.SOCK_CLOEXEC)
	s.UserData = uringOpAccept<<uringOpShift | uint64(ln.Index())
}

// Unlisten cancels the accept; the descriptor is closed when the cancellation has arrived, because an
// armed accept would keep the port busy.
func (u *uring) Unlisten(ln *Listener) {
	if !u.accepting[ln.Index()] {
		u.closeListener(ln)
		return
	}
	s := u.sqe()
	uapi.PrepCancel(s, uringOpAccept<<uringOpShift|uint64(ln.Index()), 0)
	s.UserData = uringOpIgnored << uringOpShift
}

func (u *uring) closeListener(ln *Listener) {
	closeSocket(ln.Descriptor())
	u.port.Unlistened(ln)
}

func (u *uring) onAccept(index int, e *uapi.CQE) {
	ln := u.listeners[index]
	more := e.Flags&uapi.CQEFMore != 0
	u.accepting[index] = more
	if e.Res >= 0 {
		u.port.Accepted(ln, int(e.Res))
	}
	switch {
	case more:
	case ln.Closing():
		u.closeListener(ln)
	case e.Res >= 0 || acceptTransient(syscall.Errno(-e.Res)):
		u.Listen(ln)
	default:
		u.port.AcceptFailed(ln, syscall.Errno(-e.Res))
	}
}

// Close frees the ring, the buffers and the bell; after a failed Open, what there is of them.
func (u *uring) Close() {
	if u.bufs != nil {
		u.bufs.Close(u.ring)
	}
	if u.ring != nil {
		u.ring.Close()
	}
	if u.lists != nil {
		_ = unix.MunmapPtr(u.lists, uringListBytes) // our own mapping: it cannot fail
	}
	u.bell.close()
}
