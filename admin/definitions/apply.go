package definitions

import (
	"fmt"

	"ringmq/engine"
)

// Counts is how much of each sort a file asks for.
type Counts struct {
	VHosts     int `json:"vhosts"`
	Policies   int `json:"policies"` // of the operator included
	Parameters int `json:"parameters"`
	Limits     int `json:"limits"`
	Exchanges  int `json:"exchanges"`
	Queues     int `json:"queues"`
	Bindings   int `json:"bindings"`
	// Unsupported are the keys of the file that are passed over as yet.
	Unsupported []string `json:"unsupported"`
}

// Counts sums the file up.
func (f *File) Counts() Counts {
	c := Counts{
		VHosts: len(f.vhosts), Policies: len(f.policies), Limits: len(f.users), Exchanges: len(f.exchanges),
		Queues: len(f.queues), Bindings: len(f.bindings), Unsupported: f.unsupported,
	}
	for i := range f.vhosts {
		if f.vhosts[i].limits != nil {
			c.Limits++
		}
	}
	for i := range f.parameters {
		if f.parameters[i].Component == componentLimits {
			c.Limits++
		} else {
			c.Parameters++
		}
	}
	c.Parameters += len(f.global)
	if c.Unsupported == nil {
		c.Unsupported = []string{}
	}
	return c
}

const componentLimits = "vhost-limits"

// Import checks the file and has the broker do what it asks for (DEF-03). It returns when all
// is in force and durable. When the check refuses, nothing has changed. Any goroutine but a
// loop's, also before the loops run.
func (f *File) Import(b *engine.Broker) error {
	if err := f.Check(b); err != nil {
		return err
	}
	return b.Import(func() error { return f.apply(b) })
}

// apply is the import of a file that was checked. Policies come before queues, so that these
// are born with them; limits come last, so that they refuse nothing of the file.
func (f *File) apply(b *engine.Broker) error {
	for i := range f.vhosts {
		v := &f.vhosts[i]
		if err := b.AddVHost(v.name, v.settings); err != nil {
			return placed(v.path, err)
		}
	}
	for i := range f.global {
		p := &f.global[i]
		if err := b.SetGlobalParameter(p.Name, p.Value); err != nil {
			return placed(p.path, err)
		}
	}
	for i := range f.policies {
		if err := b.SetPolicy(f.policies[i].Policy); err != nil {
			return placed(f.policies[i].path, err)
		}
	}
	if err := f.applyObjects(b); err != nil {
		return err
	}
	return f.applyParameters(b)
}

func (f *File) applyObjects(b *engine.Broker) error {
	for i := range f.exchanges {
		x := &f.exchanges[i]
		if err := b.AdminDeclareExchange(x.vhost, x.name, x.kind, x.durable, x.autoDelete, x.internal, x.args); err != nil {
			return placed(x.path, err)
		}
	}
	for i := range f.queues {
		q := &f.queues[i]
		if err := b.AdminDeclareQueue(q.vhost, q.name, q.durable, q.autoDelete, q.args); err != nil {
			return placed(q.path, err)
		}
	}
	for i := range f.bindings {
		n := &f.bindings[i]
		if n.isDefault() {
			continue
		}
		if err := b.AdminBind(n.vhost, n.source, n.destType, n.dest, n.key, n.args); err != nil {
			return placed(n.path, err)
		}
	}
	return nil
}

func (f *File) applyParameters(b *engine.Broker) error {
	for i := range f.parameters {
		p := &f.parameters[i]
		if err := b.SetParameter(p.Component, p.VHost, p.Name, p.Value); err != nil {
			return placed(p.path, err)
		}
	}
	for i := range f.vhosts {
		if v := &f.vhosts[i]; v.limits != nil {
			if err := b.SetVHostLimits(v.name, *v.limits); err != nil {
				return placed(v.path+".limits", err)
			}
		}
	}
	for i := range f.users {
		if err := b.SetUserLimits(f.users[i].name, f.users[i].limits); err != nil {
			return placed(f.users[i].path+".limits", err)
		}
	}
	return nil
}

// String is the file in one line, for a log.
func (c Counts) String() string {
	return fmt.Sprintf("%d virtual hosts, %d policies, %d parameters, %d limits, %d exchanges, %d queues, %d bindings",
		c.VHosts, c.Policies, c.Parameters, c.Limits, c.Exchanges, c.Queues, c.Bindings)
}
