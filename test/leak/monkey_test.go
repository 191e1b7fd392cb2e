package leak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"ringmq/frame/amqp091"
	"ringmq/test/harness"
	"ringmq/test/rawamqp"
)

const (
	monkeyQueues   = 24
	monkeyChannels = 4
	monkeyLives    = 25 // connections that each worker makes
	monkeyWorkers  = 12
)

// monkey is one connection that does anything that a client may do, and seldom what it may not, without waiting for
// answers; another goroutine reads them. It ends in any way and at any point.
type monkey struct {
	rnd       *rand.Rand
	conn      *rawamqp.Conn
	consumers int // made so far

	mu       sync.Mutex
	changed  sync.Cond // of what follows
	channels [monkeyChannels + 1]monkeyChannel
	answered bool // connection.close was
	failed   bool // the broker closed the connection
	deaf     bool // nothing more will be heard
	stuck    bool // nothing was heard for long
}

// monkeyChannel is guarded by the monkey's lock.
type monkeyChannel struct {
	tags []uint64 // deliveries to be settled
	flow int      // flow-oks to come
	shut bool     // the broker closed the channel: close-ok is due
	tx   bool
}

func monkeyQueue(i int) []byte { return fmt.Appendf(nil, "monkey-%d", i%monkeyQueues) }

// monkeyArgs are the arguments of a queue by its number, so that most declares agree.
func monkeyArgs(i int) amqp091.Table {
	var t []byte
	switch i % 8 {
	case 1:
		t = amqp091.AppendInt64(t, "x-message-ttl", int64(i%3)*20)
	case 2:
		t = amqp091.AppendInt64(t, "x-max-length", int64(i%5))
		t = amqp091.AppendString(t, "x-dead-letter-exchange", "")
		t = amqp091.AppendString(t, "x-dead-letter-routing-key", string(monkeyQueue(i+1)))
	case 3:
		t = amqp091.AppendInt64(t, "x-max-length-bytes", 5000)
		t = amqp091.AppendString(t, "x-overflow", "reject-publish")
	case 4:
		t = amqp091.AppendInt64(t, "x-expires", 30)
		t = amqp091.AppendInt64(t, "x-message-ttl", 50)
	case 5:
		// Not to a fanout exchange: every rejected message would become many that can be rejected.
		t = amqp091.AppendString(t, "x-dead-letter-exchange", "")
		t = amqp091.AppendString(t, "x-dead-letter-routing-key", string(monkeyQueue(i+8)))
	}
	return t
}

// act sends one random command on a random channel.
func (m *monkey) act() error {
	r := m.rnd
	ch := uint16(1 + r.IntN(monkeyChannels))
	if m.reopened(ch) {
		return m.send(ch, &amqp091.ChannelCloseOk{}, &amqp091.ChannelOpen{})
	}
	if r.IntN(30) == 0 {
		return m.barrier(ch)
	}
	i := r.IntN(monkeyQueues)
	q := monkeyQueue(i)
	switch r.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6:
		return m.publish(ch, q)
	case 7:
		noAck := r.IntN(3) == 0
		return m.send(ch, &amqp091.BasicConsume{Queue: q, NoAck: noAck, Exclusive: r.IntN(50) == 0,
			ConsumerTag: m.newTag(noAck), NoWait: r.IntN(3) == 0})
	case 8:
		return m.send(ch, &amqp091.BasicCancel{ConsumerTag: fmt.Appendf(nil, "%c%d", "an"[r.IntN(2)], m.consumers-r.IntN(8))})
	case 9, 10, 11, 12, 13, 14:
		return m.settle(ch)
	case 15:
		return m.send(ch, &amqp091.BasicGet{Queue: q})
	case 16:
		return m.send(ch, &amqp091.BasicQos{PrefetchCount: uint16(r.IntN(20)), Global: r.IntN(2) == 0})
	case 17:
		return m.mode(ch)
	case 18:
		return m.administer(ch, q)
	}
	return m.declare(ch, i)
}

func (m *monkey) send(ch uint16, methods ...amqp091.Method) error {
	var out []byte
	for _, method := range methods {
		out = method.Append(out, ch)
	}
	return m.conn.SendBytes(out)
}

// barrier waits until the broker has done all that was sent on a channel, or closes it.
func (m *monkey) barrier(ch uint16) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.channels[ch]
	c.flow++
	if err := m.send(ch, &amqp091.ChannelFlow{Active: true}); err != nil {
		return err
	}
	for c.flow > 0 && !c.shut && !m.failed && !m.deaf {
		m.changed.Wait()
	}
	return nil
}

// reopened reports that the broker closed the channel, once.
func (m *monkey) reopened(ch uint16) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	shut := m.channels[ch].shut
	if shut {
		m.channels[ch] = monkeyChannel{}
	}
	return shut
}

func (m *monkey) declare(ch uint16, i int) error {
	return m.send(ch, &amqp091.QueueDeclare{Queue: monkeyQueue(i), AutoDelete: i%8 == 6, NoWait: m.rnd.IntN(3) == 0,
		Arguments: monkeyArgs(i)})
}

// mode makes a channel transactional, or confirming, or ends a transaction.
func (m *monkey) mode(ch uint16) error {
	if ch%2 == 0 {
		return m.send(ch, &amqp091.ConfirmSelect{})
	}
	m.mu.Lock()
	was := m.channels[ch].tx
	m.channels[ch].tx = true
	m.mu.Unlock()
	switch {
	case !was:
		return m.send(ch, &amqp091.TxSelect{})
	case m.rnd.IntN(3) == 0:
		return m.send(ch, &amqp091.TxRollback{})
	}
	return m.send(ch, &amqp091.TxCommit{})
}

// newTag is a consumer tag, seldom one that is in use already, which ends the connection. Its first letter tells
// whether deliveries are to be acknowledged.
func (m *monkey) newTag(noAck bool) []byte {
	if m.rnd.IntN(500) > 0 {
		m.consumers++
	}
	if noAck {
		return fmt.Appendf(nil, "n%d", m.consumers)
	}
	return fmt.Appendf(nil, "a%d", m.consumers)
}

func (m *monkey) administer(ch uint16, q []byte) error {
	switch m.rnd.IntN(20) {
	case 0:
		return m.send(ch, &amqp091.QueueDelete{Queue: q, IfUnused: m.rnd.IntN(2) == 0, NoWait: m.rnd.IntN(2) == 0})
	case 1, 2, 3:
		return m.send(ch, &amqp091.QueuePurge{Queue: q})
	case 4, 5:
		return m.send(ch, &amqp091.QueueUnbind{Queue: q, Exchange: []byte("amq.fanout")})
	case 6, 7, 8:
		return m.send(ch, &amqp091.QueueBind{Queue: q, Exchange: []byte("amq.fanout")})
	case 9:
		m.mu.Lock()
		m.channels[ch] = monkeyChannel{}
		m.mu.Unlock()
		return m.send(ch, &amqp091.ChannelClose{ReplyCode: 200}, &amqp091.ChannelOpen{})
	case 10, 11, 12:
		return m.send(ch, &amqp091.BasicRecover{Requeue: true})
	case 13, 14:
		return m.send(ch, &amqp091.QueueDeclare{Exclusive: true}, &amqp091.BasicConsume{ConsumerTag: m.newTag(true), NoAck: true})
	}
	return m.send(ch, &amqp091.QueueDeclare{Queue: q, Passive: true})
}

func (m *monkey) publish(ch uint16, q []byte) error {
	exchange, key := []byte{}, q
	if m.rnd.IntN(4) == 0 {
		exchange = []byte("amq.fanout")
	}
	p := &amqp091.Properties{}
	if m.rnd.IntN(4) == 0 {
		p.Flags |= amqp091.FlagExpiration
		p.Expiration = fmt.Append(nil, m.rnd.IntN(100))
	}
	size := m.rnd.IntN(1 << uint(m.rnd.IntN(15)))
	out := rawamqp.AppendContent(nil, ch, &amqp091.BasicPublish{Exchange: exchange, RoutingKey: key,
		Mandatory: m.rnd.IntN(4) == 0}, p, make([]byte, size), 4096)
	return m.conn.SendBytes(out)
}

// settle says something about a delivery that is outstanding, seldom about one that is not.
func (m *monkey) settle(ch uint16) error {
	m.mu.Lock()
	c := &m.channels[ch]
	n := len(c.tags)
	if n == 0 {
		m.mu.Unlock()
		return nil
	}
	i := m.rnd.IntN(n)
	tag, multiple := c.tags[i], m.rnd.IntN(6) == 0
	switch {
	case m.rnd.IntN(1000) == 0: // keep it: it is settled twice
	case multiple:
		c.tags = append(c.tags[:0], c.tags[i+1:]...)
	default:
		c.tags = append(c.tags[:i], c.tags[i+1:]...)
	}
	m.mu.Unlock()
	switch m.rnd.IntN(6) {
	case 0:
		return m.send(ch, &amqp091.BasicNack{DeliveryTag: tag, Multiple: multiple, Requeue: m.rnd.IntN(2) == 0})
	case 1:
		if !multiple {
			return m.send(ch, &amqp091.BasicReject{DeliveryTag: tag, Requeue: m.rnd.IntN(2) == 0})
		}
	}
	return m.send(ch, &amqp091.BasicAck{DeliveryTag: tag, Multiple: multiple})
}

// listen reads until the connection ends.
func (m *monkey) listen() {
	for {
		e, err := m.conn.Read()
		if err != nil {
			m.mu.Lock()
			var timeout interface{ Timeout() bool }
			m.deaf, m.stuck = true, errors.As(err, &timeout) && timeout.Timeout()
			m.changed.Broadcast()
			m.mu.Unlock()
			return
		}
		m.hear(e)
	}
}

func (m *monkey) hear(e *rawamqp.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.channels[e.Channel]
	switch got := e.Method.(type) {
	case *amqp091.BasicDeliver:
		if got.ConsumerTag[0] == 'a' {
			c.tags = append(c.tags, got.DeliveryTag)
		}
	case *amqp091.BasicGetOk:
		c.tags = append(c.tags, got.DeliveryTag)
	case *amqp091.ChannelFlowOk:
		c.flow--
		m.changed.Broadcast()
	case *amqp091.ChannelClose:
		c.shut = true
		m.changed.Broadcast()
	case *amqp091.ConnectionCloseOk:
		m.answered = true
	case *amqp091.ConnectionClose:
		m.failed = true
		m.changed.Broadcast()
		_ = m.conn.SendMethod(0, &amqp091.ConnectionCloseOk{})
	}
}

func (m *monkey) ended() (answered, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered, m.failed
}

// live returns an error if the broker left something unanswered.
func (m *monkey) live() (err error) {
	m.changed.L = &m.mu
	var heard sync.WaitGroup
	heard.Go(m.listen)
	defer func() {
		_ = m.conn.Close() // often closed by the broker already
		heard.Wait()
		if m.stuck {
			err = errors.New("the broker fell silent")
		}
	}()
	for ch := range monkeyChannels {
		if err := m.conn.SendMethod(uint16(ch+1), &amqp091.ChannelOpen{}); err != nil {
			return err
		}
	}
	for i := range monkeyQueues {
		if err := m.declare(1, i); err != nil {
			return err
		}
	}
	for range m.rnd.IntN(2000) {
		if _, failed := m.ended(); failed || m.act() != nil {
			return nil // an error of its own making
		}
	}
	switch m.rnd.IntN(4) {
	case 0: // in order
		if m.conn.SendMethod(0, &amqp091.ConnectionClose{ReplyCode: 200}) != nil {
			return nil
		}
		heard.Wait()
		if answered, failed := m.ended(); !answered && !failed {
			return errors.New("no answer to connection.close")
		}
	case 1: // in the middle of a frame
		out := rawamqp.AppendContent(nil, 1, &amqp091.BasicPublish{RoutingKey: monkeyQueue(1)}, nil, make([]byte, 3000), 4096)
		_ = m.conn.SendBytes(out[:m.rnd.IntN(len(out))])
	}
	return nil
}

// awaitConnections waits until there are no more than n connections.
func awaitConnections(t *testing.T, b *harness.Broker, n float64) {
	t.Helper()
	for deadline := time.Now().Add(settleMax); read(t, b)["ringmq_connections"] > n; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("connections are left after %v", settleMax)
		}
	}
}

// TestMonkeys: random commands on many connections at once leave nothing behind and stop nobody.
func TestMonkeys(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		warmUp(t, b)
		baseline := read(t, b)
		descriptors, err := b.Descriptors()
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for worker := range monkeyWorkers {
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(worker)))
				for range monkeyLives {
					conn, err := rawamqp.Dial(b.Addr, rawamqp.Options{Timeout: settleMax})
					if err != nil {
						t.Error(err)
						return
					}
					if err := (&monkey{rnd: rnd, conn: conn}).live(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		// What a connection sent before its end still counts, a declare among it.
		awaitConnections(t, b, baseline["ringmq_connections"])
		conn, _ := dial(t, b)
		for i := range monkeyQueues {
			ch, err := conn.Channel()
			if err != nil {
				t.Fatal(err)
			}
			// An exclusive one may not be gone yet: it goes by itself.
			_, _ = ch.QueueDelete(string(monkeyQueue(i)), false, false, false)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		awaitBaseline(t, b, baseline, descriptors)
	})
}
