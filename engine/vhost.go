package engine

import (
	"hash/fnv"
	"sync"
	"sync/atomic"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// VHost is one name space of exchanges and queues (GEN-02).
type VHost struct {
	Name   string
	broker *Broker

	// epoch counts every change that can alter a route; caches compare it.
	epoch atomic.Uint64

	queues    atomic.Pointer[core.PMap[*queue.Queue]]
	exchanges atomic.Pointer[core.PMap[*Exchange]]

	mu sync.Mutex // guards changes and everything below
	// incoming lists the bindings that lead to a queue or an exchange.
	incoming map[exchange.Dest]map[*Binding]struct{}
	// changes are those of the durable catalog that the command under way has
	// made so far.
	changes []Change
	// dropped are the queues of delayed exchanges that the command under way removes.
	dropped []*queue.Queue

	// What operators ask for (admin.go). policies and limits change under the lock.
	policies atomic.Pointer[policies]
	settings atomic.Pointer[VHostSettings]
	limits   atomic.Pointer[Limits] // nil: none
	seats    seats
	gone     bool // deleted; guarded by the lock
}

// Exchange is a routing point. The exported fields never change.
type Exchange struct {
	Name       string
	Kind       exchange.Kind
	Durable    bool
	AutoDelete bool
	Internal   bool
	Alternate  string // alternate exchange that the arguments name, "" = none
	Args       core.Args

	matcher atomic.Pointer[exchange.Matcher]
	deleted atomic.Bool
	// alternate is the alternate exchange in force, nil for none: see setAlternate.
	alternate atomic.Pointer[string]

	// Routes is the type whose rules route: Kind, but of a delayed exchange.
	Routes exchange.Kind
	// held is where a delayed exchange keeps what it holds back, nil of others.
	held *queue.Queue

	bindings map[bindingID]*Binding // guarded by the vhost's lock
}

// Holds reports that the exchange holds messages back that ask for it (XT-02).
func (x *Exchange) Holds() bool { return x.held != nil }

// Binding connects a source exchange to a queue or an exchange.
type Binding struct {
	Source *Exchange
	Dest   exchange.Dest // *queue.Queue or *Exchange
	Key    string
	Args   core.Args
}

// forMatcher is the binding as the source's matcher knows it.
func (b *Binding) forMatcher() exchange.Binding {
	out := exchange.Binding{Dest: b.Dest, Key: b.Key, Args: b.Args}
	switch d := b.Dest.(type) {
	case *queue.Queue:
		out.Name = "q" + d.Name
	case *Exchange:
		out.Name = "x" + d.Name
	}
	return out
}

// nameSeed begins the random choices of an exchange. They are to be even, not
// unforeseeable: made of the name, they are the same in every run, so that
// simulations replay.
func nameSeed(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

type bindingID struct {
	dest exchange.Dest
	key  string
	args string
}

func newVHost(b *Broker, name string) *VHost {
	v := &VHost{Name: name, broker: b, incoming: map[exchange.Dest]map[*Binding]struct{}{}}
	v.queues.Store(&core.PMap[*queue.Queue]{})
	v.policies.Store(&policies{})
	v.settings.Store(&VHostSettings{})
	var xs core.PMap[*Exchange]
	for _, p := range []struct {
		name     string
		kind     exchange.Kind
		internal bool
	}{
		{"", exchange.Direct, false},
		{"amq.direct", exchange.Direct, false},
		{"amq.fanout", exchange.Fanout, false},
		{"amq.topic", exchange.Topic, false},
		{"amq.headers", exchange.Headers, false},
		{"amq.match", exchange.Headers, false},
		{"amq.rabbitmq.trace", exchange.Topic, true},
	} {
		xs = xs.Set(p.name, newExchange(p.name, ExchangeSettings{Kind: p.kind, Durable: true, Internal: p.internal}))
	}
	v.exchanges.Store(&xs)
	return v
}

func newExchange(name string, s ExchangeSettings) *Exchange {
	x := &Exchange{
		Name: name, Kind: s.Kind, Durable: s.Durable, AutoDelete: s.AutoDelete,
		Internal: s.Internal, Alternate: s.Alternate, Args: s.Args,
		bindings: map[bindingID]*Binding{},
	}
	// REQUIRES: the arguments were checked.
	x.Routes, _ = exchange.RoutesLike(s.Kind, s.Args)
	m := exchange.New(x.Routes, exchange.Options{Args: s.Args, Seed: nameSeed(name)})
	x.matcher.Store(&m)
	if s.Alternate != "" {
		x.alternate.Store(&x.Alternate)
	}
	return x
}

// Epoch changes whenever a route may have changed.
func (v *VHost) Epoch() uint64 { return v.epoch.Load() }

// Exchange finds an exchange by name without a lock or an allocation; nil if
// there is none.
func (v *VHost) Exchange(name []byte) *Exchange {
	x, _ := v.exchanges.Load().GetBytes(name)
	return x
}

// Queue finds a queue by name without a lock or an allocation; nil if there
// is none.
func (v *VHost) Queue(name []byte) *queue.Queue {
	q, _ := v.queues.Load().GetBytes(name)
	return q
}

// Exchanges calls f for each exchange of a consistent snapshot.
func (v *VHost) Exchanges(f func(*Exchange)) {
	for _, x := range v.exchanges.Load().All() {
		f(x)
	}
}

// Queues calls f for each queue of a consistent snapshot.
func (v *VHost) Queues(f func(*queue.Queue)) {
	for _, q := range v.queues.Load().All() {
		f(q)
	}
}

// Bind makes a binding; making it again changes nothing (BIND-01).
func (v *VHost) Bind(source *Exchange, dest exchange.Dest, key string, args core.Args) *core.Error {
	if err := exchange.ValidateBinding(source.Routes, key, args); err != nil {
		return core.Refuse(core.PreconditionFailed, "%s", err.Error())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.mustExist(source, dest); err != nil {
		return err
	}
	id := bindingID{dest, key, args.Canonical()}
	if _, ok := source.bindings[id]; ok {
		return nil
	}
	b := &Binding{Source: source, Dest: dest, Key: key, Args: args}
	v.noteBinding(b)
	v.record()
	source.bindings[id] = b
	in := v.incoming[dest]
	if in == nil {
		in = map[*Binding]struct{}{}
		v.incoming[dest] = in
	}
	in[b] = struct{}{}
	m := (*source.matcher.Load()).Bind(b.forMatcher())
	source.matcher.Store(&m)
	v.epoch.Add(1)
	return nil
}

// mustExist re-checks under the lock what the caller found without it.
func (v *VHost) mustExist(source *Exchange, dest exchange.Dest) *core.Error {
	if source.deleted.Load() {
		return v.NoExchange(source.Name)
	}
	switch d := dest.(type) {
	case *Exchange:
		if d.deleted.Load() {
			return v.NoExchange(d.Name)
		}
	case *queue.Queue:
		if cur, ok := v.queues.Load().Get(d.Name); !ok || cur != d {
			return v.NoQueue(d.Name)
		}
	}
	return nil
}

// Unbind removes a binding; an absent one is no error (BIND-03).
func (v *VHost) Unbind(source *Exchange, dest exchange.Dest, key string, args core.Args) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := source.bindings[bindingID{dest, key, args.Canonical()}]; b != nil {
		v.remove(func() { v.unbind(b) })
	}
}

// HasBinding reports whether a binding exists.
func (v *VHost) HasBinding(source *Exchange, dest exchange.Dest, key string, args core.Args) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return source.bindings[bindingID{dest, key, args.Canonical()}] != nil
}

// unbind removes a binding and, with its last one, an auto-delete source
// (EXC-10), which may cascade. Only within remove.
func (v *VHost) unbind(b *Binding) {
	x := b.Source
	v.noteBindingGone(b)
	delete(x.bindings, bindingID{b.Dest, b.Key, b.Args.Canonical()})
	if in := v.incoming[b.Dest]; in != nil {
		delete(in, b)
		if len(in) == 0 {
			delete(v.incoming, b.Dest)
		}
	}
	m := (*x.matcher.Load()).Unbind(b.forMatcher())
	x.matcher.Store(&m)
	v.epoch.Add(1)
	if x.AutoDelete && len(x.bindings) == 0 && !x.deleted.Load() {
		v.removeExchange(x)
	}
}

// addExchange puts an exchange into the catalog. The lock is held, or nobody
// else knows the vhost.
func (v *VHost) addExchange(x *Exchange) {
	xs := v.exchanges.Load().Set(x.Name, x)
	v.exchanges.Store(&xs)
	v.epoch.Add(1)
}

// addQueue puts a queue of a shard into the catalog. The lock is held, or
// nobody else knows the vhost.
func (v *VHost) addQueue(q *queue.Queue, s *Shard, now int64) {
	q.Space = v
	q.Attach(s, now)
	qs := v.queues.Load().Set(q.Name, q)
	v.queues.Store(&qs)
	v.epoch.Add(1)
}

// removeExchange takes an exchange out of the catalog with its bindings. Only
// within remove.
func (v *VHost) removeExchange(x *Exchange) {
	x.deleted.Store(true)
	v.noteExchangeGone(x)
	v.removeHeld(x)
	xs := v.exchanges.Load().Delete(x.Name)
	v.exchanges.Store(&xs)
	v.epoch.Add(1)
	for _, b := range x.bindings {
		v.unbind(b)
	}
	for b := range v.incoming[exchange.Dest(x)] {
		v.unbind(b)
	}
}

// NoQueue is the refusal for a queue that is not there.
func (v *VHost) NoQueue(name string) *core.Error {
	return core.Refuse(core.NotFound, "no queue '%s' in vhost '%s'", name, v.Name)
}

// NoExchange is the refusal for an exchange that is not there.
func (v *VHost) NoExchange(name string) *core.Error {
	return core.Refuse(core.NotFound, "no exchange '%s' in vhost '%s'", name, v.Name)
}
