//ringmq:hot

package ring

import (
	"io"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"ringmq/ring/uapi"
)

const uringName = "io_uring"

// Sizes of one ring. The completion queue holds eight times the submissions, and overflow loses
// nothing, it only costs.
const (
	uringEntries     = 1024
	uringCompletions = 8192
	// uringBatch bounds the completions that one turn acts on, uringInputMax those that wait for it
	// outside of the kernel's queue.
	uringBatch    = 256
	uringInputMax = 4096
	// uringIovecs bounds one gathered send; uringIovecArena is for all sends of one submission.
	uringIovecs     = 256
	uringIovecArena = 8192
	uringMsghdrs    = 512
	// uringSendsDirect is up to how many dirty connections are sent for without a submission.
	uringSendsDirect = 4
)

// What a completion is of: the top byte of its user data. The rest is the connection's tag or the
// listener's index.
const (
	uringOpIgnored = iota
	uringOpRecv
	uringOpSend
	uringOpAccept
	uringOpBell
	uringOpFile
	uringOpShift = 56
	uringTagMask = 1<<uringOpShift - 1
)

// Bits of Conn.io.
const (
	uringRecvArmed  = 1 << iota // a multishot receive is with the kernel
	uringWantRead               // arm it again when it ends
	uringCancelling             // its cancellation is under way
	uringSendBusy               // a send is with the kernel
	uringGone                   // Detach was called
)

// uringInFlight: while one of these is set the kernel refers to the connection.
const uringInFlight = uringRecvArmed | uringSendBusy

// uring is the io_uring backend. Receiving is one multishot operation per connection into buffers that
// the kernel takes from a common ring when bytes arrive; sending is one operation per dirty connection
// and turn; all submissions of a turn leave with one enter. Closing is shutdown, then the last
// completions, then close: closing a descriptor under an armed receive sends no FIN.
type uring struct {
	port *Port
	ring *uapi.Ring
	bufs *uapi.BufRing
	bell bell

	cqes  [uringBatch]uapi.CQE
	input []uapi.CQE // reaped, not yet acted on
	turn  uint32     // counts calls of handleInput

	// Scatter lists of the sends prepared since the last enter. The kernel copies them when it takes
	// the submission, so one enter later all of it is free again.
	lists    unsafe.Pointer // their mapping
	iovecs   []iovec
	iovecPos int
	msghdrs  []unix.Msghdr
	msgPos   int

	listeners []*Listener // by index
	accepting []bool      // by index: a multishot accept is with the kernel
	recycled  bool        // buffers wait for Publish
	fileNext  bool        // the sync that follows a write is prepared
}

func newUring(int) (Backend, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	return &uring{bell: b}, nil
}

// Name returns "io_uring".
func (u *uring) Name() string { return uringName }

// Bell ends a blocked Poll.
func (u *uring) Bell() { u.bell.ring() }

// Quiet reports that neither completions nor work for the kernel are waiting.
func (u *uring) Quiet() bool {
	return len(u.input) == 0 && !u.ring.Ready() && u.ring.Unsubmitted() == 0
}

// sqe returns a free submission entry, not zeroed (the Prep helpers do that), handing the earlier ones
// over when all are in use.
func (u *uring) sqe() *uapi.SQE {
	s := u.ring.Next()
	for s == nil {
		u.submitOnly()
		s = u.ring.Next()
	}
	return s
}

// submitOnly hands over what is prepared without looking at completions.
func (u *uring) submitOnly() {
	u.port.CountSyscall()
	u.checkEnter(u.ring.SubmitOnly())
}

// checkEnter judges the outcome of an enter and frees the scatter lists when all was taken.
func (u *uring) checkEnter(errno syscall.Errno) {
	switch errno {
	case 0, syscall.EINTR, syscall.ETIME, syscall.EAGAIN, syscall.EBUSY:
	default:
		must(false, "io_uring_enter failed: "+errno.Error())
	}
	if u.ring.Unsubmitted() == 0 {
		u.iovecPos, u.msgPos = 0, 0
	}
}

// Adopt reads the addresses; TCP_NODELAY came with the listener.
func (u *uring) Adopt(fd int) (local, remote netip.AddrPort, err error) { return socketAddrs(fd) }

// Refuse closes a descriptor that no operation refers to.
func (u *uring) Refuse(fd int) { closeSocket(fd) }

// SetReading arms or cancels the receive.
func (u *uring) SetReading(c *Conn, on bool) {
	if on {
		c.io |= uringWantRead
		if c.io&(uringRecvArmed|uringGone) == 0 {
			u.armRecv(c)
		}
		return
	}
	c.io &^= uringWantRead
	if c.io&(uringRecvArmed|uringCancelling) == uringRecvArmed {
		c.io |= uringCancelling
		s := u.sqe()
		uapi.PrepCancel(s, uringOpRecv<<uringOpShift|c.Tag(), 0)
		s.UserData = uringOpIgnored << uringOpShift
	}
}

func (u *uring) armRecv(c *Conn) {
	s := u.sqe()
	uapi.PrepRecvMultishot(s, c.fd, u.bufs.Group())
	s.UserData = uringOpRecv<<uringOpShift | c.Tag()
	c.io |= uringRecvArmed
}

// Send sends at once while few connections have output, else prepares one gathered send for the common
// enter. Measured (64-byte echo): with 1 to 4 connections the direct call saves 4 to 20 % of the round
// trip, because the completion needs no turn of its own; with 64 and 256 the two are equal and the
// common enter saves the calls. What does not fit the socket always becomes an operation: MSG_WAITALL
// lets the kernel finish it as the peer reads.
func (u *uring) Send(c *Conn) {
	if !u.roomForSend() {
		u.port.loop.markDirty(c) // the kernel is short of memory: next turn
		return
	}
	iov := u.iovecs[u.iovecPos : u.iovecPos+uringIovecs]
	count, bytes := u.port.Gather(c, iov)
	if u.port.loop.flushing <= uringSendsDirect {
		u.port.CountSyscall()
		n, errno := sendNow(c.fd, iov[:count], &u.msghdrs[u.msgPos])
		if errno != 0 && !sendTransient(errno) {
			u.port.Sent(c, 0, errno)
			return
		}
		if n == bytes {
			u.port.Sent(c, n, nil)
			return
		}
		c.SetSending(true)
		u.port.Sent(c, n, nil)
		count, _ = u.port.Gather(c, iov)
	}
	u.submitSend(c, iov[:count])
}

// roomForSend makes sure that one more scatter list fits.
func (u *uring) roomForSend() bool {
	if u.iovecPos+uringIovecs > len(u.iovecs) || u.msgPos == len(u.msghdrs) {
		u.submitOnly()
	}
	return u.iovecPos+uringIovecs <= len(u.iovecs) && u.msgPos < len(u.msghdrs)
}

// submitSend prepares a send of iov, whose elements lie at iovecPos.
func (u *uring) submitSend(c *Conn, iov []iovec) {
	const flags = unix.MSG_NOSIGNAL | unix.MSG_WAITALL
	s := u.sqe()
	if len(iov) == 1 {
		uapi.PrepSend(s, c.fd, uint64(uintptr(unsafe.Pointer(iov[0].Base))), uint32(iov[0].Len), flags)
	} else {
		m := &u.msghdrs[u.msgPos]
		m.Iov, m.Iovlen = &iov[0], uint64(len(iov))
		uapi.PrepSendmsg(s, c.fd, uint64(uintptr(unsafe.Pointer(m))), flags)
		u.iovecPos += len(iov)
		u.msgPos++
	}
	s.UserData = uringOpSend<<uringOpShift | c.Tag()
	c.io |= uringSendBusy
	c.SetSending(true)
}

// ShutdownWrite sends FIN. An error means that the connection is already gone; its receive will tell.
func (u *uring) ShutdownWrite(c *Conn) { shutdownSocket(c.fd, unix.SHUT_WR) }

// Detach ends what is in flight and closes the socket when its last completion has come. Shutting the
// socket down ends everything, but sends FIN; where the peer must see a reset instead, the operations
// are cancelled.
func (u *uring) Detach(c *Conn, reset bool) {
	c.io |= uringGone
	c.io &^= uringWantRead
	if reset {
		resetOnClose(int(c.fd))
	}
	switch {
	case c.io&uringInFlight == 0:
		u.close(c)
	case reset:
		s := u.sqe()
		uapi.PrepCancelFd(s, c.fd, uapi.CancelAll)
		s.UserData = uringOpIgnored << uringOpShift
	default:
		shutdownSocket(c.fd, unix.SHUT_RDWR)
	}
}

// close ends a connection that the kernel holds nothing of.
func (u *uring) close(c *Conn) {
	closeSocket(int(c.fd))
	u.port.Detached(c)
}

// Poll submits, waits, and handles the completions.
func (u *uring) Poll(wait int64) int {
	switch {
	case wait != 0 && len(u.input) == 0 && !u.ring.Ready():
		u.port.CountSyscall()
		u.checkEnter(u.ring.Wait(wait))
	case u.ring.Unsubmitted() > 0 || u.ring.NeedsEnter():
		u.port.CountSyscall()
		u.checkEnter(u.ring.Submit())
	}
	u.port.Tick()
	u.reap()
	if u.fileNext {
		u.fileNext = false
		u.submitOnly()
	}
	events := u.port.RunFiles()
	events += u.handleInput()
	if u.recycled {
		u.recycled = false
		u.bufs.Publish()
	}
	return events
}

// reap copies completions out. Sends are acted on at once: a connection whose output is out may be
// given more in this turn, however much input stands before it. Results of file operations are noted at
// once, for RunFiles. All else queues up in input.
func (u *uring) reap() {
	for len(u.input) < uringInputMax {
		n := u.ring.Reap(u.cqes[:])
		for i := range u.cqes[:n] {
			e := &u.cqes[i]
			switch e.UserData >> uringOpShift {
			case uringOpSend:
				u.onSend(u.conn(e), e)
			case uringOpFile:
				u.onFile(e)
			default:
				u.input = append(u.input, *e)
			}
		}
		if n < len(u.cqes) {
			return
		}
	}
}

// handleInput acts on what has completed, up to the bounds of a turn: deliveries and other work come
// between, and a fast publisher does not run ahead of what its messages cause. A connection that has had
// its share is passed over, in order, so that an acknowledgement never waits behind another connection's
// flood. It returns how many completions were worth another turn; what is left makes the next Poll
// return at once.
func (u *uring) handleInput() (events int) {
	u.turn++
	budget := turnInputBytes
	kept := 0
	for i := range u.input {
		e := &u.input[i]
		if i-kept >= uringBatch || budget <= 0 || u.hadShare(e) {
			u.input[kept] = *e
			kept++
			continue
		}
		if e.UserData>>uringOpShift == uringOpRecv && e.Res > 0 {
			budget -= int(e.Res)
		}
		events += u.handle(e)
	}
	u.input = u.input[:kept]
	return events
}

// hadShare reports that a completion is input of a connection that was served enough in this turn. What
// comes after such a completion is of the same connection's future and is passed over as well.
func (u *uring) hadShare(e *uapi.CQE) bool {
	if e.UserData>>uringOpShift != uringOpRecv {
		return false
	}
	c := u.conn(e)
	if c.inputTurn != u.turn {
		c.inputTurn, c.inputBytes = u.turn, 0
	}
	if c.inputBytes >= turnConnBytes {
		return true
	}
	c.inputBytes += max(e.Res, 0)
	return false
}

// handle acts on one completion and returns 1 if it was worth another turn.
func (u *uring) handle(e *uapi.CQE) int {
	switch e.UserData >> uringOpShift {
	case uringOpRecv:
		u.onRecv(u.conn(e), e)
		return 1
	case uringOpAccept:
		u.onAccept(int(e.UserData&uringTagMask), e)
		return 1
	case uringOpBell:
		if e.Flags&uapi.CQEFMore == 0 {
			u.armBell()
		}
		return 1
	}
	return 0
}

// conn finds a completion's connection. It must exist: connections outlive their operations.
func (u *uring) conn(e *uapi.CQE) *Conn {
	c := u.port.Conn(e.UserData & uringTagMask)
	must(c != nil, "a completion arrived for a connection that is gone")
	return c
}

func (u *uring) onRecv(c *Conn, e *uapi.CQE) {
	if e.Flags&uapi.CQEFMore == 0 {
		c.io &^= uringRecvArmed | uringCancelling
	}
	if e.Flags&uapi.CQEFBuffer != 0 {
		bid := uint16(e.Flags >> uapi.CQEBufferShift)
		if e.Res > 0 && c.io&uringGone == 0 {
			u.port.Received(c, u.bufs.Bytes(bid, int(e.Res)))
		}
		u.bufs.Recycle(bid)
		u.recycled = true
	}
	if e.Res <= 0 {
		u.recvEnded(c, syscall.Errno(-e.Res))
	}
	if c.io&(uringWantRead|uringRecvArmed|uringGone) == uringWantRead {
		u.armRecv(c)
	}
	u.maybeClose(c)
}

// recvEnded judges the end of a multishot receive. Some ends only mean: arm it again.
func (u *uring) recvEnded(c *Conn, errno syscall.Errno) {
	switch errno {
	case 0:
		c.io &^= uringWantRead
		u.port.Ended(c, io.EOF)
	case syscall.ENOBUFS:
		u.port.loop.stats.recvStarved.add(1)
	case syscall.ECANCELED, syscall.EINTR, syscall.EAGAIN:
	default:
		c.io &^= uringWantRead
		u.port.Ended(c, errno)
	}
}

func (u *uring) onSend(c *Conn, e *uapi.CQE) {
	c.io &^= uringSendBusy
	c.SetSending(false)
	switch errno := syscall.Errno(-e.Res); {
	case e.Res >= 0:
		u.port.Sent(c, int(e.Res), nil)
	case sendTransient(errno):
		u.port.Sent(c, 0, nil) // nothing taken: the next turn tries again
	default:
		u.port.Sent(c, 0, errno)
	}
	u.maybeClose(c)
}

// maybeClose closes a detached connection after its last completion.
func (u *uring) maybeClose(c *Conn) {
	if c.io&(uringGone|uringInFlight) == uringGone {
		u.close(c)
	}
}
