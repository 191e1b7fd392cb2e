package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// run is one life of a broker with all its clients.
type run struct {
	h      *History
	b      *harness.Broker
	groups sync.WaitGroup
	// finish is closed when the clients shall settle what they have and leave in order.
	finish chan struct{}
	// ending is set before the broker is ended: from then on errors are what the clients must expect.
	ending atomic.Bool
	// atCommit, if set, is called after each commit-ok.
	atCommit func()

	mu      sync.Mutex
	problem error
}

func newRun(h *History, b *harness.Broker) *run {
	return &run{h: h, b: b, finish: make(chan struct{})}
}

// start runs a client; an error of it while the broker is up is a problem of the run.
func (r *run) start(name string, client func() error) {
	r.groups.Add(1)
	go func() {
		defer r.groups.Done()
		if err := client(); err != nil && !r.ending.Load() {
			r.fail(fmt.Errorf("%s: %w", name, err))
		}
	}()
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem == nil {
		r.problem = err
	}
}

func (r *run) finishing() bool {
	select {
	case <-r.finish:
		return true
	default:
		return false
	}
}

// end waits for the clients. ender ends the broker under them, or is nil when they shall leave in order.
func (r *run) end(t *testing.T, ender func() error) {
	t.Helper()
	if ender == nil {
		close(r.finish)
	} else {
		r.ending.Store(true)
		r.h.Add(Event{Kind: Ending})
		if err := ender(); err != nil {
			t.Fatalf("ending the broker: %v\n%s", err, r.b.Output())
		}
	}
	r.await(t)
	if r.problem != nil {
		t.Fatalf("%v\n%s", r.problem, r.b.Output())
	}
}

// clientsMax bounds how long clients may take to end: far longer than any of them needs on a machine that does nothing
// but other tests.
const clientsMax = 2 * time.Minute

// await waits for the clients. If one hangs, the broker is asked what it is doing before the test fails.
func (r *run) await(t *testing.T) {
	t.Helper()
	all := make(chan struct{})
	go func() {
		r.groups.Wait()
		close(all)
	}()
	select {
	case <-all:
		return
	case <-time.After(clientsMax):
	}
	text := r.b.Diagnose()
	r.ending.Store(true)
	_ = r.b.Kill()
	<-all
	t.Fatalf("clients hang\n%s", text)
}

func dial(b *harness.Broker) (*amqp.Connection, *amqp.Channel, error) {
	conn, err := amqp.DialConfig(b.URL(), amqp.Config{Heartbeat: 20 * time.Second, Locale: "en_US"})
	if err != nil {
		return nil, nil, fmt.Errorf("dial: %w", err)
	}
	ch, err := conn.Channel()
	if err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("channel: %w", err)
	}
	return conn, ch, nil
}

// place is where a publisher sends to: a route of the history as the broker knows it.
type place struct {
	route         int
	exchange, key string
}

// size draws the size of a body: mostly small, from nothing to 256 KiB.
func size(rng *rand.Rand) int {
	switch k := rng.IntN(100); {
	case k < 5:
		return 0
	case k < 45:
		return rng.IntN(100)
	case k < 85:
		return rng.IntN(4 << 10)
	case k < 98:
		return rng.IntN(48 << 10)
	}
	return rng.IntN(256<<10 + 1)
}

// message makes a publish, its event included.
func (r *run) message(id uint64, n int, route int, persistent bool) (amqp.Publishing, Event) {
	mode := amqp.Transient
	if persistent {
		mode = amqp.Persistent
	}
	p := amqp.Publishing{
		MessageId: MessageID(id), CorrelationId: strconv.Itoa(n), ContentType: "application/octet-stream", DeliveryMode: mode,
		Headers: amqp.Table{"id": int64(id), "crash": true}, Body: r.h.Body(id, n),
	}
	return p, Event{Kind: Published, ID: id, Queue: uint16(route), Persistent: persistent, Size: uint32(n),
		Hash: r.h.Fingerprint(p.Body, properties(p.MessageId, p.CorrelationId, p.ContentType, p.DeliveryMode, p.Headers))}
}

// properties are those that must arrive as they were sent. Dead-lettering adds headers, so only our own count.
func properties(id, correlation, content string, mode uint8, headers amqp.Table) string {
	n, _ := headers["id"].(int64)
	mark, _ := headers["crash"].(bool)
	return id + "\x00" + correlation + "\x00" + content + "\x00" + strconv.FormatInt(n, 16) + strconv.FormatBool(mark) + string('0'+rune(mode))
}

// publisher sends in confirm mode.
type publisher struct {
	to        place
	window    int // confirms outstanding
	transient int // of 100 messages
	most      int // messages
	mostBytes int
}

// publish sends until the limits, the end of the broker, or the order to finish, and writes every answer down.
func (r *run) publish(p publisher, rng *rand.Rand) error {
	conn, ch, err := dial(r.b)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	// Room for every confirm that can come, so that the client's reader never waits for us.
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, p.window))
	id, first, answered, bytes := r.h.NewPublisher(), uint64(0), uint64(0), 0
	first = id
	answer := func(c amqp.Confirmation) {
		kind := Nacked
		if c.Ack {
			kind = Confirmed
		}
		r.h.Add(Event{Kind: kind, ID: first + c.DeliveryTag})
		answered++
	}
	for int(id-first) < p.most && bytes < p.mostBytes && !r.finishing() {
		for int(id-first-answered) >= p.window {
			c, open := <-confirms
			if !open {
				return errors.New("the channel ended while a confirm was due")
			}
			answer(c)
		}
		id++
		n := size(rng)
		bytes += n
		m, event := r.message(id, n, p.to.route, rng.IntN(100) >= p.transient)
		r.h.Add(event)
		if err := ch.Publish(p.to.exchange, p.to.key, false, false, m); err != nil {
			for c := range confirms {
				answer(c)
			}
			return fmt.Errorf("publish: %w", err)
		}
	}
	for first+answered < id {
		c, open := <-confirms
		if !open {
			return errors.New("the channel ended while confirms were due")
		}
		answer(c)
	}
	return nil
}

// habit is what a consumer does with its deliveries.
type habit struct {
	queue    int
	prefetch int
	multiple int // acknowledges this many at once, 1 = each
	requeue  int // of 100 deliveries
	reject   int // of 100 deliveries
	hold     bool
}

// consumer is a habit at work.
type consumer struct {
	habit
	r      *run
	ch     *amqp.Channel
	client uint32
	rng    *rand.Rand
	waits  []uint64 // ids to be acknowledged with the next multiple
	last   uint64   // delivery tag of the last of them
	done   int      // settled since the last barrier
}

func (c *consumer) event(kind Kind, id uint64) {
	c.r.h.Add(Event{Kind: kind, ID: id, Queue: uint16(c.queue), Client: c.client})
}

// consume takes deliveries until the broker ends or the order to finish.
func (r *run) consume(h habit, rng *rand.Rand) error {
	conn, ch, err := dial(r.b)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &consumer{habit: h, r: r, ch: ch, client: r.h.NewClient(), rng: rng}
	c.event(Attached, 0)
	in, err := c.open()
	if err != nil {
		c.event(Gone, 0)
		return err
	}
	finish := r.finish
	for {
		select {
		case d, open := <-in:
			if !open {
				return c.left(finish == nil)
			}
			if err := c.take(d); err != nil {
				c.rest(in)
				return err
			}
		case <-finish:
			finish = nil
			// Every delivery that was sent before cancel-ok is read behind it, from in.
			if err := ch.Cancel(tagOf(c.client), false); err != nil {
				c.rest(in)
				return fmt.Errorf("cancel: %w", err)
			}
		}
	}
}

func tagOf(client uint32) string { return "c" + strconv.Itoa(int(client)) }

func (c *consumer) open() (<-chan amqp.Delivery, error) {
	if err := c.ch.Qos(c.prefetch, 0, false); err != nil {
		return nil, fmt.Errorf("qos: %w", err)
	}
	in, err := c.ch.Consume(c.r.h.Queues[c.queue].Name, tagOf(c.client), false, false, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return in, nil
}

// left ends a consumer whose deliveries have ended: in order, or with its channel.
func (c *consumer) left(inOrder bool) error {
	if !inOrder {
		c.event(Gone, 0)
		return errors.New("the deliveries ended")
	}
	if err := c.flush(); err != nil {
		c.event(Gone, 0)
		return fmt.Errorf("flush: %w", err)
	}
	return c.r.leave(c.ch, c.queue, c.client)
}

// leave closes a channel. What it holds goes to others before close-ok comes back, so that it has left when it begins to;
// close-ok proves that all it settled was processed.
func (r *run) leave(ch *amqp.Channel, queue int, client uint32) error {
	r.h.Add(Event{Kind: Left, Queue: uint16(queue), Client: client})
	if err := ch.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	r.h.Add(Event{Kind: Settled, Client: client})
	return nil
}

// rest writes down what came before the connection ended.
func (c *consumer) rest(in <-chan amqp.Delivery) {
	_ = c.ch.Close() // else in stays open when only a call was refused
	for d := range in {
		c.r.delivered(c.queue, c.client, &d)
	}
	c.event(Gone, 0)
}

// delivered writes a delivery down and returns the message's id.
func (r *run) delivered(queue int, client uint32, d *amqp.Delivery) uint64 {
	id := ParseID(d.MessageId)
	r.h.Add(Event{Kind: Delivered, ID: id, Queue: uint16(queue), Client: client, Redelivered: d.Redelivered, Size: uint32(len(d.Body)),
		Hash: r.h.Fingerprint(d.Body, properties(d.MessageId, d.CorrelationId, d.ContentType, d.DeliveryMode, d.Headers))})
	return id
}

func (c *consumer) take(d amqp.Delivery) error {
	id := c.r.delivered(c.queue, c.client, &d)
	switch k := c.rng.IntN(100); {
	case c.hold:
		return nil
	case k < c.requeue:
		c.event(Requeued, id)
		return d.Nack(false, true)
	case k < c.requeue+c.reject:
		c.event(Rejected, id)
		return d.Reject(false)
	case c.multiple > 1 && c.requeue+c.reject == 0:
		// Only where every delivery is acknowledged: a multiple covers all before it.
		c.waits, c.last = append(c.waits, id), d.DeliveryTag
		if len(c.waits) < c.multiple {
			return nil
		}
		if err := c.flush(); err != nil {
			return err
		}
	default:
		c.event(Acked, id)
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return c.barrier()
}

// flush acknowledges what waits for a multiple.
func (c *consumer) flush() error {
	if len(c.waits) == 0 {
		return nil
	}
	for _, id := range c.waits {
		c.event(Acked, id)
	}
	c.waits = c.waits[:0]
	return c.ch.Ack(c.last, true)
}

// barrierEvery is how many settlements go without a proof.
const barrierEvery = 40

// barrier gets, now and then, an answer that proves that all before it was processed.
func (c *consumer) barrier() error {
	if c.done++; c.done%barrierEvery != 0 || len(c.waits) > 0 {
		return nil
	}
	if err := c.ch.Qos(c.prefetch, 0, false); err != nil {
		return err
	}
	c.event(Settled, 0)
	return nil
}
