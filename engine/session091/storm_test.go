package session091

import (
	"maps"
	"slices"
	"testing"
	"time"

	"ringmq/frame/amqp091"
)

// place is one copy of a message: what was published as id, in a queue.
type place struct {
	queue string
	id    uint64
}

// fate is what became of a copy, as far as the clients can know.
type fate uint8

const (
	fateQueued  fate = iota // the broker has it
	fateSettled             // acknowledged, for sure
	fateMaybe               // settled by a connection that died: perhaps not in time
)

// stormChannel is a channel with what it holds.
type stormChannel struct {
	number    uint16
	held      map[uint64]place  // by delivery tag
	consumers map[string]string // tag -> queue
	noAck     map[string]bool
	gets      []string // queues of basic.get under way
	getNoAck  []bool
}

// stormClient is a connection of the storm. A loyal one never vanishes.
type stormClient struct {
	*client
	loyal    bool
	channels map[uint16]*stormChannel
	unsure   []place // settled since the last moment of rest
}

// storm is a random story of everything at once, and the accounts of it.
type storm struct {
	*world
	admin   *client
	pub     *client
	book    *confirmBook
	sent    map[uint64][]place // by publisher's number
	fates   map[place]fate
	holder  map[place]*stormChannel
	seen    map[place]bool
	clients []*stormClient
	nextID  uint64
}

var stormQueues = []string{"plain", "far", "limited", "rejects"}

const stormLimit = 7

func newStorm(w *world) *storm {
	s := &storm{world: w, admin: w.dial(0), pub: w.dial(w.Rand().IntN(2)), book: newConfirmBook(),
		sent: map[uint64][]place{}, fates: map[place]fate{}, holder: map[place]*stormChannel{}, seen: map[place]bool{}}
	far := w.dial(1)
	for _, c := range []*client{s.admin, s.pub, far} {
		c.channel(1)
	}
	s.admin.declare(1, "plain", nil)
	s.admin.declare(1, "dead", nil)
	far.declare(1, "far", nil)
	far.declare(1, "limited", amqp091.AppendInt32(amqp091.AppendString(nil, "x-overflow", "reject-publish"), "x-max-length", stormLimit))
	far.declare(1, "rejects", amqp091.AppendString(amqp091.AppendString(nil, "x-dead-letter-exchange", ""), "x-dead-letter-routing-key", "dead"))
	for _, q := range stormQueues {
		s.admin.send(1, &amqp091.QueueBind{Queue: []byte(q), Exchange: []byte("amq.fanout")})
		s.admin.wait(1, amqp091.MethodQueueBindOk)
	}
	s.pub.confirmSelect(1)
	s.pub.onEvent = func(e event) {
		if text := s.book.event(e.m); text != "" {
			w.fatalf("%s", text)
		}
	}
	return s
}

func (s *storm) publish() {
	s.nextID++
	seq := s.book.published()
	exchange, key, to := "", stormQueues[s.Rand().IntN(len(stormQueues))], []string(nil)
	if s.Rand().IntN(4) == 0 {
		exchange, to = "amq.fanout", stormQueues
	} else {
		to = []string{key}
	}
	for _, q := range to {
		p := place{q, s.nextID}
		s.sent[seq] = append(s.sent[seq], p)
		s.fates[p] = fateQueued
	}
	size := s.Rand().IntN(100)
	if s.Rand().IntN(20) == 0 {
		size = s.Rand().IntN(200_000)
	}
	s.pub.publish(1, exchange, key, numbered(s.nextID, size))
}

// join makes a new connection with a channel or two.
func (s *storm) join() {
	c := &stormClient{client: s.dial(s.Rand().IntN(len(s.Loops()))), loyal: s.Rand().IntN(2) == 0, channels: map[uint16]*stormChannel{}}
	c.onEvent = func(e event) { s.event(c, e) }
	s.clients = append(s.clients, c)
	for n := range uint16(1 + s.Rand().IntN(2)) {
		s.open(c, n+1)
	}
}

func (s *storm) open(c *stormClient, n uint16) {
	c.channels[n] = &stormChannel{number: n, held: map[uint64]place{}, consumers: map[string]string{}, noAck: map[string]bool{}}
	c.send(n, &amqp091.ChannelOpen{})
	if s.Rand().IntN(2) == 0 {
		c.send(n, &amqp091.BasicQos{PrefetchCount: uint16(1 + s.Rand().IntN(10)), Global: s.Rand().IntN(2) == 0})
	}
}

// arrived judges a message that a client got.
func (s *storm) arrived(c *stormClient, ch *stormChannel, queueName string, tag uint64, body []byte, redelivered, noAck bool) {
	p := place{queueName, numberOf(body)}
	f, known := s.fates[p]
	switch {
	case !known:
		s.fatalf("%v comes from nowhere", p)
	case !whole(body):
		s.fatalf("%v comes damaged", p)
	case f == fateSettled:
		s.fatalf("%v comes after it was settled", p)
	case s.holder[p] != nil:
		s.fatalf("%v comes while a client holds it", p)
	case s.seen[p] && !redelivered:
		s.fatalf("%v was delivered before and is not redelivered", p)
	}
	s.seen[p] = true
	if noAck {
		s.fates[p] = fateSettled
		return
	}
	s.fates[p] = fateQueued
	s.holder[p] = ch
	ch.held[tag] = p
}

func (s *storm) event(c *stormClient, e event) {
	ch := c.channels[e.ch]
	switch m := e.m.(type) {
	case *amqp091.BasicDeliver:
		tag := string(m.ConsumerTag)
		q, ok := ch.consumers[tag]
		if !ok {
			s.fatalf("a delivery for consumer %s, which is not there", tag)
		}
		s.arrived(c, ch, q, m.DeliveryTag, e.body, m.Redelivered, ch.noAck[tag])
	case *amqp091.BasicGetOk:
		q, noAck := ch.gets[0], ch.getNoAck[0]
		ch.gets, ch.getNoAck = ch.gets[1:], ch.getNoAck[1:]
		s.arrived(c, ch, q, m.DeliveryTag, e.body, m.Redelivered, noAck)
	case *amqp091.BasicGetEmpty:
		ch.gets, ch.getNoAck = ch.gets[1:], ch.getNoAck[1:]
	case *amqp091.BasicCancelOk:
		delete(ch.consumers, string(m.ConsumerTag))
	case *amqp091.ChannelClose:
		s.fatalf("channel closed: %s", m.ReplyText)
	case *amqp091.ConnectionClose:
		s.fatalf("connection closed: %s", m.ReplyText)
	}
	c.got = c.got[:0]
}

// settle takes a held copy out of a client's hands. gone: it is settled rather
// than back in its queue.
func (s *storm) settle(c *stormClient, ch *stormChannel, tag uint64, gone, discard bool) {
	p := ch.held[tag]
	delete(ch.held, tag)
	delete(s.holder, p)
	if !gone {
		return
	}
	s.fates[p] = fateSettled
	dead := place{"dead", p.id}
	if discard && p.queue == "rejects" {
		s.fates[dead] = fateQueued
	}
	if !c.loyal {
		c.unsure = append(c.unsure, p)
	}
}

// letGo forgets all that a channel holds: it goes back to the queues.
func (s *storm) letGo(ch *stormChannel) {
	for tag, p := range ch.held {
		delete(s.holder, p)
		delete(ch.held, tag)
	}
}

// tagsOf are the delivery tags that a channel holds, in order.
func tagsOf(ch *stormChannel) (tags []uint64) {
	for tag := range ch.held {
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	return tags
}

func (s *storm) settleSome(c *stormClient, ch *stormChannel) {
	kind := s.Rand().IntN(8)
	if kind == 7 {
		s.calm() // recover means all that was sent: see all of it first
	}
	tags := tagsOf(ch)
	if len(tags) == 0 {
		return
	}
	at := s.Rand().IntN(len(tags))
	tag, multiple, requeue := tags[at], s.Rand().IntN(3) == 0, s.Rand().IntN(2) == 0
	covered := tags[at : at+1]
	if multiple {
		covered = tags[:at+1]
	}
	switch {
	case kind < 5:
		c.ack(ch.number, tag, multiple)
		requeue = false
	case kind < 7:
		c.send(ch.number, &amqp091.BasicNack{DeliveryTag: tag, Multiple: multiple, Requeue: requeue})
	default:
		covered = tags
		requeue = true
		c.send(ch.number, &amqp091.BasicRecover{Requeue: true})
	}
	for _, t := range covered {
		s.settle(c, ch, t, !requeue, kind >= 5)
	}
	if kind == 7 {
		s.rest() // nothing new may get between it and the broker
	}
}

// act lets a client do something.
func (s *storm) act(c *stormClient, ch *stormChannel) {
	q := stormQueues[s.Rand().IntN(len(stormQueues))]
	switch s.Rand().IntN(12) {
	case 0, 1:
		if len(ch.consumers) < 3 {
			tag := string([]byte{'c', byte('a' + s.Rand().IntN(26)), byte('a' + s.Rand().IntN(26))})
			if _, used := ch.consumers[tag]; used {
				return
			}
			noAck := c.loyal && s.Rand().IntN(5) == 0
			ch.consumers[tag], ch.noAck[tag] = q, noAck
			c.send(ch.number, &amqp091.BasicConsume{Queue: []byte(q), ConsumerTag: []byte(tag), NoAck: noAck, NoWait: s.Rand().IntN(3) == 0})
		}
	case 2:
		if tags := slices.Sorted(maps.Keys(ch.consumers)); len(tags) > 0 {
			c.send(ch.number, &amqp091.BasicCancel{ConsumerTag: []byte(tags[0])})
		}
	case 3:
		noAck := c.loyal && s.Rand().IntN(3) == 0
		ch.gets, ch.getNoAck = append(ch.gets, q), append(ch.getNoAck, noAck)
		c.send(ch.number, &amqp091.BasicGet{Queue: []byte(q), NoAck: noAck})
	case 4:
		c.send(ch.number, &amqp091.BasicQos{PrefetchCount: uint16(s.Rand().IntN(10)), Global: s.Rand().IntN(2) == 0})
	case 5:
		if s.Rand().IntN(3) == 0 && c.loyal == false {
			c.send(ch.number, &amqp091.ChannelClose{ReplyCode: 200})
			s.retire(c)
		}
	case 6:
		c.peer.SetWindow(1000 + s.Rand().IntN(100_000))
	default:
		s.settleSome(c, ch)
	}
}

// retire is the end of a connection, in one way or another.
func (s *storm) retire(c *stormClient) {
	if s.Rand().IntN(2) == 0 {
		c.peer.Reset()
	} else {
		c.peer.Close()
	}
	c.deaf, c.onEvent = true, nil // what it had not read it never will
	for _, ch := range c.channels {
		s.letGo(ch)
	}
	for _, p := range c.unsure {
		s.fates[p] = fateMaybe
		if dead := (place{"dead", p.id}); p.queue == "rejects" && s.known(dead) {
			s.fates[dead] = fateMaybe
		}
	}
	s.clients = slices.DeleteFunc(s.clients, func(o *stormClient) bool { return o == c })
}

func (s *storm) known(p place) bool {
	_, ok := s.fates[p]
	return ok
}

// calm lets everything arrive: what was settled is settled for sure.
func (s *storm) calm() {
	s.rest()
	for _, c := range s.clients {
		c.unsure = c.unsure[:0]
	}
}

func (s *storm) step() {
	switch s.Rand().IntN(14) {
	case 0, 1, 2:
		for range s.Rand().IntN(6) {
			s.publish()
		}
	case 3:
		if len(s.clients) < 4 {
			s.join()
		}
	case 4:
		if len(s.clients) > 0 && s.Rand().IntN(3) == 0 {
			if c := s.clients[s.Rand().IntN(len(s.clients))]; !c.loyal {
				s.retire(c)
			}
		}
	case 5:
		if s.Rand().IntN(4) == 0 {
			s.calm()
		}
	case 6:
		s.Advance(time.Duration(s.Rand().IntN(50)) * time.Millisecond)
	default:
		if len(s.clients) > 0 {
			c := s.clients[s.Rand().IntN(len(s.clients))]
			for _, n := range []uint16{2, 1} {
				if ch := c.channels[n]; ch != nil && s.Rand().IntN(2) == 0 {
					s.act(c, ch)
					break
				}
			}
		}
	}
	s.steps(s.Rand().IntN(4))
}

// account ends the storm and finds every copy again.
func (s *storm) account() {
	s.calm()
	if len(s.book.open) > 0 {
		s.fatalf("%d publishes are not confirmed", len(s.book.open))
	}
	for seq := range s.book.nacked {
		refused := false
		for _, p := range s.sent[seq] {
			if p.queue == "limited" {
				refused = true
				if s.seen[p] {
					s.fatalf("%v was refused and delivered", p)
				}
				delete(s.fates, p)
			}
		}
		if !refused {
			s.fatalf("number %d was refused by a queue without a limit", seq)
		}
	}
	for len(s.clients) > 0 {
		s.calm() // what a loyal client's consumers took without ack was read
		s.retire(s.clients[0])
	}
	s.rest()
	for i, q := range append([]string{"dead"}, stormQueues...) {
		ready, unacked := s.counts(q)
		if unacked != 0 {
			s.fatalf("%s: %d unacked, and nobody is there", q, unacked)
		}
		n := 0
		for _, e := range drain(s.dial(i%2), q) {
			p := place{q, numberOf(e.body)}
			n++
			switch f, known := s.fates[p]; {
			case !known || !whole(e.body):
				s.fatalf("%v comes from nowhere, or damaged", p)
			case f == fateSettled:
				s.fatalf("%v is left and was settled", p)
			case s.seen[p] && !e.m.(*amqp091.BasicDeliver).Redelivered:
				s.fatalf("%v was delivered before and is not redelivered", p)
			}
			s.fates[p] = fateSettled
		}
		if n != ready {
			s.fatalf("%s: %d of %d came", q, n, ready)
		}
	}
	for p, f := range s.fates {
		if f == fateQueued {
			s.fatalf("%v is lost", p)
		}
	}
}

// TestStorm: many clients do everything at once, and some vanish. Nothing is
// lost, nothing comes twice, and nothing is left at the end.
func TestStorm(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		s := newStorm(w)
		for range 120 {
			s.step()
		}
		s.account()
	})
}
