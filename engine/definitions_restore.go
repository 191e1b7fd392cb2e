package engine

import (
	"fmt"
	"strconv"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// Restore brings back what the durable catalog holds and records changes there
// from now on. It is called once, before the loops run. An error names the
// definition that cannot be restored; the broker is of no use then.
func (b *Broker) Restore(d Definitions) error {
	r := restoring{b: b}
	if err := d.Load(r.load); err != nil {
		return err
	}
	if err := r.objects(); err != nil {
		return err
	}
	for i := range r.bindings {
		if err := r.bind(&r.bindings[i]); err != nil {
			return err
		}
	}
	if err := r.holders(); err != nil {
		return err
	}
	b.catalog.queueIDs.Store(max(r.lastID, b.catalog.queueIDs.Load()))
	b.catalog.store = d
	b.VHosts(func(v *VHost) {
		if r.vhosts[v.Name] {
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.noteVHost()
		v.record()
	})
	return nil
}

// restoring is the state of one Restore. Bindings wait for both their ends, queues for
// the policies that apply to them.
type restoring struct {
	b        *Broker
	queues   []waitingQueue
	bindings []bindingRecord
	vhosts   map[string]bool // that the catalog knows
	lastID   uint64
}

func (r *restoring) load(kind ChangeKind, key, value []byte) error {
	err := r.one(kind, key, value)
	if err != nil {
		err = notRestored(string(key), err)
	}
	return err
}

func (r *restoring) one(kind ChangeKind, key, value []byte) error {
	switch kind {
	case KindVHost:
		return r.vhost(value)
	case KindExchange:
		return r.exchange(value)
	case KindQueue:
		var rec queueRecord
		if err := readRecord(value, &rec); err != nil {
			return err
		}
		r.queues = append(r.queues, waitingQueue{string(key), rec})
		return nil
	case KindBinding:
		var rec bindingRecord
		if err := readRecord(value, &rec); err != nil {
			return err
		}
		r.bindings = append(r.bindings, rec)
		return nil
	case KindMeta:
		if string(key) != metaQueueIDs {
			return fmt.Errorf("not known to this version")
		}
		last, err := strconv.ParseUint(string(value), 10, 64)
		r.lastID = max(r.lastID, last)
		return err
	}
	return r.asked(kind, value)
}

// asked restores what operators asked for.
func (r *restoring) asked(kind ChangeKind, value []byte) error {
	switch kind {
	case KindPolicy:
		return r.restorePolicy(value)
	case KindLimits:
		return r.restoreLimits(value)
	case KindParameter:
		return r.restoreParameter(value)
	}
	return fmt.Errorf("unknown kind %d", kind)
}

// waitingQueue is a definition of a queue and its key.
type waitingQueue struct {
	key string
	rec queueRecord
}

// objects brings exchanges in line with the policies and restores the queues.
func (r *restoring) objects() error {
	r.b.VHosts(func(v *VHost) {
		v.Exchanges(func(x *Exchange) { v.setAlternate(x) })
	})
	for i := range r.queues {
		if err := r.queue(&r.queues[i].rec); err != nil {
			return notRestored(r.queues[i].key, err)
		}
	}
	return nil
}

func notRestored(key string, err error) error {
	return fmt.Errorf("definition %s cannot be restored: %w", key, err)
}

func (r *restoring) vhost(value []byte) error {
	var rec vhostRecord
	if err := readRecord(value, &rec); err != nil {
		return err
	}
	name := string(rec.Name)
	if r.vhosts == nil {
		r.vhosts = map[string]bool{}
	}
	r.vhosts[name] = true
	v := r.b.VHost(name)
	if v == nil {
		v = newVHost(r.b, name)
		r.b.vhosts.Store(name, v)
	}
	s := VHostSettings{Description: string(rec.Description), DefaultQueueType: rec.DefaultType, Tracing: rec.Tracing}
	for _, tag := range rec.Tags {
		s.Tags = append(s.Tags, string(tag))
	}
	v.settings.Store(&s)
	return s.check()
}

func (r *restoring) space(name jsonText) (*VHost, error) {
	if v := r.b.VHost(string(name)); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("there is no vhost '%s'", name)
}

func (r *restoring) exchange(value []byte) error {
	var rec exchangeRecord
	if err := readRecord(value, &rec); err != nil {
		return err
	}
	v, err := r.space(rec.VHost)
	if err != nil {
		return err
	}
	args, err := readArgs(rec.Args)
	if err != nil {
		return err
	}
	s := ExchangeSettings{Durable: true, AutoDelete: rec.AutoDelete, Internal: rec.Internal, Args: args}
	name := string(rec.Name)
	if refused := v.parseExchange(name, rec.Kind, &s); refused != nil {
		return refused
	}
	if v.Exchange([]byte(name)) != nil {
		return fmt.Errorf("exchange '%s' in vhost '%s' is there already", name, v.Name)
	}
	v.addExchange(newExchange(name, s))
	return nil
}

func (r *restoring) queue(rec *queueRecord) error {
	v, err := r.space(rec.VHost)
	if err != nil {
		return err
	}
	args, err := readArgs(rec.Args)
	if err != nil {
		return err
	}
	name := string(rec.Name)
	var holder *Exchange
	if rec.Holds {
		if holder, err = r.holder(v, name); err != nil {
			return err
		}
	}
	s := queue.Settings{Durable: true, AutoDelete: rec.AutoDelete, Args: args}
	if rec.Holds {
		s = heldSettings(true)
	} else if refused := parseQueueArgs(v, name, &s); refused != nil {
		return refused
	}
	switch {
	case !rec.Holds && v.Queue([]byte(name)) != nil:
		return fmt.Errorf("queue '%s' in vhost '%s' is there already", name, v.Name)
	case rec.ID == 0 || rec.ID >= transientID || rec.Shard < 0:
		return fmt.Errorf("queue '%s' in vhost '%s' has id %d and loop %d", name, v.Name, rec.ID, rec.Shard)
	}
	r.lastID = max(r.lastID, rec.ID)
	shard, was := rec.Shard, -1
	if loops := len(r.b.Shards); shard >= loops {
		// Fewer loops than before: by id, so that they spread.
		shard, was = int(rec.ID%uint64(loops)), rec.Shard
	}
	q := queue.New(name, rec.ID, shard, s)
	q.WasShard = was
	r.b.queuesOn[shard].Add(1)
	if rec.Holds {
		v.attachHeld(holder, q)
		return nil
	}
	q.StartRules(v.rulesOf(q))
	v.addQueue(q, r.b.Shards[shard], 0)
	return nil
}

func (r *restoring) bind(rec *bindingRecord) error {
	err := r.bindOne(rec)
	if err != nil {
		err = fmt.Errorf("the binding of exchange '%s' to %s '%s' with key '%s' in vhost '%s' cannot be restored: %w",
			rec.Source, rec.DestKind, rec.Dest, rec.Key, rec.VHost, err)
	}
	return err
}

func (r *restoring) bindOne(rec *bindingRecord) error {
	v, err := r.space(rec.VHost)
	if err != nil {
		return err
	}
	args, err := readArgs(rec.Args)
	if err != nil {
		return err
	}
	source := v.Exchange([]byte(rec.Source))
	if source == nil {
		return v.NoExchange(string(rec.Source))
	}
	var dest exchange.Dest
	var missing *core.Error
	switch rec.DestKind {
	case destQueue:
		if q := v.Queue([]byte(rec.Dest)); q != nil {
			dest = q
		} else {
			missing = v.NoQueue(string(rec.Dest))
		}
	case destExchange:
		if x := v.Exchange([]byte(rec.Dest)); x != nil {
			dest = x
		} else {
			missing = v.NoExchange(string(rec.Dest))
		}
	default:
		return fmt.Errorf("it leads to a '%s'", rec.DestKind)
	}
	if missing == nil {
		missing = v.Bind(source, dest, string(rec.Key), args)
	}
	if missing != nil {
		return missing
	}
	return nil
}
