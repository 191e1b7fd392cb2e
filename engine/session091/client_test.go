package session091

import (
	"encoding/binary"
	"fmt"

	"ringmq/frame/amqp091"
	"ringmq/ring/sim"
)

// event is one method that a client received, with its content.
type event struct {
	ch    uint16
	m     amqp091.Method
	props []byte // of a content, flags and list
	body  []byte
	size  uint64 // of the body, as announced
}

// client is the far end of one connection: it writes methods and collects what
// comes back. It fails the test when the broker's bytes are not well-formed.
type client struct {
	w       *world
	peer    *sim.Peer
	loop    int
	in      []byte
	got     []event
	part    map[uint16]*event // contents under way
	tags    map[uint16]uint64 // last delivery tag seen, of each channel
	onEvent func(event)
	closed  bool // connection.close came, or close-ok
	deaf    bool // does not read
}

// dial opens a connection on a loop, up to connection.open-ok.
func (w *world) dial(loop int) *client {
	w.Helper()
	c := w.dialRaw(loop)
	c.peer.Write(amqp091.ProtocolHeader[:])
	c.wait(0, amqp091.MethodConnectionStart)
	c.send(0, startOk())
	c.wait(0, amqp091.MethodConnectionTune)
	c.send(0, &amqp091.ConnectionTuneOk{ChannelMax: 2047, FrameMax: w.frameMax})
	c.send(0, &amqp091.ConnectionOpen{VirtualHost: []byte("/")})
	c.wait(0, amqp091.MethodConnectionOpenOk)
	return c
}

func (w *world) dialRaw(loop int) *client {
	c := &client{w: w, peer: w.Dial(loop), loop: loop, part: map[uint16]*event{}, tags: map[uint16]uint64{}}
	w.clients = append(w.clients, c)
	return c
}

func startOk() *amqp091.ConnectionStartOk {
	caps := amqp091.AppendBool(nil, "consumer_cancel_notify", true)
	caps = amqp091.AppendBool(caps, "connection.blocked", true)
	return &amqp091.ConnectionStartOk{
		ClientProperties: amqp091.AppendTable(nil, "capabilities", caps),
		Mechanism:        []byte("PLAIN"), Response: []byte("\x00guest\x00guest"), Locale: []byte("en_US"),
	}
}

func (c *client) send(ch uint16, m amqp091.Method) { c.peer.Write(m.Append(nil, ch)) }

// channel opens a channel.
func (c *client) channel(n uint16) {
	c.w.Helper()
	c.send(n, &amqp091.ChannelOpen{})
	c.wait(n, amqp091.MethodChannelOpenOk)
}

// publishFrames are the frames of one publish.
func publishFrames(dst []byte, ch uint16, exchange, key string, mandatory bool, props, body []byte, frameMax int) []byte {
	m := amqp091.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte(key), Mandatory: mandatory}
	dst = m.Append(dst, ch)
	if props == nil {
		props = []byte{0, 0}
	}
	dst = amqp091.AppendContentHeader(dst, ch, uint64(len(body)), props)
	for len(body) > 0 {
		n := min(len(body), frameMax-amqp091.FrameOverhead)
		dst = amqp091.AppendFrameHead(dst, amqp091.FrameBody, ch, uint32(n))
		dst = append(dst, body[:n]...)
		dst = append(dst, amqp091.FrameEnd)
		body = body[n:]
	}
	return dst
}

func (c *client) publish(ch uint16, exchange, key string, body []byte) {
	c.peer.Write(publishFrames(nil, ch, exchange, key, false, nil, body, int(c.w.frameMax)))
}

// numbered is a body of n bytes that begins with a number.
func numbered(id uint64, n int) []byte {
	body := make([]byte, max(n, 8))
	for i := range body {
		body[i] = byte(id) + byte(i)
	}
	binary.BigEndian.PutUint64(body, id)
	return body
}

func numberOf(body []byte) uint64 { return binary.BigEndian.Uint64(body) }

// whole reports that a body is what numbered made, to the last byte.
func whole(body []byte) bool {
	id := numberOf(body)
	for i := 8; i < len(body); i++ {
		if body[i] != byte(id)+byte(i) {
			return false
		}
	}
	return true
}

// pump takes what has arrived and makes events of it.
func (c *client) pump() (moved bool) {
	b := c.peer.Read()
	c.in = append(c.in, b...)
	for len(c.in) >= amqp091.FrameHeaderSize {
		if string(c.in[:4]) == "AMQP" {
			c.fatalf("the broker refuses the protocol")
		}
		h := amqp091.ParseFrameHead(c.in)
		n := int(h.Size) + amqp091.FrameOverhead
		if h.Size > 1<<24 {
			c.fatalf("a frame of %d bytes", h.Size)
		}
		if len(c.in) < n {
			break
		}
		if c.in[n-1] != amqp091.FrameEnd {
			c.fatalf("a frame of type %d ends with %x", h.Type, c.in[n-1])
		}
		payload := append([]byte(nil), c.in[amqp091.FrameHeaderSize:n-1]...)
		c.in = c.in[n:]
		c.frame(h, payload)
	}
	return len(b) > 0
}

func (c *client) frame(h amqp091.FrameHead, payload []byte) {
	switch h.Type {
	case amqp091.FrameMethod:
		m := amqp091.New(methodID(payload))
		if m == nil {
			c.fatalf("unknown method %x", payload[:4])
		}
		if err := m.Decode(payload[4:]); err != nil {
			c.fatalf("%s: %v", m.ID(), err)
		}
		if c.part[h.Channel] != nil {
			c.fatalf("%s inside a content", m.ID())
		}
		e := event{ch: h.Channel, m: m}
		if m.ID().HasContent() {
			c.part[h.Channel] = &e
			return
		}
		c.event(e)
	case amqp091.FrameHeader:
		e := c.part[h.Channel]
		head, ok := amqp091.ParseContentHead(payload)
		if e == nil || e.props != nil || !ok {
			c.fatalf("a content header out of place")
		}
		e.props, e.size = head.Props, head.BodySize
		c.content(h.Channel)
	case amqp091.FrameBody:
		e := c.part[h.Channel]
		if e == nil || e.props == nil || len(payload) == 0 || h.Size+amqp091.FrameOverhead > c.w.frameMax {
			c.fatalf("a body frame of %d bytes out of place", len(payload))
		}
		e.body = append(e.body, payload...)
		c.content(h.Channel)
	case amqp091.FrameHeartbeat:
	default:
		c.fatalf("a frame of type %d", h.Type)
	}
}

// content completes a content when its body is there.
func (c *client) content(ch uint16) {
	e := c.part[ch]
	if uint64(len(e.body)) < e.size {
		return
	}
	if uint64(len(e.body)) > e.size {
		c.fatalf("%d bytes of body, %d were announced", len(e.body), e.size)
	}
	delete(c.part, ch)
	c.event(*e)
}

// event checks what holds for every client, and keeps the event.
func (c *client) event(e event) {
	tag := uint64(0)
	switch m := e.m.(type) {
	case *amqp091.BasicDeliver:
		tag = m.DeliveryTag
	case *amqp091.BasicGetOk:
		tag = m.DeliveryTag
	case *amqp091.ChannelOpenOk:
		c.tags[e.ch] = 0
	case *amqp091.ConnectionClose, *amqp091.ConnectionCloseOk:
		c.closed = true
	}
	if tag != 0 { // BAS-10
		if c.tags[e.ch]++; tag != c.tags[e.ch] {
			c.fatalf("delivery tag %d, want %d", tag, c.tags[e.ch])
		}
	}
	c.got = append(c.got, e)
	if c.onEvent != nil {
		c.onEvent(e)
	}
}

func (c *client) fatalf(format string, args ...any) {
	c.w.Helper()
	c.w.fatalf("client on loop %d: %s", c.loop, fmt.Sprintf(format, args...))
}

// take removes and returns the first event of a kind on a channel.
func (c *client) take(ch uint16, id amqp091.MethodID) (event, bool) {
	for i, e := range c.got {
		if e.ch == ch && e.m.ID() == id {
			c.got = append(c.got[:i:i], c.got[i+1:]...)
			return e, true
		}
	}
	return event{}, false
}

// wait lets the world run until an event of a kind has come.
func (c *client) wait(ch uint16, id amqp091.MethodID) event {
	c.w.Helper()
	c.w.rest()
	e, ok := c.take(ch, id)
	if !ok {
		c.fatalf("no %s on channel %d; got %s", id, ch, c.story())
	}
	return e
}

// story lists the events that nobody took.
func (c *client) story() (text string) {
	for _, e := range c.got {
		text += fmt.Sprintf("%d:%s ", e.ch, e.m.ID())
		switch m := e.m.(type) {
		case *amqp091.ChannelClose:
			text += string(m.ReplyText)
		case *amqp091.ConnectionClose:
			text += string(m.ReplyText)
		}
	}
	return text
}

// deliveries takes all deliveries of a channel.
func (c *client) deliveries(ch uint16) (list []event) {
	kept := c.got[:0]
	for _, e := range c.got {
		if e.ch == ch && e.m.ID() == amqp091.MethodBasicDeliver {
			list = append(list, e)
		} else {
			kept = append(kept, e)
		}
	}
	c.got = kept
	return list
}

// declare declares a queue; it lives on the client's own loop.
func (c *client) declare(ch uint16, name string, args amqp091.Table) {
	c.w.Helper()
	c.send(ch, &amqp091.QueueDeclare{Queue: []byte(name), Arguments: args})
	c.wait(ch, amqp091.MethodQueueDeclareOk)
}

// count asks for a queue's counts.
func (c *client) count(ch uint16, name string) (ready, consumers int) {
	c.w.Helper()
	c.send(ch, &amqp091.QueueDeclare{Queue: []byte(name), Passive: true})
	m := c.wait(ch, amqp091.MethodQueueDeclareOk).m.(*amqp091.QueueDeclareOk)
	return int(m.MessageCount), int(m.ConsumerCount)
}

func (c *client) consume(ch uint16, name, tag string, noAck bool) {
	c.w.Helper()
	c.send(ch, &amqp091.BasicConsume{Queue: []byte(name), ConsumerTag: []byte(tag), NoAck: noAck})
	c.w.rest()
	if _, ok := c.take(ch, amqp091.MethodBasicConsumeOk); !ok {
		c.fatalf("no consume-ok; got %s", c.story())
	}
}

func (c *client) ack(ch uint16, tag uint64, multiple bool) {
	c.send(ch, &amqp091.BasicAck{DeliveryTag: tag, Multiple: multiple})
}

// confirmSelect turns confirms on.
func (c *client) confirmSelect(ch uint16) {
	c.w.Helper()
	c.send(ch, &amqp091.ConfirmSelect{})
	c.wait(ch, amqp091.MethodConfirmSelectOk)
}

// confirmBook keeps account of a channel's confirms: each number once, and an ack
// of several covers only what is still open (CNF-04).
type confirmBook struct {
	last   uint64          // number of the last publish
	open   map[uint64]bool // published, not confirmed
	acked  map[uint64]bool
	nacked map[uint64]bool
	// onAck, if set, judges each number at the moment it is acked.
	onAck func(seq uint64)
}

func newConfirmBook() *confirmBook {
	return &confirmBook{open: map[uint64]bool{}, acked: map[uint64]bool{}, nacked: map[uint64]bool{}}
}

func (b *confirmBook) published() uint64 {
	b.last++
	b.open[b.last] = true
	return b.last
}

// event takes an ack or nack from the broker and says what is wrong with it.
func (b *confirmBook) event(m amqp091.Method) string {
	tag, multiple, to := uint64(0), false, b.acked
	switch m := m.(type) {
	case *amqp091.BasicAck:
		tag, multiple = m.DeliveryTag, m.Multiple
	case *amqp091.BasicNack:
		tag, multiple, to = m.DeliveryTag, m.Multiple, b.nacked
	default:
		return ""
	}
	if !b.open[tag] {
		return fmt.Sprintf("number %d is confirmed and not open (acked %v, nacked %v)", tag, b.acked[tag], b.nacked[tag])
	}
	for seq := range b.open {
		if seq == tag || multiple && seq < tag {
			delete(b.open, seq)
			to[seq] = true
			if b.onAck != nil && m.ID() == amqp091.MethodBasicAck {
				b.onAck(seq)
			}
		}
	}
	return ""
}
