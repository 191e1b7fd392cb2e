package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ringmq/admin"
	"ringmq/admin/definitions"
	"ringmq/engine/defs"
	"ringmq/engine/session091"
	"ringmq/ring"
)

const (
	// busyRetryMax covers a predecessor that has exited while the kernel still tears down its
	// ring and with it the listening socket.
	busyRetryMax   = time.Second
	busyRetryEvery = 50 * time.Millisecond

	userDefault = "guest" // the only user until accounts land
)

// phase is where the broker is in its life. The order matters.
type phase int32

const (
	phaseStarting phase = iota // the loops do not run: nothing may be asked of them
	phaseRunning
	phaseDraining
)

// broker is the running process: what was opened, in the order in which it is opened.
type broker struct {
	o        *serveOptions
	log      *slog.Logger
	flushLog func() // writes out what was logged
	exit     func(code int)
	notify   notifier
	started  time.Time
	phase    atomic.Int32 // of phase

	dataPath    string // absolute
	lock        *dataLock
	control     *admin.Server // nil when its socket could not be made
	server      *session091.Server
	group       *ring.Group
	http        *admin.Server
	httpBind    net.Listener // nil when off
	definitions *defs.Store
	watch       *watcher
	amqp        []netip.AddrPort

	failed sync.Once // storageFailed
}

// surroundings are what a broker gets from the command besides its settings.
type surroundings struct {
	log      *slog.Logger
	flushLog func()
	notify   notifier
	imports  *definitions.File // of --load-definitions, nil without
}

// startBroker opens everything that serving needs. On an error nothing stays open, and the
// error is the line that the operator reads.
func startBroker(o *serveOptions, with surroundings) (*broker, error) {
	b := &broker{o: o, log: with.log, flushLog: with.flushLog, exit: os.Exit, notify: with.notify, started: time.Now()}
	if err := b.openData(); err != nil {
		return nil, err
	}
	if err := b.open(with.imports); err != nil {
		b.abandon()
		return nil, err
	}
	return b, nil
}

// open does what follows the lock of the data folder.
func (b *broker) open(imports *definitions.File) error {
	files := raiseFileLimit()
	lim, err := b.limits(b.o)
	if err != nil {
		return err
	}
	if err := b.openLoops(); err != nil {
		return err
	}
	if err := b.openHTTP(); err != nil {
		return err
	}
	if err := b.tryAMQP(); err != nil {
		return err
	}
	// Only now: an operator whose port is busy should read of that alone.
	files.report(b.log)
	b.openControl()
	b.serveHTTP()
	if err := b.openStorage(); err != nil {
		return err
	}
	if err := b.loadDefinitions(imports); err != nil {
		return err
	}
	limitGoHeap(lim.memory)
	b.watch = newWatcher(b.server.Broker, b.dataPath, b.heldBytes, lim, b.log)
	b.watch.gone = func() bool { return b.lock.gone(b.dataPath) }
	b.watch.lost = func() { b.storageFailed(errDataGone) }
	if err := b.listenAMQP(); err != nil {
		return err
	}
	b.warnOfLimits()
	if err := b.group.Start(); err != nil {
		return fmt.Errorf("the event loops do not start: %w", err)
	}
	b.watch.start()
	b.phase.Store(int32(phaseRunning))
	return nil
}

// is tells in which phase the broker is.
func (b *broker) is(p phase) bool { return phase(b.phase.Load()) == p }

func (b *broker) openData() error {
	path, err := filepath.Abs(b.o.Data)
	if err != nil {
		return fmt.Errorf("--data %s: %w", b.o.Data, err)
	}
	b.dataPath = path
	b.lock, err = lockData(path)
	return err
}

// openLoops makes the event loops; they do not run yet.
func (b *broker) openLoops() error {
	b.server = session091.NewServer(session091.Options{
		ChannelMax:      uint16(b.o.ChannelMax),
		FrameMax:        uint32(b.o.FrameMax),
		Heartbeat:       b.o.Heartbeat,
		MessageSizeMax:  int64(b.o.MessageSizeMax),
		ConsumerTimeout: b.o.ConsumerTimeout,
		Log:             b.log,
		Version:         version,
	})
	group, err := ring.New(ring.Options{
		Cores: b.o.Cores, Pin: b.o.Pin, Backend: b.o.IO, Spin: b.o.Spin, Log: b.log,
	}, b.server)
	if err != nil {
		return fmt.Errorf("the event loops cannot be made: %w (--io %s; --io auto takes epoll where io_uring is refused)", err, b.o.IO)
	}
	b.group = group
	b.server.Bind(group.Loops())
	return nil
}

// tryAMQP finds out whether the AMQP addresses can be listened on, before a recovery that may take
// minutes. They are listened on after it only: a client that connects and gets no answer is worse
// off than one that is refused.
func (b *broker) tryAMQP() error {
	for _, a := range b.o.Listen {
		err := retryBusy(func() error {
			l, err := net.Listen("tcp", string(a))
			if err == nil {
				l.Close()
			}
			return err
		})
		if err != nil {
			return listenError("listen", string(a), err)
		}
	}
	return nil
}

// listenAMQP binds the AMQP listeners; they accept when the loops run.
func (b *broker) listenAMQP() error {
	for _, a := range b.o.Listen {
		var bound net.Addr
		err := retryBusy(func() (err error) { bound, err = b.group.Listen(string(a)); return err })
		if err != nil {
			return listenError("listen", string(a), err)
		}
		addr, err := netip.ParseAddrPort(bound.String())
		if err != nil {
			return fmt.Errorf("--listen %s: bound to %s: %w", a, bound, err)
		}
		b.amqp = append(b.amqp, addr)
	}
	return nil
}

func (b *broker) openHTTP() error {
	if b.o.HTTP == "off" {
		return nil
	}
	var l net.Listener
	err := retryBusy(func() (err error) { l, err = net.Listen("tcp", string(b.o.HTTP)); return err })
	if err != nil {
		return listenError("http", string(b.o.HTTP), err)
	}
	b.httpBind = l
	return nil
}

// serveHTTP answers from now on; until the loops run, that the broker is not ready.
func (b *broker) serveHTTP() {
	if b.httpBind == nil {
		return
	}
	b.http = admin.New(source{b}, b.log)
	go func() {
		if err := b.http.Serve(b.httpBind); err != nil {
			b.log.Error("the HTTP listener has stopped", "error", err)
		}
	}()
}

// warnOfLimits logs what an operator would otherwise find out later.
func (b *broker) warnOfLimits() {
	if b.o.Sync != "always" {
		b.log.Warn("--sync is not always: a power cut loses messages that were confirmed", "sync", b.o.Sync, "loses", syncLoses[b.o.Sync])
	}
	var open []string
	for _, a := range b.amqp {
		if !a.Addr().Unmap().IsLoopback() {
			open = append(open, a.String())
		}
	}
	if b.httpBind != nil {
		a, err := netip.ParseAddrPort(b.httpBind.Addr().String())
		if err != nil || !a.Addr().Unmap().IsLoopback() {
			open = append(open, b.httpBind.Addr().String())
		}
	}
	if len(open) > 0 {
		b.log.Warn("listening beyond loopback, but the only user, guest, may log in from loopback only; accounts come in a later version",
			"addresses", strings.Join(open, ","))
	}
}

// abandon closes what a failed start has opened.
func (b *broker) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), closeMax)
	defer cancel()
	if b.watch != nil {
		b.watch.close()
	}
	if b.group != nil {
		if err := b.group.Shutdown(ctx); err != nil {
			b.log.Error("closing after a failed start", "error", err)
		}
	}
	b.closeDefinitions()
	b.closeHTTP(ctx)
	b.lock.release()
}

// closeHTTP ends the HTTP listener and the control socket.
func (b *broker) closeHTTP(ctx context.Context) {
	if b.http != nil {
		b.http.Shutdown(ctx)
	} else if b.httpBind != nil {
		b.httpBind.Close()
	}
	if b.control != nil {
		b.control.Shutdown(ctx)
		b.removeControl()
	}
}

// retryBusy calls listen until it gives anything but "address in use", for busyRetryMax.
func retryBusy(listen func() error) error {
	for deadline := time.Now().Add(busyRetryMax); ; time.Sleep(busyRetryEvery) {
		err := listen()
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return err
		}
	}
}

// listenError is the line for an address that cannot be listened on: what is wrong and what to
// do about it.
func listenError(flag, addr string, err error) error {
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup):
		return fmt.Errorf("cannot listen on %s: the host %s cannot be resolved; write an address of this machine or a name that it knows with --%s", addr, lookup.Name, flag)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: the address is in use; stop the program that holds it or choose another with --%s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("cannot listen on %s: not permitted; ports below 1024 need privileges, choose another with --%s", addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("cannot listen on %s: this machine has no such address; choose another with --%s", addr, flag)
	default:
		return fmt.Errorf("cannot listen on %s (--%s): %w", addr, flag, err)
	}
}

// readyLine is the one line on standard output; scripts wait for its first word and read its
// name=value pairs.
func (b *broker) readyLine() string {
	http := "off"
	if b.httpBind != nil {
		http = b.httpBind.Addr().String()
	}
	var amqp []string
	for _, a := range b.amqp {
		amqp = append(amqp, a.String())
	}
	return fmt.Sprintf("ready amqp=%s http=%s data=%q io=%s loops=%d sync=%s user=%s",
		strings.Join(amqp, ","), http, b.dataPath, b.group.Backend(), len(b.group.Loops()), b.o.Sync, userDefault)
}
