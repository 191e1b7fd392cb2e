package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// bodies gets n messages with basic.get, without acknowledging them.
func bodies(t *testing.T, ch *amqp.Channel, queue string, n int) (list []string, last uint64) {
	t.Helper()
	for range n {
		d, ok, err := ch.Get(queue, false)
		if err != nil || !ok {
			t.Fatalf("%d of %d messages of %s: %v", len(list), n, queue, err)
		}
		list, last = append(list, string(d.Body)), d.DeliveryTag
	}
	return list, last
}

// TestPriorityQueue: C.1 x-max-priority, P-5 of the decisions, LEN-04. Highest first, in order within a level,
// also after a requeue and after a crash.
func TestPriorityQueue(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		all(t, declare(ch, "levels", true, false, false, amqp.Table{"x-max-priority": int32(5)}),
			declare(ch, "short", true, false, false, amqp.Table{"x-max-priority": int32(5), "x-max-length": int32(3)}),
			ch.Confirm(false))
		publish := func(queue string, priorities ...uint8) {
			for i, p := range priorities {
				c := must[*amqp.DeferredConfirmation](t)(ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{
					DeliveryMode: amqp.Persistent, Priority: p, Body: fmt.Appendf(nil, "%d-%d", p, i)}))
				if ok, err := c.WaitContext(context.Background()); !ok || err != nil {
					t.Fatal("not confirmed: ", err)
				}
			}
		}
		publish("levels", 0, 3, 1, 9, 3, 5, 0) // 9 counts as 5
		want := []string{"9-3", "5-5", "3-1", "3-4", "1-2", "0-0", "0-6"}
		got, last := bodies(t, ch, "levels", len(want))
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		all(t, ch.Nack(last, true, true))
		if got, _ := bodies(t, ch, "levels", 3); !slices.Equal(got, want[:3]) {
			t.Errorf("after a requeue %v, want %v", got, want[:3])
		}
		publish("short", 3, 1, 2, 3, 1)
		if got, _ := bodies(t, ch, "short", 3); !slices.Equal(got, []string{"2-2", "1-1", "1-4"}) {
			t.Errorf("a full queue keeps %v", got) // drop-head takes the head in delivery order
		}
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		b = b.Restart(t, nil)
		_, ch = dialGo(t, b)
		if got, _ := bodies(t, ch, "levels", len(want)); !slices.Equal(got, want) {
			t.Errorf("after a crash %v, want %v", got, want)
		}
	})
}
