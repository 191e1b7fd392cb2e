package leak

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

const (
	publishers = 40
	consumers  = 60
	queueCount = 12 // over both loops
	depthMax   = 4000
)

// soak is one run: publishers and consumers that come and go until enough messages were received.
type soak struct {
	t    *testing.T
	b    *harness.Broker
	want int64
	seed uint64

	published   atomic.Int64 // written to a socket; those in flight at an abrupt close may be lost
	received    atomic.Int64 // delivered to a consumer, redeliveries included
	connections atomic.Int64 // opened
	done        chan struct{}
	finish      sync.Once
}

func newSoak(t *testing.T, b *harness.Broker, want int64) *soak {
	s := &soak{t: t, b: b, want: want, seed: uint64(time.Now().UnixNano()), done: make(chan struct{})}
	t.Logf("seed %d", s.seed)
	return s
}

func queueName(i int) string { return fmt.Sprintf("soak-%d", i%queueCount) }

// run returns when enough messages were received and every worker has ended.
func (s *soak) run() {
	conn, ch := dial(s.t, s.b)
	if err := ch.ExchangeDeclare("soak", "fanout", false, false, false, false, nil); err != nil {
		s.t.Fatal(err)
	}
	for i := range queueCount {
		if _, err := ch.QueueDeclare(queueName(i), i%2 == 0, false, false, false, nil); err != nil {
			s.t.Fatal(err)
		}
		if i%4 == 0 {
			if err := ch.QueueBind(queueName(i), "", "soak", false, nil); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	var wg sync.WaitGroup
	worker := func(i int, life func(i int, rnd *rand.Rand) error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewPCG(s.seed, uint64(i)))
			for !s.over() {
				s.connections.Add(1)
				if err := life(i, rnd); err != nil && !s.over() {
					s.t.Errorf("worker %d: %v", i, err)
					s.stop()
				}
			}
		}()
	}
	for i := range consumers {
		worker(i, s.consumerLife)
	}
	for i := range publishers {
		worker(consumers+i, s.publisherLife)
	}
	select {
	case <-s.done:
	case <-time.After(time.Minute + time.Duration(s.want/5000)*time.Second):
		s.t.Errorf("only %d of %d messages were received", s.received.Load(), s.want)
		s.stop()
	}
	wg.Wait()
	if err := conn.Close(); err != nil {
		s.t.Error(err)
	}
}

// end deletes what the soak made, messages left in the queues included.
func (s *soak) end() {
	conn, ch := dial(s.t, s.b)
	for i := range queueCount {
		if _, err := ch.QueueDelete(queueName(i), false, false, false); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := ch.ExchangeDelete("soak", false, false); err != nil {
		s.t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *soak) stop() { s.finish.Do(func() { close(s.done) }) }

func (s *soak) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *soak) count() {
	if s.received.Add(1) == s.want {
		s.stop()
	}
}

// session is one connection whose socket can be reset under the client's feet.
type session struct {
	conn *amqp.Connection
	ch   *amqp.Channel
	nc   net.Conn
}

func (s *soak) open() (*session, error) {
	out := &session{}
	conn, err := amqp.DialConfig(s.b.URL(), amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
		nc, err := net.DialTimeout(network, addr, 10*time.Second)
		if err == nil {
			out.nc = nc
			// Through the handshake only: the client clears the deadline afterwards.
			err = nc.SetDeadline(time.Now().Add(20 * time.Second))
		}
		return nc, err
	}})
	if err != nil {
		return nil, err
	}
	out.conn = conn
	out.ch, err = conn.Channel()
	return out, err
}

// close ends the session in one of the ways that clients have.
func (c *session) close(rnd *rand.Rand) {
	switch rnd.IntN(4) {
	case 0: // reset
		if tcp, ok := c.nc.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.nc.Close()
	case 1: // the process ended
		_ = c.nc.Close()
	case 2:
		_ = c.ch.Close()
	}
	_ = c.conn.Close() // ends the client's own goroutines in any case
}

// publisherLife is one connection of a publisher: some hundred messages of all sizes, with or without confirms.
func (s *soak) publisherLife(i int, rnd *rand.Rand) error {
	c, err := s.open()
	if err != nil {
		return err
	}
	defer c.close(rnd)
	q, exchange := queueName(i), ""
	if i%10 == 0 {
		exchange = "soak" // fanout to three queues
	}
	confirms := rnd.IntN(2) == 0
	if confirms {
		if err := c.ch.Confirm(false); err != nil {
			return err
		}
	}
	var last *amqp.DeferredConfirmation
	for n := range 100 + rnd.IntN(1500) {
		if n%200 == 0 {
			if last != nil && !s.awaitConfirm(last) {
				return nil
			}
			if ok, err := s.belowDepth(c.ch, q); !ok {
				return err
			}
		}
		size := 16
		switch r := rnd.IntN(1000); {
		case r < 100:
			size = 1024
		case r < 120:
			size = 6000
		case r == 999:
			size = 200_000
		}
		p := amqp.Publishing{Body: make([]byte, size), DeliveryMode: uint8(1 + n%2)}
		last, err = c.ch.PublishWithDeferredConfirm(exchange, q, n%50 == 0, false, p)
		if err != nil {
			return err
		}
		s.published.Add(1)
	}
	if last != nil && rnd.IntN(2) == 0 {
		s.awaitConfirm(last)
	}
	return nil
}

// awaitConfirm says whether the confirm came before the end of the soak.
func (s *soak) awaitConfirm(dc *amqp.DeferredConfirmation) bool {
	select {
	case <-dc.Done():
		return true
	case <-s.done:
		return false
	}
}

// belowDepth holds a publisher up while its queue is long; false at the end of the soak.
func (s *soak) belowDepth(ch *amqp.Channel, q string) (bool, error) {
	for !s.over() {
		state, err := ch.QueueDeclarePassive(q, false, false, false, false, nil)
		if err != nil || state.Messages < depthMax {
			return err == nil, err
		}
		select {
		case <-s.done:
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false, nil
}

// consumerLife is one connection of a consumer, which settles in one of several manners and ends in one of several ways.
func (s *soak) consumerLife(i int, rnd *rand.Rand) error {
	c, err := s.open()
	if err != nil {
		return err
	}
	defer c.close(rnd)
	if err := c.ch.Qos(1+rnd.IntN(200), 0, rnd.IntN(4) == 0); err != nil {
		return err
	}
	manner := rnd.IntN(4) // 0: no-ack
	tag := "t"
	in, err := c.ch.Consume(queueName(i), tag, manner == 0, false, false, false, nil)
	if err != nil {
		return err
	}
	for left := 100 + rnd.IntN(1500); left > 0; left-- {
		var d amqp.Delivery
		var ok bool
		select {
		case <-s.done:
			return nil
		case d, ok = <-in:
		}
		if !ok {
			return fmt.Errorf("deliveries ended")
		}
		s.count()
		if err := settle(&d, manner, left, rnd); err != nil {
			return err
		}
		if left%300 == 1 { // cancel with messages on their way, then consume again
			if err := c.ch.Cancel(tag, false); err != nil {
				return err
			}
			for d := range in {
				s.count()
				if manner != 0 {
					if err := d.Nack(false, true); err != nil {
						return err
					}
				}
			}
			tag += "x"
			if in, err = c.ch.Consume(queueName(i), tag, manner == 0, false, false, false, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle answers one delivery in the consumer's manner. Some are left for the end of the connection.
func settle(d *amqp.Delivery, manner, left int, rnd *rand.Rand) error {
	switch {
	case manner == 0:
		return nil
	case manner == 1:
		return d.Ack(false)
	case manner == 2:
		// All up to here; the window (prefetch) may be as small as one, so each delivery settles itself now and then at the latest.
		return d.Ack(true)
	case rnd.IntN(10) == 0 && !d.Redelivered:
		return d.Nack(false, true)
	case rnd.IntN(10) == 0:
		return d.Reject(false)
	case left%97 == 0:
		return d.Nack(true, rnd.IntN(2) == 0)
	}
	return d.Ack(false)
}
