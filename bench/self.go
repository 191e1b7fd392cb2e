package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"ringmq/bench/peers"
)

// openTarget connects to a URL, or starts the peer of that name first.
func openTarget(ctx context.Context, o *Options, where string, pid int, counters string, log io.Writer) (*target, error) {
	if where != peers.RabbitMQName {
		return connectTarget(ctx, where, pid, counters)
	}
	fmt.Fprintln(log, "starting rabbitmq ...")
	peer, err := peers.StartRabbitMQ(ctx, o.DataDir)
	if err != nil {
		return nil, err
	}
	t, err := connectTarget(ctx, peer.URL, peer.PID, counters)
	if err != nil {
		return nil, errors.Join(err, peer.Stop())
	}
	t.settings, t.stop = peer.Settings, peer.Stop
	return t, nil
}

// freePort asks the kernel for a port that nobody listens on right now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startSelf runs this binary's own server with an empty data folder.
func startSelf(ctx context.Context, o *Options) (*target, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	t := &target{server: s}
	if err := t.start(ctx, startLimit); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return t, nil
}

// start runs the target's own server and looks it over.
func (t *target) start(ctx context.Context, limit time.Duration) error {
	s := t.server
	if err := s.start(ctx, limit); err != nil {
		return err
	}
	fresh, err := connectTarget(ctx, "amqp://"+s.amqp, s.pid(), "http://"+s.http+"/metrics")
	if err != nil {
		return fmt.Errorf("%w\n%s", err, s.output.tail())
	}
	*t = *fresh
	t.server, t.stop = s, s.remove
	t.settings = []string{"started as: serve " + fmt.Sprint(s.args)}
	return nil
}

// renew starts the target's own server again with an empty folder.
func (t *target) renew(ctx context.Context) error {
	if err := errors.Join(t.server.stop(), t.server.empty()); err != nil {
		return err
	}
	return t.start(ctx, startLimit)
}
