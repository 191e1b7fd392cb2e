package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringmq/test/harness"
)

// TestClockAfterIdle: a broker that slept measures times to live from now, not from when it fell asleep.
func TestClockAfterIdle(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0"}, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.newQueue(1)
		gone := unique("q")
		c.queue(1, gone, flags{}, table("x-expires", int64(1500)))
		c.consume(1, gone, "t", true)
		time.Sleep(2500 * time.Millisecond) // idleness is the condition under test
		c.publishWith(1, publishArgs("", q, false, false), props{expiration: "1000"}, []byte("fresh"))
		if got := c.mustGet(1, q, true); got.body != "fresh" {
			t.Errorf("got %q", got.body)
		}
		c.cancel(1, "t")
		time.Sleep(100 * time.Millisecond) // the queue may live for 1.5 s more
		c.depth(1, gone)
	})
}

// TestDeadlineSurvivesTouch: the timer of a queue serves both its own expiry and its messages'.
func TestDeadlineSurvivesTouch(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		dlq := c.newQueue(1)
		c.consume(2, dlq, "d", true)
		q := unique("q")
		c.queue(1, q, flags{}, table("x-expires", int64(60000), "x-message-ttl", int64(600),
			"x-dead-letter-exchange", "", "x-dead-letter-routing-key", dlq))
		c.qos(1, 1, false)
		c.consume(1, q, "t", false)
		c.publish(1, "", q, "held")
		c.publish(1, "", q, "due")
		if d := c.deliver(1); d.body != "held" {
			t.Fatalf("got %q", d.body)
		}
		c.depth(1, q) // touches the queue
		if d := c.deliver(2); d.body != "due" {
			t.Errorf("got %q", d.body)
		}
	})
}

func rss(t *testing.T, b *harness.Broker) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", b.PID))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// memoryBound is a bound on resident memory, wider where the race detector's shadow memory comes on top.
func memoryBound(bytes int) int {
	if os.Getenv("RINGMQ_TEST_RACE") != "" {
		return 5 * bytes
	}
	return bytes
}

// flood writes out again and again, never reading, until the broker takes no more or limit bytes are written.
func (c *client) flood(out []byte, limit int) (blocked bool) {
	c.t.Helper()
	_ = c.nc.SetWriteDeadline(time.Now().Add(5 * time.Second))
	for sent := 0; sent < limit; {
		n, err := c.nc.Write(out)
		sent += n
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return true
		}
		if err != nil {
			c.t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	return false
}

// TestUnreadReplies: whoever sends commands and never reads the answers is not read from for ever.
func TestUnreadReplies(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0"}, func(t *testing.T, b *harness.Broker) {
		s := newBystander(t, b)
		q := s.pub.newQueue(1)
		for name, one := range map[string][]byte{
			"get":     methodFrame(1, 60, 70, getArgs(q, true)),
			"declare": methodFrame(1, 50, 10, queueArgs(q, flags{passive: true}, "")),
			"return":  contentFrames(1, publishArgs("", "nobody", true, false), []byte{0, 0}, []byte(strings.Repeat("r", 1000)), 131072),
			"tags":    methodFrame(1, 60, 30, args().ss(strings.Repeat("t", 200)).bits(false)),
		} {
			before := rss(t, b)
			c := connect(t, b).open(1)
			if !c.flood([]byte(strings.Repeat(string(one), 1+60000/len(one))), 64<<20) {
				t.Errorf("%s: the broker goes on reading from a client that does not", name)
			}
			if grown := rss(t, b) - before; grown > memoryBound(24<<20) {
				t.Errorf("%s: the broker grew by %d bytes", name, grown)
			}
			s.check()
			c.cut()
		}
	})
}

// TestAbandonedContent: close-ok ends a closing channel even in the middle of a content.
func TestAbandonedContent(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, part := range []string{"method", "header", "body"} {
			c := connect(t, b).open(1)
			q := c.newQueue(1)
			c.publish(1, unique("missing"), "k", "x") // the channel fails
			out := methodFrame(1, 60, 40, publishArgs("", q, false, false))
			if part != "method" {
				out = appendFrame(out, 2, 1, headerPayload(10, []byte{0, 0}))
			}
			if part == "body" {
				out = appendFrame(out, 3, 1, []byte("half"))
			}
			c.write(out)
			if f := c.channelFault(1); f.code != 404 {
				t.Fatalf("%+v", f)
			}
			c.open(1)
			c.sync(1)
			c.shut()
		}
	})
}

// TestCON_22_BeforeFIN: every complete message that precedes the end of the stream is processed.
func TestCON_22_BeforeFIN(t *testing.T) {
	const count = 30000
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		watch := connect(t, b).open(1)
		for round := range 6 { // publisher and queue on the same loop and on two
			q := watch.newQueue(1)
			c := connect(t, b).open(1)
			var out []byte
			for i := range count {
				out = append(out, contentFrames(1, publishArgs("", q, false, false), []byte{0, 0}, []byte(fmt.Sprint(i)), 131072)...)
				if i%1000 == 500 {
					out = append(out, methodFrame(1, 50, 10, queueArgs(q, flags{passive: true, noWait: true}, ""))...)
				}
			}
			c.write(out)
			if tcp, ok := c.nc.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			deadline := time.Now().Add(waitMax)
			for {
				n, _ := watch.depth(1, q)
				if n == count {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("round %d: %d of %d messages arrived", round, n, count)
				}
				time.Sleep(10 * time.Millisecond)
			}
			watch.purge(1, q)
		}
	})
}

// keepBusy makes both loops of the broker take turns that are longer than a client's round trip, until the test ends:
// bursts of messages that each go to many queues.
func keepBusy(t *testing.T, b *harness.Broker) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{}, 2)
	x := ""
	for range 2 {
		feed := connect(t, b).open(1)
		if x == "" {
			x = feed.newExchange(1, "fanout")
			for range 2000 {
				feed.bind(1, feed.newLimited(1), x, "", "")
			}
		}
		feed.confirm(1)
		go func() {
			defer func() { done <- struct{}{} }()
			const burst = 5
			out := bytes.Repeat(contentFrames(1, publishArgs(x, "", false, false), []byte{0, 0}, []byte("load"), 131072), burst)
			for round := uint64(1); ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := feed.nc.Write(out); err != nil {
					return
				}
				for confirmed := uint64(0); confirmed < burst*round; {
					f, err := feed.read()
					if err != nil {
						return
					}
					confirmed = binary.BigEndian.Uint64(f.payload[4:])
				}
			}
		}()
	}
	t.Cleanup(func() {
		close(stop)
		<-done
		<-done
	})
}

// TestCloseIsDoneWhenAnswered: what a channel or connection held is free for others when its close-ok arrives, on
// whatever loop the queue and the others are, and however busy those are.
func TestCloseIsDoneWhenAnswered(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		keepBusy(t, b)
		var all []*client
		var queues []string
		for range 4 {
			c := connect(t, b).open(1)
			all = append(all, c)
			for range 4 {
				queues = append(queues, c.newQueue(1))
			}
		}
		for i := range 100 {
			holder, other, q := all[i%4], all[(i/4+i+1)%4], queues[i%len(queues)]
			if i%2 == 0 {
				holder = connect(t, b).open(1)
			}
			if holder == other {
				continue
			}
			holder.open(2)
			holder.publish(2, "", q, "m")
			holder.consumeWith(2, consumeArgs(q, "x", false, false, true, false, ""))
			holder.deliver(2)
			if i%2 == 0 {
				holder.shut()
			} else {
				holder.closeChannel(2)
			}
			other.open(3)
			if got := other.mustGet(3, q, true); !got.redelivered {
				t.Error("not marked as redelivered")
			}
			other.consumeWith(3, consumeArgs(q, "x", false, false, true, false, ""))
			other.closeChannel(3)
		}
	})
}

// TestChokedHeartbeat: a client that neither reads nor lets us read is as silent as one that is gone.
func TestChokedHeartbeat(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{heartbeat: 1}).open(1)
		// A long name makes long answers: what the kernel holds for a client is soon full.
		q := unique(strings.Repeat("q", 200))
		c.queue(1, q, flags{}, "")
		out := bytes.Repeat(methodFrame(1, 50, 10, queueArgs(q, flags{passive: true}, "")), 1000)
		for {
			// How long it takes to fill what the kernel holds depends on the machine.
			_ = c.nc.SetWriteDeadline(time.Now().Add(waitMax))
			_, err := c.nc.Write(out)
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				t.Fatalf("still connected after %v without a byte taken", waitMax)
			}
			if err != nil {
				return
			}
		}
	})
}

// newLimited declares a queue that keeps one message only.
func (c *client) newLimited(ch uint16) string {
	c.t.Helper()
	name := unique("q")
	c.queue(ch, name, flags{}, table("x-max-length", 1))
	return name
}

// TestSmallFramesBigMessage: one big message for many slow consumers with the smallest frames is one message in memory.
func TestSmallFramesBigMessage(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0"}, func(t *testing.T, b *harness.Broker) {
		const size, count = 16 << 20, 12
		pub := connect(t, b).open(1)
		x := pub.newExchange(1, "fanout")
		var cons []*client
		for range count {
			c := connectAs(t, b, login{frameMax: 4096}).open(1)
			q := c.newQueue(1)
			c.bind(1, q, x, "", "")
			c.consume(1, q, "t", true)
			cons = append(cons, c)
		}
		before := rss(t, b)
		body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		pub.confirm(1)
		pub.publishWith(1, publishArgs(x, "", false, false), props{}, body)
		pub.confirmed(1, 1)
		if grown := rss(t, b) - before; grown > 4*size {
			t.Errorf("%d bytes for %d consumers of a message of %d", grown, count, size)
		}
		for _, c := range cons {
			if d := c.deliver(1); d.body != string(body) {
				t.Error("the body changed")
			}
		}
	})
}
