package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"ringmq/admin"
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

// broker is the running process: what was opened, in the order in which it is closed.
type broker struct {
	o        *serveOptions
	log      *slog.Logger
	ready    atomic.Bool
	dataPath string // absolute
	lock     *dataLock
	server   *session091.Server
	group    *ring.Group
	amqp     []netip.AddrPort
	http     *admin.Server
	httpBind net.Listener // nil when off
	started  time.Time
	notify   notifier
}

// startBroker opens everything that serving needs. On an error nothing stays open, and the
// error is the line that the operator reads.
func startBroker(o *serveOptions, log *slog.Logger) (*broker, error) {
	b := &broker{o: o, log: log, started: time.Now()}
	if err := b.openData(); err != nil {
		return nil, err
	}
	files := raiseFileLimit()
	err := b.openLoops()
	if err == nil {
		err = b.openHTTP()
	}
	if err == nil {
		// Only now: an operator whose port is busy should read of that alone.
		files.report(log)
		b.warnOfLimits()
		err = b.startServing()
	}
	if err != nil {
		b.abandon()
		return nil, err
	}
	return b, nil
}

func (b *broker) openData() error {
	path, err := filepath.Abs(b.o.Data)
	if err != nil {
		return fmt.Errorf("--data %s: %w", b.o.Data, err)
	}
	b.dataPath = path
	b.lock, err = lockData(path)
	return err
}

// openLoops makes the event loops and binds the AMQP listeners; nothing is accepted yet.
func (b *broker) openLoops() error {
	b.server = session091.NewServer(session091.Options{
		ChannelMax:     uint16(b.o.ChannelMax),
		FrameMax:       uint32(b.o.FrameMax),
		Heartbeat:      b.o.Heartbeat,
		MessageSizeMax: int64(b.o.MessageSizeMax),
		Log:            b.log,
		Version:        version,
	})
	group, err := ring.New(ring.Options{
		Cores: b.o.Cores, Pin: b.o.Pin, Backend: b.o.IO, Spin: b.o.Spin, Log: b.log,
	}, b.server)
	if err != nil {
		return fmt.Errorf("the event loops cannot be made: %w (--io %s; --io auto takes epoll where io_uring is refused)", err, b.o.IO)
	}
	b.group = group
	b.server.Bind(group.Loops())
	for _, a := range b.o.Listen {
		var bound net.Addr
		err := retryBusy(func() (err error) { bound, err = group.Listen(string(a)); return err })
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

// startServing starts the loops and then the HTTP listener, which asks them.
func (b *broker) startServing() error {
	if err := b.group.Start(); err != nil {
		return fmt.Errorf("the event loops do not start: %w", err)
	}
	b.ready.Store(true)
	if b.httpBind == nil {
		return nil
	}
	b.http = admin.New(source{b}, b.log)
	go func() {
		if err := b.http.Serve(b.httpBind); err != nil {
			b.log.Error("the HTTP listener has stopped", "error", err)
		}
	}()
	return nil
}

// warnOfLimits logs what an operator would otherwise find out later.
func (b *broker) warnOfLimits() {
	b.log.Warn("storage is in memory: messages, queues and bindings do not survive a restart, durable and persistent ones included")
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
	if b.httpBind != nil {
		b.httpBind.Close()
	}
	if b.group != nil {
		if err := b.group.Shutdown(ctx); err != nil {
			b.log.Error("closing after a failed start", "error", err)
		}
	}
	b.lock.release()
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
	return fmt.Sprintf("ready amqp=%s http=%s data=%q io=%s loops=%d sync=memory user=%s",
		strings.Join(amqp, ","), http, b.dataPath, b.group.Backend(), len(b.group.Loops()), userDefault)
}
