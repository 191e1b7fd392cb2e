//ringmq:hot

package session091

import (
	"ringmq/frame/amqp091"
)

// parse handles as many frames of p as it may and returns how many bytes it
// took. A cut-off frame at the end counts as taken: it waits in carry.
func (c *conn) parse(p []byte) int {
	total := len(p)
	if c.state == stateHeader {
		p = c.protocolHeader(p)
	}
	for len(p) > 0 && !c.stopped() {
		if c.stream != nil {
			p = c.streamBody(p)
			continue
		}
		if len(c.carry) > 0 {
			p = c.fillCarry(p)
			continue
		}
		if len(p) < amqp091.FrameHeaderSize {
			c.carry = append(c.carry, p...)
			return total
		}
		h := amqp091.ParseFrameHead(p)
		if !c.allowed(h) {
			return total
		}
		need := int(h.Size) + amqp091.FrameOverhead
		if len(p) >= need {
			if p[need-1] != amqp091.FrameEnd {
				c.badEnd(h, p[need-1])
				return total
			}
			c.frame(h, p[amqp091.FrameHeaderSize:need-1])
			p = p[need:]
			continue
		}
		if h.Type == amqp091.FrameBody && c.startStream(h) {
			p = p[amqp091.FrameHeaderSize:]
			continue
		}
		c.carry = append(c.carry, p...)
		return total
	}
	return total - len(p)
}

// fillCarry completes the frame that an earlier buffer cut off, with no more
// bytes than it needs.
func (c *conn) fillCarry(p []byte) []byte {
	if have := len(c.carry); have < amqp091.FrameHeaderSize {
		n := min(amqp091.FrameHeaderSize-have, len(p))
		c.carry = append(c.carry, p[:n]...)
		p = p[n:]
		if len(c.carry) < amqp091.FrameHeaderSize {
			return nil
		}
		h := amqp091.ParseFrameHead(c.carry)
		if !c.allowed(h) {
			return nil
		}
		if h.Type == amqp091.FrameBody && c.startStream(h) {
			c.dropCarry()
			return p
		}
	}
	h := amqp091.ParseFrameHead(c.carry)
	need := int(h.Size) + amqp091.FrameOverhead
	n := min(need-len(c.carry), len(p))
	c.carry = append(c.carry, p[:n]...)
	p = p[n:]
	if len(c.carry) < need {
		return nil
	}
	frame := c.carry
	if end := frame[need-1]; end != amqp091.FrameEnd {
		c.badEnd(h, end)
		return nil
	}
	c.carry = nil // the handler may end the connection or wait
	c.frame(h, frame[amqp091.FrameHeaderSize:need-1])
	if c.carry == nil && cap(frame) <= carryKeep && c.state < stateDying {
		c.carry = frame[:0]
	}
	return p
}

// carryKeep is the largest buffer that a connection keeps for cut-off frames.
const carryKeep = 1024

func (c *conn) dropCarry() {
	if cap(c.carry) > carryKeep {
		c.carry = nil
		return
	}
	c.carry = c.carry[:0]
}

// startStream begins to take a body frame in parts, if its channel expects one.
func (c *conn) startStream(h amqp091.FrameHead) bool {
	if c.state != stateOpen {
		return false
	}
	ch := c.channel(h.Channel)
	if ch == nil || ch.content != contentBody || h.Size == 0 {
		return false
	}
	if !ch.discard && int64(h.Size) > ch.bodyMissing() {
		return false // the complete frame gets the error
	}
	c.stream, c.streamLeft = ch, h.Size
	return true
}

// streamBody takes the next part of a body frame.
func (c *conn) streamBody(p []byte) []byte {
	if !c.streamEnd {
		n := min(int(c.streamLeft), len(p))
		ch := c.stream
		c.streamLeft -= uint32(n)
		if c.streamLeft > 0 {
			ch.bodyPart(p[:n])
			return p[n:]
		}
		// The last part completes the content only after its end octet.
		ch.bodyPart(p[:n])
		c.streamEnd = true
		p = p[n:]
		if len(p) == 0 {
			return p
		}
	}
	ch, end := c.stream, p[0]
	c.stream, c.streamEnd = nil, false
	if end != amqp091.FrameEnd {
		c.badEnd(amqp091.FrameHead{Type: amqp091.FrameBody, Channel: ch.id}, end)
		return nil
	}
	if c.state == stateOpen {
		ch.bodyDone() // else the connection failed in the middle of this frame
	}
	return p[1:]
}

// frame handles one complete frame.
func (c *conn) frame(h amqp091.FrameHead, payload []byte) {
	if c.state != stateOpen {
		c.earlyFrame(h, payload)
		return
	}
	if h.Channel == 0 {
		c.frameZero(h, payload)
		return
	}
	ch := c.channel(h.Channel)
	if ch == nil {
		c.frameNoChannel(h, payload)
		return
	}
	switch h.Type {
	case amqp091.FrameMethod:
		if ch.content != contentNone && !ch.interrupted() {
			return
		}
		if len(payload) < 4 {
			c.unknownFrame(h)
			return
		}
		id := amqp091.MethodID(uint32(payload[0])<<24 | uint32(payload[1])<<16 | uint32(payload[2])<<8 | uint32(payload[3]))
		switch id {
		case amqp091.MethodBasicPublish:
			ch.publishMethod(payload[4:])
		case amqp091.MethodBasicAck:
			ch.ackMethod(payload[4:])
		default:
			ch.method(id, payload[4:])
		}
	case amqp091.FrameHeader:
		ch.headerFrame(payload)
	case amqp091.FrameBody:
		ch.bodyFrame(payload)
	case amqp091.FrameHeartbeat:
		c.heartbeatOn(h)
	default:
		c.unknownFrame(h)
	}
}
