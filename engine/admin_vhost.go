package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// VHostSettings describe a vhost.
type VHostSettings struct {
	Description string
	Tags        []string
	// DefaultQueueType is the type of queues that are declared without one: classic,
	// quorum or stream, "" for classic.
	DefaultQueueType string
	Tracing          bool
}

// check says what is wrong with the settings.
func (s *VHostSettings) check() error {
	switch s.DefaultQueueType {
	case "", queue.Classic.String(), queue.Quorum.String(), queue.Stream.String():
		return nil
	}
	return fmt.Errorf("unsupported default queue type '%s': it is classic, quorum or stream", s.DefaultQueueType)
}

// copied is the settings with a list of their own.
func (s VHostSettings) copied() *VHostSettings {
	s.Tags = slices.Clone(s.Tags)
	return &s
}

// vhostNameMax is the longest name, in bytes: it has to fit into connection.open.
const vhostNameMax = 255

// AddVHost makes a vhost, or changes the settings of the one there is.
func (b *Broker) AddVHost(name string, s VHostSettings) error {
	switch {
	case name == "":
		return errors.New("the name of a virtual host must not be empty")
	case len(name) > vhostNameMax || !utf8.ValidString(name):
		return fmt.Errorf("the name of a virtual host is UTF-8 of at most %d bytes", vhostNameMax)
	}
	if err := s.check(); err != nil {
		return err
	}
	b.admin.mu.Lock()
	defer b.admin.mu.Unlock()
	v := b.VHost(name)
	made := v == nil
	if made {
		v = newVHost(b, name)
	}
	v.mu.Lock()
	v.settings.Store(s.copied())
	v.noteVHost()
	v.record()
	v.mu.Unlock()
	if made {
		b.vhosts.Store(name, v)
	}
	return b.settled()
}

// VHostSettings are the settings of a vhost, and whether there is one of that name.
func (b *Broker) VHostSettings(name string) (VHostSettings, bool) {
	v := b.VHost(name)
	if v == nil {
		return VHostSettings{}, false
	}
	return *v.settings.Load().copied(), true
}

// DefaultQueueType is the type of a queue that is declared without one. Any loop.
func (v *VHost) DefaultQueueType() queue.Type {
	switch v.settings.Load().DefaultQueueType {
	case queue.Quorum.String():
		return queue.Quorum
	case queue.Stream.String():
		return queue.Stream
	}
	return queue.Classic
}

// OnVHostDeleted has f called when a vhost is deleted and cannot be found any more. f
// ends the connections that use it and returns when they are closed to further
// commands. Called before the loops run.
func (b *Broker) OnVHostDeleted(f func(*VHost)) { b.admin.goneHooks = append(b.admin.goneHooks, f) }

// DeleteVHost removes a vhost with all that it has: its connections, queues,
// exchanges, policies, limits and parameters. The vhost "/" stays.
func (b *Broker) DeleteVHost(name string) error {
	if name == "/" {
		return errors.New("the virtual host '/' cannot be deleted: clients that name none use it")
	}
	b.admin.mu.Lock()
	defer b.admin.mu.Unlock()
	v, err := b.adminVHost(name)
	if err != nil {
		return err
	}
	b.vhosts.Delete(name)
	for _, closeConnections := range b.admin.goneHooks {
		closeConnections(v)
	}
	queues := v.empty()
	b.forgetParameters(name)
	err = b.onQueues(queues, func(s *Shard, q *queue.Queue) {
		if q.Deleted() {
			return
		}
		s.drop(q)
		s.Stats.Gone.Add(&q.Counts)
	})
	for _, q := range queues {
		b.queueGone(q)
	}
	return errors.Join(err, b.settled())
}

// empty takes everything out of a vhost that is being deleted and records it, as one: a
// crash leaves the whole vhost or nothing of it. It returns the queues, which nobody
// can find any more.
func (v *VHost) empty() []*queue.Queue {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone = true
	var queues []*queue.Queue
	v.broker.catalog.removing.Add(1)
	v.kept(func(q *queue.Queue) {
		queues = append(queues, q)
		v.noteQueueGone(q)
	})
	v.Exchanges(func(x *Exchange) {
		x.deleted.Store(true)
		v.noteExchangeGone(x)
		for _, b := range x.bindings {
			v.noteBindingGone(b)
		}
		clear(x.bindings)
	})
	has := v.policies.Load()
	for _, operator := range []bool{false, true} {
		for _, p := range has.sort(operator).All() {
			v.notePolicyGone(p.Name, operator)
		}
	}
	if v.limits.Load() != nil {
		v.noteLimits(nil)
	}
	v.noteParametersGone()
	v.noteVHostGone()
	v.queues.Store(&core.PMap[*queue.Queue]{})
	v.exchanges.Store(&core.PMap[*Exchange]{})
	v.incoming = map[exchange.Dest]map[*Binding]struct{}{}
	v.policies.Store(&policies{})
	v.epoch.Add(1)
	v.record()
	v.broker.catalog.removing.Add(-1)
	return queues
}

// isGone is the refusal of a declare in a vhost that is deleted already, nil in any
// other. The lock is held.
func (v *VHost) isGone() *core.Error {
	if v.gone {
		return core.Refuse(core.NotFound, "no vhost '%s'", v.Name)
	}
	return nil
}

// VHostNames lists the vhosts by name.
func (b *Broker) VHostNames() []string {
	var names []string
	b.VHosts(func(v *VHost) { names = append(names, v.Name) })
	slices.Sort(names)
	return names
}

// forgetParameters drops those of a vhost that is gone.
func (b *Broker) forgetParameters(vhost string) {
	b.admin.paramMu.Lock()
	defer b.admin.paramMu.Unlock()
	maps.DeleteFunc(b.admin.params, func(id parameterID, _ json.RawMessage) bool { return id.vhost == vhost })
}
