package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	frameMaxWanted = 131072           // octets, what every broker offers by default
	loginTimeout   = 10 * time.Second // what brokers themselves allow for it
	callTimeout    = 60 * time.Second // deleting a queue with a long backlog takes its time
	readBufferSize = 256 << 10        // octets; fits in a core's second level cache
)

var errClosed = errors.New("connection closed by the broker")

// endpoint is a parsed amqp:// URL.
type endpoint struct {
	addr, user, password, vhost string
}

// parseURL reads amqp://user:password@host:port/vhost. Missing parts are
// guest, guest, 5672 and "/".
func parseURL(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return endpoint{}, fmt.Errorf("url %q: %w", raw, err)
	}
	if u.Scheme != "amqp" {
		return endpoint{}, fmt.Errorf("url %q: only amqp:// is spoken (no TLS)", raw)
	}
	e := endpoint{user: "guest", password: "guest", vhost: "/"}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "5672"
	}
	e.addr = net.JoinHostPort(host, port)
	if u.User != nil {
		e.user = u.User.Username()
		e.password, _ = u.User.Password()
	}
	if vhost := strings.TrimPrefix(u.EscapedPath(), "/"); vhost != "" {
		if e.vhost, err = url.PathUnescape(vhost); err != nil {
			return endpoint{}, fmt.Errorf("url %q: vhost: %w", raw, err)
		}
	}
	return e, nil
}

// conn is one AMQP connection on a blocking descriptor. Blocking calls spare
// the poller's extra wake-up per read, which matters for latency, and leave
// fewer system calls for the broker to share the cores with. One goroutine
// reads and one writes; abort may be called from any.
type conn struct {
	fd       int
	frameMax int
	product  string // server-properties product and version
	version  string

	in         []byte
	start, end int // unread octets of in
	out        []byte
}

// dial connects, logs in and opens the virtual host. local is a source
// address or nil.
func dial(ctx context.Context, e endpoint, local net.IP) (*conn, error) {
	c, err := dialRaw(ctx, e.addr, local)
	if err != nil {
		return nil, err
	}
	if err := c.handshake(e); err != nil {
		c.close()
		return nil, fmt.Errorf("handshake with %s: %w", e.addr, err)
	}
	return c, nil
}

// dialRaw opens the socket and takes its descriptor out of the Go poller.
func dialRaw(ctx context.Context, addr string, local net.IP) (*conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: -1}
	if local != nil {
		d.LocalAddr = &net.TCPAddr{IP: local}
		d.Control = bindLate
	}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	fd, err := blockingFD(nc.(*net.TCPConn))
	if err != nil {
		return nil, err
	}
	return &conn{fd: fd, frameMax: frameMaxWanted}, nil
}

// blockingFD returns a blocking descriptor of its own for nc, which the caller
// then closes.
func blockingFD(nc *net.TCPConn) (int, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dupErr error
	if err := raw.Control(func(p uintptr) {
		fd, dupErr = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return -1, err
	}
	if dupErr != nil {
		return -1, fmt.Errorf("dup: %w", dupErr)
	}
	// The flag belongs to the open file that both descriptors share; the
	// original is closed by the caller.
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// bindLate lets the kernel choose the port at connect time, so that one source
// address can serve far more than one port range of connections.
func bindLate(_, _ string, raw syscall.RawConn) error {
	var optErr error
	err := raw.Control(func(fd uintptr) {
		optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(err, optErr)
}

func (c *conn) handshake(e endpoint) error {
	if err := c.setReadTimeout(loginTimeout); err != nil {
		return err
	}
	if err := c.write(protocolHeader); err != nil {
		return err
	}
	args, err := c.await(connectionStart)
	if err != nil {
		return err
	}
	if len(args) > 6 {
		c.product = tableString(args[6:], "product")
		c.version = tableString(args[6:], "version")
	}
	table, err := appendTable(nil, map[string]any{
		"product": "ringmq bench",
		"capabilities": map[string]any{
			"publisher_confirms": true, "consumer_cancel_notify": true,
			"basic.nack": true, "authentication_failure_close": true,
		},
	})
	if err != nil {
		return err
	}
	reply := appendShortstr(table, "PLAIN")
	reply = appendLongstr(reply, "\x00"+e.user+"\x00"+e.password)
	reply = appendShortstr(reply, "en_US")
	if args, err = c.call(0, connectionStartOk, reply, connectionTune); err != nil {
		return err
	}
	if len(args) < 8 {
		return errors.New("connection.tune is too short")
	}
	if offered := int(be.Uint32(args[2:])); offered != 0 && offered < c.frameMax {
		c.frameMax = offered
	}
	// channel-max as offered, our frame-max, no heartbeats: a benchmark that
	// stalls for a minute should stall visibly, not be cut.
	tune := append([]byte{}, args[0], args[1])
	tune = be.AppendUint32(tune, uint32(c.frameMax))
	tune = append(tune, 0, 0)
	c.out = appendMethod(c.out[:0], 0, connectionTuneOk, tune)
	open := append(appendShortstr(nil, e.vhost), 0, 0)
	c.out = appendMethod(c.out, 0, connectionOpen, open)
	if err := c.write(c.out); err != nil {
		return err
	}
	if _, err = c.await(connectionOpenOk); err != nil {
		return err
	}
	return c.setReadTimeout(callTimeout)
}

// tableString finds a long string at the top level of an encoded table. It
// searches for the key's bytes, which is good enough for a banner.
func tableString(table []byte, key string) string {
	mark := append(appendShortstr(nil, key), 'S')
	at := strings.Index(string(table), string(mark))
	if at < 0 || at+len(mark)+4 > len(table) {
		return ""
	}
	rest := table[at+len(mark):]
	n := int(be.Uint32(rest))
	if n > len(rest)-4 {
		return ""
	}
	return string(rest[4 : 4+n])
}

// call sends one method and waits for its reply's arguments, which stay valid
// until the next read.
func (c *conn) call(channel uint16, id uint32, args []byte, want uint32) ([]byte, error) {
	c.out = appendMethod(c.out[:0], channel, id, args)
	if err := c.write(c.out); err != nil {
		return nil, err
	}
	return c.await(want)
}

// await reads frames until the wanted method comes and fails on a close.
// Frames in between are dropped, so it is for times without deliveries.
func (c *conn) await(want uint32) ([]byte, error) {
	for {
		frame, err := c.readFrame()
		if err != nil {
			return nil, err
		}
		if frame[0] != frameMethod || len(frame) < frameOverhead+4 {
			continue
		}
		if be.Uint32(frame[frameHeadSize:]) == want {
			return frame[frameHeadSize+4 : len(frame)-1], nil
		}
		if err := closeError(frame); err != nil {
			return nil, err
		}
	}
}

// closeError returns the text of a channel.close or connection.close frame,
// nil for any other.
func closeError(frame []byte) error {
	id := be.Uint32(frame[frameHeadSize:])
	if id != connectionClose && id != channelClose {
		return nil
	}
	args := frame[frameHeadSize+4:]
	text := ""
	if n := int(args[2]); 3+n <= len(args) {
		text = string(args[3 : 3+n])
	}
	return fmt.Errorf("broker says %d: %s", be.Uint16(args), text)
}

// readFrame returns the next whole frame; it stays valid until the next read.
func (c *conn) readFrame() ([]byte, error) {
	for {
		if have := c.in[c.start:c.end]; len(have) >= frameOverhead {
			size := int(be.Uint32(have[3:])) + frameOverhead
			if size > frameMaxWanted+frameOverhead {
				return nil, errFrameSize
			}
			if len(have) >= size {
				if have[size-1] != frameEnd {
					return nil, errFrameEnd
				}
				c.start += size
				return have[:size], nil
			}
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once, blocking, behind what is unread, which it first moves to
// the front. The buffer grows from a small one to readBufferSize so that
// thousands of idle connections cost the generator little.
func (c *conn) fill() error {
	if c.start > 0 {
		c.end = copy(c.in, c.in[c.start:c.end])
		c.start = 0
	}
	if c.end == len(c.in) {
		size := min(max(4096, 2*len(c.in)), readBufferSize)
		if size <= c.end {
			return errFrameSize
		}
		grown := make([]byte, size)
		copy(grown, c.in[:c.end])
		c.in = grown
	}
	for {
		n, err := unix.Read(c.fd, c.in[c.end:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return errors.New("no answer from the broker in time")
		case err != nil:
			return fmt.Errorf("read: %w", err)
		case n == 0:
			return errClosed
		}
		c.end += n
		return nil
	}
}

// readable reports whether a read would not block.
func (c *conn) readable() bool {
	poll := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0
}

// reserve makes the read buffer full size before the clock starts.
func (c *conn) reserve() {
	if len(c.in) < readBufferSize {
		grown := make([]byte, readBufferSize)
		copy(grown, c.in[:c.end])
		c.in = grown
	}
}

// write sends all of b, blocking.
func (c *conn) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(c.fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// setReadTimeout makes a blocked read fail after d; 0 means never.
func (c *conn) setReadTimeout(d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	return unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
}

// abort wakes whoever is blocked on the connection. The descriptor stays
// valid until close, so a reader cannot meet a reused number.
func (c *conn) abort() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

// close releases the descriptor. REQUIRES: no other goroutine uses c.
func (c *conn) close() { unix.Close(c.fd) }

// bye closes in the protocol's way: connection.close, its answer, the socket.
func (c *conn) bye() error {
	args := be.AppendUint16(nil, 200)
	args = append(appendShortstr(args, "bye"), 0, 0, 0, 0)
	_, err := c.call(0, connectionClose, args, connectionCloseOk)
	c.close()
	return err
}
