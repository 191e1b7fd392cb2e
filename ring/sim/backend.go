package sim

import (
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"ringmq/ring"
)

// iovecsMax is how many elements one send takes, and so one of the ways in which a send is short.
const iovecsMax = 64

// backend is the I/O of one loop.
type backend struct {
	world *World
	index int
	port  *ring.Port
	// links in the order of their descriptors; a link leaves when both sides are done with it.
	links []*link
	// unlistened are the listeners whose end is still to be reported.
	unlistened []*ring.Listener
	// polls counts the calls of Poll: the backend's own time, in which delays are measured.
	polls uint64
	// bell is set when somebody woke the loop since the last Poll.
	bell  bool
	order []*link
}

var _ ring.Backend = (*backend)(nil)

// link is one connection as the kernel would see it.
type link struct {
	descriptor        int
	loop              int
	peer              *Peer
	conn              *ring.Conn
	reading, detached bool

	// inbox is what the peer has sent and the loop has not received, from inboxDue on.
	inbox    []byte
	inboxDue uint64
	// inboxEnd is what follows the inbox: io.EOF, an errno, or nil for nothing yet.
	inboxEnd error
	ended    bool

	// flight is the send under way; its bytes are copied when it completes.
	flight    []unix.Iovec
	sending   bool
	flightDue uint64
	// finish is set when FIN follows what was sent.
	finish bool
	// gone is set when the descriptor is closed on the loop's side.
	gone bool
}

// Name implements ring.Backend.
func (b *backend) Name() string { return "sim" }

// Open implements ring.Backend.
func (b *backend) Open(p *ring.Port) error {
	b.port = p
	return nil
}

// Listen implements ring.Backend. Peers come by World.Dial, so there is nothing to listen for.
func (b *backend) Listen(*ring.Listener) {}

// Unlisten implements ring.Backend.
func (b *backend) Unlisten(ln *ring.Listener) { b.unlistened = append(b.unlistened, ln) }

// Adopt implements ring.Backend.
func (b *backend) Adopt(fd int) (local, remote netip.AddrPort, err error) {
	l := b.world.links[fd]
	if l == nil {
		return local, remote, syscall.EBADF
	}
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return netip.AddrPortFrom(host, 5672), netip.AddrPortFrom(host, uint16(10_000+fd)), nil
}

// Refuse implements ring.Backend.
func (b *backend) Refuse(fd int) {
	if l := b.world.links[fd]; l != nil {
		b.world.forget(l)
	}
}

// SetReading implements ring.Backend.
func (b *backend) SetReading(c *ring.Conn, on bool) {
	l := b.attach(c)
	l.reading = on
}

// attach finds the link of a connection and takes it over to this loop.
func (b *backend) attach(c *ring.Conn) *link {
	l := b.world.links[c.Descriptor()]
	if l == nil || l.gone {
		panic(fmt.Sprintf("sim: descriptor %d is used after it was closed", c.Descriptor()))
	}
	if l.conn == nil {
		l.conn = c
		b.links = append(b.links, l)
	}
	if l.conn != c {
		panic(fmt.Sprintf("sim: descriptor %d has two connections", c.Descriptor()))
	}
	return l
}

// Send implements ring.Backend.
func (b *backend) Send(c *ring.Conn) {
	l := b.attach(c)
	if l.sending {
		panic("sim: a second send while one is under way")
	}
	if l.detached {
		panic("sim: a send after Detach")
	}
	l.flight = make([]unix.Iovec, 1+b.world.rng.IntN(iovecsMax))
	count, bytes := b.port.Gather(c, l.flight)
	if count == 0 || bytes == 0 {
		panic("sim: a send of nothing")
	}
	l.flight = l.flight[:count]
	l.sending = true
	c.SetSending(true)
	// Half of the sends are taken at once, as epoll does, the others complete some polls later, as
	// io_uring does.
	if l.flightDue = b.due(); l.flightDue == b.polls && l.peer.room() > 0 {
		b.complete(l)
	}
}

// due draws the poll at which something that begins now is reported.
func (b *backend) due() uint64 { return b.polls + uint64(b.world.delay()) }

// complete ends the send under way: some of its bytes are the peer's now.
func (b *backend) complete(l *link) {
	n := 0
	for _, v := range l.flight {
		n += int(v.Len)
	}
	err := l.peer.refusal()
	if err == nil {
		n = min(b.world.some(n), l.peer.room())
		left := n
		for _, v := range l.flight {
			take := min(left, int(v.Len))
			l.peer.inbox = append(l.peer.inbox, unsafe.Slice(v.Base, take)...)
			left -= take
		}
	} else {
		n = 0
	}
	l.flight, l.sending = nil, false
	l.conn.SetSending(false)
	b.world.note("loop %d: fd %d sent %d %v", b.index, l.descriptor, n, err)
	b.port.Sent(l.conn, n, err)
}

// ShutdownWrite implements ring.Backend.
func (b *backend) ShutdownWrite(c *ring.Conn) { b.attach(c).finish = true }

// Detach implements ring.Backend.
func (b *backend) Detach(c *ring.Conn, reset bool) {
	l := b.attach(c)
	if l.detached {
		panic("sim: a second Detach")
	}
	l.detached, l.reading = true, false
	if reset {
		l.peer.reset = true
	}
	if !l.sending || l.flightDue > b.polls {
		l.flightDue = b.due()
	}
}

// Poll implements ring.Backend. It never waits: that nothing is ready means that the test has to act.
func (b *backend) Poll(int64) int {
	b.polls++
	b.bell = false
	b.port.Tick()
	events := 0
	for _, ln := range b.unlistened {
		b.port.Unlistened(ln)
		events++
	}
	b.unlistened = b.unlistened[:0]
	for _, fd := range b.world.takeDialed(b.index) {
		b.world.note("loop %d: fd %d accepted", b.index, fd)
		b.port.AcceptHere(fd)
		events++
	}
	// A copy, as handlers may attach and detach links meanwhile.
	b.order = append(b.order[:0], b.links...)
	b.world.rng.Shuffle(len(b.order), func(i, j int) { b.order[i], b.order[j] = b.order[j], b.order[i] })
	for _, l := range b.order {
		events += b.pollLink(l)
	}
	return events
}

// pollLink reports what is due on one link.
func (b *backend) pollLink(l *link) (events int) {
	if l.sending && l.flightDue <= b.polls && (l.peer.room() > 0 || l.detached) {
		b.complete(l)
	}
	if l.detached {
		if !l.sending && l.flightDue <= b.polls {
			b.remove(l)
			b.port.Detached(l.conn)
			return 1
		}
		return 0
	}
	if l.finish && !l.sending && l.conn.Pending() == 0 {
		l.peer.eof = true
	}
	if !l.reading || l.ended || l.inboxDue > b.polls {
		return 0
	}
	if len(l.inbox) > 0 {
		n := min(b.world.some(len(l.inbox)), b.world.readMax)
		b.world.note("loop %d: fd %d received %d", b.index, l.descriptor, n)
		// Its own memory, overwritten afterwards: who keeps the view reads rubbish.
		view := append(b.world.scratch[:0], l.inbox[:n]...)
		l.inbox = l.inbox[n:]
		b.port.Received(l.conn, view)
		for i := range view {
			view[i] = 0xDB
		}
		b.world.scratch = view
		return 1
	}
	if l.inboxEnd != nil {
		l.ended = true
		b.world.note("loop %d: fd %d ended %v", b.index, l.descriptor, l.inboxEnd)
		b.port.Ended(l.conn, l.inboxEnd)
		return 1
	}
	return 0
}

// remove closes the loop's side of a link.
func (b *backend) remove(l *link) {
	for i, other := range b.links {
		if other == l {
			b.links = append(b.links[:i], b.links[i+1:]...)
			break
		}
	}
	b.world.forget(l)
}

// Quiet implements ring.Backend.
func (b *backend) Quiet() bool {
	if b.bell || len(b.unlistened) > 0 || b.world.dialed(b.index) {
		return false
	}
	for _, l := range b.links {
		if b.linkBusy(l) {
			return false
		}
	}
	return true
}

// linkBusy reports whether polling will report something on the link sooner or later.
func (b *backend) linkBusy(l *link) bool {
	switch {
	case l.detached:
		return true
	case l.sending && l.peer.room() > 0:
		return true
	case l.finish && !l.sending && !l.peer.eof && l.conn.Pending() == 0:
		return true
	}
	return l.reading && !l.ended && (len(l.inbox) > 0 || l.inboxEnd != nil)
}

// Bell implements ring.Backend.
func (b *backend) Bell() { b.bell = true }

// Close implements ring.Backend.
func (b *backend) Close() {
	if len(b.links) > 0 {
		panic(fmt.Sprintf("sim: loop %d closes with %d connections", b.index, len(b.links)))
	}
}

// Peer is the far end of one connection. It belongs to the test's goroutine.
type Peer struct {
	world *World
	link  *link
	inbox []byte
	// window bounds the inbox: a peer that does not read blocks the sender.
	window            int
	eof, reset, shut  bool
	closed, readsOver bool
}

// Write sends bytes to the loop's side; they are copied. It never blocks. After Close or Reset, or once
// the loop has closed, they go nowhere.
func (p *Peer) Write(b []byte) {
	if p.shut || p.closed {
		return
	}
	if len(p.link.inbox) == 0 {
		p.link.inboxDue = p.world.dueOf(p.link)
	}
	p.link.inbox = append(p.link.inbox, b...)
}

// Read returns what has arrived since the last Read, and makes room for more. The bytes are the caller's.
func (p *Peer) Read() []byte {
	b := p.inbox
	p.inbox = nil
	return b
}

// SetWindow sets how many bytes may lie unread before the loop's sends stand still. The default is
// 1 MiB; 0 lets nothing through.
func (p *Peer) SetWindow(n int) { p.window = n }

// CloseWrite sends FIN; reading goes on.
func (p *Peer) CloseWrite() { p.end(io.EOF) }

// Close closes both directions: the loop reads io.EOF, and what it still sends is refused.
func (p *Peer) Close() {
	p.end(io.EOF)
	p.readsOver = true
}

// Reset ends the connection as RST does: unread bytes are lost, the loop sees ECONNRESET.
func (p *Peer) Reset() {
	p.link.inbox = nil
	p.end(syscall.ECONNRESET)
	p.link.inboxEnd = syscall.ECONNRESET
	p.readsOver = true
}

func (p *Peer) end(err error) {
	if p.shut || p.closed {
		return
	}
	p.shut = true
	p.link.inboxEnd = err
	if len(p.link.inbox) == 0 {
		p.link.inboxDue = p.world.dueOf(p.link)
	}
}

// EOF reports that the loop has closed its sending side (or everything) and that all it sent was read.
func (p *Peer) EOF() bool { return len(p.inbox) == 0 && (p.eof || p.closed) }

// Closed reports that the loop holds the connection no more.
func (p *Peer) Closed() bool { return p.closed }

// WasReset reports that the loop dropped the connection (Abort) rather than closing it in order.
func (p *Peer) WasReset() bool { return p.reset }

// Descriptor is the connection's number, as Conn.Descriptor gives it.
func (p *Peer) Descriptor() int { return p.link.descriptor }

// room is how many bytes the peer's kernel would still take.
func (p *Peer) room() int {
	if p.refusal() != nil {
		return 1
	}
	return max(p.window-len(p.inbox), 0)
}

// refusal is the error that a send meets, or nil.
func (p *Peer) refusal() error {
	if p.readsOver {
		return syscall.EPIPE
	}
	return nil
}
