package session091

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringmq/frame/amqp091"
	"ringmq/ring/sim"
)

// stream writes the bytes that a client sends.
type stream struct{ b []byte }

func (s *stream) method(ch uint16, m amqp091.Method) { s.b = m.Append(s.b, ch) }

func (s *stream) publish(ch uint16, exchange, key string, props []byte, size, frameMax int) {
	s.b = publishFrames(s.b, ch, exchange, key, size%2 == 1, props, numbered(uint64(len(s.b)), size)[:size], frameMax)
}

// story is a session with a bit of everything whose outcome does not depend on
// when its bytes arrive: it acknowledges only what it got by basic.get.
func story() []byte {
	s := &stream{b: handshakeBytes()}
	props := (&amqp091.Properties{Flags: amqp091.FlagHeaders | amqp091.FlagDeliveryMode | amqp091.FlagMessageID,
		DeliveryMode: 2, MessageID: []byte("id"), Headers: amqp091.AppendString(nil, "a", "1")}).Append(nil)
	q := []byte("q")
	s.method(2, &amqp091.ChannelOpen{})
	s.method(2, &amqp091.ConfirmSelect{})
	s.method(1, &amqp091.QueueDeclare{Queue: q})
	s.method(1, &amqp091.QueueBind{Queue: q, Exchange: []byte("amq.headers"), Arguments: amqp091.AppendString(nil, "a", "1")})
	s.b = amqp091.AppendHeartbeat(s.b)
	s.publish(2, "", "q", nil, 0, 4096)
	s.publish(2, "amq.headers", "k", props, 20, 4096)
	s.publish(2, "amq.headers", "k", nil, 9, 4096) // returned
	s.publish(2, "", "q", props, 150, 64)          // in many small frames
	s.method(1, &amqp091.QueueDeclare{Queue: q, Passive: true})
	for range 3 {
		s.method(1, &amqp091.BasicGet{Queue: q})
	}
	s.method(1, &amqp091.BasicNack{DeliveryTag: 2, Requeue: true})
	s.method(1, &amqp091.BasicAck{DeliveryTag: 3})
	s.method(1, &amqp091.BasicGet{Queue: q, NoAck: true})
	s.method(1, &amqp091.BasicGet{Queue: q})
	s.method(1, &amqp091.BasicAck{DeliveryTag: 1, Multiple: true})
	s.method(1, &amqp091.BasicConsume{Queue: q, ConsumerTag: []byte("c"), NoAck: true})
	s.publish(1, "", "q", nil, 33, 4096)
	s.publish(1, "", "q", props, 40, 30)
	s.method(1, &amqp091.BasicCancel{ConsumerTag: []byte("nobody")})
	s.method(2, &amqp091.QueuePurge{Queue: []byte("nope")}) // an error, and more behind it
	s.publish(2, "", "q", nil, 12, 4096)
	s.method(2, &amqp091.BasicGet{Queue: q})
	s.method(2, &amqp091.ChannelCloseOk{})
	s.method(2, &amqp091.ChannelOpen{})
	s.method(2, &amqp091.TxSelect{})
	s.publish(2, "", "q", nil, 5, 4096)
	s.method(2, &amqp091.TxRollback{})
	s.publish(2, "", "q", nil, 6, 4096)
	s.method(2, &amqp091.TxCommit{})
	s.method(2, &amqp091.ChannelClose{ReplyCode: 200})
	return s.b
}

// ends are the ways in which a story may end, well or badly.
func ends() map[string][]byte {
	frame := func(typ byte, ch uint16, payload string, end byte) []byte {
		b := amqp091.AppendFrameHead(nil, typ, ch, uint32(len(payload)))
		return append(append(b, payload...), end)
	}
	publish := (&amqp091.BasicPublish{RoutingKey: []byte("q")}).Append(nil, 1)
	header := func(class byte, size uint64, props ...byte) []byte {
		b := amqp091.AppendContentHeader(nil, 1, size, append([]byte{0, 0}, props...))
		b[8] = class
		return b
	}
	after := (&amqp091.BasicGet{Queue: []byte("q")}).Append(nil, 1)
	return map[string][]byte{
		"close":          (&amqp091.ConnectionClose{ReplyCode: 200}).Append(nil, 0),
		"bad end octet":  slices.Concat(frame(1, 1, "\x00\x3c\x00\x46\x00\x00\x01q\x00", 0xCD), after),
		"unknown type":   slices.Concat(frame(5, 1, "xyz", 0xCE), after),
		"too large":      amqp091.AppendFrameHead(nil, 1, 1, 1<<20),
		"unknown method": slices.Concat(frame(1, 1, "\x00\x3c\x03\xe7", 0xCE), after),
		"undecodable":    slices.Concat(frame(1, 1, "\x00\x3c\x00\x50\x00\x00", 0xCE), after),
		"short method":   slices.Concat(frame(1, 1, "\x00", 0xCE), after),
		"no channel":     slices.Concat(frame(1, 77, "\x00\x3c\x00\x46\x00\x00\x01q\x00", 0xCE), after),
		"stray header":   slices.Concat(header(60, 4), after),
		"stray body":     slices.Concat(frame(3, 1, "more than twelve bytes", 0xCE), after),
		"wrong class":    slices.Concat(publish, header(50, 4), after),
		"body too long":  slices.Concat(publish, header(60, 4), frame(3, 1, "12345", 0xCE), after),
		"body in method": slices.Concat(publish, header(60, 4), after),
		"no header":      slices.Concat(publish, frame(3, 1, "1234", 0xCE), after),
		"bad body end":   slices.Concat(publish, header(60, 4), frame(3, 1, "1234", 0x00), after),
		"bad properties": slices.Concat(publish, header(60, 4, 1, 2, 3), after),
		"cut off":        after[:len(after)-3],
		"wrong channel":  slices.Concat(frame(8, 1, "", 0xCE), after),
	}
}

// endCodes are the answers to ends that are errors.
var endCodes = map[string]int{
	"bad end octet": 501, "unknown type": 501, "too large": 501, "unknown method": 503, "undecodable": 501,
	"short method": 501, "no channel": 504, "stray header": 505, "stray body": 505, "wrong class": 505,
	"body too long": 501, "body in method": 505, "no header": 505, "bad body end": 501, "bad properties": 501,
	"wrong channel": 505,
}

// outcome plays a story in pieces and tells what came of it, leaving out what
// may differ with time: how replies, deliveries and confirms interleave.
func outcome(t *testing.T, seed uint64, far bool, pieces [][]byte) string {
	w := newWorld(t, seed, 2)
	w.SetFaults(sim.Faults{ReadMax: 1 << 20})
	if far { // the queue lives on the other loop: the connection has to wait
		c := w.dial(1)
		c.channel(1)
		c.declare(1, "q", nil)
	}
	c := w.dialRaw(0)
	for _, p := range pieces {
		c.peer.Write(p)
		w.rest()
	}
	replies, deliveries, confirms := map[uint16]string{}, "", map[uint64]string{}
	last := uint64(0)
	for _, e := range c.got {
		sum := fmt.Sprintf("%x %d:%08x", e.props, len(e.body), crc32.ChecksumIEEE(e.body))
		switch m := e.m.(type) {
		case *amqp091.BasicDeliver:
			deliveries += fmt.Sprintf("%d %v %s; ", m.DeliveryTag, m.Redelivered, sum)
		case *amqp091.BasicAck:
			for last < m.DeliveryTag {
				last++
				confirms[last] = "ack"
			}
		case *amqp091.ConnectionStart:
		default:
			replies[e.ch] += fmt.Sprintf("%s %+v %s; ", m.ID(), m, sum)
		}
	}
	text := fmt.Sprintf("deliveries %s\nconfirms %d\n", deliveries, len(confirms))
	for ch := range uint16(3) {
		text += fmt.Sprintf("channel %d: %s\n", ch, replies[ch])
	}
	for sc := range w.srv.loops[0].conns {
		text += fmt.Sprintf("state %s, channels %d\n", sc.state, sc.channels)
	}
	q := w.queue("q")
	text += fmt.Sprintf("ready %d, unacked %d, published %d, delivered %d, acked %d, EOF %v", q.Ready(), q.Unacked(), q.Published, q.Delivered, q.Acked, c.peer.EOF())
	w.finish()
	return text
}

// differ shows where two outcomes differ.
func differ(a, b string) string {
	for i, line := range strings.Split(a, "\n") {
		if other := strings.Split(b, "\n"); i >= len(other) || other[i] != line {
			return fmt.Sprintf("%s\nwant\n%s", strings.Join(other[min(i, len(other)):], "\n"), line)
		}
	}
	return b
}

// cuts are the ways to send b in two pieces, the whole of it first.
func cuts(b []byte) (ways [][][]byte) {
	ways = append(ways, [][]byte{b})
	for at := 1; at < len(b); at++ {
		ways = append(ways, [][]byte{b[:at], b[at:]})
	}
	return ways
}

// shred cuts b into pieces of up to size bytes.
func shred(rng *rand.Rand, b []byte, size int) (pieces [][]byte) {
	for len(b) > 0 {
		n := min(1+rng.IntN(size), len(b))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// TestSplitAnywhere: a session whose bytes arrive in two pieces, cut at any byte,
// comes out as if they had arrived at once. The end waits for the deliveries:
// whether they go out before it is a matter of time.
func TestSplitAnywhere(t *testing.T) {
	b, end := story(), ends()["close"]
	for _, far := range []bool{false, true} {
		want := outcome(t, 0, far, [][]byte{b, end})
		if !strings.Contains(want, "connection.close-ok") || !strings.Contains(want, "confirms 4") {
			t.Fatalf("the story does not come to its end:\n%s", want)
		}
		for cut, pieces := range cuts(b) {
			if cut%seedShare != 0 {
				continue
			}
			if got := outcome(t, uint64(cut), far, append(pieces, end)); got != want {
				t.Fatalf("far %v, cut at %d of %d:\n%s", far, cut, len(b), differ(want, got))
			}
		}
	}
}

// TestSplitEnds: the same for every way to end, well or badly.
func TestSplitEnds(t *testing.T) {
	b := story()
	for name, end := range ends() {
		want := outcome(t, 0, false, [][]byte{b, end})
		if code := endCodes[name]; code != 0 && !strings.Contains(want, fmt.Sprintf("connection.close &{ReplyCode:%d", code)) {
			t.Errorf("%s is not answered with %d:\n%s", name, code, want)
		}
		for cut, pieces := range cuts(end) {
			if got := outcome(t, uint64(cut), false, append([][]byte{b}, pieces...)); got != want {
				t.Fatalf("%s, cut at %d of %d:\n%s", name, cut, len(end), differ(want, got))
			}
		}
	}
}

// TestSplitAtRandom: in many pieces, down to single bytes.
func TestSplitAtRandom(t *testing.T) {
	b := story()
	for name, end := range ends() {
		for _, far := range []bool{false, true} {
			want := outcome(t, 0, far, [][]byte{b, end})
			for seed := range seeds(t, 8) {
				rng := rand.New(rand.NewPCG(seed, 6))
				size := []int{1, 10, 100, 700}[seed%4]
				pieces := append(shred(rng, b, size), shred(rng, end, size)...)
				if got := outcome(t, seed, far, pieces); got != want {
					t.Fatalf("%s, far %v, seed %d, %d pieces:\n%s", name, far, seed, len(pieces), differ(want, got))
				}
			}
		}
	}
}
