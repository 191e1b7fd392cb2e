package session091

import (
	"bytes"
	"fmt"

	"ringmq/frame/amqp091"
)

// allowed checks a frame's size from its first seven bytes, before anything of
// it is buffered (WIR-04). The limit has eight bytes of slack for clients that
// miscount the overhead.
func (c *conn) allowed(h amqp091.FrameHead) bool {
	switch h.Type {
	case amqp091.FrameMethod, amqp091.FrameHeader, amqp091.FrameBody, amqp091.FrameHeartbeat:
	default:
		c.unknownFrame(h)
		return false
	}
	limit := c.frameMax
	if limit == 0 || h.Size <= limit {
		return true
	}
	if c.state == stateClosing {
		c.drop("frame too large while closing")
		return false
	}
	c.fatal(fmt.Sprintf("type %d, all octets = <<>>: {frame_too_large,%d,%d}", h.Type, h.Size, limit-amqp091.FrameOverhead))
	return false
}

// fatal is a framing error: the stream cannot be followed any further. The
// client gets connection.close 501, nothing is read on, and the socket goes
// after a while (WIR-02 to WIR-04).
func (c *conn) fatal(text string) {
	if c.state == stateOpen {
		c.fail(amqp091.FrameError, 0, text)
	}
	c.drop(text)
}

func (c *conn) badEnd(h amqp091.FrameHead, got byte) {
	c.fatal(fmt.Sprintf("type %d, all octets = <<>>: {invalid_frame_end_marker,%d}", h.Type, got))
}

func (c *conn) unknownFrame(h amqp091.FrameHead) {
	c.fatal(fmt.Sprintf("type %d, channel %d, size %d: unknown_frame", h.Type, h.Channel, h.Size))
}

// heartbeatOn refuses heartbeats on a channel (WIR-05).
func (c *conn) heartbeatOn(h amqp091.FrameHead) {
	if h.Size != 0 {
		c.unknownFrame(h)
		return
	}
	c.fail(amqp091.UnexpectedFrame, 0, fmt.Sprintf("heartbeat frame on channel %d", h.Channel))
}

// frameZero handles a frame on channel 0 of an open connection.
func (c *conn) frameZero(h amqp091.FrameHead, payload []byte) {
	switch h.Type {
	case amqp091.FrameHeartbeat:
		if h.Size != 0 {
			c.unknownFrame(h)
		}
	case amqp091.FrameMethod:
		if len(payload) < 4 {
			c.unknownFrame(h)
			return
		}
		c.method(methodID(payload), payload[4:])
	default:
		if h.Type == amqp091.FrameHeader && len(payload) < 12 {
			c.unknownFrame(h)
			return
		}
		c.fail(amqp091.UnexpectedFrame, 0, "expected method frame, got non method frame instead")
	}
}

// frameNoChannel handles a frame on a channel that is not open (CHA-04).
func (c *conn) frameNoChannel(h amqp091.FrameHead, payload []byte) {
	switch h.Type {
	case amqp091.FrameHeartbeat:
		c.heartbeatOn(h)
	case amqp091.FrameMethod:
		if len(payload) < 4 {
			c.unknownFrame(h)
			return
		}
		id := methodID(payload)
		switch {
		case id == amqp091.MethodChannelOpen:
			c.openChannel(h.Channel, payload[4:])
		case id.Class() == 10:
			c.fail(amqp091.CommandInvalid, id, "unimplemented method")
		default:
			c.fail(amqp091.ChannelError, id, "expected 'channel.open'")
		}
	default:
		c.fail(amqp091.UnexpectedFrame, 0, "expected method frame, got non method frame instead")
	}
}

func methodID(p []byte) amqp091.MethodID {
	return amqp091.MethodID(uint32(p[0])<<24 | uint32(p[1])<<16 | uint32(p[2])<<8 | uint32(p[3]))
}

// protocolHeader takes the first eight bytes of a connection (CON-01, CON-02).
func (c *conn) protocolHeader(p []byte) []byte {
	n := min(8-len(c.carry), len(p))
	c.carry = append(c.carry, p[:n]...)
	if len(c.carry) < 8 {
		return nil
	}
	header := c.carry
	c.carry = nil
	if !bytes.Equal(header, amqp091.ProtocolHeader[:]) && !bytes.Equal(header, []byte("AMQP\x01\x01\x00\x09")) {
		c.srv.log.Warn("protocol header refused", "connection", c.name, "header", string(header), "hint", headerHint(header))
		c.rc.Write(amqp091.ProtocolHeader[:])
		c.state = stateDying
		c.rc.Close()
		return nil
	}
	c.sendStart()
	return p[n:]
}

// headerHint says what the first bytes of a stranger look like.
func headerHint(h []byte) string {
	switch {
	case h[0] == 0x16:
		return "TLS; there is no TLS listener"
	case bytes.HasPrefix(h, []byte("GET ")), bytes.HasPrefix(h, []byte("POST ")), bytes.HasPrefix(h, []byte("HEAD ")):
		return "HTTP; the HTTP listener has a port of its own"
	case bytes.Equal(h, []byte("AMQP\x00\x01\x00\x00")), bytes.Equal(h, []byte("AMQP\x03\x01\x00\x00")):
		return "AMQP 1.0; this version speaks AMQP 0-9-1"
	}
	return "not AMQP 0-9-1"
}

// earlyFrame handles frames before the connection is open and after it was
// closed.
func (c *conn) earlyFrame(h amqp091.FrameHead, payload []byte) {
	if c.state == stateClosing {
		if h.Type == amqp091.FrameMethod && h.Channel == 0 && len(payload) >= 4 {
			switch methodID(payload) {
			case amqp091.MethodConnectionClose:
				c.send(0, &amqp091.ConnectionCloseOk{})
			case amqp091.MethodConnectionCloseOk:
				c.finish()
			}
		}
		return
	}
	if h.Type == amqp091.FrameHeartbeat && h.Channel == 0 && h.Size == 0 {
		return
	}
	if h.Type != amqp091.FrameMethod || h.Channel != 0 || len(payload) < 4 {
		c.drop("unexpected frame in the handshake")
		return
	}
	c.handshake(methodID(payload), payload[4:])
}

// finish closes the socket after everything that is pending was written.
func (c *conn) finish() {
	if c.state >= stateDying {
		return
	}
	c.state = stateDying
	c.carry = nil
	c.rc.Close()
	c.endIfDeaf()
}
