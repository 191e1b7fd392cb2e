package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// fakeBroker is a small AMQP 0-9-1 server, enough for every scenario: it
// routes, queues, delivers, confirms and settles under one lock.
type fakeBroker struct {
	listener net.Listener
	group    sync.WaitGroup

	mu        sync.Mutex
	queues    map[string]*fakeQueue
	exchanges map[string]*fakeExchange
	conns     map[*fakeConn]bool
	published int64
	journal   io.Writer // a line for each message that comes (+queue) or goes (-queue); may be nil
}

type fakeExchange struct {
	kind     string
	bindings []binding
}

type fakeQueue struct {
	name      string
	messages  []fakeMessage
	consumers []*fakeConsumer
	turn      int
}

type fakeMessage struct {
	exchange, key string
	content       []byte // header and body frames as they came
}

type fakeConsumer struct {
	conn  *fakeConn
	tag   string
	noAck bool
	queue *fakeQueue
}

// fakeConn is one connection; a writer goroutine empties out, so that the
// broker's lock is never held over a blocking write.
type fakeConn struct {
	b    *fakeBroker
	nc   net.Conn
	cond *sync.Cond // on b.mu
	out  bytes.Buffer
	gone bool

	confirms uint64
	confirm  bool
	prefetch int
	tag      uint64
	unacked  []fakeUnacked
}

type fakeUnacked struct {
	tag   uint64
	queue *fakeQueue
}

func startFakeBroker(t testing.TB) *fakeBroker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := newFakeBroker(l)
	t.Cleanup(b.stop)
	return b
}

func newFakeBroker(l net.Listener) *fakeBroker {
	b := &fakeBroker{listener: l, queues: map[string]*fakeQueue{}, exchanges: map[string]*fakeExchange{}, conns: map[*fakeConn]bool{}}
	b.group.Add(1)
	go func() {
		defer b.group.Done()
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			c := &fakeConn{b: b, nc: nc, cond: sync.NewCond(&b.mu)}
			b.mu.Lock()
			b.conns[c] = true
			b.mu.Unlock()
			b.group.Add(2)
			go c.read()
			go c.writeLoop()
		}
	}()
	return b
}

func (b *fakeBroker) url() string { return "amqp://guest:guest@" + b.listener.Addr().String() }

func (b *fakeBroker) stop() {
	b.listener.Close()
	b.mu.Lock()
	for c := range b.conns {
		c.nc.Close()
	}
	b.mu.Unlock()
	b.group.Wait()
}

func (c *fakeConn) writeLoop() {
	defer c.b.group.Done()
	for {
		c.b.mu.Lock()
		for c.out.Len() == 0 && !c.gone {
			c.cond.Wait()
		}
		chunk := append([]byte(nil), c.out.Bytes()...)
		c.out.Reset()
		gone := c.gone
		c.b.mu.Unlock()
		if len(chunk) > 0 {
			if _, err := c.nc.Write(chunk); err != nil {
				gone = true
			}
		}
		if gone {
			c.nc.Close()
			return
		}
	}
}

func (c *fakeConn) read() {
	defer c.b.group.Done()
	defer c.leave()
	r := bufio.NewReaderSize(c.nc, 64<<10)
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil || !bytes.Equal(head, protocolHeader) {
		return
	}
	properties, err := appendTable([]byte{0, 9}, map[string]any{"product": "FakeMQ", "version": "1.2.3"})
	if err != nil {
		panic(err)
	}
	properties = appendLongstr(appendLongstr(properties, "PLAIN"), "en_US")
	c.b.mu.Lock()
	c.send(0, connectionStart, properties)
	c.b.mu.Unlock()
	var content fakeContent
	for {
		frame, err := readTestFrame(r)
		if err != nil || !c.frame(frame, &content) {
			return
		}
	}
}

// fakeContent is the message that a channel is in the middle of.
type fakeContent struct {
	message *fakeMessage
	left    uint64
}

// frame handles one frame under the lock and reports whether to go on.
func (c *fakeConn) frame(frame []byte, content *fakeContent) bool {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	payload := frame[frameHeadSize : len(frame)-1]
	if frame[0] == frameMethod {
		content.message = c.method(be.Uint16(frame[1:]), be.Uint32(payload), payload[4:])
		return !c.gone
	}
	if frame[0] == frameHeader {
		content.left = be.Uint64(payload[4:])
	} else {
		content.left -= uint64(len(payload))
	}
	content.message.content = append(content.message.content, frame...)
	if content.left == 0 {
		c.publish(*content.message)
	}
	return !c.gone
}

func readTestFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, frameHeadSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	frame := make([]byte, frameHeadSize+int(be.Uint32(head[3:]))+1)
	copy(frame, head)
	if _, err := io.ReadFull(r, frame[frameHeadSize:]); err != nil {
		return nil, err
	}
	if frame[len(frame)-1] != frameEnd {
		return nil, errFrameEnd
	}
	return frame, nil
}

// leave takes the connection's consumers away.
func (c *fakeConn) leave() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	for _, q := range c.b.queues {
		var rest []*fakeConsumer
		for _, k := range q.consumers {
			if k.conn != c {
				rest = append(rest, k)
			}
		}
		q.consumers = rest
	}
	delete(c.b.conns, c)
	c.gone = true
	c.cond.Signal()
}

func (c *fakeConn) send(channel uint16, id uint32, args []byte) {
	c.out.Write(appendMethod(nil, channel, id, args))
	c.cond.Signal()
}

// args reads method arguments in order.
type testArgs []byte

func (a *testArgs) skip(n int) { *a = (*a)[n:] }
func (a *testArgs) str() string {
	n := int((*a)[0])
	s := string((*a)[1 : 1+n])
	a.skip(1 + n)
	return s
}

// method handles one method; for basic.publish it returns the message begun.
func (c *fakeConn) method(channel uint16, id uint32, raw []byte) *fakeMessage {
	a := testArgs(raw)
	switch id {
	case connectionStartOk:
		c.send(0, connectionTune, []byte{0, 255, 0, 2, 0, 0, 0, 60})
	case connectionTuneOk:
	case connectionOpen:
		if vhost := a.str(); vhost != "/" {
			c.send(0, connectionClose, append(appendShortstr([]byte{2, 18}, "vhost "+vhost+" not found"), 0, 0, 0, 0))
			return nil
		}
		c.send(0, connectionOpenOk, []byte{0})
	case connectionClose:
		c.send(0, connectionCloseOk, nil)
		c.gone = true
	case channelOpen:
		c.send(channel, channelOpenOk, []byte{0, 0, 0, 0})
	case channelClose:
		c.send(channel, channelCloseOk, nil)
	case basicQos:
		c.prefetch = int(be.Uint16(raw[4:]))
		c.send(channel, basicQosOk, nil)
	case confirmSelect:
		c.confirm = true
		c.send(channel, confirmSelectOk, nil)
	case basicAck:
		c.settle(be.Uint64(raw), raw[8]&1 != 0)
	case basicPublish:
		a.skip(2)
		return &fakeMessage{exchange: a.str(), key: a.str()}
	default:
		c.declaration(channel, id, a)
	}
	return nil
}

func (c *fakeConn) declaration(channel uint16, id uint32, a testArgs) {
	a.skip(2)
	name := a.str()
	switch id {
	case queueDeclare:
		q, passive := c.b.queues[name], a[0]&1 != 0
		if q == nil && passive {
			c.send(channel, channelClose, append(appendShortstr([]byte{1, 148}, "NOT_FOUND - no queue "+name), 0, 0, 0, 0))
			return
		}
		if q == nil {
			q = c.b.addQueue(name)
		}
		args := be.AppendUint32(appendShortstr(nil, name), uint32(len(q.messages)))
		c.send(channel, queueDeclareOk, be.AppendUint32(args, uint32(len(q.consumers))))
	case queueDelete:
		held := 0
		if q := c.b.queues[name]; q != nil {
			held = len(q.messages)
		}
		delete(c.b.queues, name)
		c.send(channel, queueDeleteOk, be.AppendUint32(nil, uint32(held)))
	case exchangeDeclare:
		c.b.exchanges[name] = &fakeExchange{kind: a.str()}
		c.send(channel, exchangeDeclareOk, nil)
	case exchangeDelete:
		delete(c.b.exchanges, name)
		c.send(channel, exchangeDeleteOk, nil)
	case queueBind:
		x := c.b.exchanges[a.str()]
		x.bindings = append(x.bindings, binding{name, a.str()})
		c.send(channel, queueBindOk, nil)
	case basicConsume:
		tag := a.str()
		q := c.b.queues[name]
		q.consumers = append(q.consumers, &fakeConsumer{conn: c, tag: tag, noAck: a[0]&2 != 0, queue: q})
		c.send(channel, basicConsumeOk, appendShortstr(nil, tag))
		c.b.pump(q)
	default:
		text := fmt.Sprintf("fake broker lacks method %d.%d", id>>16, id&0xffff)
		c.send(0, connectionClose, append(appendShortstr([]byte{2, 28}, text), 0, 0, 0, 0))
	}
}

func (b *fakeBroker) addQueue(name string) *fakeQueue {
	b.queues[name] = &fakeQueue{name: name}
	return b.queues[name]
}

func (b *fakeBroker) note(sign byte, q *fakeQueue) {
	if b.journal != nil {
		fmt.Fprintf(b.journal, "%c%s\n", sign, q.name)
	}
}

func (c *fakeConn) publish(m fakeMessage) {
	if m.key == "forbidden" {
		c.send(0, connectionClose, append(appendShortstr([]byte{1, 147}, "ACCESS_REFUSED - no"), 0, 0, 0, 0))
		return
	}
	c.b.published++
	for _, q := range c.b.route(m) {
		q.messages = append(q.messages, m)
		c.b.note('+', q)
		c.b.pump(q)
	}
	if c.confirm {
		c.confirms++
		c.send(1, basicAck, append(be.AppendUint64(nil, c.confirms), 0))
	}
}

func (b *fakeBroker) route(m fakeMessage) (to []*fakeQueue) {
	x := b.exchanges[m.exchange]
	if x == nil {
		if q := b.queues[m.key]; q != nil {
			to = append(to, q)
		}
		return to
	}
	for _, bind := range x.bindings {
		if x.kind == "fanout" || topicMatches(strings.Split(bind.key, "."), strings.Split(m.key, ".")) {
			if q := b.queues[bind.queue]; q != nil {
				to = append(to, q)
			}
		}
	}
	return to
}

func topicMatches(pattern, key []string) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == "#":
		return topicMatches(pattern[1:], key) || len(key) > 0 && topicMatches(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == key[0]) && topicMatches(pattern[1:], key[1:])
}

// pump delivers what the queue's consumers have room for.
func (b *fakeBroker) pump(q *fakeQueue) {
	for len(q.messages) > 0 {
		k := q.ready()
		if k == nil {
			return
		}
		m := q.messages[0]
		q.messages = q.messages[1:]
		c := k.conn
		c.tag++
		if !k.noAck {
			c.unacked = append(c.unacked, fakeUnacked{c.tag, q})
		} else {
			b.note('-', q)
		}
		args := be.AppendUint64(appendShortstr(nil, k.tag), c.tag)
		args = appendShortstr(appendShortstr(append(args, 0), m.exchange), m.key)
		c.send(1, basicDeliver, args)
		c.out.Write(m.content)
	}
}

func (q *fakeQueue) ready() *fakeConsumer {
	for range q.consumers {
		q.turn = (q.turn + 1) % len(q.consumers)
		if k := q.consumers[q.turn]; k.noAck || k.conn.prefetch == 0 || len(k.conn.unacked) < k.conn.prefetch {
			return k
		}
	}
	return nil
}

func (c *fakeConn) settle(tag uint64, multiple bool) {
	var rest []fakeUnacked
	for _, u := range c.unacked {
		if u.tag > tag || !multiple && u.tag != tag {
			rest = append(rest, u)
		} else {
			c.b.note('-', u.queue)
		}
	}
	c.unacked = rest
	for _, q := range c.b.queues {
		c.b.pump(q)
	}
}
