package ring

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Backend is the I/O of one loop. Every method except Bell is called on the loop's own thread. A
// Backend acts on connections and listeners when told to and reports what happened through the Port
// that Open gave it. It calls the Port only inside Poll, except for Sent (also inside Send), Detached
// (also inside Detach) and Unlistened (also inside Unlisten), so that no handler is ever re-entered.
// There are three: io_uring, epoll, and the fake one of ring/sim.
type Backend interface {
	// Name is "io_uring", "epoll" or what a test calls itself.
	Name() string
	// Open makes the backend ready. It runs on the loop's locked (and pinned) thread.
	Open(p *Port) error
	// Listen starts to accept on a listening descriptor; each new descriptor goes to Port.Accepted.
	// After Port.AcceptFailed the backend does nothing for ln until Listen is called again.
	Listen(ln *Listener)
	// Unlisten stops accepting, closes the descriptor and calls Port.Unlistened, at once or in a later
	// Poll.
	Unlisten(ln *Listener)
	// Adopt prepares a fresh descriptor (TCP_NODELAY) and reads its two addresses.
	Adopt(fd int) (local, remote netip.AddrPort, err error)
	// Refuse closes a descriptor that will not become a connection.
	Refuse(fd int)
	// SetReading starts (on) or stops receiving. The first call with on attaches the connection.
	// Bytes that were under way may still be reported after reading was stopped.
	SetReading(c *Conn, on bool)
	// Send takes what the connection has to send (Port.Gather) and reports progress by Port.Sent, at
	// once or in a later Poll. REQUIRES: Pending() > 0 and c is not sending.
	Send(c *Conn)
	// ShutdownWrite sends FIN after what was sent.
	ShutdownWrite(c *Conn)
	// Detach gives a connection up: nothing more is reported for it except Port.Detached, once the
	// kernel refers to neither its descriptor nor its bytes (at once or in a later Poll). reset drops
	// what the kernel has not sent yet and tells the peer so.
	Detach(c *Conn, reset bool)
	// Poll hands the operations of this turn to the kernel, waits at most wait nanoseconds (0: not at
	// all, negative: until something happens or the bell rings), calls Port.Tick and then reports a
	// bounded number of events. It returns how many were worth another turn; a plain send completion
	// is not.
	Poll(wait int64) int
	// Quiet reports, cheaply, that Poll(0) would find nothing. Used while spinning.
	Quiet() bool
	// Bell ends a Poll that waits, or makes the next one return at once. Any goroutine.
	Bell()
	// Close frees everything. REQUIRES: no connection, no listener and no file operation is left.
	Close()
}

// Port is the loop as a backend sees it. Backend code only, on the loop's thread.
type Port struct{ loop *Loop }

// Loop returns the loop that the port belongs to.
func (p *Port) Loop() *Loop { return p.loop }

// Options returns the options in force, defaults filled in.
func (p *Port) Options() *Options { return &p.loop.group.options }

// Tick tells the loop that the wait is over. Poll calls it once, before it reports anything.
func (p *Port) Tick() { p.loop.tick() }

// CountSyscall counts one system call for LoopStats.Syscalls.
func (p *Port) CountSyscall() { p.loop.stats.syscalls.add(1) }

// Accepted reports a new descriptor. ln may be nil when a test injects a connection.
func (p *Port) Accepted(ln *Listener, fd int) { p.loop.accepted(ln, fd) }

// AcceptFailed reports that accepting on ln stopped for a reason other than Unlisten.
func (p *Port) AcceptFailed(ln *Listener, errno syscall.Errno) { p.loop.acceptFailed(ln, errno) }

// Unlistened reports that a listener is closed.
func (p *Port) Unlistened(ln *Listener) { p.loop.unlistened(ln) }

// Received reports bytes; they are the backend's again when the call returns.
func (p *Port) Received(c *Conn, b []byte) { c.received(b) }

// Ended reports that nothing more will be received: io.EOF, or the errno that ended the connection.
func (p *Port) Ended(c *Conn, err error) { c.ended(err) }

// Gather fills dst with what c has to send, in order, and returns how many elements and bytes those
// are. The bytes stay where they are until Sent has counted them.
func (p *Port) Gather(c *Conn, dst []unix.Iovec) (count, bytes int) { return c.gather(dst) }

// Sent reports that the kernel took n more bytes, or that sending failed for good.
func (p *Port) Sent(c *Conn, n int, err error) { c.sent(n, err) }

// Detached reports that the kernel holds nothing of c any more; its memory may go.
func (p *Port) Detached(c *Conn) { c.detached() }

// Conn finds the connection that a tag made by Conn.Tag names; nil if it is gone.
func (p *Port) Conn(tag uint64) *Conn { return p.loop.connOf(tag) }

// FileOp finds the operation that FileOp.Tag names. It must be in flight.
func (p *Port) FileOp(tag uint64) *FileOp { return p.loop.files.ops[tag] }

// Wrote reports the result of a FileBackend.WriteFile: the bytes taken (0 for a sync), or a negated errno.
// It calls no application code, but the backend's WriteFile for what comes next, and reports whether it did.
func (p *Port) Wrote(op *FileOp, res int32) (started bool) { return p.loop.wrote(op, res) }

// RunFiles calls back for the operations that have ended and returns their number. Poll calls it once
// after its Wrotes and before other events, so that durability never waits behind input.
func (p *Port) RunFiles() int { return p.loop.runFiles() }

// IO is the backend's private word in a connection.
func (c *Conn) IO() *uint32 { return &c.io }

// Descriptor returns the connection's descriptor. Backends only.
func (c *Conn) Descriptor() int { return int(c.fd) }

// Tag names the connection in 56 bits, for completion and event data. A later connection in the same
// place has another tag.
func (c *Conn) Tag() uint64 { return uint64(c.slot) | uint64(c.gen)<<32 }

// Sending reports whether a Send has not been answered by Sent yet. Backends set it with SetSending.
func (c *Conn) Sending() bool { return c.flags&connSending != 0 }

// SetSending marks c as having bytes with the kernel (or a blocked socket), so that the loop does not
// call Send again before the backend clears the mark. Clear it before calling Sent.
func (c *Conn) SetSending(on bool) {
	if on {
		c.flags |= connSending
	} else {
		c.flags &^= connSending
	}
}

// must ends the process when a law of this package is broken: going on would corrupt somebody's data.
func must(cond bool, law string) {
	if !cond {
		panic("ring: broken law: " + law)
	}
}
