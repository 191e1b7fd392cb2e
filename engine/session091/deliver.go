//ringmq:hot

package session091

import (
	"encoding/binary"

	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// copyMax is the largest body that is copied into the output; larger ones
// leave by reference. The crossover was measured between 2 and 4 KiB.
const copyMax = 4096

// shareMin is the body size above which also small parts leave by reference.
const shareMin = 64 << 10

// consumer is a subscription's connection side. It implements queue.Sink.
type consumer struct {
	sub       engine.Subscription
	ch        *channel
	tag       string
	prefix    []byte // basic.deliver up to and including the consumer tag
	slot      uint32
	timeout   int64 // ms that it may hold a delivery, as it asked, 0 = for ever, -1 = did not say
	noAck     bool
	cancelled bool
}

// init prepares what is the same in every delivery.
func (k *consumer) init() {
	k.prefix = deliverPrefix(k.ch.id, k.tag)
}

// deliverPrefix is basic.deliver up to and including the consumer tag.
func deliverPrefix(ch uint16, tag string) []byte {
	b := make([]byte, 0, amqp091.FrameHeaderSize+5+len(tag))
	b = amqp091.AppendFrameHead(b, amqp091.FrameMethod, ch, 0)
	b = append(b, 0, 60, 0, 60, byte(len(tag)))
	return append(b, tag...)
}

// Full implements queue.Sink. A connection whose peer is gone swallows what is
// written to it: no message goes there.
func (k *consumer) Full() bool { return k.ch.c.rc.Full() || k.ch.c.rc.Closing() }

// Deliver implements queue.Sink.
func (k *consumer) Deliver(seq uint64, m *core.Message, f queue.DeliverFlags) {
	ch := k.ch
	tag := ch.nextTag
	ch.nextTag++
	if !k.noAck {
		ch.hold(tag, seq, k.slot, f&queue.Counted != 0)
	}
	head := m.Head()
	if f.Extra() {
		// A header frame cannot be split: what does not fit goes without.
		if with := ch.c.lp.headWith(head, seq, f); len(with)+amqp091.FrameOverhead <= int(ch.c.frameMax) {
			head = with
		}
	}
	ch.c.writeDeliver(k.prefix, tag, f&queue.Redelivered != 0, m, head, ch.id)
	if f&queue.Owned != 0 {
		m.Release(ch.c.shard.Arena())
	}
}

// The headers that a queue adds to what it hands out.
const (
	headerDeliveryCount = "x-delivery-count" // DLX-09; not there at 0
	headerStreamOffset  = "x-stream-offset"  // STR-02
)

// headWith is a content header with what the queue has to say added to it. It is valid
// until the next call.
func (lp *loopState) headWith(head []byte, seq uint64, f queue.DeliverFlags) []byte {
	if f&queue.Offset != 0 {
		lp.headExtra = amqp091.AppendHeadWith(lp.headExtra[:0], head, headerStreamOffset, int64(seq))
	} else {
		lp.headExtra = amqp091.AppendHeadWith(lp.headExtra[:0], head, headerDeliveryCount, int64(f.Count()))
	}
	return lp.headExtra
}

// frameEnds is the room that a delivery's three frames need beside their
// payloads: two further frame heads and three end octets.
const frameEnds = 2*amqp091.FrameHeaderSize + 3

// writeDeliver writes basic.deliver and the content with head as its header.
// Everything of a small message goes into the output as one piece.
func (c *conn) writeDeliver(prefix []byte, tag uint64, redelivered bool, m *core.Message, head []byte, ch uint16) {
	route := m.Route()
	bodyLen := m.BodyLen()
	inline := bodyLen
	if bodyLen > copyMax || bodyLen > int(c.frameMax)-amqp091.FrameOverhead {
		inline = 0
	}
	methodLen := len(prefix) + 9 + len(route)
	n := methodLen + len(head) + inline + frameEnds
	if n > reserveMax || len(head)+amqp091.FrameOverhead > int(c.frameMax) {
		c.writeDeliverLarge(prefix, tag, redelivered, m, head, ch)
		return
	}
	b := c.rc.Reserve(n)
	copy(b, prefix)
	binary.BigEndian.PutUint32(b[3:], uint32(methodLen-amqp091.FrameHeaderSize))
	at := len(prefix)
	binary.BigEndian.PutUint64(b[at:], tag)
	at += 8
	b[at] = 0
	if redelivered {
		b[at] = 1
	}
	at++
	at += copy(b[at:], route)
	b[at] = amqp091.FrameEnd
	at++
	at = putFrame(b, at, amqp091.FrameHeader, ch, head)
	if inline > 0 {
		at = putFrame(b, at, amqp091.FrameBody, ch, m.Body())
	}
	c.rc.Commit(at)
	if inline != bodyLen {
		c.writeBody(ch, m)
	}
}

func putFrame(b []byte, at int, typ byte, ch uint16, payload []byte) int {
	amqp091.PutFrameHead(b[at:], typ, ch, uint32(len(payload)))
	at += amqp091.FrameHeaderSize
	at += copy(b[at:], payload)
	b[at] = amqp091.FrameEnd
	return at + 1
}

// writeContent writes header and body frames of a message, with head as its header.
func (c *conn) writeContent(ch uint16, m *core.Message, head []byte) {
	c.writeHead(ch, head)
	c.writeBody(ch, m)
}

// writeHead writes the content header frame. It was received in one frame; a
// receiver with a smaller frame-max gets it whole, as there is no way to split
// it.
func (c *conn) writeHead(ch uint16, head []byte) {
	var fh [amqp091.FrameHeaderSize]byte
	amqp091.PutFrameHead(fh[:], amqp091.FrameHeader, ch, uint32(len(head)))
	c.rc.Write(fh[:])
	c.rc.Write(head)
	c.rc.Write(endOctet[:])
}

var endOctet = [1]byte{amqp091.FrameEnd}

// writeBody writes the body in frames of the receiver's size; large parts are
// referenced, not copied.
func (c *conn) writeBody(ch uint16, m *core.Message) {
	body := m.Body()
	part := int(c.frameMax) - amqp091.FrameOverhead
	// With the smallest frame-max every part is small, but the whole may be
	// huge, and a copy of it for each consumer would be more than memory.
	share := len(body) > shareMin
	var fh [amqp091.FrameHeaderSize]byte
	for len(body) > 0 {
		n := min(part, len(body))
		amqp091.PutFrameHead(fh[:], amqp091.FrameBody, ch, uint32(n))
		c.rc.Write(fh[:])
		if n > copyMax || share {
			m.AddRef(1)
			c.rc.WriteShared(body[:n], m.Token())
		} else {
			c.rc.Write(body[:n])
		}
		c.rc.Write(endOctet[:])
		body = body[n:]
	}
}

// writeDeliverLarge is writeDeliver for headers that do not fit one piece.
func (c *conn) writeDeliverLarge(prefix []byte, tag uint64, redelivered bool, m *core.Message, head []byte, ch uint16) {
	b := c.rc.Reserve(len(prefix) + 9 + len(m.Route()) + 1)
	copy(b, prefix)
	binary.BigEndian.PutUint32(b[3:], uint32(len(prefix)+9+len(m.Route())-amqp091.FrameHeaderSize))
	at := len(prefix)
	binary.BigEndian.PutUint64(b[at:], tag)
	b[at+8] = 0
	if redelivered {
		b[at+8] = 1
	}
	at += 9
	at += copy(b[at:], m.Route())
	b[at] = amqp091.FrameEnd
	c.rc.Commit(at + 1)
	c.writeContent(ch, m, head)
}
