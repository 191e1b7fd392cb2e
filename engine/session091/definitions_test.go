package session091

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"ringmq/engine"
	"ringmq/frame/amqp091"
)

// slowCatalog makes changes durable when the test says so.
type slowCatalog struct {
	last, durable uint64
	waiting       []func(error)
}

func (d *slowCatalog) Apply([]engine.Change) uint64 { d.last++; return d.last }
func (d *slowCatalog) Durable() uint64              { return d.durable }

func (d *slowCatalog) Notify(n uint64, f func(error)) {
	if n != d.last {
		panic("waits for a part of the changes")
	}
	d.waiting = append(d.waiting, f)
}

func (d *slowCatalog) Load(func(engine.ChangeKind, []byte, []byte) error) error { return nil }

// tell ends the attempt to write what is pending.
func (d *slowCatalog) tell(err error) {
	if err == nil {
		d.durable = d.last
	}
	waiting := d.waiting
	d.waiting = nil
	for _, f := range waiting {
		f(err)
	}
}

// slowWorld is a world whose catalog is slow; it begins with nothing pending.
func slowWorld(t *testing.T, seed uint64) (*world, *slowCatalog) {
	w, d := newWorld(t, seed, 2), &slowCatalog{}
	if err := w.srv.Broker.Restore(d); err != nil {
		t.Fatal(err)
	}
	d.tell(nil)
	return w, d
}

// catalogCommands change the catalog or look at it; each answers with its reply.
// The queue "q" and the exchanges "x" and "y", all durable, are there already.
var catalogCommands = []struct {
	m       amqp091.Method
	reply   amqp091.MethodID
	changes bool
}{
	{&amqp091.QueueDeclare{Queue: []byte("new"), Durable: true}, amqp091.MethodQueueDeclareOk, true},
	{&amqp091.QueueDeclare{Durable: true}, amqp091.MethodQueueDeclareOk, true},
	{&amqp091.QueueDeclare{Queue: []byte("q"), Durable: true}, amqp091.MethodQueueDeclareOk, false},
	{&amqp091.QueueDeclare{Queue: []byte("q"), Passive: true}, amqp091.MethodQueueDeclareOk, false},
	{&amqp091.QueueDeclare{Queue: []byte("mine"), Exclusive: true, Durable: true}, amqp091.MethodQueueDeclareOk, false},
	{&amqp091.QueueDelete{Queue: []byte("q")}, amqp091.MethodQueueDeleteOk, true},
	{&amqp091.QueueDelete{Queue: []byte("nope")}, amqp091.MethodQueueDeleteOk, false},
	{&amqp091.ExchangeDeclare{Exchange: []byte("new"), Type: []byte("topic"), Durable: true}, amqp091.MethodExchangeDeclareOk, true},
	{&amqp091.ExchangeDeclare{Exchange: []byte("x"), Type: []byte("topic"), Durable: true}, amqp091.MethodExchangeDeclareOk, false},
	{&amqp091.ExchangeDeclare{Exchange: []byte("x"), Passive: true}, amqp091.MethodExchangeDeclareOk, false},
	{&amqp091.ExchangeDelete{Exchange: []byte("x")}, amqp091.MethodExchangeDeleteOk, true},
	{&amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("x"), RoutingKey: []byte("k2")}, amqp091.MethodQueueBindOk, true},
	{&amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("x"), RoutingKey: []byte("k")}, amqp091.MethodQueueBindOk, false},
	{&amqp091.QueueUnbind{Queue: []byte("q"), Exchange: []byte("x"), RoutingKey: []byte("k")}, amqp091.MethodQueueUnbindOk, true},
	{&amqp091.ExchangeBind{Source: []byte("x"), Destination: []byte("y")}, amqp091.MethodExchangeBindOk, true},
	{&amqp091.ExchangeUnbind{Source: []byte("x"), Destination: []byte("y")}, amqp091.MethodExchangeUnbindOk, false},
}

// stage declares what catalogCommands need, durable, on loop 0.
func stage(w *world, d *slowCatalog) *client {
	c := w.dial(0)
	c.channel(1)
	for _, m := range []amqp091.Method{
		&amqp091.QueueDeclare{Queue: []byte("q"), Durable: true, NoWait: true},
		&amqp091.ExchangeDeclare{Exchange: []byte("x"), Type: []byte("topic"), Durable: true, NoWait: true},
		&amqp091.ExchangeDeclare{Exchange: []byte("y"), Type: []byte("topic"), Durable: true, NoWait: true},
		&amqp091.QueueBind{Queue: []byte("q"), Exchange: []byte("x"), RoutingKey: []byte("k"), NoWait: true},
	} {
		c.send(1, m)
		w.rest()
		d.tell(nil)
		w.rest()
	}
	c.noMore(1)
	return c
}

// noMore fails when a channel has got anything.
func (c *client) noMore(ch uint16) {
	c.w.Helper()
	for _, e := range c.got {
		if e.ch == ch {
			c.fatalf("got %s", c.story())
		}
	}
}

// No answer about the catalog leaves before all of the catalog is durable, and
// nothing overtakes it.
func TestAnswersWaitForTheCatalog(t *testing.T) {
	for i, cmd := range catalogCommands {
		for loop := range 2 {
			t.Run(fmt.Sprintf("%d %s from loop %d", i, cmd.m.ID(), loop), func(t *testing.T) {
				w, d := slowWorld(t, uint64(i))
				first := stage(w, d)
				c := w.dial(loop)
				c.channel(1)
				before := d.last
				c.send(1, cmd.m)
				c.send(1, &amqp091.BasicQos{PrefetchCount: 7})
				w.rest()
				if (d.last > before) != cmd.changes {
					t.Fatalf("%d changes were recorded", d.last-before)
				}
				if cmd.changes {
					if c.noMore(1); len(d.waiting) != 1 {
						t.Fatalf("%d wait", len(d.waiting))
					}
					d.tell(nil)
				} else if len(d.waiting) != 0 {
					t.Fatal("it waits for nothing")
				}
				c.wait(1, cmd.reply)
				c.wait(1, amqp091.MethodBasicQosOk)
				c.noMore(1)
				// The same while another connection's change is pending.
				c.channel(2)
				first.send(1, &amqp091.QueueDeclare{Queue: []byte("other"), Durable: true, NoWait: true})
				w.rest()
				c.send(2, &amqp091.QueueDeclare{Queue: []byte("other"), Passive: true})
				w.rest()
				if c.noMore(2); len(d.waiting) != 2 {
					t.Fatalf("%d wait", len(d.waiting))
				}
				d.tell(nil)
				c.wait(2, amqp091.MethodQueueDeclareOk)
				w.finish()
			})
		}
	}
}

// A reply that was waived is waited for all the same: what the client does next
// relies on it.
func TestNoWaitWaits(t *testing.T) {
	w, d := slowWorld(t, 1)
	c := w.dial(1)
	c.channel(1)
	c.send(1, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true, NoWait: true})
	c.publish(1, "", "q", numbered(1, 8))
	w.rest()
	if ready, _ := w.counts("q"); ready != 0 || len(d.waiting) != 1 {
		t.Fatalf("%d messages overtook the declare, %d wait", ready, len(d.waiting))
	}
	d.tell(nil)
	w.rest()
	if ready, _ := w.counts("q"); ready != 1 {
		t.Fatalf("%d messages arrived", ready)
	}
	c.noMore(1)
	w.finish()
}

// When the definitions cannot be written the channel hears it; the thing is
// there all the same, and is acknowledged when it can be written.
func TestCatalogWithoutRoom(t *testing.T) {
	w, d := slowWorld(t, 1)
	c := w.dial(0)
	c.channel(1)
	c.send(1, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true})
	w.rest()
	d.tell(syscall.ENOSPC)
	e := c.wait(1, amqp091.MethodChannelClose).m.(*amqp091.ChannelClose)
	want := "RESOURCE_ERROR - definitions cannot be written: no space left on device"
	if e.ReplyCode != 506 || string(e.ReplyText) != want || e.FailedClass != 50 || e.FailedMethod != 10 {
		t.Errorf("%d %q for %d.%d", e.ReplyCode, e.ReplyText, e.FailedClass, e.FailedMethod)
	}
	c.send(1, &amqp091.ChannelCloseOk{})
	c.channel(1)
	w.queue("q")
	c.send(1, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true})
	w.rest()
	c.noMore(1)
	d.tell(fmt.Errorf("closed"))
	e = c.wait(1, amqp091.MethodChannelClose).m.(*amqp091.ChannelClose)
	if !strings.HasSuffix(string(e.ReplyText), ": the broker is stopping") {
		t.Errorf("%q", e.ReplyText)
	}
	c.send(1, &amqp091.ChannelCloseOk{})
	c.channel(1)
	c.send(1, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true})
	w.rest()
	d.tell(nil)
	c.wait(1, amqp091.MethodQueueDeclareOk)
	w.finish()
}

// A connection or channel that ends while its answer waits leaves nothing
// behind, and gets nothing.
func TestEndWhileTheCatalogWaits(t *testing.T) {
	for name, end := range map[string]func(w *world, c *client){
		"socket lost": func(_ *world, c *client) { c.peer.Close() },
		"by order": func(w *world, _ *client) {
			for c := range w.srv.loops[1].conns {
				c.force("enough")
			}
		},
		"with input behind it": func(_ *world, c *client) {
			c.publish(1, "", "q", numbered(1, 8))
			c.peer.CloseWrite()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := slowWorld(t, 1)
			c := w.dial(1)
			c.channel(1)
			c.send(1, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true})
			w.rest()
			end(w, c)
			w.rest()
			c.noMore(1)
			d.tell(nil)
			w.rest()
			if ready, _ := w.counts("q"); (ready == 1) != (name == "with input behind it") {
				t.Errorf("%d messages", ready)
			}
			for _, e := range c.got {
				if e.ch == 1 && name != "with input behind it" {
					t.Errorf("got %s", c.story())
				}
			}
			w.finish()
		})
	}
}
