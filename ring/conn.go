//ringmq:hot

package ring

import (
	"io"
	"net/netip"
	"unsafe"
)

// Connection flags. A connection goes open -> closing -> (finishing) -> detached -> gone.
const (
	connDirty      = 1 << iota // is in Loop.dirty: has output that no Send has taken
	connSending                // output is with the kernel, or its socket is full
	connClosing                // no more Data, further output is dropped
	connEnding                 // is in Loop.ending
	connClosedTold             // Handler.Closed was called
	connReadEnded              // the peer will send nothing more
	connFinishing              // FIN sent, waiting for the peer's
	connAbort                  // do not wait for pending output
	connDetached               // given up; only the backend still knows it
	connFull                   // pending reached the high mark, Drained is owed
	connNotify                 // is in Loop.notify: Drained is due
	connWriteDead              // sending failed; the read side will tell the end
	connPaused                 // PauseRead in force
	connBig                    // the last batch outgrew the small window
	connLingering              // is in Loop.lingering: deadline applies
)

// connMute is the set of states in which output is dropped.
const connMute = connClosing | connWriteDead

// Conn is one TCP connection. Only its own loop may touch it. An idle connection holds no buffer:
// what it costs is this struct, its socket and, in the handler, whatever the handler keeps.
type Conn struct {
	loop    *Loop
	handler Handler
	flags   uint32
	io      uint32 // backend's own
	fd      int32
	slot    uint32 // index in Loop.slots
	gen     uint32 // 24 bits, tells successive users of a slot apart
	queue   sendQueue
	pending int       // bytes in queue
	window  *outChunk // where the next output goes, nil if none
	wpos    int       // window: next free byte
	wend    int       // window: first byte that is not ours

	reason   error // why it ended
	deadline int64 // ns, with connLingering
	lastRead int64 // ns
	bytesIn  uint64
	bytesOut uint64

	inputTurn  uint32 // io_uring: the turn that inputBytes is of
	inputBytes int32  // received in that turn

	local  netip.AddrPort
	remote netip.AddrPort
}

// Loop returns the loop that owns the connection.
func (c *Conn) Loop() *Loop { return c.loop }

// LocalAddr returns our end's address.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// RemoteAddr returns the peer's address.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// BytesIn returns the bytes received so far.
func (c *Conn) BytesIn() uint64 { return c.bytesIn }

// BytesOut returns the bytes that the kernel has taken so far.
func (c *Conn) BytesOut() uint64 { return c.bytesOut }

// LastRead returns Loop.Now of the last received bytes, or of the accept.
func (c *Conn) LastRead() int64 { return c.lastRead }

// Pending returns the bytes queued and not yet taken by the kernel.
func (c *Conn) Pending() int { return c.pending }

// Full reports that Pending has reached the high mark: offer this connection nothing more until
// Drained. Writing on is possible and memory is the price.
func (c *Conn) Full() bool { return c.pending >= c.loop.highMark }

// Closing reports that Close or Abort was called or the peer has gone: output is dropped.
func (c *Conn) Closing() bool { return c.flags&connMute != 0 }

// MaxReserve is the largest n for Reserve.
const MaxReserve = outChunkSize

// Reserve returns n contiguous bytes of off-heap output space, n <= MaxReserve, valid until the next
// call on c. On a closing connection the bytes exist but lead nowhere.
func (c *Conn) Reserve(n int) []byte {
	if c.flags&connMute != 0 {
		must(n <= MaxReserve, "Reserve of more than MaxReserve")
		return unsafe.Slice((*byte)(c.loop.pool.sink()), n)
	}
	if c.wend-c.wpos < n || c.window == nil {
		c.reserve(n)
	}
	return unsafe.Slice((*byte)(unsafe.Add(c.window.base, c.wpos)), n)
}

// Commit makes the first n bytes of the last Reserve output; they leave at the end of the turn.
func (c *Conn) Commit(n int) {
	if n == 0 || c.flags&connMute != 0 {
		return
	}
	must(n <= c.wend-c.wpos, "Commit of more than was reserved")
	c.queue.push(&c.loop.pool, unsafe.Add(c.window.base, c.wpos), n, c.window, nil)
	c.wpos += n
	c.grew(n)
}

// Write copies p, of any length, to the output.
func (c *Conn) Write(p []byte) {
	for len(p) > 0 {
		if c.flags&connMute != 0 {
			return
		}
		room := c.wend - c.wpos
		if room == 0 {
			c.reserve(min(len(p), MaxReserve))
			room = c.wend - c.wpos
		}
		n := min(room, len(p))
		copy(unsafe.Slice((*byte)(unsafe.Add(c.window.base, c.wpos)), n), p)
		c.Commit(n)
		p = p[n:]
	}
}

// WriteShared sends p, which must be off-heap, by reference. App.Release(token) is called exactly once,
// when the kernel has the bytes or the connection is gone, and never inside this call.
func (c *Conn) WriteShared(p []byte, token unsafe.Pointer) {
	c.loop.stats.sharedLive.add(1)
	if len(p) == 0 || c.flags&connMute != 0 {
		c.loop.orphans = append(c.loop.orphans, token)
		return
	}
	c.queue.push(&c.loop.pool, unsafe.Pointer(unsafe.SliceData(p)), len(p), nil, token)
	c.grew(len(p))
}

// grew accounts for n more bytes of output.
func (c *Conn) grew(n int) {
	c.pending += n
	if c.pending >= c.loop.highMark {
		c.flags |= connFull
	}
	if c.flags&(connDirty|connSending) == 0 {
		c.loop.markDirty(c)
	}
}

// reserve opens a new window of at least n bytes; the connection is open. The first small output of an idle connection goes
// to a chunk shared by the loop, so that a thousand short answers touch a few pages only; whoever
// writes more, or has a backlog, gets a chunk of its own, so that a stalled peer never holds other
// connections' chunks.
func (c *Conn) reserve(n int) {
	must(n >= 0 && n <= MaxReserve, "Reserve of more than MaxReserve")
	pool := &c.loop.pool
	c.dropWindow()
	if n <= smallWindow && c.pending == 0 && c.flags&connBig == 0 {
		c.window, c.wpos = pool.slice()
		c.wend = c.wpos + smallWindow
		return
	}
	c.window, c.wpos, c.wend = pool.take(), 0, outChunkSize
}

func (c *Conn) dropWindow() {
	if c.window != nil {
		c.loop.pool.unref(c.window)
		c.window, c.wpos, c.wend = nil, 0, 0
	}
}

// PauseRead stops receiving. Data may still be called a few times with bytes that were under way.
func (c *Conn) PauseRead() {
	if c.flags&(connPaused|connClosing) == 0 {
		c.flags |= connPaused
		c.loop.backend.SetReading(c, false)
	}
}

// ResumeRead receives again after PauseRead.
func (c *Conn) ResumeRead() {
	if c.flags&(connPaused|connClosing) == connPaused {
		c.flags &^= connPaused
		c.loop.backend.SetReading(c, true)
	}
}

// Close sends what is pending (for a few seconds at most), then FIN, waits a moment for the peer's and
// closes. Data is not called again; Closed is, with reason nil, before the turn ends.
func (c *Conn) Close() {
	if c.flags&connClosing == 0 {
		c.flags |= connClosing
		c.loop.end(c)
	}
}

// Abort drops what is pending and closes now. Closed is called before the turn ends.
func (c *Conn) Abort() {
	if c.flags&(connAbort|connDetached) == 0 {
		c.flags |= connClosing | connAbort
		c.loop.end(c)
	}
}

// received passes bytes on.
func (c *Conn) received(b []byte) {
	c.bytesIn += uint64(len(b))
	c.loop.stats.bytesIn.add(int64(len(b)))
	c.lastRead = c.loop.now
	if c.flags&connClosing == 0 {
		c.handler.Data(c, b)
	}
}

// ended notes that nothing more will be received.
func (c *Conn) ended(err error) {
	if c.flags&connDetached != 0 {
		return
	}
	c.flags |= connReadEnded
	if c.flags&connClosing == 0 && c.reason == nil {
		c.reason = err
	}
	c.flags |= connClosing
	if err != io.EOF {
		c.flags |= connAbort
	}
	c.loop.end(c)
}

// gather lists what is to be sent.
func (c *Conn) gather(dst []iovec) (count, bytes int) {
	if c.pending > smallWindow {
		c.flags |= connBig
	} else {
		c.flags &^= connBig
	}
	return c.queue.gather(dst)
}

// sent accounts for bytes that the kernel took, or for the end of sending.
func (c *Conn) sent(n int, err error) {
	l := c.loop
	if n > 0 {
		c.queue.consume(l, n)
		c.pending -= n
		c.bytesOut += uint64(n)
		l.stats.bytesOut.add(int64(n))
	}
	if c.flags&connDetached != 0 {
		return
	}
	if err != nil {
		c.sendFailed(err)
		return
	}
	if c.pending == 0 {
		c.dropWindow()
		if c.flags&connClosing != 0 {
			l.end(c)
			return
		}
	} else if c.flags&(connDirty|connSending) == 0 {
		l.markDirty(c)
	}
	if c.flags&(connFull|connNotify) == connFull && c.pending < l.lowMark {
		c.flags |= connNotify
		l.notify = append(l.notify, c)
	}
}

// sendFailed gives the output up. What the peer sent before may still lie in the socket, so an open
// connection goes on reading until it ends there too, which it does soon.
func (c *Conn) sendFailed(err error) {
	c.dropOutput()
	c.flags |= connWriteDead
	if c.reason == nil && c.flags&connClosing == 0 {
		c.reason = err
	}
	if c.flags&(connPaused|connClosing|connReadEnded) != 0 {
		c.flags |= connClosing | connAbort
		c.loop.end(c)
		return
	}
	c.loop.linger(c, drainBudgetNS)
}

// dropOutput releases everything queued. REQUIRES: the kernel refers to none of it.
func (c *Conn) dropOutput() {
	c.queue.consume(c.loop, c.pending)
	c.pending = 0
	c.dropWindow()
}
