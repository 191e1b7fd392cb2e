package bench

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// confirmSize is the octets of one basic.ack frame.
const confirmSize = frameOverhead + 4 + 9

// loopback is the least that a confirm costs without a disk: two threads and a
// TCP connection over loopback, as many octets there as a publish has and as
// many back as a confirm has, blocking calls, nothing looked at.
type loopback struct {
	work    func() error // what the server's side does before it answers; may be nil
	client  *conn
	server  int
	request []byte
	ended   chan struct{}
}

// newLoopback connects the two sides; request is the size of a publish.
func newLoopback(ctx context.Context, request int, work func() error) (*loopback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	// The kernel completes the connection before anybody accepts it.
	client, err := dialRaw(ctx, l.Addr().String(), nil)
	if err != nil {
		return nil, err
	}
	nc, err := l.Accept()
	if err != nil {
		client.close()
		return nil, err
	}
	defer nc.Close()
	server, err := blockingFD(nc.(*net.TCPConn))
	if err != nil {
		client.close()
		return nil, err
	}
	b := &loopback{work: work, client: client, server: server, request: make([]byte, request), ended: make(chan struct{})}
	client.in = make([]byte, confirmSize)
	go b.serve()
	return b, nil
}

// serve answers each whole request until the other side is gone. When its work
// fails it hangs up.
func (b *loopback) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(b.ended)
	buf, answer := make([]byte, len(b.request)), make([]byte, confirmSize)
	for {
		if readWhole(b.server, buf) != nil {
			return
		}
		if b.work != nil && b.work() != nil {
			_ = unix.Shutdown(b.server, unix.SHUT_RDWR)
			return
		}
		if n, err := unix.Write(b.server, answer); err != nil || n != len(answer) {
			return
		}
	}
}

// readWhole fills buf, blocking.
func readWhole(fd int, buf []byte) error {
	for at := 0; at < len(buf); {
		n, err := unix.Read(fd, buf[at:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return errClosed
		}
		at += n
	}
	return nil
}

// run makes round trips for d, at least one, and records how long each took.
func (b *loopback) run(ctx context.Context, d time.Duration, h *histogram) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := nowNS() + int64(d); ; {
		start := nowNS()
		err := b.client.write(b.request)
		if err == nil {
			err = readWhole(b.client.fd, b.client.in)
		}
		if err != nil {
			return fmt.Errorf("loopback loop: %w", err)
		}
		done := nowNS()
		h.record(done-start, 1)
		if done >= end || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (b *loopback) close() {
	b.client.abort()
	<-b.ended
	b.client.close()
	unix.Close(b.server)
}
