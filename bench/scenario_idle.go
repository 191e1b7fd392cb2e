package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const idleWorkers = 16 // connections opened at once

// idle: what a connection with one channel costs the server in memory while
// it does nothing.
func idle(ctx context.Context, t *target, o *Options) (*Result, error) {
	count := orDefault(o.Connections, 1000)
	r := &Result{Settings: fmt.Sprintf("%d connections with a channel each, from %d source addresses", count, o.Sources)}
	before, beforeErr := residentKiB(procRoot, t.pid)
	start := time.Now()
	conns, err := openMany(ctx, t, count, o.Sources)
	defer closeMany(conns)
	if err != nil {
		return nil, fmt.Errorf("%w (raise the limit of open files if it is that)", err)
	}
	took := time.Since(start)
	if err := pause(ctx, time.Duration(o.Warmup)); err != nil {
		return nil, err
	}
	with, withErr := residentKiB(procRoot, t.pid)
	idleFrom := t.usage()
	if err := pause(ctx, time.Duration(o.Duration)); err != nil {
		return nil, err
	}
	idleTo := t.usage()

	perConn, beforeMiB, withMiB, cpu := notAvailable, notAvailable, notAvailable, notAvailable
	if err := errors.Join(beforeErr, withErr); err == nil {
		perConn = float64(with-before) / float64(count)
		beforeMiB, withMiB = float64(before)/1024, float64(with)/1024
	} else {
		r.note("server memory is n/a: %v", err)
	}
	if idleFrom.serverOK && idleTo.serverOK {
		cpu = idleTo.server.since(idleFrom.server).Seconds() / idleTo.at.Sub(idleFrom.at).Seconds()
	}
	r.add("memory per connection", "KiB", perConn, lowerIsBetter)
	r.add("resident before", "MiB", beforeMiB, neutral)
	r.add("resident with them", "MiB", withMiB, lowerIsBetter)
	r.add("opened", "conn/s", float64(count)/took.Seconds(), higherIsBetter)
	r.add("server CPU while idle", "cores", cpu, lowerIsBetter)
	return r, nil
}

// openMany opens count connections with a channel each; on error it returns
// those already open as well.
func openMany(ctx context.Context, t *target, count, sources int) ([]*conn, error) {
	var (
		next  atomic.Int64
		group sync.WaitGroup
		mu    sync.Mutex // guards conns and fault
		conns []*conn
		fault error
	)
	for range min(idleWorkers, count) {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= count || ctx.Err() != nil {
					return
				}
				c, err := openFrom(ctx, t, i%sources)
				mu.Lock()
				if err != nil {
					fault = errors.Join(fault, fmt.Errorf("connection %d: %w", i+1, err))
					mu.Unlock()
					return
				}
				conns = append(conns, c)
				mu.Unlock()
			}
		}()
	}
	group.Wait()
	return conns, errors.Join(fault, ctx.Err())
}

// openFrom opens a connection from one of the loopback source addresses, which
// only makes sense to a loopback server.
func openFrom(ctx context.Context, t *target, source int) (*conn, error) {
	var local net.IP
	host, _, err := net.SplitHostPort(t.endpoint.addr)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host).To4(); ip != nil && ip.IsLoopback() {
		local = net.IPv4(127, 0, 0, byte(1+source))
	}
	c, err := dial(ctx, t.endpoint, local)
	if err != nil {
		return nil, err
	}
	if err := c.openChannel(1); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// closeMany says good-bye on all connections, several at once.
func closeMany(conns []*conn) {
	var group sync.WaitGroup
	for worker := range idleWorkers {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := worker; i < len(conns); i += idleWorkers {
				_ = conns[i].bye() // the measurement is over
			}
		}()
	}
	group.Wait()
}
