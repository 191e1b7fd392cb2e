package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"ringmq/engine/queue"
)

// The functions in the files admin*.go are what an operator asks for: policies,
// virtual hosts, limits, parameters, and definitions from a file. They may be called
// on any goroutine but a loop's, also before the loops run, and return when the
// change is in force on every loop and durable in the catalog. Their errors are for
// the operator to read.

// admin is the state of all that.
type admin struct {
	// mu makes it one change at a time, so that what one began on the loops is not
	// overtaken by the next. It is taken before a vhost's lock.
	mu        sync.Mutex
	importing atomic.Int32
	users     sync.Map // name -> *user

	paramMu sync.Mutex // guards params; taken last
	params  map[parameterID]json.RawMessage

	goneHooks []func(*VHost)
}

var (
	errNoSuchVHost = errors.New("no such virtual host")
	errStopping    = errors.New("the broker is stopping")
)

// adminVHost finds the vhost that an operator names.
func (b *Broker) adminVHost(name string) (*VHost, error) {
	if v := b.VHost(name); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("virtual host '%s': %w", name, errNoSuchVHost)
}

// IsNoSuchVHost reports an error that says that there is no vhost of the name.
func IsNoSuchVHost(err error) bool { return errors.Is(err, errNoSuchVHost) }

// ErrNoSuchObject marks the errors that say that what is to be cleared is not there.
var ErrNoSuchObject = errors.New("not found")

// Import runs f, which makes many changes by the functions of an operator, and waits
// for the disk once, at its end, instead of once for each. It returns the error of f,
// or else that of the disk. What f did stays, whatever it returns.
func (b *Broker) Import(f func() error) error {
	b.admin.importing.Add(1)
	err := f()
	b.admin.importing.Add(-1)
	if settled := b.settled(); err == nil {
		err = settled
	}
	return err
}

// settled waits until all of the catalog so far is durable.
func (b *Broker) settled() error {
	c := &b.catalog
	if c.store == nil || b.admin.importing.Load() > 0 {
		return nil
	}
	last := c.last.Load()
	if c.store.Durable() >= last {
		return nil
	}
	done := make(chan error, 1)
	c.store.Notify(last, func(err error) { done <- err })
	if err := <-done; err != nil {
		return fmt.Errorf("the change is in force, but it could not be written to the disk: %w", err)
	}
	return nil
}

// adminBatch is how many queues a loop is asked to change in one go, so that its
// connections get their turn in between.
const adminBatch = 128

// onQueues calls f for each queue on the loop that owns it, batch by batch, all loops
// at the same time, and waits for them.
func (b *Broker) onQueues(queues []*queue.Queue, f func(*Shard, *queue.Queue)) error {
	byShard := make([][]*queue.Queue, len(b.Shards))
	for _, q := range queues {
		byShard[q.Shard] = append(byShard[q.Shard], q)
	}
	var wg sync.WaitGroup
	var stopped atomic.Bool
	for i, list := range byShard {
		if len(list) == 0 {
			continue
		}
		wg.Go(func() {
			if !b.Shards[i].inBatches(list, f) {
				stopped.Store(true)
			}
		})
	}
	wg.Wait()
	if stopped.Load() {
		return errStopping
	}
	return nil
}

// inBatches is the part of one loop. It reports false when the loop has stopped.
func (s *Shard) inBatches(list []*queue.Queue, f func(*Shard, *queue.Queue)) bool {
	done := make(chan struct{}, 1)
	for len(list) > 0 {
		batch := list[:min(adminBatch, len(list))]
		list = list[len(batch):]
		ok := s.env.post(func() {
			s.refresh()
			for _, q := range batch {
				f(s, q)
			}
			done <- struct{}{}
		})
		if !ok {
			return false
		}
		<-done
	}
	return true
}
