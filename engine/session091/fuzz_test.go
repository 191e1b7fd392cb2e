package session091

import (
	"io"
	"slices"
	"testing"

	"ringmq/engine"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// framed makes well-formed frames of arbitrary bytes: type, channel and length of
// each are taken from the input, so that most of what follows gets past the
// framing.
func framed(data []byte) (b []byte) {
	for len(data) >= 3 {
		typ, ch, n := [4]byte{1, 1, 2, 3}[data[0]&3], uint16(data[1]&3), int(data[2])
		data = data[3:]
		n = min(n, len(data))
		b = amqp091.AppendFrameHead(b, typ, ch, uint32(n))
		b = append(append(b, data[:n]...), amqp091.FrameEnd)
		data = data[n:]
	}
	return b
}

// unframed is the inverse, for seeds: frames without their heads.
func unframed(b []byte) (data []byte) {
	for len(b) >= amqp091.FrameOverhead {
		h := amqp091.ParseFrameHead(b)
		n := int(h.Size)
		if n > 255 || len(b) < n+amqp091.FrameOverhead {
			break
		}
		typ := map[byte]byte{1: 0, 2: 2, 3: 3}[h.Type]
		data = append(data, typ, byte(h.Channel), byte(n))
		data = append(data, b[amqp091.FrameHeaderSize:amqp091.FrameHeaderSize+n]...)
		b = b[n+amqp091.FrameOverhead:]
	}
	return data
}

// sweep ends what a fuzzed connection left in the broker and checks that nothing
// else is left of it.
func (s *bareServer) sweep(t *testing.T, c *conn) {
	t.Helper()
	s.backend.port.Ended(c.rc, io.EOF)
	s.turn()
	s.turn()
	v := s.Broker.VHost("/")
	v.Queues(func(q *queue.Queue) {
		if q.Unacked() != 0 || q.Consumers() != 0 {
			t.Errorf("%d unacked and %d consumers of nobody in %q", q.Unacked(), q.Consumers(), q.Name)
		}
		s.lp.shard.DeleteQueue(q)
	})
	v.Exchanges(func(x *engine.Exchange) { _ = v.DeleteExchange(x.Name, false) })
	for range 20 {
		s.turn()
	}
	slab := s.lp.loop.Slab()
	slab.Collect()
	st := s.lp.loop.Stats()
	if n := slab.Stats().LiveBlocks; n != 0 || st.SharedLive != 0 || st.OutChunksLive > 1 || len(s.lp.conns) != 0 {
		t.Fatalf("%d blocks, %d shared tokens, %d output chunks, %d connections are left", n, st.SharedLive, st.OutChunksLive, len(s.lp.conns))
	}
	if n := len(s.lp.resume) + len(s.lp.stalled) + len(s.lp.paced) + len(s.lp.confirming); n != 0 {
		t.Fatalf("the loop still has %d things to do", n)
	}
}

// FuzzConnection gives arbitrary bytes to an open connection: whatever they are,
// the broker goes on, and nothing of them is left when the connection ends.
func FuzzConnection(f *testing.F) {
	open := handshakeBytes()
	whole := story()
	f.Add(false, byte(0), whole[len(open):])
	f.Add(true, byte(0), unframed(whole[len(open):]))
	for _, end := range ends() {
		f.Add(false, byte(3), end)
		f.Add(true, byte(0), unframed(slices.Concat(declareMethod("q", nil).(*amqp091.QueueDeclare).Append(nil, 1), end)))
	}
	f.Add(true, byte(0), unframed((&amqp091.ExchangeDeclare{Exchange: []byte("x"), Type: []byte("topic"), AutoDelete: true}).Append(nil, 1)))
	s := newBareServer(f)
	f.Fuzz(func(t *testing.T, frames bool, cut byte, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		if frames {
			data = framed(data)
		}
		c := s.open()
		for len(data) > 0 {
			n := len(data)
			if cut > 0 {
				n = min(n, int(cut))
			}
			s.give(c, data[:n])
			data = data[n:]
			if cut%3 != 0 || len(data) == 0 {
				s.turn()
			}
		}
		s.sweep(t, c)
	})
}

// FuzzHandshake gives arbitrary bytes to a connection that has said nothing yet.
func FuzzHandshake(f *testing.F) {
	open := handshakeBytes()
	f.Add(byte(0), open)
	f.Add(byte(1), open)
	f.Add(byte(0), []byte("AMQP\x00\x00\x09\x01"))
	f.Add(byte(0), []byte("AMQP\x00\x01\x00\x00"))
	f.Add(byte(0), []byte("GET / HTTP/1.1\r\n\r\n"))
	s := newBareServer(f)
	f.Fuzz(func(t *testing.T, cut byte, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		c := s.accept()
		for len(data) > 0 {
			n := len(data)
			if cut > 0 {
				n = min(n, int(cut))
			}
			s.give(c, data[:n])
			data = data[n:]
		}
		s.turn()
		s.sweep(t, c)
	})
}
