package session091

import (
	"errors"
	"strings"
	"syscall"

	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// cleanName is a name to be kept: CR and LF are removed (EXC-02).
func cleanName(b []byte) string {
	s := string(b)
	if strings.ContainsAny(s, "\r\n") {
		s = strings.NewReplacer("\r", "", "\n", "").Replace(s)
	}
	return s
}

// answerDefined writes the reply of a command that changed the catalog, or saw
// it, when all of the catalog so far is durable: what a client was told must be
// there after a crash. Usually nothing is pending and the reply leaves at once.
// Else parsing stops until it may leave, also when the client waived it: what it
// does next relies on this as well.
func (ch *channel) answerDefined(id amqp091.MethodID, noWait bool, reply amqp091.Method) {
	c := ch.c
	inside := true
	c.waiting = true
	c.shard.WhenDefined(func(err error) {
		c.waiting = false
		if c.state == stateDead {
			return
		}
		switch {
		case ch.ended || c.state != stateOpen:
		case err != nil:
			ch.refuse(notWritten(err), id)
		default:
			ch.sendOK(noWait, reply)
		}
		if !inside {
			c.wake()
		}
	})
	inside = false
}

// notWritten is the refusal of a command whose change of the catalog could not
// be written for now. The change is in force and is written later.
func notWritten(err error) *core.Error {
	why := "the broker is stopping"
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		why = errno.Error()
	}
	return core.Refuse(core.StorageFull, "definitions cannot be written: %s", why)
}

// declareQueue handles queue.declare (spec A.5).
func (ch *channel) declareQueue(args []byte) {
	id := amqp091.MethodQueueDeclare
	var m amqp091.QueueDeclare
	if !ch.decode(id, m.Decode(args)) || !ch.validName(m.Queue) {
		return
	}
	name := cleanName(m.Queue)
	if isReplyName(name) {
		ch.declareReplies(name, m.NoWait)
		return
	}
	if m.Passive {
		ch.passiveQueue(name, m.NoWait)
		return
	}
	made := name == ""
	if made {
		name = generated("amq.gen-")
	}
	settings := queue.Settings{
		Durable: m.Durable, Exclusive: m.Exclusive, AutoDelete: m.AutoDelete,
		Args: toArgs(m.Arguments),
	}
	ch.declareNamed(name, settings, made, m.NoWait)
}

// declareNamed declares and answers with the counts, which only the queue's
// shard knows. A queue that is deleted in between is declared again.
func (ch *channel) declareNamed(name string, settings queue.Settings, made, noWait bool) {
	c := ch.c
	q, err := c.vhost.DeclareQueue(name, settings, c, c.shard, made)
	if err != nil {
		ch.refuse(err, amqp091.MethodQueueDeclare)
		return
	}
	c.srv.log.Debug("queue declared", "connection", c.name, "channel", ch.id, "queue", name, "loop", q.Shard)
	ch.current = name
	if q.Owner == any(c) {
		c.ownExclusive(name)
	}
	ch.counts(q, func(ready, consumers int, deleted bool) {
		if deleted {
			ch.declareNamed(name, settings, made, noWait)
			return
		}
		ch.answerDefined(amqp091.MethodQueueDeclare, noWait, &amqp091.QueueDeclareOk{
			Queue: []byte(name), MessageCount: uint32(ready), ConsumerCount: uint32(consumers),
		})
	})
}

// passiveQueue answers a passive declare (QUE-07).
func (ch *channel) passiveQueue(name string, noWait bool) {
	id := amqp091.MethodQueueDeclare
	q, err := ch.c.vhost.FindQueue([]byte(name), ch.c)
	if err != nil {
		ch.refuse(err, id)
		return
	}
	ch.current = name
	ch.counts(q, func(ready, consumers int, deleted bool) {
		if deleted {
			ch.refuse(ch.c.vhost.NoQueue(name), id)
			return
		}
		ch.answerDefined(id, noWait, &amqp091.QueueDeclareOk{
			Queue: []byte(name), MessageCount: uint32(ready), ConsumerCount: uint32(consumers),
		})
	})
}

// counts asks a queue's shard for its state; commands that were given before
// are counted (QUE-03). It restarts the clock of x-expires (TTL-05).
func (ch *channel) counts(q *queue.Queue, answer func(ready, consumers int, deleted bool)) {
	var ready, consumers int
	var deleted bool
	ch.c.await(q.Shard, func(at *engine.Shard) {
		if deleted = q.Deleted(); deleted {
			return
		}
		q.Touch(at.Now())
		at.Observe(q)
		ready, consumers = q.Ready(), q.Consumers()
	}, func() {
		if !ch.ended && ch.c.state == stateOpen {
			answer(ready, consumers, deleted)
		}
	})
}

// purge handles queue.purge (QUE-12).
func (ch *channel) purge(args []byte) {
	id := amqp091.MethodQueuePurge
	var m amqp091.QueuePurge
	if !ch.decode(id, m.Decode(args)) {
		return
	}
	q := ch.named(m.Queue, id)
	if q == nil {
		return
	}
	if isStream(q) {
		ch.notOfStreams(q, "queue.purge", id)
		return
	}
	noWait, deleted := m.NoWait, false
	n := 0
	ch.c.awaitDurable(q.Shard, func(at *engine.Shard) {
		if deleted = q.Deleted(); deleted {
			return
		}
		at.Observe(q)
		n = q.Purge(at.Now())
	}, func() {
		switch {
		case ch.ended || ch.c.state != stateOpen:
		case deleted:
			ch.refuse(ch.c.vhost.NoQueue(q.Name), id)
		default:
			ch.sendOK(noWait, &amqp091.QueuePurgeOk{MessageCount: uint32(n)})
		}
	})
}

// deleteQueue handles queue.delete (QUE-10).
func (ch *channel) deleteQueue(args []byte) {
	id := amqp091.MethodQueueDelete
	var m amqp091.QueueDelete
	if !ch.decode(id, m.Decode(args)) || !ch.validName(m.Queue) {
		return
	}
	name := cleanName(m.Queue)
	if name == "" {
		if ch.current == "" {
			ch.fail(amqp091.NotFound, id, "no previously declared queue")
			return
		}
		name = ch.current
	}
	v := ch.c.vhost
	noWait, ifUnused, ifEmpty := m.NoWait, m.IfUnused, m.IfEmpty
	if v.Queue([]byte(name)) == nil {
		ch.answerDefined(id, noWait, &amqp091.QueueDeleteOk{})
		return
	}
	q, err := v.FindQueue([]byte(name), ch.c)
	if err != nil {
		ch.refuse(err, id)
		return
	}
	var refused *core.Error
	n := 0
	ch.c.await(q.Shard, func(at *engine.Shard) {
		at.Observe(q)
		switch {
		case ifUnused && q.Consumers() > 0:
			refused = core.Refuse(core.PreconditionFailed, "queue '%s' in vhost '%s' in use", name, v.Name)
		case ifEmpty && q.Ready()+q.Owed() > 0:
			refused = core.Refuse(core.PreconditionFailed, "queue '%s' in vhost '%s' not empty", name, v.Name)
		default:
			n = at.DeleteQueue(q)
		}
	}, func() {
		switch {
		case ch.ended || ch.c.state != stateOpen:
		case refused != nil:
			ch.refuse(refused, id)
		default:
			delete(ch.c.exclusive, name)
			ch.c.srv.log.Debug("queue deleted", "connection", ch.c.name, "channel", ch.id, "queue", name, "ready", n)
			ch.answerDefined(id, noWait, &amqp091.QueueDeleteOk{MessageCount: uint32(n)})
		}
	})
}

// declareExchange handles exchange.declare (spec A.4).
func (ch *channel) declareExchange(args []byte) {
	id := amqp091.MethodExchangeDeclare
	var m amqp091.ExchangeDeclare
	if !ch.decode(id, m.Decode(args)) || !ch.validName(m.Exchange, m.Type) {
		return
	}
	name := cleanName(m.Exchange)
	var err *core.Error
	if m.Passive {
		err = ch.c.vhost.PassiveExchange(name)
	} else {
		err = ch.c.vhost.DeclareExchange(name, string(m.Type), engine.ExchangeSettings{
			Durable: m.Durable, AutoDelete: m.AutoDelete, Internal: m.Internal, Args: toArgs(m.Arguments),
		})
	}
	if err != nil {
		ch.refuse(err, id)
		return
	}
	ch.c.srv.log.Debug("exchange declared", "connection", ch.c.name, "channel", ch.id, "exchange", name)
	ch.answerDefined(id, m.NoWait, &amqp091.ExchangeDeclareOk{})
}

// deleteExchange handles exchange.delete (EXC-12, EXC-13).
func (ch *channel) deleteExchange(args []byte) {
	id := amqp091.MethodExchangeDelete
	var m amqp091.ExchangeDelete
	if !ch.decode(id, m.Decode(args)) || !ch.validName(m.Exchange) {
		return
	}
	if err := ch.c.vhost.DeleteExchange(cleanName(m.Exchange), m.IfUnused); err != nil {
		ch.refuse(err, id)
		return
	}
	ch.answerDefined(id, m.NoWait, &amqp091.ExchangeDeleteOk{})
}
