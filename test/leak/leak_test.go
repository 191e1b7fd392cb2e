package leak

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

const (
	ordinaryMessages = 150_000
	// settleMax bounds the wait for the gauges after the last connection has closed; abruptly closed ones are noticed
	// at once because their sockets were reset.
	settleMax = 20 * time.Second
)

// gauges must be back at their baseline when all clients have gone and their queues are deleted.
var gauges = []string{
	"ringmq_connections", "ringmq_channels", "ringmq_consumers", "ringmq_queues", "ringmq_exchanges",
	"ringmq_messages_ready", "ringmq_messages_unacknowledged", "ringmq_deliveries_held", "ringmq_publishes_unconfirmed",
	"ringmq_input_waiting_bytes",
	"ringmq_loop_connections", "ringmq_loop_out_chunks", "ringmq_loop_receive_buffers", "ringmq_loop_shared_buffers",
	"ringmq_loop_slab_blocks", "ringmq_loop_slab_bytes",
	"go_goroutines",
}

func TestMain(m *testing.M) { harness.Main(m) }

// messages is how many messages a soak moves.
func messages(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("RINGMQ_SOAK")
	if text == "" {
		return ordinaryMessages
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		t.Fatalf("RINGMQ_SOAK=%q is not a number of messages", text)
	}
	return n
}

// TestSoak: 100 connections with acks, nacks, rejects, cancels and abrupt closes leave nothing behind.
func TestSoak(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		warmUp(t, b)
		baseline := read(t, b)
		descriptors, err := b.Descriptors()
		if err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		s := newSoak(t, b, messages(t))
		s.run()
		s.end()
		took := time.Since(started)
		awaitBaseline(t, b, baseline, descriptors)
		after := read(t, b)
		t.Logf("%d published, %d received in %v over %d connections; longest turn %.1f ms", s.published.Load(), s.received.Load(),
			took.Round(time.Millisecond), s.connections.Load(), after["ringmq_loop_longest_turn_seconds"]*1e3)
		for _, name := range []string{"process_resident_memory_bytes", "go_heap_objects_bytes", "ringmq_loop_slab_mapped_bytes"} {
			t.Logf("%s: %.1f MB, was %.1f MB", name, after[name]/1e6, baseline[name]/1e6)
		}
		warmUp(t, b) // it still works
	})
}

// TestQueueDeletedWithMessages: messages that go with their queue, and those that a consumer held then.
func TestQueueDeletedWithMessages(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		warmUp(t, b)
		baseline := read(t, b)
		descriptors, err := b.Descriptors()
		if err != nil {
			t.Fatal(err)
		}
		conn, ch := dial(t, b)
		for i, size := range []int{0, 16, 4000, 70_000, 1 << 20} {
			q := fmt.Sprintf("doomed-%d", i)
			if _, err := ch.QueueDeclare(q, i%2 == 0, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if err := ch.Publish("", q, false, false, amqp.Publishing{Body: make([]byte, size)}); err != nil {
					t.Fatal(err)
				}
			}
			for range 10 {
				if _, ok, err := ch.Get(q, false); err != nil || !ok {
					t.Fatalf("get: %v, %v", ok, err)
				}
			}
			switch i % 3 {
			case 0:
				_, err = ch.QueuePurge(q, false)
			case 1:
				err = ch.Nack(0, true, true)
			}
			if err == nil {
				_, err = ch.QueueDelete(q, false, false, false)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		awaitBaseline(t, b, baseline, descriptors)
	})
}

func dial(t *testing.T, b *harness.Broker) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return conn, ch
}

// warmUp makes the broker create what it creates once per loop: connections that are open together are dealt over all
// loops, and a message goes through a queue of each.
func warmUp(t *testing.T, b *harness.Broker) {
	t.Helper()
	var open []*amqp.Connection
	for range 8 {
		conn, ch := dial(t, b)
		open = append(open, conn)
		q, err := ch.QueueDeclare("", false, true, true, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Publish("", q.Name, false, false, amqp.Publishing{Body: make([]byte, 10_000)}); err != nil {
			t.Fatal(err)
		}
		if d, ok, err := ch.Get(q.Name, true); err != nil || !ok || len(d.Body) != 10_000 {
			t.Fatalf("get: %v, %v, %d bytes", ok, err, len(d.Body))
		}
	}
	for _, conn := range open {
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(settleMax)
	for read(t, b)["ringmq_loop_connections"] != 0 {
		if time.Now().After(deadline) {
			t.Fatal("closed connections stay")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// read reads the counters and fails when a gauge of the list is missing.
func read(t *testing.T, b *harness.Broker) harness.Metrics {
	t.Helper()
	got, err := b.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range gauges {
		if _, ok := got[name]; !ok {
			t.Fatalf("the broker exports no %s", name)
		}
	}
	return got
}

// awaitBaseline waits until every gauge is back, descriptors counted from outside among them.
func awaitBaseline(t *testing.T, b *harness.Broker, baseline harness.Metrics, descriptors int) {
	t.Helper()
	deadline := time.Now().Add(settleMax)
	for {
		now := read(t, b)
		var off []string
		for _, name := range gauges {
			if now[name] > baseline[name] || (now[name] < baseline[name] && strings.HasPrefix(name, "ringmq_")) {
				off = append(off, fmt.Sprintf("%s is %v, was %v", name, now[name], baseline[name]))
			}
		}
		open, err := b.Descriptors()
		if err != nil {
			t.Fatal(err)
		}
		if open > descriptors {
			off = append(off, fmt.Sprintf("/proc counts %d descriptors, were %d", open, descriptors))
		}
		if len(off) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("not back after %v:\n%s", settleMax, strings.Join(off, "\n"))
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
