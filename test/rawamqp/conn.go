package rawamqp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"ringmq/frame/amqp091"
)

// timeoutDefault is how long a read or write waits for the peer.
const timeoutDefault = 5 * time.Second

// frameSizeMax bounds the payload that is read before frame-max is negotiated,
// and when it is 0, so that a broken peer cannot make the test eat the memory.
const frameSizeMax = 16 << 20

// ErrClosed is what reading returns when the peer closed the socket without, or
// after, a close method.
var ErrClosed = errors.New("rawamqp: the peer closed the socket")

// Frame is one frame as it was on the wire. Payload belongs to the receiver.
type Frame struct {
	Type    byte
	Channel uint16
	Payload []byte
}

// Conn is one connection. Reading is for one goroutine; sending is safe from
// several, frame by frame.
type Conn struct {
	opts     Options
	nc       net.Conn
	r        *bufio.Reader
	frameMax uint32 // negotiated, 0 before tune-ok

	sendMu sync.Mutex // also keeps StartHeartbeats' frames whole

	partial    map[uint16]*Event // contents being received, by channel
	backlog    []*Event          // read by Await and not yet asked for
	heartbeats int

	// Start and Tune are what the server sent in the handshake.
	Start amqp091.ConnectionStart
	Tune  amqp091.ConnectionTune
}

// NetConn returns the socket, to half-close it or to look at its addresses.
func (c *Conn) NetConn() net.Conn { return c.nc }

// FrameMax returns the negotiated frame-max, 0 before tune-ok or for no limit.
func (c *Conn) FrameMax() uint32 { return c.frameMax }

// Heartbeats returns how many heartbeat frames were read so far.
func (c *Conn) Heartbeats() int { return c.heartbeats }

// Close closes the socket, without a word to the peer.
func (c *Conn) Close() error { return c.nc.Close() }

// SendBytes writes octets as they are.
func (c *Conn) SendBytes(b []byte) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.opts.Timeout)); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	return err
}

// SendFrame writes one frame with a right size and end octet; type, channel and
// payload may be any. For a wrong size or end use SendBytes.
func (c *Conn) SendFrame(typ byte, channel uint16, payload []byte) error {
	return c.SendBytes(AppendFrame(nil, typ, channel, payload))
}

// SendMethod writes a method frame.
func (c *Conn) SendMethod(channel uint16, m amqp091.Method) error {
	return c.SendBytes(m.Append(nil, channel))
}

// SendContent writes a method, its content header and the body, cut into frames
// of at most frame-max, in one write.
func (c *Conn) SendContent(channel uint16, m amqp091.Method, props *amqp091.Properties, body []byte) error {
	return c.SendBytes(AppendContent(nil, channel, m, props, body, c.frameMax))
}

// SendHeartbeat writes one heartbeat frame.
func (c *Conn) SendHeartbeat() error { return c.SendBytes(amqp091.AppendHeartbeat(nil)) }

// StartHeartbeats sends a heartbeat at each interval until stop is called or the
// socket fails. stop returns when the last one is out.
func (c *Conn) StartHeartbeats(interval time.Duration) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				if c.SendHeartbeat() != nil {
					return // the reader of this connection sees why
				}
			}
		}
	}()
	return sync.OnceFunc(func() { close(quit); <-done })
}

// ReadFrame returns the next frame, heartbeats too, within the timeout. A frame
// over frame-max or with a wrong end octet is an error.
func (c *Conn) ReadFrame() (Frame, error) {
	if err := c.nc.SetReadDeadline(time.Now().Add(c.opts.Timeout)); err != nil {
		return Frame{}, err
	}
	return c.readFrame()
}

// readFrame reads within the deadline that stands.
func (c *Conn) readFrame() (Frame, error) {
	var head [amqp091.FrameHeaderSize]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return Frame{}, closedError(err)
	}
	if bytes.HasPrefix(head[:], []byte("AMQP")) {
		return Frame{}, fmt.Errorf("rawamqp: the peer answered with a protocol header, % X", head)
	}
	h := amqp091.ParseFrameHead(head[:])
	limit := uint32(frameSizeMax)
	if c.frameMax != 0 {
		limit = c.frameMax - amqp091.FrameOverhead
	}
	if h.Size > limit {
		return Frame{}, fmt.Errorf("rawamqp: frame of type %d on channel %d has %d octets of payload, over the limit of %d",
			h.Type, h.Channel, h.Size, limit)
	}
	payload := make([]byte, int(h.Size)+1)
	if _, err := io.ReadFull(c.r, payload); err != nil {
		return Frame{}, closedError(err)
	}
	if end := payload[h.Size]; end != amqp091.FrameEnd {
		return Frame{}, fmt.Errorf("rawamqp: frame of type %d on channel %d ends in %#x", h.Type, h.Channel, end)
	}
	if h.Type == amqp091.FrameHeartbeat {
		c.heartbeats++
	}
	return Frame{h.Type, h.Channel, payload[:h.Size:h.Size]}, nil
}

// closedError turns the ways in which a socket ends into ErrClosed. A peer that
// closes with our octets still unread makes the kernel send a reset: the same.
func closedError(err error) error {
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return err
	}
	return fmt.Errorf("%w (%v)", ErrClosed, err)
}

// AppendFrame appends one well-formed frame around any payload.
func AppendFrame(dst []byte, typ byte, channel uint16, payload []byte) []byte {
	dst = amqp091.AppendFrameHead(dst, typ, channel, uint32(len(payload)))
	dst = append(dst, payload...)
	return append(dst, amqp091.FrameEnd)
}

// AppendContent appends method, content header and body frames. nil props are
// none; frameMax 0 is no limit.
func AppendContent(dst []byte, channel uint16, m amqp091.Method, props *amqp091.Properties, body []byte, frameMax uint32) []byte {
	if props == nil {
		props = &amqp091.Properties{}
	}
	dst = m.Append(dst, channel)
	dst = amqp091.AppendContentHeader(dst, channel, uint64(len(body)), props.Append(nil))
	chunk := len(body)
	if frameMax != 0 {
		chunk = min(chunk, int(frameMax)-amqp091.FrameOverhead)
	}
	for len(body) > 0 {
		n := min(chunk, len(body))
		dst = AppendFrame(dst, amqp091.FrameBody, channel, body[:n])
		body = body[n:]
	}
	return dst
}

// HeaderPayload returns the payload of a content header with any class, weight
// and announced size; props is property flags and list.
func HeaderPayload(class, weight uint16, bodySize uint64, props []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, class)
	b = binary.BigEndian.AppendUint16(b, weight)
	b = binary.BigEndian.AppendUint64(b, bodySize)
	return append(b, props...)
}
