package conformance

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"ringmq/test/harness"
)

// client is a connection that speaks raw frames. One goroutine uses it.
type client struct {
	t        testing.TB
	nc       net.Conn
	br       *bufio.Reader
	frameMax int // negotiated, octets
	server   map[string]val
	offer    [3]uint32 // channel-max, frame-max, heartbeat of connection.tune
}

type frame struct {
	typ     byte
	channel uint16
	payload []byte
}

// id is the method of a method frame as class<<16|method, 0 for other frames.
func (f frame) id() uint32 {
	if f.typ != 1 || len(f.payload) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(f.payload)
}

// m writes a method's id the way the specification does: m(50, 10).
func m(class, method uint32) uint32 { return class<<16 | method }

func (f frame) String() string {
	id := f.id()
	head := fmt.Sprintf("frame type %d channel %d, %d bytes", f.typ, f.channel, len(f.payload))
	if id == 0 {
		return head
	}
	head = fmt.Sprintf("method %d.%d on channel %d", id>>16, id&0xffff, f.channel)
	if (id == m(20, 40) || id == m(10, 50)) && len(f.payload) > 7 {
		n := int(f.payload[6])
		if len(f.payload) >= 7+n+4 {
			head += fmt.Sprintf(" (%d %q for %d.%d)", binary.BigEndian.Uint16(f.payload[4:]), f.payload[7:7+n],
				binary.BigEndian.Uint16(f.payload[7+n:]), binary.BigEndian.Uint16(f.payload[9+n:]))
		}
	}
	return head
}

// dialTCP only opens the socket.
func dialTCP(t testing.TB, b *harness.Broker) *client {
	t.Helper()
	nc, err := net.DialTimeout("tcp", b.Addr, waitMax)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &client{t: t, nc: nc, br: bufio.NewReaderSize(nc, 64<<10), frameMax: 131072}
}

// login says how the handshake is made; the zero value is an ordinary guest login with the offered limits.
type login struct {
	mechanism  string // "" is PLAIN
	response   string // "" is guest/guest for PLAIN
	vhost      string // "" is "/"
	props      tbl    // client properties; "" is a full set of capabilities
	channelMax uint16 // 0 is the offer
	frameMax   uint32 // 0 is the offer
	heartbeat  uint16 // 0 is none
}

const plainGuest = "\x00guest\x00guest"

func capabilities() tbl {
	return table("product", "conformance", "capabilities", table(
		"authentication_failure_close", true, "consumer_cancel_notify", true, "basic.nack", true,
		"publisher_confirms", true, "connection.blocked", true, "exchange_exchange_bindings", true))
}

// connect opens a connection and logs in as guest.
func connect(t testing.TB, b *harness.Broker) *client { return connectAs(t, b, login{}) }

// connectAs opens a connection with everything up to connection.open-ok.
func connectAs(t testing.TB, b *harness.Broker, l login) *client {
	t.Helper()
	c := dialTCP(t, b)
	c.start(l)
	c.tuneOk(l)
	c.openVhost(l)
	c.expect(0, 10, 41)
	return c
}

// start sends the protocol header, reads connection.start and answers with start-ok.
func (c *client) start(l login) {
	c.t.Helper()
	c.header()
	if l.mechanism == "" {
		l.mechanism = "PLAIN"
	}
	if l.response == "" && l.mechanism == "PLAIN" {
		l.response = plainGuest
	}
	if l.props == "" {
		l.props = capabilities()
	}
	c.method(0, 10, 11, args().table(l.props).ss(l.mechanism).ls(l.response).ss("en_US"))
}

// header sends the protocol header and reads connection.start.
func (c *client) header() {
	c.t.Helper()
	c.write([]byte("AMQP\x00\x00\x09\x01"))
	d := c.expect(0, 10, 10)
	if major, minor := d.u8(), d.u8(); major != 0 || minor != 9 {
		c.t.Fatalf("connection.start version %d.%d, want 0.9", major, minor)
	}
	c.server = tableValues(c.t, tbl(d.ls()))
}

// tuneOk reads connection.tune and answers it.
func (c *client) tuneOk(l login) {
	c.t.Helper()
	d := c.expect(0, 10, 30)
	c.offer = [3]uint32{uint32(d.u16()), d.u32(), uint32(d.u16())}
	d.end()
	if l.channelMax == 0 {
		l.channelMax = uint16(c.offer[0])
	}
	if l.frameMax == 0 {
		l.frameMax = c.offer[1]
	}
	c.frameMax = int(l.frameMax)
	c.method(0, 10, 31, args().u16(l.channelMax).u32(l.frameMax).u16(l.heartbeat))
}

func (c *client) openVhost(l login) {
	c.t.Helper()
	if l.vhost == "" {
		l.vhost = "/"
	}
	c.method(0, 10, 40, args().ss(l.vhost).ss("").bits(false))
}

// open opens channels.
func (c *client) open(channels ...uint16) *client {
	c.t.Helper()
	for _, ch := range channels {
		c.method(ch, 20, 10, args().ss(""))
		c.expect(ch, 20, 11)
	}
	return c
}

// write sends bytes as they are.
func (c *client) write(b []byte) {
	c.t.Helper()
	_ = c.nc.SetWriteDeadline(time.Now().Add(waitMax))
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func appendFrame(dst []byte, typ byte, channel uint16, payload []byte) []byte {
	dst = append(dst, typ)
	dst = binary.BigEndian.AppendUint16(dst, channel)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(append(dst, payload...), 0xCE)
}

// methodFrame is the bytes of one method frame.
func methodFrame(channel uint16, class, method uint16, a *enc) []byte {
	payload := args().u16(class).u16(method)
	if a != nil {
		payload.raw(a.b...)
	}
	return appendFrame(nil, 1, channel, payload.b)
}

func (c *client) frame(typ byte, channel uint16, payload []byte) {
	c.t.Helper()
	c.write(appendFrame(nil, typ, channel, payload))
}

func (c *client) method(channel uint16, class, method uint16, a *enc) {
	c.t.Helper()
	c.write(methodFrame(channel, class, method, a))
}

// read returns the next frame that is not a heartbeat, or the socket's error.
func (c *client) read() (frame, error) {
	for {
		f, err := c.readAny(waitMax)
		if err != nil || f.typ != 8 {
			return f, err
		}
	}
}

// readAny returns the next frame, heartbeats included.
func (c *client) readAny(limit time.Duration) (frame, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(limit))
	var head [7]byte
	if _, err := io.ReadFull(c.br, head[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(head[3:])
	if int(size) > c.frameMax-8 {
		return frame{}, fmt.Errorf("the broker sent a frame of %d bytes, frame-max is %d", size, c.frameMax)
	}
	payload := make([]byte, size+1)
	if _, err := io.ReadFull(c.br, payload); err != nil {
		return frame{}, err
	}
	if payload[size] != 0xCE {
		return frame{}, fmt.Errorf("the broker ended a frame with %#x", payload[size])
	}
	return frame{head[0], binary.BigEndian.Uint16(head[1:]), payload[:size]}, nil
}

// next returns the next frame that is not a heartbeat.
func (c *client) next() frame {
	c.t.Helper()
	f, err := c.read()
	if err != nil {
		c.t.Fatalf("reading a frame: %v", err)
	}
	return f
}

// expect reads the next frame, which must be this method, and returns its arguments.
func (c *client) expect(channel uint16, class, method uint32) *dec {
	c.t.Helper()
	f, err := c.read()
	if err != nil {
		c.t.Fatalf("waiting for %d.%d on channel %d: %v", class, method, channel, err)
	}
	if f.id() != m(class, method) || f.channel != channel {
		c.t.Fatalf("got %v, want %d.%d on channel %d", f, class, method, channel)
	}
	return &dec{c.t, f.payload[4:]}
}

// fault is a close that the broker sends.
type fault struct {
	code   uint16
	text   string
	failed uint32 // class<<16|method of the offending method
}

func readFault(d *dec) fault {
	f := fault{code: d.u16(), text: d.ss()}
	f.failed = m(uint32(d.u16()), uint32(d.u16()))
	d.end()
	return f
}

// channelFault reads channel.close and answers it.
func (c *client) channelFault(channel uint16) fault {
	c.t.Helper()
	f := readFault(c.expect(channel, 20, 40))
	c.method(channel, 20, 41, nil)
	return f
}

// connectionFault reads connection.close, answers it and sees the socket closed.
func (c *client) connectionFault() fault {
	c.t.Helper()
	f := readFault(c.expect(0, 10, 50))
	c.method(0, 10, 51, nil)
	c.closedSocket()
	return f
}

// closedSocket sees the end of the stream with no further frame.
func (c *client) closedSocket() {
	c.t.Helper()
	f, err := c.read()
	if err == nil {
		c.t.Fatalf("got %v, want the socket closed", f)
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		c.t.Fatalf("the socket is still open after %v", waitMax)
	}
}

// shut closes the connection in order.
func (c *client) shut() {
	c.t.Helper()
	c.method(0, 10, 50, args().u16(200).ss("bye").u16(0).u16(0))
	c.expect(0, 10, 51)
	// RabbitMQ waits up to 30 s for the client to hang up first.
	if tcp, ok := c.nc.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	c.closedSocket()
}

// cut drops the socket with a reset.
func (c *client) cut() {
	if tcp, ok := c.nc.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.nc.Close()
}

// sync makes the broker answer a harmless command on the channel; nothing may come before that answer.
func (c *client) sync(channel uint16) {
	c.t.Helper()
	c.method(channel, 40, 10, exchangeArgs("amq.direct", "direct", flags{passive: true}, ""))
	c.expect(channel, 40, 11)
}

// readRest returns all bytes up to the end of the stream.
func (c *client) readRest() string {
	c.t.Helper()
	_ = c.nc.SetReadDeadline(time.Now().Add(waitMax))
	rest, err := io.ReadAll(c.br)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		c.t.Fatalf("the socket is still open after %v", waitMax)
	}
	return string(rest)
}

// gone sees the connection end, with or without a connection.close first, but with no other frame.
func (c *client) gone() {
	c.t.Helper()
	f, err := c.read()
	if err == nil && f.id() == m(10, 50) {
		_, _ = c.nc.Write(methodFrame(0, 10, 51, nil))
		f, err = c.read()
	}
	if err == nil {
		c.t.Fatalf("got %v, want the connection gone", f)
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		c.t.Fatalf("the connection is still there after %v", waitMax)
	}
}
