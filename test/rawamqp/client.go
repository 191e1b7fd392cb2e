package rawamqp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ringmq/frame/amqp091"
)

// Client is a Conn whose failures end the test. Its methods must be called from
// the test's own goroutine; Conn is there for others.
type Client struct {
	*Conn
	tb testing.TB
}

// New dials and closes the socket when the test ends. A handshake that fails ends
// the test: to see it fail, stop it one step earlier, or use Dial.
func New(tb testing.TB, addr string, opts Options) *Client {
	tb.Helper()
	conn, err := Dial(addr, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// Most tests have closed it, or made the server do so.
		_ = conn.Close()
	})
	return &Client{conn, tb}
}

// must ends the test on an error.
func (c *Client) must(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}

// Send sends methods on a channel, in one write.
func (c *Client) Send(channel uint16, methods ...amqp091.Method) {
	c.tb.Helper()
	var b []byte
	for _, m := range methods {
		b = m.Append(b, channel)
	}
	c.must(c.SendBytes(b))
}

// SendRaw writes octets as they are.
func (c *Client) SendRaw(b []byte) {
	c.tb.Helper()
	c.must(c.SendBytes(b))
}

// Frame sends one well-formed frame around any payload.
func (c *Client) Frame(typ byte, channel uint16, payload []byte) {
	c.tb.Helper()
	c.must(c.SendFrame(typ, channel, payload))
}

// Publish sends basic.publish with content. nil props are none.
func (c *Client) Publish(channel uint16, exchange, key string, props *amqp091.Properties, body string) {
	c.tb.Helper()
	m := amqp091.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte(key)}
	c.must(c.SendContent(channel, &m, props, []byte(body)))
}

// OpenChannel opens a channel.
func (c *Client) OpenChannel(channel uint16) {
	c.tb.Helper()
	Call[amqp091.ChannelOpenOk](c, channel, &amqp091.ChannelOpen{})
}

// Next returns the next event of any kind.
func (c *Client) Next() *Event {
	c.tb.Helper()
	e, err := c.Read()
	c.must(err)
	return e
}

// NextFrame returns the next frame of any kind.
func (c *Client) NextFrame() Frame {
	c.tb.Helper()
	f, err := c.ReadFrame()
	c.must(err)
	return f
}

// Sync proves by a round trip that nothing is left to read on the channel.
func (c *Client) Sync(channel uint16) {
	c.tb.Helper()
	c.must(c.Barrier(channel))
}

// Quiet proves by waiting that nothing arrives.
func (c *Client) Quiet(d time.Duration) {
	c.tb.Helper()
	c.must(c.ExpectQuiet(d))
}

// EOF expects the end of the socket without another method.
func (c *Client) EOF() {
	c.tb.Helper()
	c.must(c.ExpectEOF())
}

// ExpectChannelClose expects channel.close next, with that code and a text that
// contains text, and answers close-ok. It returns the close for further checks.
func (c *Client) ExpectChannelClose(channel uint16, code uint16, text string) *CloseError {
	c.tb.Helper()
	e, err := c.Expect(channel, amqp091.MethodChannelClose)
	c.must(err)
	closed := c.checkClose(e, code, text)
	c.Send(channel, &amqp091.ChannelCloseOk{})
	return closed
}

// ExpectConnectionClose expects connection.close next, with that code and a text
// that contains text, answers close-ok and expects the end of the socket.
func (c *Client) ExpectConnectionClose(code uint16, text string) *CloseError {
	c.tb.Helper()
	e, err := c.Expect(0, amqp091.MethodConnectionClose)
	c.must(err)
	closed := c.checkClose(e, code, text)
	if err := c.SendMethod(0, &amqp091.ConnectionCloseOk{}); err != nil {
		return closed // the server may be gone already: it did say why
	}
	c.EOF()
	return closed
}

func (c *Client) checkClose(e *Event, code uint16, text string) *CloseError {
	c.tb.Helper()
	closed := e.closeError()
	if closed.Code != code || !strings.Contains(closed.Text, text) {
		c.tb.Fatalf("want close %d with text %q, got %v", code, text, closed)
	}
	// A reply text is NAME - detail; InternalError alone may be the bare name.
	if name := amqp091.ReplyName(code); !strings.HasPrefix(closed.Text, name) {
		c.tb.Fatalf("reply text %q does not begin with %s", closed.Text, name)
	}
	return closed
}

// pointer ties a method struct to its pointer, which has the methods.
type pointer[M any] interface {
	*M
	amqp091.Method
}

// Expect returns the next method, which must be an M on that channel:
//
//	ok := rawamqp.Expect[amqp091.QueueDeclareOk](c, 1)
func Expect[M any, P pointer[M]](c *Client, channel uint16) *M {
	c.tb.Helper()
	m, _ := ExpectContent[M, P](c, channel)
	return m
}

// ExpectContent is Expect for a method with content.
func ExpectContent[M any, P pointer[M]](c *Client, channel uint16) (*M, *Message) {
	c.tb.Helper()
	e, err := c.Conn.Expect(channel, P(new(M)).ID())
	c.must(err)
	return (*M)(e.Method.(P)), e.Message
}

// Await returns the next M on that channel and keeps what comes before it.
func Await[M any, P pointer[M]](c *Client, channel uint16) (*M, *Message) {
	c.tb.Helper()
	e, err := c.Conn.Await(channel, P(new(M)).ID())
	c.must(err)
	return (*M)(e.Method.(P)), e.Message
}

// Call sends a method and expects its reply as the next event.
func Call[M any, P pointer[M]](c *Client, channel uint16, m amqp091.Method) *M {
	c.tb.Helper()
	c.Send(channel, m)
	return Expect[M, P](c, channel)
}

// AsClose returns the close inside an error of Dial, Read or Await.
func AsClose(err error) (*CloseError, bool) {
	var closed *CloseError
	ok := errors.As(err, &closed)
	return closed, ok
}
