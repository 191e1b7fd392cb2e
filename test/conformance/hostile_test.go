package conformance

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"ringmq/test/harness"
)

// bystander keeps publishing, confirming and consuming on connections of its own while others misbehave.
type bystander struct {
	t    *testing.T
	pub  *client
	con  *client
	q    string
	sent int
}

func newBystander(t *testing.T, b *harness.Broker) *bystander {
	t.Helper()
	s := &bystander{t: t, pub: connect(t, b).open(1), con: connect(t, b).open(1)}
	s.q = s.pub.newQueue(1)
	s.pub.confirm(1)
	s.con.consume(1, s.q, "t", false)
	return s
}

// check moves a few messages through and fails the test if anything is lost, reordered or late beyond waitMax.
func (s *bystander) check() {
	s.t.Helper()
	for range 5 {
		s.sent++
		body := fmt.Sprint(s.sent)
		s.pub.publish(1, "", s.q, body)
		if f := s.pub.next(); f.id() != m(60, 80) {
			s.t.Fatalf("the bystander got %v, want its ack", f)
		}
		got := s.con.deliver(1)
		if got.body != body {
			s.t.Fatalf("the bystander got %q, want %q", got.body, body)
		}
		s.con.ack(1, got.tag, false)
	}
}

// TestKilledClients: resets in the middle of everything disturb nobody and give messages back.
func TestKilledClients(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		q := s.pub.newQueue(1)
		for i := range 40 {
			c := connect(t, b).open(1, 2)
			c.consume(1, q, "t", i%2 == 0)
			c.publishAll(2, q, numbered(50)...)
			out := contentFrames(2, publishArgs("", q, false, false), []byte{0, 0}, make([]byte, 5000), 4096)
			c.write(out[:1+i*len(out)/41]) // ends anywhere in method, header or body
			c.cut()
			s.check()
		}
		s.con.method(1, 60, 30, args().ss("t").bits(false))
		s.con.expect(1, 60, 31)
		if _, consumers := s.pub.depth(1, q); consumers != 0 {
			eventually(t, "all consumers of dead connections go", func() bool {
				_, consumers := s.pub.depth(1, q)
				return consumers == 0
			})
		}
		if n := s.pub.purge(1, q); n == 0 {
			t.Error("nothing left of 2000 messages")
		}
	})
}

// TestStalledConsumer: a consumer that never reads its socket holds up nobody, and is offered a bounded amount only.
func TestStalledConsumer(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		stalled := connect(t, b).open(1)
		if tcp, ok := stalled.nc.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4096)
		}
		q := s.pub.newQueue(1)
		stalled.consume(1, q, "t", true)
		feed := connect(t, b).open(1)
		body := strings.Repeat("x", 32<<10)
		const count = 2000 // 64 MB
		for i := range count {
			feed.publish(1, "", q, body)
			if i%200 == 0 {
				s.check()
			}
		}
		feed.sync(1)
		s.check()
		// The queue keeps most of it: what a stalled socket was given is bounded.
		var ready uint32
		eventually(t, "the stalled consumer's queue holds most messages", func() bool {
			ready, _ = feed.depth(1, q)
			return ready > count/2
		})
		// A second consumer of the same queue gets the rest although the first one is stuck.
		fast := connect(t, b).open(1)
		fast.consume(1, q, "u", true)
		for range ready / 2 {
			fast.deliver(1)
		}
		stalled.cut()
		s.check()
		feed.deleteQueue(1, q, flags{})
	})
}

// TestStalledPublisher: half a message for ever does not hold up others, nor the same queue.
func TestStalledPublisher(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		out := contentFrames(1, publishArgs("", s.q, false, false), []byte{0, 0}, make([]byte, 100_000), 131072)
		for _, n := range []int{1, 6, 7, 20, len(out) / 2, len(out) - 1} {
			c := connect(t, b).open(1)
			c.write(out[:n])
			s.check()
		}
	})
}

// TestNeverReadsConfirms: a confirming publisher that never reads, and one that never reads returns.
func TestNeverReadsConfirms(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		c := connect(t, b).open(1)
		c.confirm(1)
		body := []byte(strings.Repeat("r", 8<<10))
		returned := contentFrames(1, publishArgs("", "nobody", true, false), []byte{0, 0}, body, 131072)
		// Writes until the broker pushes back or 64 MB are gone; either is fine, as long as others go on.
		_ = c.nc.SetWriteDeadline(time.Now().Add(2 * time.Second))
		for range 8000 {
			if _, err := c.nc.Write(returned); err != nil {
				break
			}
		}
		s.check()
		c.cut()
		s.check()
	})
}

// TestCorruptClients: random bytes, at the start and after a good handshake, end only their own connection.
func TestCorruptClients(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		rnd := rand.New(rand.NewPCG(seed, 1))
		for i := range 60 {
			var c *client
			if i%3 == 0 {
				c = dialTCP(t, b)
			} else {
				c = connect(t, b).open(1)
			}
			junk := make([]byte, 1+rnd.IntN(4000))
			for j := range junk {
				junk[j] = byte(rnd.Uint32())
			}
			if i%3 == 2 { // a good prefix with bytes turned
				junk = contentFrames(1, publishArgs("", "junk", false, false), props{headers: table("a", "b")}.encode(), junk, 1024)
				for range 1 + rnd.IntN(5) {
					junk[rnd.IntN(len(junk))] ^= byte(1 + rnd.IntN(255))
				}
			}
			_ = c.nc.SetDeadline(time.Now().Add(waitMax))
			_, _ = c.nc.Write(junk)
			if tcp, ok := c.nc.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			if i%10 == 0 {
				s.check()
			}
		}
		s.check()
	})
}

// TestByteByByte: a whole session written one byte at a time.
func TestByteByByte(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := dialTCP(t, b)
		drip := func(out []byte) {
			for i := range out {
				c.write(out[i : i+1])
			}
		}
		if tcp, ok := c.nc.(*net.TCPConn); ok {
			_ = tcp.SetNoDelay(true)
		}
		drip([]byte("AMQP\x00\x00\x09\x01"))
		c.expect(0, 10, 10)
		drip(methodFrame(0, 10, 11, args().table(capabilities()).ss("PLAIN").ls(plainGuest).ss("en_US")))
		c.expect(0, 10, 30)
		drip(methodFrame(0, 10, 31, args().u16(10).u32(4096).u16(0)))
		drip(methodFrame(0, 10, 40, args().ss("/").ss("").bits(false)))
		c.expect(0, 10, 41)
		q := unique("q")
		drip(methodFrame(1, 20, 10, args().ss("")))
		c.expect(1, 20, 11)
		drip(methodFrame(1, 50, 10, queueArgs(q, flags{exclusive: true}, table("x-own", "v"))))
		c.expect(1, 50, 11)
		p := props{contentType: "a", headers: table("k", "v")}
		drip(contentFrames(1, publishArgs("", q, false, false), p.encode(), []byte(strings.Repeat("drop", 2000)), 4096))
		drip(methodFrame(1, 60, 70, getArgs(q, true)))
		d := c.expect(1, 60, 71)
		var msg message
		d.u64()
		c.content(1, &msg)
		if msg.body != strings.Repeat("drop", 2000) || string(msg.properties) != string(p.encode()) {
			t.Error("the message changed")
		}
	})
}

// TestOddChunks: many messages cut at random places, so that frames straddle the broker's buffers everywhere.
func TestOddChunks(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		c, con := connect(t, b).open(1), connect(t, b).open(1)
		q := c.newQueue(1)
		var out []byte
		var want []string
		for i := range 400 {
			body := strings.Repeat(string(rune('a'+i%26)), rnd.IntN(1<<uint(rnd.IntN(16))))
			want = append(want, body)
			out = append(out, contentFrames(1, publishArgs("", q, false, false), props{messageID: fmt.Sprint(i)}.encode(),
				[]byte(body), 512+rnd.IntN(8000))...)
		}
		con.consume(1, q, "t", true)
		for len(out) > 0 {
			n := min(len(out), 1+rnd.IntN(1<<uint(rnd.IntN(17))))
			c.write(out[:n])
			out = out[n:]
		}
		con.deliverBodies(1, want...)
	})
}

// TestHugeAnnouncements: sizes that are announced and never sent take no memory and disturb nobody.
func TestHugeAnnouncements(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		for range 50 {
			c := connect(t, b).open(1)
			c.method(1, 60, 40, publishArgs("", "k", false, false))
			c.frame(2, 1, headerPayload(100<<20, []byte{0, 0}))
			c.frame(3, 1, []byte("a start"))
		}
		s.check()
	})
}

// TestHalfOpenHandshakes: a thousand connections that stop in the handshake while others work.
func TestHalfOpenHandshakes(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		var wg sync.WaitGroup
		gate := make(chan struct{}, 50)
		conns := make([]net.Conn, 1000)
		for i := range conns {
			wg.Add(1)
			gate <- struct{}{}
			go func() {
				defer func() { <-gate; wg.Done() }()
				nc, err := net.DialTimeout("tcp", b.Addr, waitMax)
				if err != nil {
					t.Errorf("dial %d: %v", i, err)
					return
				}
				conns[i] = nc
				switch i % 3 {
				case 0: // silent
				case 1:
					_, _ = nc.Write([]byte("AMQ"))
				default:
					_, _ = nc.Write([]byte("AMQP\x00\x00\x09\x01"))
				}
			}()
		}
		wg.Wait()
		s.check()
		connect(t, b).open(1).sync(1)
		// All of them are dropped at the handshake limit.
		deadline := time.Now().Add(waitMax)
		for i, nc := range conns {
			if nc == nil {
				continue
			}
			_ = nc.SetReadDeadline(deadline)
			if _, err := io.Copy(io.Discard, nc); err != nil {
				if ne, ok := err.(net.Error); ok && ne.Timeout() {
					t.Fatalf("connection %d is still open", i)
				}
			}
			_ = nc.Close()
		}
		s.check()
	})
}

// TestManyChannels: the whole offer of channels on one connection, each with its own queue and consumer.
func TestManyChannels(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b)
		count := uint16(c.offer[0])
		var out []byte
		for ch := uint16(1); ch <= count; ch++ {
			out = append(out, methodFrame(ch, 20, 10, args().ss(""))...)
			out = append(out, methodFrame(ch, 50, 10, queueArgs("", flags{exclusive: true}, ""))...)
			out = append(out, methodFrame(ch, 60, 20, consumeArgs("", "t", false, true, false, false, ""))...)
		}
		done := make(chan struct{})
		go func() { // the answers must be read meanwhile
			defer close(done)
			_, _ = c.nc.Write(out)
		}()
		names := make(map[uint16]string, count)
		for range int(count) * 3 {
			f := c.next()
			switch f.id() {
			case m(20, 11), m(60, 21):
			case m(50, 11):
				names[f.channel] = (&dec{t, f.payload[4:]}).ss()
			default:
				t.Fatalf("got %v", f)
			}
		}
		<-done
		for ch := uint16(1); ch <= count; ch += 97 {
			c.publish(ch, "", names[ch], fmt.Sprint(ch))
			c.deliverBodies(ch, fmt.Sprint(ch))
		}
		c.shut()
	})
}

// TestConnectionStorm: connections that come, work and go at once, many at a time.
func TestConnectionStorm(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		for worker := range 8 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for i := range 25 {
					c := connect(t, b).open(1)
					q, _, _ := c.queue(1, "", flags{exclusive: true}, "")
					c.consume(1, q, "t", false)
					c.publish(1, "", q, "x")
					c.deliverBodies(1, "x")
					switch i % 3 {
					case 0:
						c.shut()
					case 1:
						_ = c.nc.Close()
					default:
						c.cut()
					}
				}
			})
		}
		s.check()
	})
}
