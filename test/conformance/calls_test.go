package conformance

import (
	"encoding/binary"
)

// flags are the bits of declares and deletes; each call picks those that its method has.
type flags struct {
	passive, durable, exclusive, autoDelete, internal, noWait bool
	ifUnused, ifEmpty                                         bool
}

func exchangeArgs(name, kind string, f flags, a tbl) *enc {
	return args().u16(0).ss(name).ss(kind).bits(f.passive, f.durable, f.autoDelete, f.internal, f.noWait).table(a)
}

func queueArgs(name string, f flags, a tbl) *enc {
	return args().u16(0).ss(name).bits(f.passive, f.durable, f.exclusive, f.autoDelete, f.noWait).table(a)
}

func bindArgs(queue, exchange, key string, a tbl) *enc {
	return args().u16(0).ss(queue).ss(exchange).ss(key).bits(false).table(a)
}

func unbindArgs(queue, exchange, key string, a tbl) *enc {
	return args().u16(0).ss(queue).ss(exchange).ss(key).table(a)
}

func consumeArgs(queue, tag string, noLocal, noAck, exclusive, noWait bool, a tbl) *enc {
	return args().u16(0).ss(queue).ss(tag).bits(noLocal, noAck, exclusive, noWait).table(a)
}

func getArgs(queue string, noAck bool) *enc { return args().u16(0).ss(queue).bits(noAck) }

func deleteQueueArgs(queue string, f flags) *enc {
	return args().u16(0).ss(queue).bits(f.ifUnused, f.ifEmpty, f.noWait)
}

func deleteExchangeArgs(name string, f flags) *enc {
	return args().u16(0).ss(name).bits(f.ifUnused, f.noWait)
}

func publishArgs(exchange, key string, mandatory, immediate bool) *enc {
	return args().u16(0).ss(exchange).ss(key).bits(mandatory, immediate)
}

// exchange declares an exchange and awaits the answer.
func (c *client) exchange(ch uint16, name, kind string, f flags, a tbl) {
	c.t.Helper()
	c.method(ch, 40, 10, exchangeArgs(name, kind, f, a))
	c.expect(ch, 40, 11)
}

// queue declares a queue and returns what declare-ok says.
func (c *client) queue(ch uint16, name string, f flags, a tbl) (got string, ready, consumers uint32) {
	c.t.Helper()
	c.method(ch, 50, 10, queueArgs(name, f, a))
	d := c.expect(ch, 50, 11)
	got, ready, consumers = d.ss(), d.u32(), d.u32()
	d.end()
	return got, ready, consumers
}

// newQueue declares a plain queue with a name of its own.
func (c *client) newQueue(ch uint16) string {
	c.t.Helper()
	name := unique("q")
	c.queue(ch, name, flags{}, "")
	return name
}

// newExchange declares an exchange with a name of its own.
func (c *client) newExchange(ch uint16, kind string) string {
	c.t.Helper()
	name := unique("x")
	c.exchange(ch, name, kind, flags{}, "")
	return name
}

// depth asks for the ready messages and consumers of a queue. It travels behind this channel's earlier commands.
func (c *client) depth(ch uint16, name string) (ready, consumers uint32) {
	c.t.Helper()
	_, ready, consumers = c.queue(ch, name, flags{passive: true}, "")
	return ready, consumers
}

// awaitReady polls until the queue holds this many ready messages: for publishes and acks of other channels, which are
// not ordered with this one.
func (c *client) awaitReady(ch uint16, name string, want uint32) {
	c.t.Helper()
	eventually(c.t, "the queue's depth", func() bool {
		ready, _ := c.depth(ch, name)
		return ready == want
	})
}

func (c *client) bind(ch uint16, queue, exchange, key string, a tbl) {
	c.t.Helper()
	c.method(ch, 50, 20, bindArgs(queue, exchange, key, a))
	c.expect(ch, 50, 21)
}

func (c *client) unbind(ch uint16, queue, exchange, key string, a tbl) {
	c.t.Helper()
	c.method(ch, 50, 50, unbindArgs(queue, exchange, key, a))
	c.expect(ch, 50, 51)
}

func (c *client) bindExchange(ch uint16, destination, source, key string, a tbl) {
	c.t.Helper()
	c.method(ch, 40, 30, bindArgs(destination, source, key, a))
	c.expect(ch, 40, 31)
}

func (c *client) unbindExchange(ch uint16, destination, source, key string, a tbl) {
	c.t.Helper()
	c.method(ch, 40, 40, bindArgs(destination, source, key, a))
	c.expect(ch, 40, 51)
}

func (c *client) purge(ch uint16, queue string) uint32 {
	c.t.Helper()
	c.method(ch, 50, 30, args().u16(0).ss(queue).bits(false))
	return c.expect(ch, 50, 31).u32()
}

func (c *client) deleteQueue(ch uint16, queue string, f flags) uint32 {
	c.t.Helper()
	c.method(ch, 50, 40, deleteQueueArgs(queue, f))
	return c.expect(ch, 50, 41).u32()
}

func (c *client) deleteExchange(ch uint16, name string, f flags) {
	c.t.Helper()
	c.method(ch, 40, 20, deleteExchangeArgs(name, f))
	c.expect(ch, 40, 21)
}

// consume starts a consumer and returns its tag.
func (c *client) consume(ch uint16, queue, tag string, noAck bool) string {
	c.t.Helper()
	return c.consumeWith(ch, consumeArgs(queue, tag, false, noAck, false, false, ""))
}

func (c *client) consumeWith(ch uint16, a *enc) string {
	c.t.Helper()
	c.method(ch, 60, 20, a)
	d := c.expect(ch, 60, 21)
	tag := d.ss()
	d.end()
	return tag
}

func (c *client) cancel(ch uint16, tag string) {
	c.t.Helper()
	c.method(ch, 60, 30, args().ss(tag).bits(false))
	if got := c.expect(ch, 60, 31).ss(); got != tag {
		c.t.Fatalf("cancel-ok for %q, want %q", got, tag)
	}
}

func (c *client) qos(ch uint16, count uint16, global bool) {
	c.t.Helper()
	c.method(ch, 60, 10, args().u32(0).u16(count).bits(global))
	c.expect(ch, 60, 11)
}

func (c *client) confirm(ch uint16) {
	c.t.Helper()
	c.method(ch, 85, 10, args().bits(false))
	c.expect(ch, 85, 11)
}

func (c *client) closeChannel(ch uint16) {
	c.t.Helper()
	c.method(ch, 20, 40, args().u16(200).ss("done").u16(0).u16(0))
	c.expect(ch, 20, 41)
}

func (c *client) ack(ch uint16, tag uint64, multiple bool) {
	c.t.Helper()
	c.method(ch, 60, 80, args().u64(tag).bits(multiple))
}

func (c *client) nack(ch uint16, tag uint64, multiple, requeue bool) {
	c.t.Helper()
	c.method(ch, 60, 120, args().u64(tag).bits(multiple, requeue))
}

func (c *client) reject(ch uint16, tag uint64, requeue bool) {
	c.t.Helper()
	c.method(ch, 60, 90, args().u64(tag).bits(requeue))
}

// header is the payload of a content header frame of class 60.
func headerPayload(size uint64, properties []byte) []byte {
	return args().u16(60).u16(0).u64(size).raw(properties...).b
}

// contentFrames is a publish with its header and body, split at frameMax.
func contentFrames(ch uint16, method *enc, properties, body []byte, frameMax int) []byte {
	out := methodFrame(ch, 60, 40, method)
	out = appendFrame(out, 2, ch, headerPayload(uint64(len(body)), properties))
	for len(body) > 0 {
		n := min(len(body), frameMax-8)
		out = appendFrame(out, 3, ch, body[:n])
		body = body[n:]
	}
	return out
}

// publish sends one message without properties.
func (c *client) publish(ch uint16, exchange, key, body string) {
	c.t.Helper()
	c.publishWith(ch, publishArgs(exchange, key, false, false), props{}, []byte(body))
}

// publishAll sends several messages to one queue through the default exchange, in one write.
func (c *client) publishAll(ch uint16, queue string, bodies ...string) {
	c.t.Helper()
	var out []byte
	for _, body := range bodies {
		out = append(out, contentFrames(ch, publishArgs("", queue, false, false), []byte{0, 0}, []byte(body), c.frameMax)...)
	}
	c.write(out)
}

func (c *client) publishWith(ch uint16, method *enc, p props, body []byte) {
	c.t.Helper()
	c.write(contentFrames(ch, method, p.encode(), body, c.frameMax))
}

// message is what deliver, get-ok or return carried.
type message struct {
	consumerTag   string // deliver
	tag           uint64 // deliver, get-ok
	redelivered   bool
	exchange, key string
	count         uint32 // get-ok: ready messages left
	code          uint16 // return
	text          string // return
	properties    []byte // flags and list
	body          string
	bodyFrames    int
}

// content reads the header and body frames that follow a method with content.
func (c *client) content(ch uint16, msg *message) {
	c.t.Helper()
	f := c.next()
	if f.typ != 2 || f.channel != ch {
		c.t.Fatalf("got %v, want a content header on channel %d", f, ch)
	}
	d := &dec{c.t, f.payload}
	if class, weight := d.u16(), d.u16(); class != 60 || weight != 0 {
		c.t.Fatalf("content header of class %d, weight %d", class, weight)
	}
	size := d.u64()
	msg.properties = d.b
	body := make([]byte, 0, size)
	for uint64(len(body)) < size {
		f := c.next()
		if f.typ != 3 || f.channel != ch {
			c.t.Fatalf("got %v, want a body frame on channel %d", f, ch)
		}
		body = append(body, f.payload...)
		msg.bodyFrames++
	}
	if uint64(len(body)) != size {
		c.t.Fatalf("body of %d bytes, %d announced", len(body), size)
	}
	msg.body = string(body)
}

// deliver reads one basic.deliver with its content.
func (c *client) deliver(ch uint16) message {
	c.t.Helper()
	d := c.expect(ch, 60, 60)
	msg := message{consumerTag: d.ss(), tag: d.u64(), redelivered: d.u8()&1 != 0, exchange: d.ss(), key: d.ss()}
	d.end()
	c.content(ch, &msg)
	return msg
}

// deliverBodies reads deliveries and checks their bodies in order; it returns them.
func (c *client) deliverBodies(ch uint16, want ...string) []message {
	c.t.Helper()
	var out []message
	for i, body := range want {
		msg := c.deliver(ch)
		if msg.body != body {
			c.t.Fatalf("delivery %d has body %q, want %q", i+1, msg.body, body)
		}
		out = append(out, msg)
	}
	return out
}

// returned reads one basic.return with its content.
func (c *client) returned(ch uint16) message {
	c.t.Helper()
	d := c.expect(ch, 60, 50)
	msg := message{code: d.u16(), text: d.ss(), exchange: d.ss(), key: d.ss()}
	d.end()
	c.content(ch, &msg)
	return msg
}

// get asks for one message; ok is false for get-empty.
func (c *client) get(ch uint16, queue string, noAck bool) (msg message, ok bool) {
	c.t.Helper()
	c.method(ch, 60, 70, getArgs(queue, noAck))
	f := c.next()
	switch {
	case f.channel == ch && f.id() == m(60, 72):
		return msg, false
	case f.channel == ch && f.id() == m(60, 71):
	default:
		c.t.Fatalf("got %v, want get-ok or get-empty on channel %d", f, ch)
	}
	d := &dec{c.t, f.payload[4:]}
	msg = message{tag: d.u64(), redelivered: d.u8()&1 != 0, exchange: d.ss(), key: d.ss(), count: d.u32()}
	d.end()
	c.content(ch, &msg)
	return msg, true
}

// mustGet is get from a queue that holds a message.
func (c *client) mustGet(ch uint16, queue string, noAck bool) message {
	c.t.Helper()
	msg, ok := c.get(ch, queue, noAck)
	if !ok {
		c.t.Fatalf("queue %q is empty", queue)
	}
	return msg
}

// drain takes all ready messages of a queue and returns their bodies.
func (c *client) drain(ch uint16, queue string) []string {
	c.t.Helper()
	var out []string
	for {
		msg, ok := c.get(ch, queue, true)
		if !ok {
			return out
		}
		out = append(out, msg.body)
	}
}

// confirmed reads acks and nacks on a confirm channel until every publish up to last is settled, and returns which of
// them were nacked. A confirm above last, or one that settles nothing new, fails the test (CNF-03, CNF-04).
func (c *client) confirmed(ch uint16, last uint64) (nacked []uint64) {
	c.t.Helper()
	settled := make([]bool, last+1)
	for open := last; open > 0; {
		f := c.next()
		if f.channel != ch || (f.id() != m(60, 80) && f.id() != m(60, 120)) {
			c.t.Fatalf("got %v, want a confirm on channel %d (%d open)", f, ch, open)
		}
		tag, multiple := binary.BigEndian.Uint64(f.payload[4:]), f.payload[12]&1 != 0
		if tag == 0 || tag > last {
			c.t.Fatalf("confirm of %d, %d published", tag, last)
		}
		from, before := tag, open
		if multiple {
			from = 1
		}
		for n := from; n <= tag; n++ {
			if settled[n] {
				continue
			}
			settled[n] = true
			open--
			if f.id() == m(60, 120) {
				nacked = append(nacked, n)
			}
		}
		if open == before {
			c.t.Fatalf("confirm of %d (multiple=%v) settles nothing that was open", tag, multiple)
		}
	}
	return nacked
}
