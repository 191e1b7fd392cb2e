package crash

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// TestOrderlyRestart: over SIGTERM, and a start on other loops, nothing that was acknowledged comes back, what was never
// delivered is not flagged, what was is, and every queue has exactly what it should.
func TestOrderlyRestart(t *testing.T) {
	for _, backend := range harness.Backends() {
		t.Run(backend, func(t *testing.T) {
			if why := harness.Refused(backend); why != "" {
				t.Skip(why)
			}
			h := topology(firstSeed(t))
			opts := harness.Options{Backend: backend, Cores: "0,1", Data: folder(t), HTTP: "off"}
			left := 0
			for _, cores := range []string{"0,1", "0", "0,1", "0,1"} {
				opts.Cores = cores
				b, err := harness.Launch(opts)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Kill() })
				if err := declare(h, b, len(h.Events) > 0); err != nil {
					t.Fatal(err)
				}
				conn, ch, err := dial(b)
				if err != nil {
					t.Fatal(err)
				}
				if q, err := ch.QueueDeclarePassive(h.Queues[qGet].Name, true, false, false, false, nil); err != nil || q.Messages != left {
					t.Errorf("on loops %s: %d messages, %v; want %d", cores, q.Messages, err, left)
				}
				left += orderlyLife(t, newRun(h, b), ch)
				_ = conn.Close()
				if err := b.Stop(); err != nil {
					t.Fatalf("stopping: %v\n%s", err, b.Output())
				}
				h.Add(Event{Kind: Stopped})
			}
			b, err := harness.Launch(opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Kill() })
			drain(t, h, b)
			if err := b.Stop(); err != nil {
				t.Errorf("stopping: %v\n%s", err, b.Output())
			}
			report := h.Check()
			if text := h.Error(report); text != "" {
				t.Fatal(text)
			}
			if c := report.Counts; c.Drained != left || c.Redelivered == 0 || c.Redelivered == c.Delivered {
				t.Errorf("drained %d, want %d: %+v", c.Drained, left, c)
			}
		})
	}
}

// orderlyLife publishes 300, of which a third is transient, acknowledges 40 of what it takes, holds 30 and requeues 30. It
// returns by how much the queue has grown for good.
func orderlyLife(t *testing.T, r *run, ch *amqp.Channel) int {
	t.Helper()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, 300))
	first := r.h.NewPublisher()
	client := r.h.NewClient()
	grown := 0
	for i := range uint64(300) {
		id := first + i + 1
		m, event := r.message(id, int(i)*7, rGet, i%3 != 0)
		r.h.Add(event)
		if err := ch.Publish("", r.h.Queues[qGet].Name, false, false, m); err != nil {
			t.Fatal(err)
		}
		if i%3 != 0 {
			grown++
		}
	}
	for range 300 {
		c, open := <-confirms
		if !open || !c.Ack {
			t.Fatalf("confirm %+v, channel open: %v", c, open)
		}
		r.h.Add(Event{Kind: Confirmed, ID: first + c.DeliveryTag})
	}
	for i := range 100 {
		d, ok, err := ch.Get(r.h.Queues[qGet].Name, false)
		if err != nil || !ok {
			t.Fatalf("get: %v, %v", ok, err)
		}
		id := r.delivered(qGet, client, &d)
		switch {
		case i%10 < 4:
			r.h.Add(Event{Kind: Acked, ID: id, Queue: qGet, Client: client})
			err = d.Ack(false)
			if d.DeliveryMode == amqp.Persistent {
				grown--
			}
		case i%10 < 7:
			r.h.Add(Event{Kind: Requeued, ID: id, Queue: qGet, Client: client})
			err = d.Nack(false, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.leave(ch, qGet, client); err != nil {
		t.Fatal(err)
	}
	return grown
}
