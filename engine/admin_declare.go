package engine

import (
	"errors"
	"fmt"
	"strings"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// What a file of definitions asks for. What exists already stays as it is, whatever the
// file says of it (DEF-03).

// AdminDeclareExchange declares an exchange.
func (b *Broker) AdminDeclareExchange(vhost, name, kind string, durable, autoDelete, internal bool, args core.Args) error {
	v, err := b.adminVHost(vhost)
	if err != nil {
		return err
	}
	if name == "" || v.Exchange([]byte(name)) != nil {
		return nil
	}
	s := ExchangeSettings{Durable: durable, AutoDelete: autoDelete, Internal: internal, Args: args}
	if refused := v.DeclareExchange(name, kind, s); refused != nil && v.Exchange([]byte(name)) == nil {
		return errors.New(refused.Text)
	}
	return b.settled()
}

// AdminDeclareQueue declares a queue. Any name will do, also one that a server made up.
func (b *Broker) AdminDeclareQueue(vhost, name string, durable, autoDelete bool, args core.Args) error {
	v, err := b.adminVHost(vhost)
	switch {
	case err != nil:
		return err
	case name == "":
		return errors.New("the name of a queue must not be empty")
	case v.Queue([]byte(name)) != nil:
		return nil
	}
	s := queue.Settings{Durable: durable, AutoDelete: autoDelete, Args: args}
	q, refused := v.declareQueue(name, s, nil, b.emptiest(), monotonic(), serverNamed(name))
	if refused != nil {
		if v.Queue([]byte(name)) != nil {
			return nil // somebody was faster
		}
		return errors.New(refused.Text)
	}
	at := b.Shards[q.Shard]
	at.env.post(func() {
		if at.env.running() {
			at.refresh()
			q.Touch(at.now) // the clock of its expiry runs
			return
		}
		at.early = append(at.early, q)
	})
	return b.settled()
}

// serverNamed reports a name that clients may not choose: such a queue is in a file
// because a server made its name up.
func serverNamed(name string) bool { return strings.HasPrefix(name, "amq.") }

// touchEarly starts the clocks of queues that were made before the loop ran.
func (s *Shard) touchEarly() {
	for _, q := range s.early {
		q.Touch(s.now)
	}
	s.early = nil
}

// emptiest is the shard with the fewest queues.
func (b *Broker) emptiest() *Shard {
	least := 0
	for i := range b.queuesOn {
		if b.queuesOn[i].Load() < b.queuesOn[least].Load() {
			least = i
		}
	}
	return b.Shards[least]
}

// AdminBind makes a binding from an exchange to what destType says: "queue" or
// "exchange".
func (b *Broker) AdminBind(vhost, source, destType, dest, key string, args core.Args) error {
	v, err := b.adminVHost(vhost)
	if err != nil {
		return err
	}
	from, refused := v.FindBindable([]byte(source))
	if refused != nil {
		return errors.New(refused.Text)
	}
	var to exchange.Dest
	switch destType {
	case destQueue:
		q := v.Queue([]byte(dest))
		if q == nil {
			return errors.New(v.NoQueue(dest).Text)
		}
		to = q
	case destExchange:
		x, refused := v.FindBindable([]byte(dest))
		if refused != nil {
			return errors.New(refused.Text)
		}
		to = x
	default:
		return fmt.Errorf("destination_type is queue or exchange, not '%s'", destType)
	}
	if refused := v.Bind(from, to, key, args); refused != nil {
		return errors.New(refused.Text)
	}
	return b.settled()
}

// CheckQueue says what is wrong with the arguments of a queue, without making it.
func (b *Broker) CheckQueue(vhost, name string, durable, autoDelete bool, args core.Args) error {
	v := b.VHost(vhost)
	if v == nil {
		v = newVHost(b, vhost)
	}
	s := queue.Settings{Durable: durable, AutoDelete: autoDelete, Args: args}
	v.applyDefaultType(&s, serverNamed(name))
	if refused := parseQueueArgs(v, name, &s); refused != nil {
		return errors.New(refused.Text)
	}
	return nil
}

// CheckExchange says what is wrong with an exchange's type and arguments, without
// making it.
func (b *Broker) CheckExchange(vhost, name, kind string, args core.Args) error {
	v := b.VHost(vhost)
	if v == nil {
		v = newVHost(b, vhost)
	}
	s := ExchangeSettings{Args: args}
	if refused := v.parseExchange(name, kind, &s); refused != nil {
		return errors.New(refused.Text)
	}
	return nil
}
