package rawamqp

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"ringmq/frame/amqp091"
)

// script runs a server for one connection: a Conn on the other end of a socket.
// It returns the address to dial; the test waits for the script at its end.
func script(t *testing.T, run func(s *Conn) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		s, err := Dial("", Options{StopAfter: StepConnect, Dial: func(string) (net.Conn, error) { return l.Accept() }})
		if err == nil {
			err = run(s)
			err = errors.Join(err, s.Close())
		}
		result <- err
	}()
	t.Cleanup(func() {
		l.Close()
		if err := <-result; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return l.Addr().String()
}

// welcome is the server's half of a handshake with a frame-max of 4096.
func welcome(s *Conn) error {
	header, err := s.ReadProtocolHeader()
	if err == nil && header != amqp091.ProtocolHeader {
		err = errors.New("bad protocol header")
	}
	err = errors.Join(err, s.SendMethod(0, &amqp091.ConnectionStart{VersionMinor: 9, Mechanisms: []byte("PLAIN"), Locales: []byte("en_US")}))
	_, err2 := s.Expect(0, amqp091.MethodConnectionStartOk)
	err = errors.Join(err, err2, s.SendMethod(0, &amqp091.ConnectionTune{ChannelMax: 10, FrameMax: 4096, Heartbeat: 60}))
	e, err2 := s.Expect(0, amqp091.MethodConnectionTuneOk)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	s.frameMax = e.Method.(*amqp091.ConnectionTuneOk).FrameMax
	_, err = s.Expect(0, amqp091.MethodConnectionOpen)
	return errors.Join(err, s.SendMethod(0, &amqp091.ConnectionOpenOk{}))
}

// serveFrames is a server that, after the handshake, sends octets and waits for
// the client to go.
func serveFrames(t *testing.T, b []byte) string {
	return script(t, func(s *Conn) error {
		return errors.Join(welcome(s), s.SendBytes(b), s.ExpectEOF())
	})
}

func TestSession(t *testing.T) {
	body := strings.Repeat("0123456789", 1000) // three frames of at most 4088 octets
	props := &amqp091.Properties{Flags: amqp091.FlagAppID, AppID: []byte("app")}
	addr := script(t, func(s *Conn) error {
		err := welcome(s)
		_, err2 := s.Expect(1, amqp091.MethodChannelOpen)
		err = errors.Join(err, err2, s.SendMethod(1, &amqp091.ChannelOpenOk{}))
		e, err2 := s.Expect(1, amqp091.MethodBasicPublish)
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		if e.Message.BodyFrames != 3 || string(e.Message.Body) != body {
			return errors.New("the body arrived otherwise")
		}
		deliver := &amqp091.BasicDeliver{ConsumerTag: []byte("c"), DeliveryTag: 1}
		err = s.SendContent(1, deliver, &e.Message.Props, e.Message.Body)
		_, err2 = s.Expect(1, amqp091.MethodChannelFlow)
		err = errors.Join(err, err2, s.SendMethod(1, &amqp091.ChannelFlowOk{Active: true}))
		_, err2 = s.Expect(0, amqp091.MethodConnectionClose)
		return errors.Join(err, err2, s.SendMethod(0, &amqp091.ConnectionCloseOk{}))
	})
	c := New(t, addr, Options{})
	if c.FrameMax() != 4096 || c.Tune.Heartbeat != 60 || string(c.Start.Mechanisms) != "PLAIN" {
		t.Errorf("handshake: %+v %+v", c.Start, c.Tune)
	}
	c.OpenChannel(1)
	c.Publish(1, "", "q", props, body)
	m, msg := ExpectContent[amqp091.BasicDeliver](c, 1)
	if m.DeliveryTag != 1 || string(msg.Body) != body || string(msg.Props.AppID) != "app" || !bytes.Equal(msg.RawProps, props.Append(nil)) {
		t.Errorf("deliver %+v, %d octets, %+v", m, len(msg.Body), msg.Props)
	}
	c.Sync(1)
	if err := c.Shutdown(); err != nil {
		t.Error(err)
	}
}

func TestHandshakeStopsAtEachStep(t *testing.T) {
	for step, want := range map[Step]int{StepConnect: 0, StepHeader: 1, StepStart: 1, StepStartOk: 2, StepTune: 2, StepTuneOk: 3, StepOpen: 4, StepAll: 4} {
		got := make(chan int, 1)
		addr := script(t, func(s *Conn) error {
			// Answers what comes and counts it; the client closes when it has stopped.
			seen := 0
			if _, err := s.ReadProtocolHeader(); err == nil {
				seen++
				err = s.SendMethod(0, &amqp091.ConnectionStart{})
				for err == nil {
					var e *Event
					if e, err = s.Read(); err != nil {
						break
					}
					seen++
					switch e.Method.(type) {
					case *amqp091.ConnectionStartOk:
						err = s.SendMethod(0, &amqp091.ConnectionTune{FrameMax: 4096})
					case *amqp091.ConnectionOpen:
						err = s.SendMethod(0, &amqp091.ConnectionOpenOk{})
					}
				}
			}
			got <- seen
			return nil
		})
		c, err := Dial(addr, Options{StopAfter: step})
		if err != nil {
			t.Fatal(err)
		}
		// Only the client's sending half ends, so that nothing it sent is lost.
		if err := c.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n := <-got; n != want {
			t.Errorf("step %d: the server saw %d sendings, want %d", step, n, want)
		}
		c.Close()
	}
}

func TestHandshakeOverrides(t *testing.T) {
	addr := script(t, func(s *Conn) error {
		header, err := s.ReadProtocolHeader()
		if string(header[:]) != "AMQP\x01\x01\x00\x09" {
			err = errors.Join(err, errors.New("header not replaced"))
		}
		err = errors.Join(err, s.SendMethod(0, &amqp091.ConnectionStart{}))
		e, err2 := s.Expect(0, amqp091.MethodConnectionStartOk)
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		if m := e.Method.(*amqp091.ConnectionStartOk); string(m.Response) != "\x00u\x00p" || string(m.Mechanism) != "EXTERNAL" {
			err = errors.New("start-ok not changed")
		}
		return errors.Join(err, s.SendMethod(0, &amqp091.ConnectionClose{ReplyCode: 403, ReplyText: []byte("ACCESS_REFUSED - no")}), s.ExpectEOF())
	})
	_, err := Dial(addr, Options{User: "u", Password: "p", ProtocolHeader: []byte("AMQP\x01\x01\x00\x09"),
		StartOk: func(m *amqp091.ConnectionStartOk) { m.Mechanism = []byte("EXTERNAL") }})
	closed, ok := AsClose(err)
	if !ok || closed.Code != 403 || closed.Channel != 0 || !strings.Contains(err.Error(), "ACCESS_REFUSED - no") {
		t.Errorf("got %v", err)
	}
}

func TestExpectCloses(t *testing.T) {
	addr := script(t, func(s *Conn) error {
		err := errors.Join(welcome(s),
			s.SendMethod(3, &amqp091.ChannelClose{ReplyCode: 404, ReplyText: []byte("NOT_FOUND - no queue 'q'"), FailedClass: 50, FailedMethod: 10}))
		_, err2 := s.Expect(3, amqp091.MethodChannelCloseOk)
		err = errors.Join(err, err2, s.SendMethod(0, &amqp091.ConnectionClose{ReplyCode: 501, ReplyText: []byte("FRAME_ERROR - bad")}))
		_, err2 = s.Expect(0, amqp091.MethodConnectionCloseOk)
		return errors.Join(err, err2)
	})
	c := New(t, addr, Options{})
	if closed := c.ExpectChannelClose(3, amqp091.NotFound, "no queue"); closed.Failed != amqp091.MethodQueueDeclare {
		t.Errorf("%v", closed)
	}
	c.ExpectConnectionClose(amqp091.FrameError, "bad")
}

func TestAwaitKeepsTheRest(t *testing.T) {
	var b []byte
	b = (&amqp091.BasicAck{DeliveryTag: 1}).Append(b, 1)
	b = amqp091.AppendHeartbeat(b)
	b = (&amqp091.BasicAck{DeliveryTag: 2}).Append(b, 2)
	b = (&amqp091.QueueDeclareOk{Queue: []byte("q")}).Append(b, 1)
	b = (&amqp091.ChannelClose{ReplyCode: 406, ReplyText: []byte("PRECONDITION_FAILED - x")}).Append(b, 2)
	b = (&amqp091.ChannelClose{ReplyCode: 404, ReplyText: []byte("NOT_FOUND - y")}).Append(b, 1)
	c := New(t, serveFrames(t, b), Options{})
	if m, _ := Await[amqp091.QueueDeclareOk](c, 1); string(m.Queue) != "q" {
		t.Errorf("got %+v", m)
	}
	if m, _ := Await[amqp091.BasicAck](c, 2); m.DeliveryTag != 2 {
		t.Errorf("got %+v", m)
	}
	if e := c.Next(); e.Channel != 1 || e.Method.(*amqp091.BasicAck).DeliveryTag != 1 {
		t.Errorf("got %v", e)
	}
	// The close of another channel does not end the wait, that of this one does.
	_, err := c.Conn.Await(1, amqp091.MethodTxCommitOk)
	if closed, ok := AsClose(err); !ok || closed.Code != 404 || closed.Channel != 1 {
		t.Errorf("got %v", err)
	}
	if e := c.Next(); e.Channel != 2 || e.Method.ID() != amqp091.MethodChannelClose {
		t.Errorf("got %v", e)
	}
	if c.Heartbeats() != 1 {
		t.Errorf("%d heartbeats", c.Heartbeats())
	}
}

// WIR-07: contents of two channels may interleave, with a heartbeat between.
func TestInterleavedContents(t *testing.T) {
	deliver := amqp091.BasicDeliver{DeliveryTag: 1}
	props := []byte{0, 0}
	var b []byte
	b = deliver.Append(b, 1)
	b = deliver.Append(b, 2)
	b = AppendFrame(b, amqp091.FrameHeader, 1, HeaderPayload(60, 0, 4, props))
	b = AppendFrame(b, amqp091.FrameHeader, 2, HeaderPayload(60, 0, 0, props))
	b = AppendFrame(b, amqp091.FrameBody, 1, []byte("ab"))
	b = amqp091.AppendHeartbeat(b)
	b = AppendFrame(b, amqp091.FrameBody, 1, nil)
	b = AppendFrame(b, amqp091.FrameBody, 1, []byte("cd"))
	c := New(t, serveFrames(t, b), Options{})
	if _, m := ExpectContent[amqp091.BasicDeliver](c, 2); len(m.Body) != 0 || m.BodyFrames != 0 {
		t.Errorf("got %+v", m)
	}
	if _, m := ExpectContent[amqp091.BasicDeliver](c, 1); string(m.Body) != "abcd" || m.BodyFrames != 3 {
		t.Errorf("got %+v", m)
	}
}

// What a broken server sends is an error that names it, never a hang or a panic.
func TestPeerFaults(t *testing.T) {
	deliver := (&amqp091.BasicDeliver{}).Append(nil, 1)
	header := AppendFrame(nil, amqp091.FrameHeader, 1, HeaderPayload(60, 0, 1, []byte{0, 0}))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"frame over frame-max":  {amqp091.AppendFrameHead(nil, 3, 1, 4089), "over the limit of 4088"},
		"wrong end octet":       {[]byte{1, 0, 1, 0, 0, 0, 0, 0xCD}, "ends in 0xcd"},
		"unknown frame type":    {AppendFrame(nil, 9, 1, nil), "unknown type 9"},
		"unknown method":        {AppendFrame(nil, 1, 1, []byte{0, 60, 0, 41}), "unknown method 60.41"},
		"short method":          {AppendFrame(nil, 1, 1, []byte{0, 60}), "method frame of 2 octets"},
		"undecodable method":    {AppendFrame(nil, 1, 1, []byte{0, 60, 0, 80, 1}), "basic.ack"},
		"heartbeat on channel":  {AppendFrame(nil, 8, 1, nil), "heartbeat on channel 1"},
		"body without header":   {AppendFrame(nil, 3, 1, nil), "without a content header"},
		"header without method": {header, "no method announced"},
		"method in content":     {join(deliver, deliver), "inside the content"},
		"header of other class": {join(deliver, AppendFrame(nil, 2, 1, HeaderPayload(50, 0, 1, []byte{0, 0}))), "bad content header"},
		"bad properties":        {join(deliver, AppendFrame(nil, 2, 1, HeaderPayload(60, 0, 1, []byte{0, 1}))), "properties of"},
		"body too long":         {join(deliver, header, AppendFrame(nil, 3, 1, []byte("xy"))), "announced were 1"},
		"protocol header":       {amqp091.ProtocolHeader[:], "protocol header"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := New(t, serveFrames(t, c.in), Options{})
			if _, err := conn.Read(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEOFAndQuiet(t *testing.T) {
	cont := make(chan struct{})
	addr := script(t, func(s *Conn) error {
		err := welcome(s)
		<-cont
		return errors.Join(err, s.SendHeartbeat())
	})
	c := New(t, addr, Options{})
	c.Quiet(10 * time.Millisecond)
	close(cont)
	c.EOF()
	if err := c.ExpectQuiet(time.Second); !errors.Is(err, ErrClosed) {
		t.Errorf("quiet after the end: %v", err)
	}

	ack := (&amqp091.BasicAck{DeliveryTag: 1}).Append(nil, 1)
	c = New(t, serveFrames(t, bytes.Repeat(ack, 2)), Options{})
	if err := c.ExpectEOF(); err == nil || !strings.Contains(err.Error(), "got basic.ack on channel 1") {
		t.Errorf("end: %v", err)
	}
	if err := c.ExpectQuiet(time.Second); err == nil || !strings.Contains(err.Error(), "got basic.ack on channel 1") {
		t.Errorf("quiet: %v", err)
	}
}

func TestStartHeartbeats(t *testing.T) {
	addr := script(t, func(s *Conn) error {
		err := welcome(s)
		for err == nil && s.Heartbeats() < 3 {
			_, err = s.ReadFrame()
		}
		return errors.Join(err, s.SendMethod(0, &amqp091.ConnectionUnblocked{}), s.ExpectEOF())
	})
	c := New(t, addr, Options{Heartbeat: 1})
	stop := c.StartHeartbeats(time.Millisecond)
	Expect[amqp091.ConnectionUnblocked](c, 0)
	stop()
	stop()
}
