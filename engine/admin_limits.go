package engine

import (
	"fmt"
	"sync"

	"ringmq/engine/core"
)

// Limits bound what a vhost or a user may have at the same time (SEC-07). -1 is no
// bound, 0 refuses everything. MaxQueues is of vhosts, MaxChannels of users.
type Limits struct{ MaxConnections, MaxQueues, MaxChannels int64 }

// NoLimits bound nothing.
func NoLimits() Limits { return Limits{-1, -1, -1} }

// seats counts what is bounded, exactly: looking and taking are one step.
type seats struct {
	mu                    sync.Mutex
	limits                *Limits // nil: none
	connections, channels int64
}

// user is what the broker knows of somebody who is connected or has limits.
type user struct{ seats }

// full returns the bound of connections that is reached, if one is. The lock is held.
func (s *seats) full() (limit int64, yes bool) {
	if l := s.limits; l != nil && l.MaxConnections >= 0 && s.connections >= l.MaxConnections {
		return l.MaxConnections, true
	}
	return 0, false
}

func (s *seats) giveConnection(channels int64) {
	s.mu.Lock()
	s.connections--
	s.channels -= channels
	s.mu.Unlock()
}

func (s *seats) setLimits(l *Limits) {
	s.mu.Lock()
	s.limits = l
	s.mu.Unlock()
}

func (s *seats) limitsNow() Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limits == nil {
		return NoLimits()
	}
	return *s.limits
}

func (b *Broker) user(name string) *user {
	if u, ok := b.admin.users.Load(name); ok {
		return u.(*user)
	}
	u, _ := b.admin.users.LoadOrStore(name, &user{})
	return u.(*user)
}

// Seat is the place that a connection takes under the limits of its vhost and its user,
// with its channels. It belongs to the connection's loop; nil is a place under none.
type Seat struct {
	v        *VHost
	u        *user
	name     string
	channels int64
}

// Seat takes a place for a connection that opens (CON-14). The caller gives it back by
// Leave. Any loop.
func (b *Broker) Seat(v *VHost, name string) (*Seat, *core.Error) {
	u := b.user(name)
	// Both at once: a place that is taken and given back again would be missed by others.
	v.seats.mu.Lock()
	defer v.seats.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if limit, yes := v.seats.full(); yes {
		return nil, core.Refuse(core.NotAllowed, "access to vhost '%s' refused for user '%s': connection limit (%d) is reached",
			v.Name, name, limit)
	}
	if limit, yes := u.full(); yes {
		return nil, core.Refuse(core.NotAllowed, "connection refused for user '%s': user connection limit (%d) is reached", name, limit)
	}
	v.seats.connections++
	u.connections++
	return &Seat{v: v, u: u, name: name}, nil
}

// OpenChannel takes a place for a channel (CHA-02).
func (s *Seat) OpenChannel() *core.Error {
	if s == nil {
		return nil
	}
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	if l := s.u.limits; l != nil && l.MaxChannels >= 0 && s.u.channels >= l.MaxChannels {
		return core.Refuse(core.NotAllowed,
			"number of channels opened for user '%s' has reached the maximum allowed user limit of (%d)", s.name, l.MaxChannels)
	}
	s.u.channels++
	s.channels++
	return nil
}

// CloseChannel gives the place of a channel back.
func (s *Seat) CloseChannel() {
	if s == nil {
		return
	}
	s.u.mu.Lock()
	s.u.channels--
	s.channels--
	s.u.mu.Unlock()
}

// Leave gives everything back. The seat is not used after it.
func (s *Seat) Leave() {
	if s == nil {
		return
	}
	s.v.seats.giveConnection(0)
	s.u.giveConnection(s.channels)
}

// SetVHostLimits bounds a vhost from now on. Who is connected stays, and queues that
// exist stay.
func (b *Broker) SetVHostLimits(vhost string, l Limits) error {
	l.MaxChannels = -1
	if l.MaxConnections < -1 || l.MaxQueues < -1 {
		return fmt.Errorf("a limit is a number from 0 up, or -1 for none")
	}
	return b.limitVHost(vhost, &l)
}

// ClearVHostLimits lifts the bounds of a vhost.
func (b *Broker) ClearVHostLimits(vhost string) error { return b.limitVHost(vhost, nil) }

func (b *Broker) limitVHost(vhost string, l *Limits) error {
	b.admin.mu.Lock()
	defer b.admin.mu.Unlock()
	v, err := b.adminVHost(vhost)
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.noteLimits(l)
	v.record()
	v.putLimits(l)
	v.mu.Unlock()
	return b.settled()
}

// putLimits has limits in force; nil is none. The vhost's lock is held, or nobody else
// knows the vhost.
func (v *VHost) putLimits(l *Limits) {
	v.limits.Store(l)
	v.seats.setLimits(l)
}

// VHostLimits are the limits of a vhost; those of one that is not there bound nothing.
func (b *Broker) VHostLimits(vhost string) Limits {
	if v := b.VHost(vhost); v != nil {
		return v.seats.limitsNow()
	}
	return NoLimits()
}

// SetUserLimits bounds a user, known or not, from now on. What is open stays open.
func (b *Broker) SetUserLimits(name string, l Limits) error {
	l.MaxQueues = -1
	switch {
	case name == "":
		return fmt.Errorf("the name of a user must not be empty")
	case l.MaxConnections < -1 || l.MaxChannels < -1:
		return fmt.Errorf("a limit is a number from 0 up, or -1 for none")
	}
	return b.limitUser(name, &l)
}

// ClearUserLimits lifts the bounds of a user.
func (b *Broker) ClearUserLimits(name string) error { return b.limitUser(name, nil) }

func (b *Broker) limitUser(name string, l *Limits) error {
	b.admin.mu.Lock()
	defer b.admin.mu.Unlock()
	if b.catalog.records() {
		b.catalog.record([]Change{userLimitsChange(name, l)})
	}
	b.user(name).setLimits(l)
	return b.settled()
}

// UserLimits are the limits of a user; without any they bound nothing.
func (b *Broker) UserLimits(name string) Limits {
	if u, ok := b.admin.users.Load(name); ok {
		return u.(*user).limitsNow()
	}
	return NoLimits()
}

// AllUserLimits are the limits of all users that have some, by name.
func (b *Broker) AllUserLimits() map[string]Limits {
	all := map[string]Limits{}
	b.admin.users.Range(func(name, u any) bool {
		if l := u.(*user).limitsNow(); l != NoLimits() {
			all[name.(string)] = l
		}
		return true
	})
	return all
}
