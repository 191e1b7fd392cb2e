package rawamqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringmq/frame/amqp091"
)

// Message is the content after a method.
type Message struct {
	Props      amqp091.Properties
	RawProps   []byte // flags and property list as they were on the wire
	Body       []byte
	BodyFrames int
	size       uint64
}

// Event is one method and, when it carries content, its message.
type Event struct {
	Channel uint16
	Method  amqp091.Method
	Message *Message
}

// String tells an event in one line, for failures.
func (e *Event) String() string {
	s := fmt.Sprintf("%s on channel %d", e.Method.ID(), e.Channel)
	if closed := e.closeError(); closed != nil {
		return s + ": " + closed.reason()
	}
	return s
}

// CloseError is a channel.close or connection.close where something else was
// expected.
type CloseError struct {
	Channel uint16 // 0 for the connection
	Code    uint16
	Text    string
	Failed  amqp091.MethodID // the method at fault, 0 for none
}

func (e *CloseError) reason() string {
	return fmt.Sprintf("%d %q, method %s", e.Code, e.Text, e.Failed)
}

// Error tells code, text and the method at fault.
func (e *CloseError) Error() string {
	if e.Channel == 0 {
		return "rawamqp: the peer closes the connection: " + e.reason()
	}
	return fmt.Sprintf("rawamqp: the peer closes channel %d: %s", e.Channel, e.reason())
}

// closeError returns the event as an error, nil when it closes nothing.
func (e *Event) closeError() *CloseError {
	switch m := e.Method.(type) {
	case *amqp091.ConnectionClose:
		return &CloseError{0, m.ReplyCode, string(m.ReplyText), failed(m.FailedClass, m.FailedMethod)}
	case *amqp091.ChannelClose:
		return &CloseError{e.Channel, m.ReplyCode, string(m.ReplyText), failed(m.FailedClass, m.FailedMethod)}
	}
	return nil
}

func failed(class, method uint16) amqp091.MethodID {
	return amqp091.MethodID(class)<<16 | amqp091.MethodID(method)
}

// Read returns the next method of any channel, with its content, skipping
// heartbeats. Contents of several channels may interleave; those of one channel
// that do are an error, and so are frames that cannot be decoded.
func (c *Conn) Read() (*Event, error) {
	if len(c.backlog) > 0 {
		e := c.backlog[0]
		c.backlog = c.backlog[1:]
		return e, nil
	}
	return c.readWire(time.Now().Add(c.opts.Timeout))
}

// readWire reads the next event from the socket until the deadline.
func (c *Conn) readWire(deadline time.Time) (*Event, error) {
	if err := c.nc.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	for {
		f, err := c.readFrame()
		if err != nil {
			return nil, err
		}
		e, err := c.take(f)
		if e != nil || err != nil {
			return e, err
		}
	}
}

// take adds a frame to what its channel has so far and returns the event that it
// completes, if any.
func (c *Conn) take(f Frame) (*Event, error) {
	switch f.Type {
	case amqp091.FrameHeartbeat:
		if f.Channel != 0 || len(f.Payload) != 0 {
			return nil, fmt.Errorf("rawamqp: heartbeat on channel %d with %d octets", f.Channel, len(f.Payload))
		}
		return nil, nil
	case amqp091.FrameMethod:
		return c.takeMethod(f)
	case amqp091.FrameHeader:
		return c.takeHeader(f)
	case amqp091.FrameBody:
		return c.takeBody(f)
	}
	return nil, fmt.Errorf("rawamqp: frame of unknown type %d on channel %d", f.Type, f.Channel)
}

func (c *Conn) takeMethod(f Frame) (*Event, error) {
	if open := c.partial[f.Channel]; open != nil {
		return nil, fmt.Errorf("rawamqp: method frame inside the content of %v", open)
	}
	if len(f.Payload) < 4 {
		return nil, fmt.Errorf("rawamqp: method frame of %d octets", len(f.Payload))
	}
	id := amqp091.MethodID(binary.BigEndian.Uint32(f.Payload))
	m := amqp091.New(id)
	if m == nil {
		return nil, fmt.Errorf("rawamqp: unknown method %s", id)
	}
	if err := m.Decode(f.Payload[4:]); err != nil {
		return nil, fmt.Errorf("rawamqp: %s: % X: %w", id, f.Payload[4:], err)
	}
	e := &Event{Channel: f.Channel, Method: m}
	if id.HasContent() {
		c.partial[f.Channel] = e
		return nil, nil
	}
	return e, nil
}

func (c *Conn) takeHeader(f Frame) (*Event, error) {
	e := c.partial[f.Channel]
	if e == nil || e.Message != nil {
		return nil, fmt.Errorf("rawamqp: content header that no method announced, on channel %d", f.Channel)
	}
	head, ok := amqp091.ParseContentHead(f.Payload)
	if !ok || head.Class != e.Method.ID().Class() || head.Weight != 0 {
		return nil, fmt.Errorf("rawamqp: bad content header of %v: % X", e, f.Payload)
	}
	m := &Message{RawProps: head.Props, size: head.BodySize}
	if err := m.Props.Decode(head.Props); err != nil {
		return nil, fmt.Errorf("rawamqp: properties of %v: % X: %w", e, head.Props, err)
	}
	e.Message = m
	return c.finish(e), nil
}

func (c *Conn) takeBody(f Frame) (*Event, error) {
	e := c.partial[f.Channel]
	if e == nil || e.Message == nil {
		return nil, fmt.Errorf("rawamqp: body frame without a content header, on channel %d", f.Channel)
	}
	m := e.Message
	m.Body = append(m.Body, f.Payload...)
	m.BodyFrames++
	if uint64(len(m.Body)) > m.size {
		return nil, fmt.Errorf("rawamqp: body of %v has %d octets, announced were %d", e, len(m.Body), m.size)
	}
	return c.finish(e), nil
}

// finish returns e when its body is complete.
func (c *Conn) finish(e *Event) *Event {
	if uint64(len(e.Message.Body)) < e.Message.size {
		return nil
	}
	delete(c.partial, e.Channel)
	return e
}

// Await returns the next event of that method on that channel. Others that come
// first are kept for later reads, but a close of the channel or the connection
// ends the wait as a *CloseError. The timeout is for the whole wait.
func (c *Conn) Await(channel uint16, id amqp091.MethodID) (*Event, error) {
	for i, e := range c.backlog {
		if e.Channel == channel && e.Method.ID() == id {
			c.backlog = append(c.backlog[:i:i], c.backlog[i+1:]...)
			return e, nil
		}
	}
	deadline := time.Now().Add(c.opts.Timeout)
	for {
		e, err := c.readWire(deadline)
		if err != nil {
			return nil, fmt.Errorf("awaiting %s on channel %d: %w", id, channel, err)
		}
		if e.Channel == channel && e.Method.ID() == id {
			return e, nil
		}
		if closed := e.closeError(); closed != nil && (closed.Channel == 0 || closed.Channel == channel) {
			return nil, fmt.Errorf("awaiting %s on channel %d: %w", id, channel, closed)
		}
		c.backlog = append(c.backlog, e)
	}
}

// Expect returns the next event, which must be that method on that channel.
func (c *Conn) Expect(channel uint16, id amqp091.MethodID) (*Event, error) {
	e, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("expecting %s on channel %d: %w", id, channel, err)
	}
	if e.Channel == channel && e.Method.ID() == id {
		return e, nil
	}
	if closed := e.closeError(); closed != nil {
		return nil, fmt.Errorf("expecting %s on channel %d: %w", id, channel, closed)
	}
	return nil, fmt.Errorf("expecting %s on channel %d: got %v", id, channel, e)
}

// expectInto is Expect for a method that the caller holds.
func (c *Conn) expectInto(channel uint16, m amqp091.Method) error {
	e, err := c.Expect(channel, m.ID())
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *amqp091.ConnectionStart:
		*m = *e.Method.(*amqp091.ConnectionStart)
	case *amqp091.ConnectionTune:
		*m = *e.Method.(*amqp091.ConnectionTune)
	}
	return nil
}

// ExpectEOF returns nil when the peer closes the socket next, without another
// method. Heartbeats may come before.
func (c *Conn) ExpectEOF() error {
	e, err := c.Read()
	switch {
	case err == nil:
		return fmt.Errorf("expecting the end of the socket: got %v", e)
	case errors.Is(err, ErrClosed):
		return nil
	}
	return fmt.Errorf("expecting the end of the socket: %w", err)
}

// ExpectQuiet returns nil when no method arrives for d. Prefer Barrier, which
// proves the same by an answer and not by waiting.
func (c *Conn) ExpectQuiet(d time.Duration) error {
	if len(c.backlog) > 0 {
		return fmt.Errorf("expecting nothing: got %v", c.backlog[0])
	}
	e, err := c.readWire(time.Now().Add(d))
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return fmt.Errorf("expecting nothing: got %v", e)
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil
	}
	return fmt.Errorf("expecting nothing: %w", err)
}

// Barrier sends channel.flow(active) and expects its answer as the very next
// event: whatever was sent before on that channel was handled and answered
// nothing that was not read already.
func (c *Conn) Barrier(channel uint16) error {
	if err := c.SendMethod(channel, &amqp091.ChannelFlow{Active: true}); err != nil {
		return err
	}
	_, err := c.Expect(channel, amqp091.MethodChannelFlowOk)
	return err
}
