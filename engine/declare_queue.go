package engine

import (
	"strings"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// DeclareQueue makes a queue or finds the one there is, after checking that it
// is equal and open to owner (spec A.5). owner identifies the connection. near
// is the shard of the caller, which is where a new queue prefers to live. name
// is not empty: the session makes up names of server-named queues and says so
// with generated, which lifts the ban on the reserved prefix.
func (v *VHost) DeclareQueue(name string, s queue.Settings, owner any, near *Shard, generated bool) (*queue.Queue, *core.Error) {
	return v.declareQueue(name, s, owner, near, near.now, generated)
}

// declareQueue is DeclareQueue for whoever is on no loop: now is the loops' time.
func (v *VHost) declareQueue(name string, s queue.Settings, owner any, near *Shard, now int64, generated bool) (*queue.Queue, *core.Error) {
	asked := s.Args
	v.applyDefaultType(&s, generated)
	if t := typeNamed(asked[argQueueType].Str); generated && t != queue.Classic {
		return nil, core.Refuse(core.PreconditionFailed, "Cannot declare a server-named queue for type rabbit_%s_queue", t)
	}
	if err := parseQueueArgs(v, name, &s); err != nil {
		return nil, err
	}
	if s.Exclusive {
		s.Durable = false // QUE-06
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if q, ok := v.queues.Load().Get(name); ok {
		if err := v.sameQueue(q, s, asked, owner); err != nil {
			return nil, err
		}
		return q, nil
	}
	if strings.HasPrefix(name, "amq.") && !generated {
		return nil, core.Refuse(core.AccessRefused, "queue name '%s' contains reserved prefix 'amq.*'", name)
	}
	if err := v.isGone(); err != nil {
		return nil, err
	}
	if err := v.overQueues(name); err != nil {
		return nil, err
	}
	shard := v.broker.placeQueue(near)
	q := queue.New(name, v.broker.newQueueID(s.Durable), shard.Index, s)
	if s.Exclusive {
		q.Owner = owner
	}
	q.StartRules(v.rulesOf(q))
	// Before anybody can find the queue: whoever publishes to it must know
	// which change of the catalog its messages depend on.
	v.noteQueue(q)
	q.DefSeq = v.record()
	v.addQueue(q, shard, now)
	return q, nil
}

// FindQueue is the queue that a command names, after the exclusivity check
// (QUE-05).
func (v *VHost) FindQueue(name []byte, owner any) (*queue.Queue, *core.Error) {
	q := v.Queue(name)
	if q == nil {
		return nil, v.NoQueue(string(name))
	}
	if err := v.locked(q, owner); err != nil {
		return nil, err
	}
	return q, nil
}

func (v *VHost) locked(q *queue.Queue, owner any) *core.Error {
	if q.Owner == nil || q.Owner == owner {
		return nil
	}
	return v.lockedError(q.Name)
}

func (v *VHost) lockedError(name string) *core.Error {
	return core.Refuse(core.ResourceLocked, "cannot obtain exclusive access to locked queue '%s' in vhost '%s'. "+
		"It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.",
		name, v.Name)
}

// sameQueue compares a declare with the queue there is. asked are the arguments of the
// client alone.
func (v *VHost) sameQueue(q *queue.Queue, s queue.Settings, asked core.Args, owner any) *core.Error {
	if err := v.locked(q, owner); err != nil {
		return err
	}
	has := &q.Settings
	what := "queue '" + q.Name + "' in vhost '" + v.Name + "'"
	if s.Exclusive != has.Exclusive {
		return v.lockedError(q.Name)
	}
	if s.Durable != has.Durable && !has.Exclusive {
		return inequivalent("durable", what, quoteBool(s.Durable), quoteBool(has.Durable))
	}
	if s.AutoDelete != has.AutoDelete {
		return inequivalent("auto_delete", what, quoteBool(s.AutoDelete), quoteBool(has.AutoDelete))
	}
	for i := range queueArguments {
		a := &queueArguments[i]
		if a.name == argQueueType && sameType(&s, has, asked) {
			continue
		}
		if err := sameArg(a.name, what, asked, has.Args); err != nil {
			return err
		}
	}
	return nil
}

// sameType compares queue types, where absent means the vhost's default (TYP-01). A
// default that came later does not shut out who declares a classic queue as ever.
func sameType(s, has *queue.Settings, asked core.Args) bool {
	_, named := asked[argQueueType]
	return s.Type == has.Type || !named && has.Type == queue.Classic
}

// removeQueue takes a queue out of the catalog with its bindings. It reports
// false when it was not there any more.
func (v *VHost) removeQueue(q *queue.Queue) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if cur, ok := v.queues.Load().Get(q.Name); !ok || cur != q {
		return false
	}
	v.remove(func() {
		qs := v.queues.Load().Delete(q.Name)
		v.queues.Store(&qs)
		v.epoch.Add(1)
		v.noteQueueGone(q)
		for b := range v.incoming[q] {
			v.unbind(b)
		}
	})
	v.broker.queueGone(q)
	return true
}
