package session091

import (
	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/frame/amqp091"
)

// bindTarget resolves the queue name and key of queue.bind and unbind: an
// empty name is the current queue, and with an empty key too the key becomes
// its name (QUE-08).
func (ch *channel) bindTarget(name, key []byte, id amqp091.MethodID) (queueName, bindKey string, ok bool) {
	if !ch.validName(name, key) {
		return "", "", false
	}
	queueName, bindKey = cleanName(name), string(key)
	if queueName == "" {
		if ch.current == "" {
			ch.fail(amqp091.NotFound, id, "no previously declared queue")
			return "", "", false
		}
		queueName = ch.current
		if bindKey == "" {
			bindKey = queueName
		}
	}
	return queueName, bindKey, true
}

func (ch *channel) bindQueue(args []byte) {
	id := amqp091.MethodQueueBind
	var m amqp091.QueueBind
	if !ch.decode(id, m.Decode(args)) {
		return
	}
	name, key, ok := ch.bindTarget(m.Queue, m.RoutingKey, id)
	if !ok {
		return
	}
	v := ch.c.vhost
	x, err := v.FindBindable([]byte(cleanName(m.Exchange)))
	if err != nil {
		ch.refuse(err, id)
		return
	}
	q, err := v.FindQueue([]byte(name), ch.c)
	if err != nil {
		ch.refuse(err, id)
		return
	}
	if err := v.Bind(x, q, key, toArgs(m.Arguments)); err != nil {
		ch.refuse(err, id)
		return
	}
	ch.answerDefined(id, m.NoWait, &amqp091.QueueBindOk{})
}

// unbindQueue handles queue.unbind; whatever is missing is no error (BIND-03).
func (ch *channel) unbindQueue(args []byte) {
	id := amqp091.MethodQueueUnbind
	var m amqp091.QueueUnbind
	if !ch.decode(id, m.Decode(args)) {
		return
	}
	name, key, ok := ch.bindTarget(m.Queue, m.RoutingKey, id)
	if !ok {
		return
	}
	v := ch.c.vhost
	if len(m.Exchange) == 0 {
		_, err := v.FindBindable(nil)
		ch.refuse(err, id)
		return
	}
	x, q := v.Exchange([]byte(cleanName(m.Exchange))), v.Queue([]byte(name))
	if x != nil && q != nil {
		bindArgs := toArgs(m.Arguments)
		if v.HasBinding(x, q, key, bindArgs) {
			if _, err := v.FindQueue([]byte(name), ch.c); err != nil {
				ch.refuse(err, id)
				return
			}
			v.Unbind(x, q, key, bindArgs)
		}
	}
	ch.answerDefined(id, false, &amqp091.QueueUnbindOk{})
}

func (ch *channel) bindExchange(args []byte) {
	id := amqp091.MethodExchangeBind
	var m amqp091.ExchangeBind
	if !ch.decode(id, m.Decode(args)) || !ch.validName(m.Source, m.Destination, m.RoutingKey) {
		return
	}
	v := ch.c.vhost
	if len(m.Source) == 0 || len(m.Destination) == 0 {
		_, err := v.FindBindable(nil)
		ch.refuse(err, id)
		return
	}
	source, err := v.FindExchange([]byte(cleanName(m.Source)))
	if err != nil {
		ch.refuse(err, id)
		return
	}
	dest, err := v.FindExchange([]byte(cleanName(m.Destination)))
	if err != nil {
		ch.refuse(err, id)
		return
	}
	if err := v.Bind(source, dest, string(m.RoutingKey), toArgs(m.Arguments)); err != nil {
		ch.refuse(err, id)
		return
	}
	ch.answerDefined(id, m.NoWait, &amqp091.ExchangeBindOk{})
}

func (ch *channel) unbindExchange(args []byte) {
	id := amqp091.MethodExchangeUnbind
	var m amqp091.ExchangeUnbind
	if !ch.decode(id, m.Decode(args)) || !ch.validName(m.Source, m.Destination, m.RoutingKey) {
		return
	}
	v := ch.c.vhost
	if len(m.Source) == 0 || len(m.Destination) == 0 {
		_, err := v.FindBindable(nil)
		ch.refuse(err, id)
		return
	}
	source, dest := v.Exchange([]byte(cleanName(m.Source))), v.Exchange([]byte(cleanName(m.Destination)))
	if source != nil && dest != nil {
		v.Unbind(source, exchange.Dest(dest), string(m.RoutingKey), toArgs(m.Arguments))
	}
	ch.answerDefined(id, m.NoWait, &amqp091.ExchangeUnbindOk{})
}

// toArgs copies a field table into arguments that may be kept. The first of
// duplicate names wins (FLD-02).
func toArgs(t amqp091.Table) core.Args {
	if len(t) == 0 {
		return nil
	}
	args := core.Args{}
	for key, v := range t.All() {
		if _, dup := args[string(key)]; dup {
			continue
		}
		cv := toValue(v)
		cv.Str = string(append([]byte(nil), cv.Str...))
		args[string(key)] = cv
	}
	return args
}
