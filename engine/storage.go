package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"ringmq/engine/queue"
)

// StorageOptions say where and how messages are kept.
type StorageOptions struct {
	Dir          string        // folder of the logs, one subfolder for each loop
	Sync         string        // "always", "interval", "off"
	SyncInterval time.Duration // of Sync "interval"
	SegmentSize  int64         // bytes, 0 = default
	Compress     string        // "none" or "", "s2", "zstd"
	Log          *slog.Logger
	// Progress is told while the logs are read; any goroutine. May be nil.
	Progress func(loop int, doneBytes, totalBytes int64)
	// Fatal is called once when a log has failed: nothing is confirmed any more,
	// and the process must end at once. Any goroutine. It must not return.
	Fatal func(error)

	syncEvery time.Duration // of Sync "interval", 0 otherwise
	hooks     storageHooks  // for tests
}

// StorageReport is what recovery found.
type StorageReport struct {
	Messages uint64
	Bytes    int64    // of log that was read
	Cut      []string // torn tails, as a crash leaves them
}

// StorageStats are one log's figures.
type StorageStats struct {
	Loop                               int
	Sync                               string
	Space                              string // why persistent messages are refused, "" when they are not
	DiskBytes, LiveBytes               int64
	LiveCount                          int64
	Segments, Ready                    int
	Records, RecordBytes, WrittenBytes uint64
	Groups, Syncs, Checkpoints         uint64
	Recycled, Removed, Moved           uint64
	SyncTimeSum, SyncTimeMax, InFlight time.Duration
	Backlog                            int64
	PagedIn, Absent                    uint64 // bodies read back; ready messages whose body is on the disk only
	Unstored, Lost                     uint64 // messages refused for want of room; bodies that could not be read back
}

// OpenStorage opens the logs and brings back what they hold. It is called after
// Restore and before the loops run; Prepare was called for every shard.
func (b *Broker) OpenStorage(o StorageOptions) (StorageReport, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sync == "interval" {
		o.syncEvery = o.SyncInterval
	}
	b.storage = &o
	own, old := b.durableQueues()
	reports := make([]*walReport, len(b.Shards))
	errs := make([]error, len(b.Shards))
	messages := make([]uint64, len(b.Shards))
	var wg sync.WaitGroup
	for i, s := range b.Shards {
		wg.Go(func() { reports[i], messages[i], errs[i] = s.openStore(&o, own[i]) })
	}
	wg.Wait()
	var out StorageReport
	if err := errors.Join(errs...); err != nil {
		return out, err
	}
	for i := range reports {
		out.add(reports[i], messages[i])
	}
	err := b.adoptLogs(&o, old, &out)
	return out, err
}

func (r *StorageReport) add(w *walReport, messages uint64) {
	r.Messages += messages
	r.Bytes += w.Bytes
	if w.Cut != nil {
		r.Cut = append(r.Cut, w.Cut.String())
	}
}

// durableQueues lists the durable queues by the log that holds their messages:
// own by shard, old by the number of a loop that is no more.
func (b *Broker) durableQueues() (own []map[uint64]*queue.Queue, old map[int]map[uint64]*queue.Queue) {
	for range b.Shards {
		own = append(own, map[uint64]*queue.Queue{})
	}
	old = map[int]map[uint64]*queue.Queue{}
	b.VHosts(func(v *VHost) {
		v.kept(func(q *queue.Queue) {
			switch {
			case !q.Settings.Durable:
			case q.WasShard < 0:
				own[q.Shard][q.ID] = q
			default:
				if old[q.WasShard] == nil {
					old[q.WasShard] = map[uint64]*queue.Queue{}
				}
				old[q.WasShard][q.ID] = q
			}
		})
	})
	return own, old
}

func newStore(s *Shard, o *StorageOptions, loop int) *store {
	return &store{shard: s, opts: o, dev: newLogDevice(o, loop),
		queues: map[uint64]*queue.Queue{}, dying: map[dyingKey]struct{}{}}
}

// openStore opens the shard's log and fills its queues.
func (s *Shard) openStore(o *StorageOptions, queues map[uint64]*queue.Queue) (*walReport, uint64, error) {
	st := newStore(s, o, s.Index)
	var rec *recovery
	l, report, err := openLog(o, s.Index, st.dev, st, func(l *walLog) walRecoverer {
		rec = newRecovery(st, l, queues)
		return rec
	})
	if err != nil {
		st.dev.stop()
		return report, 0, err
	}
	st.wal = l
	s.store = st
	for _, q := range queues {
		q.SetStore(st)
		st.know(q)
	}
	rec.end()
	if err := l.Space(); err != nil {
		st.noSpace.Store(true)
		o.logNoSegment(s.Index, err)
	}
	return report, rec.messages, nil
}

// adoptLogs takes over the logs of loops that are no more: their messages are
// written to the logs of the shards that the queues belong to now.
func (b *Broker) adoptLogs(o *StorageOptions, old map[int]map[uint64]*queue.Queue, out *StorageReport) error {
	loops, err := o.loops()
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	for _, n := range loops {
		if n < len(b.Shards) {
			continue
		}
		if err := b.adoptLog(o, n, old[n], out); err != nil {
			return err
		}
		delete(old, n)
	}
	// Queues of a loop whose log is gone had nothing in it.
	for _, queues := range old {
		if err := b.adopted(queues); err != nil {
			return err
		}
	}
	return nil
}

// loops lists the numbers of the loops that have a log.
func (o *StorageOptions) loops() (list []int, err error) {
	if o.hooks.loops != nil {
		return o.hooks.loops(), nil
	}
	entries, err := os.ReadDir(o.Dir)
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() && len(e.Name()) == 3 {
			list = append(list, n)
		}
	}
	return list, err
}

// remove deletes the log of a loop.
func (o *StorageOptions) remove(loop int) error {
	if o.hooks.remove != nil {
		o.hooks.remove(loop)
		return nil
	}
	if err := os.RemoveAll(logFolder(o.Dir, loop)); err != nil {
		return err
	}
	return syncFolder(o.Dir)
}

func (b *Broker) adoptLog(o *StorageOptions, loop int, queues map[uint64]*queue.Queue, out *StorageReport) error {
	st := newStore(b.Shards[0], o, loop)
	var rec *recovery
	l, report, err := openLog(o, loop, st.dev, st, func(l *walLog) walRecoverer {
		rec = newRecovery(st, l, queues)
		rec.broker = b
		return rec
	})
	if err != nil {
		st.dev.stop()
		return err
	}
	for _, q := range queues {
		if upTo := q.LeaseMark(); upTo > 0 {
			b.Shards[q.Shard].store.Lease(q, upTo)
		}
	}
	for k, n := range rec.deliveries {
		q := queues[k.queue]
		b.Shards[q.Shard].store.Requeued(q, k.seq, n)
	}
	for _, s := range b.Shards {
		s.store.settleEarly()
	}
	if err := b.adopted(queues); err != nil {
		return err
	}
	rec.end()
	out.add(report, rec.messages)
	st.dev.stop()
	l.Free()
	if err := o.remove(loop); err != nil {
		return fmt.Errorf("log of loop %d, which is no more: %w", loop, err)
	}
	return nil
}

// adopted records the new places of queues and waits until that is durable.
func (b *Broker) adopted(queues map[uint64]*queue.Queue) error {
	for _, q := range queues {
		st := b.Shards[q.Shard].store
		q.WasShard = -1
		q.SetStore(st)
		st.know(q)
		b.Reassigned(q)
	}
	d := b.catalog.store
	if d == nil {
		return nil
	}
	done := make(chan error, 1)
	d.Notify(b.catalog.last.Load(), func(err error) { done <- err })
	return <-done
}

// settleEarly writes out what was appended before the loops run.
func (st *store) settleEarly() {
	for len(st.owed) > 0 || st.wal.End() > st.wal.Synced() {
		st.pay()
		st.wal.Flush() // it may append, so what is asked of Sync grows
		st.wal.Sync()
		st.dev.pump(true)
	}
}

func syncFolder(dir string) error {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// startStore begins the log's work on the loop.
func (s *Shard) startStore() {
	if s.store != nil {
		s.store.dev.bind(s.env.disk())
		s.store.start()
	}
}

// quietMax bounds how long an orderly stop waits for dead letters and for publishes
// that the log had no room for. What is on its way after that comes back in its old
// place, or was never confirmed.
const quietMax = time.Second

// CloseStorage writes everything out and closes the logs, while the loops run.
// Clients are gone by then. What they said last may still be in a mailbox between
// two loops, and a dead letter between two logs: both arrive before any log closes.
func (b *Broker) CloseStorage(ctx context.Context) error {
	for _, step := range closeSteps {
		if err := b.onStores(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// closeSteps are what each shard does, and all of them before the next begins. The
// barrier comes twice: what one shard is told may come back to another.
var closeSteps = []func(s *Shard, done func(error)){
	func(s *Shard, done func(error)) { s.barrier(func() { done(nil) }) },
	func(s *Shard, done func(error)) { s.barrier(func() { done(nil) }) },
	func(s *Shard, done func(error)) { s.store.whenQuiet(func() { done(nil) }) },
	func(s *Shard, done func(error)) { s.store.close(done) },
}

// onStores runs a step on each shard with a log and waits for all.
func (b *Broker) onStores(ctx context.Context, step func(s *Shard, done func(error))) error {
	results := make(chan error, len(b.Shards))
	left := 0
	for _, s := range b.Shards {
		if s.store != nil && s.env.post(func() {
			s.refresh()
			step(s, func(err error) { results <- err })
		}) {
			left++
		}
	}
	var errs []error
	for ; left > 0; left-- {
		select {
		case err := <-results:
			errs = append(errs, err)
		case <-ctx.Done():
			return errors.Join(append(errs, fmt.Errorf("closing the logs: %w", ctx.Err()))...)
		}
	}
	return errors.Join(errs...)
}

// barrier calls done here when every shard has carried out what this one told it
// before.
func (s *Shard) barrier(done func()) {
	left := len(s.Broker.Shards)
	for i := range s.Broker.Shards {
		s.On(i, func(*Shard) {}, func() {
			if left--; left == 0 {
				done()
			}
		})
	}
}

// whenQuiet calls fn when no publish waits for room and no dead letter is on its
// way, or quietMax from now.
func (st *store) whenQuiet(fn func()) {
	st.quiet, st.quietBy = fn, st.shard.now+int64(quietMax)
	st.keepLater(closeEvery)
}

// lookQuiet is the look whether it is so.
func (st *store) lookQuiet() {
	fn := st.quiet
	if fn == nil {
		return
	}
	if len(st.parked)+len(st.shard.deaths)+len(st.dying) == 0 || st.shard.now >= st.quietBy {
		st.quiet = nil
		fn()
	}
}

// close begins the log's end: a last checkpoint, which may need several turns
// because the one before is not safe yet, and then the log's own.
func (st *store) close(done func(error)) {
	if st.closing != nil {
		done(nil)
		return
	}
	st.closing = done
	st.shard.runDeaths()
	for _, q := range st.queues {
		q.Freeze()
	}
	st.closeTurn()
}

// closeTurn goes on with it. A log that has failed, or has no room, ends without
// that checkpoint: the next start reads more, and takes more for delivered.
func (st *store) closeTurn() {
	w := &st.checkpoint
	if !w.open || !w.clean {
		st.beginCheckpoint(true)
	}
	for st.stepCheckpoint() {
	}
	if w.cleanEnd || st.wal.Err() != nil || st.wal.Space() != nil {
		st.closed = true
		st.wal.Close(st.closing)
	}
}

// FreeStorage gives the logs' memory back after the loops have ended.
func (b *Broker) FreeStorage() {
	for _, s := range b.Shards {
		if s.store != nil {
			s.store.dev.stop()
			s.store.wal.Free()
		}
	}
}

// StorageStats lists the figures of the logs, in the order of the loops. It asks
// the loops: any goroutine but theirs. Empty when nothing is stored or the loops
// have ended.
func (b *Broker) StorageStats() []StorageStats {
	out := make([]StorageStats, 0, len(b.Shards))
	for i, s := range b.Shards {
		if s.store == nil {
			continue
		}
		got := make(chan StorageStats, 1)
		if !s.env.post(func() { got <- s.storageStats(i) }) {
			return nil
		}
		out = append(out, <-got)
	}
	return out
}

func (s *Shard) storageStats(loop int) StorageStats {
	st := StorageStats{Loop: loop, PagedIn: s.store.paged.in, Unstored: s.Stats.Unstored, Lost: s.Stats.Lost,
		Absent: uint64(s.store.absent)}
	logStats(s.store.wal, &st)
	return st
}

// SetMemoryBudget says how many bytes of messages all shards together may hold
// in memory before bodies leave it; 0 = no bound. Any goroutine.
func (b *Broker) SetMemoryBudget(bytes int64) {
	b.budget.Store(bytes)
	for i, s := range b.Shards {
		if s.env.loop != nil && s.holds.Load() > bytes/int64(len(b.Shards)) {
			s.env.wake(i) // it may sleep, and has something to do
		}
	}
}

// overBudget is how many bytes the shard should let go of, and how many it may
// hold.
func (s *Shard) overBudget() (over, share int64) {
	budget := s.Broker.budget.Load()
	held := s.held()
	s.holds.Store(held)
	share = budget / int64(len(s.Broker.Shards))
	if budget == 0 || held <= share {
		return 0, share
	}
	total := int64(0)
	for _, peer := range s.Broker.Shards {
		total += peer.holds.Load()
	}
	return min(held-share, total-budget), share
}
