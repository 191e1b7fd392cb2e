package definitions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringmq/engine"
	"ringmq/engine/core"
)

// check is one look at a file beside the broker that is to import it.
type check struct {
	b      *engine.Broker
	vhosts map[string]*vhost // of the file
	// What the file declares, by virtual host and name.
	exchanges map[objectID]*exchange
	queues    map[objectID]*queue
}

type objectID struct{ vhost, name string }

// Check says what of the file the broker could not take, nil when it would take all of it.
// The error begins with the place in the file. Nothing is changed. Any goroutine but a loop's.
func (f *File) Check(b *engine.Broker) error {
	c := check{b: b, vhosts: map[string]*vhost{}, exchanges: map[objectID]*exchange{}, queues: map[objectID]*queue{}}
	for i := range f.vhosts {
		c.vhosts[f.vhosts[i].name] = &f.vhosts[i]
	}
	for i := range f.exchanges {
		x := &f.exchanges[i]
		if _, twice := c.exchanges[objectID{x.vhost, x.name}]; !twice { // the first one is made
			c.exchanges[objectID{x.vhost, x.name}] = x
		}
	}
	for i := range f.queues {
		c.queues[objectID{f.queues[i].vhost, f.queues[i].name}] = &f.queues[i]
	}
	return c.all(f)
}

// all is the first thing that is wrong.
func (c *check) all(f *File) error {
	for i := range f.parameters {
		if p := &f.parameters[i]; !c.hasVHost(p.VHost) {
			return c.noVHost(p.path, p.VHost)
		}
	}
	for i := range f.policies {
		if p := &f.policies[i]; !c.hasVHost(p.VHost) {
			return c.noVHost(p.path, p.VHost)
		}
	}
	for i := range f.exchanges {
		if err := c.exchange(&f.exchanges[i]); err != nil {
			return err
		}
	}
	for i := range f.queues {
		if err := c.queue(&f.queues[i]); err != nil {
			return err
		}
	}
	for i := range f.bindings {
		if err := c.binding(&f.bindings[i]); err != nil {
			return err
		}
	}
	return c.room(f)
}

func (c *check) hasVHost(name string) bool { return c.vhosts[name] != nil || c.b.VHost(name) != nil }

func (c *check) noVHost(path, name string) error {
	return fmt.Errorf("%s.vhost: there is no virtual host '%s', neither here nor in the file", path, name)
}

func (c *check) exchange(x *exchange) error {
	if !c.hasVHost(x.vhost) {
		return c.noVHost(x.path, x.vhost)
	}
	if x.name == "" || c.exchangeThere(x.vhost, x.name) != nil {
		return nil // it stays as it is
	}
	if strings.HasPrefix(x.name, "amq.") && !predeclared[x.name] {
		return fmt.Errorf("%s.name: exchange name '%s' contains reserved prefix 'amq.*'", x.path, x.name)
	}
	try := func(args core.Args) error { return c.b.CheckExchange(x.vhost, x.name, x.kind, args) }
	if err := try(x.args); err != nil {
		if strings.Contains(err.Error(), "exchange type '"+x.kind+"'") {
			return placed(x.path+".type", err)
		}
		return blame(x.path, x.args, err, try)
	}
	return nil
}

// predeclared are the exchanges that every virtual host begins with.
var predeclared = map[string]bool{
	"amq.direct": true, "amq.fanout": true, "amq.topic": true, "amq.headers": true, "amq.match": true, "amq.rabbitmq.trace": true,
}

func (c *check) exchangeThere(vhost, name string) *engine.Exchange {
	if v := c.b.VHost(vhost); v != nil {
		return v.Exchange([]byte(name))
	}
	return nil
}

func (c *check) queueThere(vhost, name string) bool {
	v := c.b.VHost(vhost)
	return v != nil && v.Queue([]byte(name)) != nil
}

func (c *check) queue(q *queue) error {
	switch {
	case !c.hasVHost(q.vhost):
		return c.noVHost(q.path, q.vhost)
	case q.name == "":
		return fmt.Errorf("%s.name: it is empty", q.path)
	case c.queueThere(q.vhost, q.name):
		return nil
	}
	try := func(args core.Args) error {
		return c.b.CheckQueue(q.vhost, q.name, q.durable, q.autoDelete, c.typed(q, args))
	}
	if err := try(q.args); err != nil {
		return blame(q.path, q.args, err, try)
	}
	return nil
}

// typed adds the default type that the file gives the queue's virtual host.
func (c *check) typed(q *queue, args core.Args) core.Args {
	v := c.vhosts[q.vhost]
	if _, has := args[argQueueType]; has || v == nil || v.settings.DefaultQueueType == "" || strings.HasPrefix(q.name, "amq.") {
		return args
	}
	out := maps.Clone(args)
	if out == nil {
		out = core.Args{}
	}
	out[argQueueType] = core.Value{Kind: core.KindString, Str: v.settings.DefaultQueueType, Type: "longstr"}
	return out
}

// blame finds the argument without which the mistake is gone, for the place of it.
func blame(path string, args core.Args, err error, try func(core.Args) error) error {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		without := maps.Clone(args)
		delete(without, name)
		if try(without) == nil {
			return placed(path+".arguments."+name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) { // more than one is bad
		if strings.Contains(err.Error(), "'"+name+"'") {
			return placed(path+".arguments."+name, err)
		}
	}
	return placed(path, err)
}

func (c *check) binding(b *binding) error {
	if !c.hasVHost(b.vhost) {
		return c.noVHost(b.path, b.vhost)
	}
	if b.source == "" {
		if b.isDefault() {
			return nil
		}
		return fmt.Errorf("%s.source: the default exchange takes no bindings", b.path)
	}
	if b.destType == destQueue {
		if c.queues[objectID{b.vhost, b.dest}] == nil && !c.queueThere(b.vhost, b.dest) {
			return fmt.Errorf("%s.destination: no queue '%s' in vhost '%s', neither here nor in the file", b.path, b.dest, b.vhost)
		}
	} else if _, _, ok := c.kindOf(b.vhost, b.dest); !ok || b.dest == "" {
		return fmt.Errorf("%s.destination: no exchange '%s' in vhost '%s', neither here nor in the file", b.path, b.dest, b.vhost)
	}
	kind, args, ok := c.kindOf(b.vhost, b.source)
	if !ok {
		return fmt.Errorf("%s.source: no exchange '%s' in vhost '%s', neither here nor in the file", b.path, b.source, b.vhost)
	}
	if err := c.b.CheckBinding(kind, args, b.key, b.args); err != nil {
		return blame(b.path, b.args, err, func(a core.Args) error { return c.b.CheckBinding(kind, args, b.key, a) })
	}
	return nil
}

// isDefault reports the binding that every queue has to the default exchange: it is there
// already, or not to be changed.
func (b *binding) isDefault() bool {
	return b.source == "" && b.destType == destQueue && b.dest == b.key
}

// kindOf is the type of an exchange that is there, or that the file declares.
func (c *check) kindOf(vhost, name string) (kind string, args core.Args, ok bool) {
	if x := c.exchangeThere(vhost, name); x != nil {
		return x.Kind.String(), x.Args, true
	}
	if predeclared[name] {
		kind = strings.TrimPrefix(name, "amq.")
		switch kind {
		case "match":
			kind = "headers"
		case "rabbitmq.trace":
			kind = "topic"
		}
		return kind, nil, true
	}
	if x := c.exchanges[objectID{vhost, name}]; x != nil {
		return x.kind, x.args, true
	}
	return "", nil, false
}

// room refuses more queues than a limit that is in force lets in. Limits of the file itself
// come into force last and refuse nothing of it.
func (c *check) room(f *File) error {
	added := map[string]int64{}
	for id := range c.queues {
		if !c.queueThere(id.vhost, id.name) {
			added[id.vhost]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		limit := c.b.VHostLimits(name).MaxQueues
		v := c.b.VHost(name)
		if v == nil || limit < 0 {
			continue
		}
		have := v.QueueCount()
		if have+added[name] > limit {
			return fmt.Errorf("queues: %d more in vhost '%s', which has %d, are over its limit of %d", added[name], name, have, limit)
		}
	}
	return nil
}
