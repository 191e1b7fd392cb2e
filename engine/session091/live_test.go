package session091

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"

	"ringmq/frame/amqp091"
	"ringmq/ring"
)

// live is a server on two real loops, for what operators do from other goroutines.
type live struct {
	*testing.T
	*Server
	addr string
}

func newLive(t *testing.T) *live {
	s := NewServer(Options{ChannelMax: 2047, Version: "0.0.0", Loops: 2})
	group, err := ring.New(ring.Options{Cores: []int{0, 0}, Backend: "epoll"}, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Bind(group.Loops())
	addr, err := group.Listen("127.0.0.1:0")
	if err == nil {
		err = group.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Drain(context.Background(), "shutdown")
		if err := group.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &live{T: t, Server: s, addr: addr.String()}
}

// wire is a client's end of a connection to it.
type wire struct {
	*live
	conn net.Conn
	in   *bufio.Reader
}

// open dials and opens a vhost. It returns why that is refused.
func (l *live) open(vhost string) (*wire, string) {
	l.Helper()
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { conn.Close() })
	w := &wire{l, conn, bufio.NewReader(conn)}
	w.write(amqp091.ProtocolHeader[:])
	w.next(amqp091.MethodConnectionStart)
	w.send(0, startOk())
	w.next(amqp091.MethodConnectionTune)
	w.send(0, &amqp091.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072})
	w.send(0, &amqp091.ConnectionOpen{VirtualHost: []byte(vhost)})
	if refused := w.answer(amqp091.MethodConnectionOpenOk); refused != "" {
		return nil, refused
	}
	return w, ""
}

// mustOpen opens the vhost and channel 1.
func (l *live) mustOpen(vhost string) *wire {
	l.Helper()
	w, refused := l.open(vhost)
	if w == nil {
		l.Fatal(refused)
	}
	w.call(1, &amqp091.ChannelOpen{}, amqp091.MethodChannelOpenOk)
	return w
}

func (w *wire) write(b []byte) {
	w.Helper()
	if _, err := w.conn.Write(b); err != nil {
		w.Fatal(err)
	}
}

func (w *wire) send(ch uint16, m amqp091.Method) { w.write(m.Append(nil, ch)) }

// read is the next method.
func (w *wire) read() amqp091.Method {
	w.Helper()
	head := make([]byte, amqp091.FrameHeaderSize)
	if _, err := io.ReadFull(w.in, head); err != nil {
		w.Fatal(err)
	}
	payload := make([]byte, amqp091.ParseFrameHead(head).Size+1)
	if _, err := io.ReadFull(w.in, payload); err != nil {
		w.Fatal(err)
	}
	m := amqp091.New(methodID(payload))
	if m == nil {
		w.Fatalf("a frame that is no method: %x %x", head, payload)
	}
	if err := m.Decode(payload[4 : len(payload)-1]); err != nil {
		w.Fatal(err)
	}
	return m
}

// answer reads one method: the one that is awaited, or a close, whose text it returns.
// A close of the connection is answered.
func (w *wire) answer(id amqp091.MethodID) (closed string) {
	w.Helper()
	switch m := w.read().(type) {
	case *amqp091.ConnectionClose:
		w.send(0, &amqp091.ConnectionCloseOk{})
		return string(m.ReplyText)
	case *amqp091.ChannelClose:
		return string(m.ReplyText)
	default:
		if m.ID() != id {
			w.Fatalf("got %s, want %s", m.ID(), id)
		}
	}
	return ""
}

func (w *wire) next(id amqp091.MethodID) {
	w.Helper()
	if closed := w.answer(id); closed != "" {
		w.Fatalf("%s, want %s", closed, id)
	}
}

func (w *wire) call(ch uint16, m amqp091.Method, id amqp091.MethodID) {
	w.Helper()
	w.send(ch, m)
	w.next(id)
}

// close ends the connection in an orderly way.
func (w *wire) close() {
	w.Helper()
	w.call(0, &amqp091.ConnectionClose{ReplyCode: 200}, amqp091.MethodConnectionCloseOk)
}
