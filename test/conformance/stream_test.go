package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// newStream declares a stream with further arguments, names and values in turn.
func newStream(t *testing.T, ch *amqp.Channel, args ...any) string {
	t.Helper()
	table := amqp.Table{"x-queue-type": "stream"}
	for i := 0; i < len(args); i += 2 {
		table[args[i].(string)] = args[i+1]
	}
	q := must[amqp.Queue](t)(ch.QueueDeclare(unique("stream"), true, false, false, false, table))
	return q.Name
}

// fill publishes messages to a queue with their numbers from first to last as bodies, every second one transient, and
// waits until all are confirmed.
func fill(t *testing.T, conn *amqp.Connection, q string, first, last int, pad string) {
	t.Helper()
	ch := must[*amqp.Channel](t)(conn.Channel())
	defer ch.Close()
	all(t, ch.Confirm(false))
	var acks []*amqp.DeferredConfirmation
	for n := first; n <= last; n++ {
		m := amqp.Publishing{DeliveryMode: uint8(1 + n%2), ContentType: "text/plain", Headers: amqp.Table{"n": int32(n)}, Body: []byte(fmt.Sprint(n, pad))}
		acks = append(acks, must[*amqp.DeferredConfirmation](t)(ch.PublishWithDeferredConfirm("", q, true, false, m)))
	}
	for _, dc := range acks {
		if ok, err := dc.WaitContext(t.Context()); !ok || err != nil {
			t.Fatalf("confirm: %v, %v", ok, err)
		}
	}
}

// streamReader is a consumer of a stream on a channel of its own.
type streamReader struct {
	t  *testing.T
	ch *amqp.Channel
	in <-chan amqp.Delivery
}

// read consumes a stream from somewhere on; offset nil leaves the argument out.
func read(t *testing.T, conn *amqp.Connection, q string, offset any, prefetch int, args ...any) *streamReader {
	t.Helper()
	table := amqp.Table{}
	if offset != nil {
		table["x-stream-offset"] = offset
	}
	for i := 0; i < len(args); i += 2 {
		table[args[i].(string)] = args[i+1]
	}
	ch := must[*amqp.Channel](t)(conn.Channel())
	all(t, ch.Qos(prefetch, 0, false))
	return &streamReader{t, ch, must[<-chan amqp.Delivery](t)(ch.Consume(q, "", false, false, false, false, table))}
}

// next is the next delivery, which must be the message n at that offset.
func (r *streamReader) next(n int) amqp.Delivery {
	r.t.Helper()
	d := await(r.t, fmt.Sprintf("message %d", n), r.in)
	body, _, _ := strings.Cut(string(d.Body), " ")
	if d.Headers["x-stream-offset"] != int64(n) || body != fmt.Sprint(n) || d.Redelivered || d.Headers["n"] != int32(n) ||
		d.ContentType != "text/plain" || d.DeliveryMode != uint8(1+n%2) {
		r.t.Fatalf("want message %d, got %q at %v, redelivered %v, %+v", n, body, d.Headers["x-stream-offset"], d.Redelivered, d)
	}
	return d
}

// acked takes and acknowledges the messages from first to last.
func (r *streamReader) acked(first, last int) {
	r.t.Helper()
	for n := first; n <= last; n++ {
		if err := r.next(n).Ack(n%3 == 0); err != nil {
			r.t.Fatal(err)
		}
	}
}

// kept is the message count of a queue.
func kept(t *testing.T, conn *amqp.Connection, q string) (n int) {
	t.Helper()
	all(t, each(t, conn, func(ch *amqp.Channel) error {
		d, err := ch.QueueDeclarePassive(q, true, false, false, false, nil)
		n = d.Messages
		return err
	}))
	return n
}

// awaitKept waits until a queue keeps n messages.
func awaitKept(t *testing.T, conn *amqp.Connection, q string, n int) {
	t.Helper()
	for end := time.Now().Add(waitMax); kept(t, conn, q) != n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d messages are kept, want %d", kept(t, conn, q), n)
		}
	}
}

// TestSTR_02_Offsets: every way to say where to begin; nobody takes anything away from the others.
func TestSTR_02_Offsets(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "last is a chunk there, and times are those of chunks")
		conn, ch := dialGo(t, b)
		q := newStream(t, ch)
		fill(t, conn, q, 0, 199, "")
		// The rest comes in another second, which is as fine as a timestamp is.
		second := time.Now().Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(second.Add(50 * time.Millisecond)))
		fill(t, conn, q, 200, 299, "")
		readers := map[int][]*streamReader{}
		for _, c := range []struct {
			offset any
			first  int
		}{
			{nil, 300}, {"first", 0}, {"last", 299}, {"next", 300}, {int64(0), 0}, {int32(150), 150}, {int16(299), 299}, {byte(7), 7},
			{int64(300), 300}, {int64(302), 302}, {int64(-1), 0}, {second, 200}, {second.Add(time.Hour), 300}, {time.Unix(0, 0), 0},
			{"1h", 0}, {"5m", 0}, {"1D", 0}, {"1M", 0}, {"1Y", 0}, {"0s", 300}, {"100s", 0},
		} {
			r := read(t, conn, q, c.offset, 50)
			r.acked(c.first, 299)
			readers[c.first] = append(readers[c.first], r)
		}
		fill(t, conn, q, 300, 309, "")
		for first, list := range readers {
			for _, r := range list {
				r.acked(max(first, 300), 309)
				all(t, r.ch.Close())
			}
		}
		if n := kept(t, conn, q); n != 310 {
			t.Errorf("%d messages are kept", n)
		}
	})
}

// TestSTR_02_Credit: a consumer holds its prefetch and no more; whatever it says of a delivery gives room for another
// one, and takes nothing away and brings nothing back.
func TestSTR_02_Credit(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		q := newStream(t, ch)
		fill(t, conn, q, 0, 29, "")
		r := read(t, conn, q, "first", 3)
		first := []amqp.Delivery{r.next(0), r.next(1), r.next(2)}
		r.idle()
		all(t, first[1].Nack(false, true))
		r.next(3)
		all(t, first[0].Reject(true))
		r.next(4)
		all(t, first[2].Reject(false))
		last := r.next(5)
		r.idle()
		all(t, last.Nack(true, false))
		r.next(6)
		r.next(7)
		last = r.next(8)
		r.idle()
		all(t, last.Ack(true))
		for n := 9; n < 12; n++ {
			last = r.next(n)
		}
		// In a transaction it counts when that is committed.
		all(t, r.ch.Tx(), last.Ack(true))
		r.idle()
		all(t, r.ch.TxCommit())
		for n := 12; n < 15; n++ {
			r.next(n)
		}
		// What is held when the channel ends does not come again, and does not leave.
		all(t, r.ch.Close())
		again := read(t, conn, q, "first", 100)
		again.acked(0, 29)
		if n := kept(t, conn, q); n != 30 {
			t.Errorf("%d messages are kept", n)
		}
	})
}

// TestSTR_02_Recover: basic.recover gives credit as well, and brings nothing back; a header of the offset's name that
// the publisher set is replaced.
func TestSTR_02_Recover(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "undefined there")
		c := connect(t, b).open(1, 2)
		q, _, _ := c.queue(1, unique("stream"), flags{durable: true}, table("x-queue-type", "stream"))
		p := props{headers: table("x-stream-offset", "none", "k", "v"), hasHeaders: true, messageID: "m"}
		for n := range 9 {
			c.publishWith(1, publishArgs("", q, false, false), p, []byte{byte('0' + n)})
		}
		c.qos(2, 2, false)
		c.consumeWith(2, consumeArgs(q, "t", false, false, false, false, table("x-stream-offset", "first")))
		for n, msg := range c.deliverBodies(2, "0", "1") {
			want := props{headers: table("k", "v", "x-stream-offset", int64(n)), hasHeaders: true, messageID: "m"}.encode()
			if string(msg.properties) != string(want) {
				t.Errorf("properties %q, want %q", msg.properties, want)
			}
		}
		c.method(2, 60, 110, args().bits(true))
		c.expect(2, 60, 111)
		c.deliverBodies(2, "2", "3")
	})
}

// idle makes sure that nothing more came.
func (r *streamReader) idle() {
	r.t.Helper()
	all(r.t, r.ch.Qos(3, 0, false)) // its answer comes behind every delivery that was on its way
	select {
	case d := <-r.in:
		r.t.Fatalf("got %q at %v above the prefetch", d.Body, d.Headers["x-stream-offset"])
	default:
	}
}

// TestSTR_02_Sharing: consumers at different places, fast and slow ones, on connections of all loops, with bodies of
// every size; each gets everything in order.
func TestSTR_02_Sharing(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		q := newStream(t, ch)
		fill(t, conn, q, 0, 99, " "+strings.Repeat("x", 100))
		fill(t, conn, q, 100, 119, " "+strings.Repeat("y", 5000))
		fill(t, conn, q, 120, 123, " "+strings.Repeat("z", 300_000))
		var readers []*streamReader
		for n := range 8 {
			other, _ := dialGo(t, b)
			readers = append(readers, read(t, other, q, n*15, 1+n*n*10))
		}
		for n, r := range readers {
			r.acked(n*15, 123)
		}
		fill(t, conn, q, 124, 223, "")
		for _, r := range readers {
			r.acked(124, 223)
		}
		// A consumer that leaves while the others stay.
		all(t, readers[0].ch.Close())
		fill(t, conn, q, 224, 233, "")
		for _, r := range readers[1:] {
			r.acked(224, 233)
		}
	})
}

// TestSTR_03_Filter: x-stream-filter-value of messages, x-stream-filter and x-stream-match-unfiltered of consumers.
func TestSTR_03_Filter(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "3.10 has no filters, and later ones filter chunks")
		conn, ch := dialGo(t, b)
		q := newStream(t, ch)
		values := []any{"red", "green", nil, "blue", int32(1), ""}
		for n := range 60 {
			headers := amqp.Table{}
			if v := values[n%6]; v != nil {
				headers["x-stream-filter-value"] = v
			}
			all(t, ch.PublishWithContext(t.Context(), "", q, true, false, amqp.Publishing{Headers: headers}))
		}
		for _, c := range []struct {
			args []any
			want []int // remainders
		}{
			{[]any{"x-stream-filter", "red"}, []int{0}},
			{[]any{"x-stream-filter", []any{"red", "blue", "none"}}, []int{0, 3}},
			{[]any{"x-stream-filter", "red", "x-stream-match-unfiltered", true}, []int{0, 2, 4}},
			{[]any{"x-stream-filter", "", "x-stream-match-unfiltered", false}, []int{5}},
			{[]any{"x-stream-match-unfiltered", true}, []int{0, 1, 2, 3, 4, 5}},
		} {
			r := read(t, conn, q, "first", 4, c.args...)
			for n := 0; n < 60; n += 6 {
				for _, rest := range c.want {
					d := await(t, "delivery", r.in)
					if d.Headers["x-stream-offset"] != int64(n+rest) {
						t.Fatalf("%v: got %v, want %d", c.args, d.Headers, n+rest)
					}
					all(t, d.Ack(false))
				}
			}
			all(t, r.ch.Close())
		}
	})
}
