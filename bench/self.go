package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"ringmq/bench/peers"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 30 * time.Second
)

// openTarget connects to a URL, or starts the peer of that name first.
func openTarget(ctx context.Context, o *Options, where string, pid int, counters string, log io.Writer) (*target, error) {
	if where != peers.RabbitMQName {
		return connectTarget(ctx, where, pid, counters)
	}
	fmt.Fprintln(log, "starting rabbitmq ...")
	peer, err := peers.StartRabbitMQ(ctx)
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
	binary := o.Binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	port, err1 := freePort()
	httpPort, err2 := freePort()
	data, err3 := os.MkdirTemp("", "ringmq-bench-")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	listen := "127.0.0.1:" + strconv.Itoa(port)
	http := "127.0.0.1:" + strconv.Itoa(httpPort)
	args := append([]string{"serve", "--listen", listen, "--http", http, "--data", data}, o.ServerArg...)
	cmd := exec.Command(binary, args...)
	output := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	// A generator that dies must not leave a server behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the server: %w", err), os.RemoveAll(data))
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	stop := func() error { return stopProcess(cmd, done, output, data) }
	t, err := awaitServer(ctx, listen, "http://"+http+"/metrics", cmd.Process.Pid, done)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, stop()), output.String())
	}
	t.stop = stop
	t.settings = []string{"started as: serve " + fmt.Sprint(o.ServerArg)}
	return t, nil
}

// awaitServer tries to connect until the server answers, ends or takes too long.
func awaitServer(ctx context.Context, listen, counters string, pid int, done chan error) (*target, error) {
	deadline := time.Now().Add(startLimit)
	for {
		t, err := connectTarget(ctx, "amqp://"+listen, pid, counters)
		if err == nil {
			return t, nil
		}
		select {
		case exit := <-done:
			done <- exit
			return nil, fmt.Errorf("the server ended at once: %w", errors.Join(exit, err))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the server did not answer within %v: %w", startLimit, err)
		}
	}
}

// stopProcess asks the server to end and removes its data. A server that ends
// badly is worth an error of its own.
func stopProcess(cmd *exec.Cmd, done chan error, output *bytes.Buffer, data string) error {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case err = <-done:
	case <-time.After(stopLimit):
		_ = cmd.Process.Kill()
		<-done
		err = fmt.Errorf("the server did not stop within %v of SIGTERM", stopLimit)
	}
	if err != nil {
		tail := output.Bytes()
		err = fmt.Errorf("server: %w; its last words: %s", err, tail[max(0, len(tail)-2000):])
	}
	return errors.Join(err, os.RemoveAll(data))
}
