package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// dialGo opens a connection and a channel with the Go client that users have.
func dialGo(t testing.TB, b *harness.Broker) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	conn, err := amqp.DialConfig(b.URL(), amqp.Config{Heartbeat: 10 * time.Second, Locale: "en_US"})
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("channel: %v", err)
	}
	return conn, ch
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// await receives one value or fails at waitMax.
func await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatalf("%s: the channel was closed", what)
		}
		return v
	case <-time.After(waitMax):
		t.Fatalf("%s: nothing within %v", what, waitMax)
	}
	panic("unreachable")
}

// TestClientHelloWorld: the tutorial's first program.
func TestClientHelloWorld(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		q := must[amqp.Queue](t)(ch.QueueDeclare("", false, true, true, false, nil))
		in := must[<-chan amqp.Delivery](t)(ch.Consume(q.Name, "", true, false, false, false, nil))
		ctx, cancel := context.WithTimeout(context.Background(), waitMax)
		defer cancel()
		sent := amqp.Publishing{ContentType: "text/plain", Body: []byte("hello"), Timestamp: time.Unix(1700000000, 0),
			Headers: amqp.Table{"n": int32(5), "deep": amqp.Table{"list": []any{"a", int64(2), true, nil}}}}
		if err := ch.PublishWithContext(ctx, "", q.Name, true, false, sent); err != nil {
			t.Fatal(err)
		}
		got := await(t, "delivery", in)
		if !bytes.Equal(got.Body, sent.Body) || got.ContentType != "text/plain" || !got.Timestamp.Equal(sent.Timestamp) {
			t.Errorf("got %+v", got)
		}
		if deep := got.Headers["deep"].(amqp.Table)["list"].([]any); len(deep) != 4 || deep[1] != int64(2) {
			t.Errorf("headers %v", got.Headers)
		}
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// TestClientConfirms: deferred confirms of many publishers on one connection.
func TestClientConfirms(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		q := must[amqp.Queue](t)(ch.QueueDeclare(unique("q"), false, false, false, false, nil))
		const workers, each = 8, 200
		var wg sync.WaitGroup
		for range workers {
			pub := must[*amqp.Channel](t)(conn.Channel())
			if err := pub.Confirm(false); err != nil {
				t.Fatal(err)
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				ctx, cancel := context.WithTimeout(context.Background(), waitMax)
				defer cancel()
				for i := range each {
					dc, err := pub.PublishWithDeferredConfirmWithContext(ctx, "", q.Name, false, false, amqp.Publishing{Body: []byte("m")})
					if err != nil {
						t.Error(err)
						return
					}
					if i%20 != 19 {
						continue
					}
					if ok, err := dc.WaitContext(ctx); err != nil || !ok {
						t.Errorf("confirm: %v, %v", ok, err)
						return
					}
				}
			}()
		}
		wg.Wait()
		got := must[amqp.Queue](t)(ch.QueueDeclarePassive(q.Name, false, false, false, false, nil))
		if want := workers * each; got.Messages != want {
			if b.IsRabbitMQ() {
				return // the last publishes may not be counted yet
			}
			t.Errorf("%d messages, want %d", got.Messages, want)
		}
	})
}

// TestClientReturns: NotifyReturn before the confirm.
func TestClientReturns(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		returns := ch.NotifyReturn(make(chan amqp.Return, 1))
		dc, err := ch.PublishWithDeferredConfirm("amq.direct", "nobody", true, false, amqp.Publishing{Body: []byte("back"), MessageId: "7"})
		if err != nil {
			t.Fatal(err)
		}
		r := await(t, "return", returns)
		if r.ReplyCode != 312 || r.ReplyText != "NO_ROUTE" || string(r.Body) != "back" || r.MessageId != "7" {
			t.Errorf("returned %+v", r)
		}
		if ok, err := dc.WaitContext(t.Context()); !ok || err != nil {
			t.Errorf("confirm %v, %v", ok, err)
		}
	})
}

// TestClientCancelNotify: NotifyCancel when the queue is deleted.
func TestClientCancelNotify(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		_, other := dialGo(t, b)
		q := must[amqp.Queue](t)(ch.QueueDeclare(unique("q"), false, false, false, false, nil))
		cancels := ch.NotifyCancel(make(chan string, 1))
		in := must[<-chan amqp.Delivery](t)(ch.Consume(q.Name, "tag", false, false, false, false, nil))
		if _, err := other.QueueDelete(q.Name, false, false, false); err != nil {
			t.Fatal(err)
		}
		if tag := await(t, "cancel", cancels); tag != "tag" {
			t.Errorf("cancelled %q", tag)
		}
		if d, ok := <-in; ok {
			t.Errorf("delivery %+v after the cancel", d)
		}
	})
}

// TestClientErrors: the client's error values carry the broker's codes, and only the channel is closed.
func TestClientErrors(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		closed := ch.NotifyClose(make(chan *amqp.Error, 1))
		_, err := ch.QueueDeclarePassive(unique("none"), false, false, false, false, nil)
		var ae *amqp.Error
		if !errors.As(err, &ae) || ae.Code != amqp.NotFound || !ae.Server || !ae.Recover {
			t.Errorf("passive declare: %v", err)
		}
		if e := await(t, "channel close", closed); e.Code != amqp.NotFound {
			t.Errorf("closed by %v", e)
		}
		again := must[*amqp.Channel](t)(conn.Channel())
		if err := again.ExchangeDeclarePassive("amq.topic", "topic", true, false, false, false, nil); err != nil {
			t.Error(err)
		}
		if _, err := amqp.Dial("amqp://guest:wrong@" + b.Addr + "/"); !errors.As(err, &ae) || ae.Code != amqp.AccessRefused {
			t.Errorf("wrong password: %v", err)
		}
		if _, err := amqp.Dial(b.URL() + "nowhere"); !errors.As(err, &ae) || ae.Code != amqp.NotAllowed {
			t.Errorf("unknown virtual host: %v", err)
		}
	})
}

// TestClientWorkQueue: workers with prefetch over many connections; killed workers' messages come again; nothing lost.
func TestClientWorkQueue(t *testing.T) {
	const jobs, workers = 2000, 10
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		q := must[amqp.Queue](t)(ch.QueueDeclare(unique("q"), true, false, false, false, nil))
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		done := make(chan string, jobs)
		work := func(kill int) {
			conn, wch := dialGo(t, b)
			if err := wch.Qos(20, 0, false); err != nil {
				t.Error(err)
			}
			in, err := wch.Consume(q.Name, "", false, false, false, false, nil)
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				for n := 1; ; n++ {
					d, ok := <-in
					if !ok {
						return
					}
					switch {
					case n == kill:
						_ = conn.CloseDeadline(time.Now()) // holds up to 20 unacked
						return
					case n%7 == 0:
						_ = d.Nack(false, true)
					default:
						if d.Ack(false) == nil {
							done <- string(d.Body)
						}
					}
				}
			}()
		}
		for i := range workers {
			work(map[bool]int{true: 50 + i, false: 0}[i%2 == 0 && i > 0])
		}
		for i := range jobs {
			p := amqp.Publishing{Body: []byte(fmt.Sprint(i)), DeliveryMode: uint8(1 + i%2)}
			if err := ch.Publish("", q.Name, false, false, p); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]bool{}
		for len(seen) < jobs {
			seen[await(t, "a finished job", done)] = true
		}
	})
}

// TestClientRecovery: the connection is closed by the operator, the client dials again and finds its queue.
func TestClientRecovery(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		_, ch := dialGo(t, b)
		q := must[amqp.Queue](t)(ch.QueueDeclare(unique("q"), true, false, false, false, nil))
		for range 20 {
			conn, c := dialGo(t, b)
			in := must[<-chan amqp.Delivery](t)(c.Consume(q.Name, "", false, false, false, false, nil))
			if err := ch.Publish("", q.Name, false, false, amqp.Publishing{Body: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			d := await(t, "delivery", in)
			_ = conn.Close() // not acked
			conn2, c2 := dialGo(t, b)
			in = must[<-chan amqp.Delivery](t)(c2.Consume(q.Name, "", false, false, false, false, nil))
			again := await(t, "redelivery", in)
			if !again.Redelivered || !bytes.Equal(again.Body, d.Body) {
				t.Fatalf("came again as %+v", again)
			}
			if err := again.Ack(false); err != nil {
				t.Fatal(err)
			}
			_ = conn2.Close()
		}
	})
}
