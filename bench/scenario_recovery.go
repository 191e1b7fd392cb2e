package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	recoveryMessages  = 5000000
	recoveryAcked     = 10000000
	recoveryProducers = 4
	recoveryWindow    = 5000 // unconfirmed per producer, and prefetch per consumer
	recoveryOverhead  = 256  // octets per message beside the body, for the space that is needed

	recoveryShareMin = 0.7 // of the disk's sequential read speed
	recoveryAckedMax = 5.0 // s
	ackedSettle      = time.Second
)

// recovery: how long a server takes from its start to its ready line on a
// folder full of confirmed messages, or of acknowledged ones, beside how fast
// the disk gives the same files to somebody who only reads them.
func recovery(ctx context.Context, t *target, o *Options) (*Result, error) {
	own := *o
	own.Persistent, own.Confirm = true, orDefault(o.Confirm, recoveryWindow)
	n := o.messages(recoveryMessages)
	spec := flowSpec{sizes: o.sizes(1024), producers: orDefault(o.Producers, recoveryProducers)}
	spec.queues = o.queues(fmt.Sprintf("bench-recovery-{1..%d}", spec.producers))
	spec.keys = spec.queues
	if o.Acked {
		n = o.messages(recoveryAcked)
		spec.consumers = max(orUnset(o.Consumers, spec.producers), 1)
		own.ackEvery = ackPerRead
		if o.Prefetch < 0 {
			own.Prefetch = recoveryWindow
		}
	}
	if err := needSpace(o.dataDir(), n*int64(spec.sizes[0]+recoveryOverhead)*5/4); err != nil {
		return nil, err
	}
	if err := t.renew(ctx); err != nil {
		return nil, err
	}
	r := &Result{}
	empty := t.server.startedIn
	fill, err := recoveryFill(ctx, t, &own, spec, n)
	if err != nil {
		return nil, err
	}
	var passes []recoveryPass
	for range o.Restarts {
		p, err := recoveryRestart(ctx, t, o, spec.queues)
		if err != nil {
			return nil, err
		}
		if !o.Acked && p.messages != n {
			return nil, fmt.Errorf("%d messages were confirmed, %d are there after the restart", n, p.messages)
		}
		passes = append(passes, p)
	}
	r.Settings = recoverySettings(o, describeFlow(&own, spec), n)
	recoveryReport(r, o, n, int64(spec.sizes[0]), passes)
	r.add("fill", "msg/s", fill, neutral)
	r.add("start with an empty folder", "s", empty.Seconds(), neutral)
	return r, nil
}

func recoverySettings(o *Options, flow string, n int64) string {
	what, how := "confirmed", "kill -9"
	if o.Acked {
		what = "acknowledged"
	}
	if o.CleanStop {
		how = "an orderly stop"
	}
	return fmt.Sprintf("%s messages %s, then %d times %s and start, page cache dropped; %s", formatNumber(float64(n)), what, o.Restarts, how, flow)
}

// recoveryFill publishes n messages, waits for their confirms and, with
// consumers, for their acknowledgement, and returns the rate.
func recoveryFill(ctx context.Context, t *target, o *Options, spec flowSpec, n int64) (perSecond float64, err error) {
	f, err := newFlow(ctx, t, o, spec)
	if err != nil {
		return 0, err
	}
	defer f.close()
	f.keep = true
	for i, p := range f.producers {
		p.quota = quota(n, i, len(f.producers))
	}
	start := time.Now()
	f.start()
	delivered := int64(0)
	if len(f.consumers) > 0 {
		delivered = n
	}
	if err := f.fill(ctx, n, delivered); err != nil {
		return 0, err
	}
	perSecond = float64(n) / time.Since(start).Seconds()
	f.stop()
	if delivered > 0 {
		// Nothing tells a client that its acknowledgements are on the disk.
		err = pause(ctx, max(ackedSettle, time.Duration(o.Settle)))
	}
	return perSecond, err
}

// fill waits for a fill to end, without losses.
func (f *flow) fill(ctx context.Context, settled, delivered int64) error {
	done, err := f.await(ctx, settled, delivered)
	switch {
	case err != nil:
		return err
	case !done:
		words := ""
		if f.t.server != nil {
			words = "; the server's last words: " + f.t.server.output.tail()
		}
		return fmt.Errorf("nothing moved for %v: %d of %d confirmed, %d of %d delivered%s",
			stallLimit, f.confirmed(), settled, f.delivered(), delivered, words)
	case f.nacked() > 0:
		return fmt.Errorf("the broker refused %d of %d messages", f.nacked(), settled)
	}
	return nil
}

// quota is the share of one of count producers in total.
func quota(total int64, i, count int) int64 {
	share := total / int64(count)
	if int64(i) < total%int64(count) {
		share++
	}
	return share
}

// recoveryPass is one restart.
type recoveryPass struct {
	disk     readPass
	took     time.Duration
	messages int64 // in the queues after it
	cpu      time.Duration
	resident int64 // KiB, after it
	peak     int64 // KiB, during it
}

// recoveryRestart ends the server, reads its files from the disk, and starts it
// on them, both times with a cold cache.
func recoveryRestart(ctx context.Context, t *target, o *Options, queues []string) (p recoveryPass, err error) {
	s := t.server
	end := s.kill
	if o.CleanStop {
		end = s.stop
	}
	if err := errors.Join(end(), dropCache(s.data)); err != nil {
		return p, err
	}
	if p.disk, err = readFastest(ctx, s.data); err != nil {
		return p, err
	}
	if err := dropCache(s.data); err != nil {
		return p, err
	}
	if err := t.start(ctx, recoveryLimit); err != nil {
		return p, err
	}
	p.took = s.startedIn
	times, err1 := readProcTimes(procRoot, s.pid())
	peak, err2 := peakKiB(procRoot, s.pid())
	resident, err3 := residentKiB(procRoot, s.pid())
	if err := errors.Join(err1, err2, err3); err != nil {
		return p, err
	}
	p.cpu, p.peak, p.resident = times.stat, peak, resident
	c, err := t.open(ctx)
	if err != nil {
		return p, err
	}
	for _, q := range queues {
		count, err := c.countQueue(q)
		if err != nil {
			c.close()
			return p, fmt.Errorf("after the restart: %w", err)
		}
		p.messages += count
	}
	return p, c.bye()
}

// recoveryReport puts the medians of the restarts into r.
func recoveryReport(r *Result, o *Options, n, size int64, passes []recoveryPass) {
	of := func(value func(recoveryPass) float64) float64 {
		var values []float64
		for _, p := range passes {
			values = append(values, value(p))
		}
		return median(values)
	}
	const mega = 1e6
	took := of(func(p recoveryPass) float64 { return p.took.Seconds() })
	used := of(func(p recoveryPass) float64 { return float64(p.disk.used) })
	disk := of(func(p recoveryPass) float64 { return p.disk.perSecond() })
	if o.Acked {
		r.addGoal("ready after", "s", took, lowerIsBetter, recoveryAckedMax)
	} else {
		r.add("ready after", "s", took, lowerIsBetter)
	}
	r.add("files without zero blocks", "MB", used/mega, neutral)
	r.add("files read by a bare reader", "MB/s", disk/mega, neutral)
	if o.Acked {
		// A rate would say nothing here: most of what is there need not be read.
		r.add("came back", "msg", of(func(p recoveryPass) float64 { return float64(p.messages) }), neutral)
	} else {
		r.add("files read by recovery", "MB/s", used/took/mega, higherIsBetter)
		r.addGoal("recovery / bare reader", "", used/took/disk, higherIsBetter, recoveryShareMin)
		r.add("bodies recovered", "MB/s", float64(n*size)/took/mega, higherIsBetter)
		r.add("messages recovered", "msg/s", float64(n)/took, higherIsBetter)
	}
	r.add("server CPU", "s", of(func(p recoveryPass) float64 { return p.cpu.Seconds() }), lowerIsBetter)
	r.add("resident after", "MiB", of(func(p recoveryPass) float64 { return float64(p.resident) / 1024 }), lowerIsBetter)
	r.add("resident at most", "MiB", of(func(p recoveryPass) float64 { return float64(p.peak) / 1024 }), lowerIsBetter)
}

// dataDir is the folder that servers and disk loops get theirs in.
func (o *Options) dataDir() string {
	if o.DataDir != "" {
		return o.DataDir
	}
	return os.TempDir()
}
