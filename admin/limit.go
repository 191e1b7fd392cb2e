package admin

import (
	"net"
	"sync"
)

// limitedListener hands out at most cap(slots) connections at a time. Without it a peer that
// opens connections and says nothing takes descriptors that clients of the broker need.
type limitedListener struct {
	net.Listener
	slots     chan struct{}
	closed    chan struct{}
	closeOnce sync.Once
}

func limitListener(l net.Listener, connections int) net.Listener {
	return &limitedListener{
		Listener: l,
		slots:    make(chan struct{}, connections),
		closed:   make(chan struct{}),
	}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, slots: l.slots}, nil
}

func (l *limitedListener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its slot back on the first Close; net/http may close twice.
type limitedConn struct {
	net.Conn
	slots     chan struct{}
	closeOnce sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.closeOnce.Do(func() { <-c.slots })
	return err
}
