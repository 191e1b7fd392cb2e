package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	bigqueueProducers = 2
	bigqueueWindow    = 2500 // unconfirmed per producer
	residentEvery     = 20 * time.Millisecond
	residentRatioMax  = 1.1
)

// bigqueue: one durable queue takes several times the server's memory limit and
// gives it back, every message once, while the server's memory is watched.
func bigqueue(ctx context.Context, t *target, o *Options) (*Result, error) {
	own := *o
	own.Persistent, own.Confirm = !o.Transient, orDefault(o.Confirm, bigqueueWindow)
	if own.AckEvery == "" && !own.AutoAck {
		own.ackEvery = ackPerRead
	}
	queues := o.queues("bench-bigqueue")
	spec := flowSpec{
		queues: queues, keys: queues, sizes: stampSizes(o.sizes(1024)), stamped: true, durable: true, late: true,
		producers: orDefault(o.Producers, bigqueueProducers), consumers: max(orUnset(o.Consumers, 1), 1),
	}
	n := max(int64(o.Factor*float64(o.MemoryLimit))/int64(spec.sizes[0]), 1)
	if err := needSpace(o.dataDir(), n*int64(spec.sizes[0]+recoveryOverhead)*5/4); err != nil {
		return nil, err
	}
	if err := t.renew(ctx); err != nil {
		return nil, err
	}
	f, err := newFlow(ctx, t, &own, spec)
	if err != nil {
		return nil, err
	}
	defer f.close()
	book := newSoakBook(n, len(f.producers))
	for i, p := range f.producers {
		p.quota, p.stampOf = book.quota(i), book.stamper(i)
	}
	r := &Result{Settings: fmt.Sprintf("%s messages into a server of %d MiB, then out; %s",
		formatNumber(float64(n)), int64(o.MemoryLimit)>>20, describeFlow(&own, spec))}
	watch := watchMemory(t.pid)
	defer watch.end()
	if err := f.bigqueuePhases(ctx, r, watch, book, n); err != nil {
		return nil, err
	}
	f.stop()
	limit := float64(o.MemoryLimit) / 1024
	most := max(r.value("fill resident at most", "MiB"), r.value("drain resident at most", "MiB")) * 1024
	r.addGoal("resident at most / limit", "", most/limit, lowerIsBetter, residentRatioMax)
	return r, book.verdict(n)
}

// bigqueuePhases fills and drains.
func (f *flow) bigqueuePhases(ctx context.Context, r *Result, watch *memoryWatch, book *soakBook, n int64) error {
	phase := func(name string, settled, delivered int64) error {
		before := f.t.usage()
		err := f.fill(ctx, settled, delivered)
		after := f.t.usage()
		most, watchErr := watch.take()
		if err := errors.Join(err, watchErr); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.add(name, "msg/s", float64(n)/after.at.Sub(before.at).Seconds(), higherIsBetter)
		cpu := notAvailable
		if before.serverOK && after.serverOK {
			cpu = float64(after.server.since(before.server).Microseconds()) / float64(n)
		}
		r.add(name+" server CPU", "us/msg", cpu, lowerIsBetter)
		r.add(name+" resident at most", "MiB", float64(most)/1024, lowerIsBetter)
		return nil
	}
	f.start()
	if err := phase("fill", n, 0); err != nil {
		return err
	}
	for i := range f.spec.consumers {
		if err := f.addConsumer(ctx, i); err != nil {
			return err
		}
	}
	for _, k := range f.consumers {
		k.onStamps = book.seen
		f.spawn(k.run)
	}
	return phase("drain", n, n)
}

// memoryWatch looks at a process's resident memory over and over. What rises
// and falls between two looks is in the kernel's own mark, where it can be had.
type memoryWatch struct {
	pid    int
	marked bool // the kernel forgets its mark when asked
	most   atomic.Int64
	failed atomic.Pointer[error]
	quit   chan struct{}
	group  sync.WaitGroup
}

// watchMemory starts to look; the caller calls end.
func watchMemory(pid int) *memoryWatch {
	w := &memoryWatch{pid: pid, quit: make(chan struct{})}
	w.marked = resetPeak(procRoot, pid) == nil
	w.look()
	w.group.Add(1)
	go func() {
		defer w.group.Done()
		ticker := time.NewTicker(residentEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.look()
			case <-w.quit:
				return
			}
		}
	}()
	return w
}

func (w *memoryWatch) look() {
	now, err := residentKiB(procRoot, w.pid)
	if err != nil {
		w.failed.Store(&err)
		return
	}
	for was := w.most.Load(); now > was && !w.most.CompareAndSwap(was, now); was = w.most.Load() {
	}
}

// take returns the most KiB that were resident since the last take.
func (w *memoryWatch) take() (int64, error) {
	w.look()
	if err := w.failed.Load(); err != nil {
		return 0, *err
	}
	most := w.most.Swap(0)
	if w.marked {
		if mark, err := peakKiB(procRoot, w.pid); err == nil {
			most = max(most, mark)
		}
		w.marked = resetPeak(procRoot, w.pid) == nil
	}
	return most, nil
}

func (w *memoryWatch) end() {
	close(w.quit)
	w.group.Wait()
}
