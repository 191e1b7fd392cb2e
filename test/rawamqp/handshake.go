package rawamqp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"time"

	"ringmq/frame/amqp091"
)

// Step is a point of the handshake.
type Step int

// Where Dial may stop. The zero value is the whole handshake.
const (
	StepAll     Step = iota // open-ok received
	StepConnect             // socket connected, nothing sent
	StepHeader              // protocol header sent
	StepStart               // start received
	StepStartOk             // start-ok sent
	StepTune                // tune received
	StepTuneOk              // tune-ok sent
	StepOpen                // open sent
)

// Options says how to connect. The zero value logs in as guest to vhost "/" and
// takes the server's tune offer, with heartbeats off.
type Options struct {
	User, Password string // guest, guest
	VirtualHost    string // "/"

	// StopAfter ends the handshake early; the test goes on by hand.
	StopAfter Step
	// ProtocolHeader replaces AMQP 0 0 9 1.
	ProtocolHeader []byte
	// StartOk, TuneOk and Open may change a method before it is sent.
	StartOk func(m *amqp091.ConnectionStartOk)
	TuneOk  func(m *amqp091.ConnectionTuneOk)
	Open    func(m *amqp091.ConnectionOpen)
	// Heartbeat is the tune-ok value in seconds. Nothing is sent by itself: see
	// StartHeartbeats.
	Heartbeat uint16

	// Timeout is how long each read and write waits; 0 is five seconds.
	Timeout time.Duration
	// Dial replaces the plain TCP connection.
	Dial func(addr string) (net.Conn, error)
}

func (o *Options) setDefaults() {
	if o.User == "" {
		o.User, o.Password = "guest", "guest"
	}
	if o.VirtualHost == "" {
		o.VirtualHost = "/"
	}
	if o.ProtocolHeader == nil {
		o.ProtocolHeader = amqp091.ProtocolHeader[:]
	}
	if o.Timeout == 0 {
		o.Timeout = timeoutDefault
	}
	if o.Dial == nil {
		timeout := o.Timeout
		o.Dial = func(addr string) (net.Conn, error) { return net.DialTimeout("tcp", addr, timeout) }
	}
}

// capabilities are what a full client announces: a test that wants a poorer one
// replaces ClientProperties in Options.StartOk.
func capabilities() amqp091.Table {
	var t []byte
	for _, name := range []string{"authentication_failure_close", "basic.nack", "connection.blocked",
		"consumer_cancel_notify", "publisher_confirms"} {
		t = amqp091.AppendBool(t, name, true)
	}
	return amqp091.AppendTable(nil, "capabilities", t)
}

// Dial connects and goes through the handshake up to Options.StopAfter. When the
// server refuses with connection.close the error is a *CloseError; the socket is
// closed on any error.
func Dial(addr string, opts Options) (*Conn, error) {
	opts.setDefaults()
	nc, err := opts.Dial(addr)
	if err != nil {
		return nil, err
	}
	c := &Conn{opts: opts, nc: nc, r: bufio.NewReader(nc), partial: map[uint16]*Event{}}
	if err := c.handshake(); err != nil {
		// The handshake's error is the finding; closing can add nothing to it.
		_ = nc.Close()
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return c, nil
}

func (c *Conn) handshake() error {
	steps := []struct {
		after Step
		run   func() error
	}{
		{StepConnect, func() error { return nil }},
		{StepHeader, func() error { return c.SendBytes(c.opts.ProtocolHeader) }},
		{StepStart, func() error { return c.expectInto(0, &c.Start) }},
		{StepStartOk, c.SendStartOk},
		{StepTune, func() error { return c.expectInto(0, &c.Tune) }},
		{StepTuneOk, c.SendTuneOk},
		{StepOpen, c.SendOpen},
		{StepAll, func() error { return c.expectInto(0, &amqp091.ConnectionOpenOk{}) }},
	}
	for _, s := range steps {
		if err := s.run(); err != nil {
			return err
		}
		if s.after == c.opts.StopAfter {
			return nil
		}
	}
	return nil
}

// SendStartOk sends start-ok with PLAIN credentials.
func (c *Conn) SendStartOk() error {
	m := amqp091.ConnectionStartOk{
		ClientProperties: capabilities(),
		Mechanism:        []byte("PLAIN"),
		Response:         []byte("\x00" + c.opts.User + "\x00" + c.opts.Password),
		Locale:           []byte("en_US"),
	}
	if c.opts.StartOk != nil {
		c.opts.StartOk(&m)
	}
	return c.SendMethod(0, &m)
}

// SendTuneOk answers the tune that was received.
func (c *Conn) SendTuneOk() error {
	m := amqp091.ConnectionTuneOk{ChannelMax: c.Tune.ChannelMax, FrameMax: c.Tune.FrameMax, Heartbeat: c.opts.Heartbeat}
	if c.opts.TuneOk != nil {
		c.opts.TuneOk(&m)
	}
	if m.FrameMax >= amqp091.FrameOverhead {
		c.frameMax = m.FrameMax
	} else {
		c.frameMax = c.Tune.FrameMax
	}
	return c.SendMethod(0, &m)
}

// SendOpen asks for the virtual host.
func (c *Conn) SendOpen() error {
	m := amqp091.ConnectionOpen{VirtualHost: []byte(c.opts.VirtualHost)}
	if c.opts.Open != nil {
		c.opts.Open(&m)
	}
	return c.SendMethod(0, &m)
}

// ReadProtocolHeader reads the eight octets by which a server refuses a protocol
// (CON-02).
func (c *Conn) ReadProtocolHeader() ([8]byte, error) {
	var b [8]byte
	if err := c.nc.SetReadDeadline(time.Now().Add(c.opts.Timeout)); err != nil {
		return b, err
	}
	if _, err := io.ReadFull(c.r, b[:]); err != nil {
		return b, closedError(err)
	}
	return b, nil
}

// Shutdown closes the connection politely: close, close-ok, and the server's end
// of the socket. Other methods that arrive meanwhile are dropped.
func (c *Conn) Shutdown() error {
	if err := c.SendMethod(0, &amqp091.ConnectionClose{ReplyCode: amqp091.ReplySuccess}); err != nil {
		return err
	}
	if _, err := c.Await(0, amqp091.MethodConnectionCloseOk); err != nil {
		return err
	}
	c.backlog = nil
	return c.ExpectEOF()
}
