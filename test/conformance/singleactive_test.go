package conformance

import (
	"context"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// TestSingleActiveConsumer: CSM-02. All consume, one gets; when it goes the one that came next takes over, and
// what the old one held goes back in its place.
func TestSingleActiveConsumer(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		conn, ch := dialGo(t, b)
		all(t, declare(ch, "sac", true, false, false, amqp.Table{"x-single-active-consumer": true}))
		if err := each(t, conn, func(ch *amqp.Channel) error {
			return declare(ch, "wrong", true, false, false, amqp.Table{"x-single-active-consumer": int32(1)})
		}); !isCode(err, 406) {
			t.Errorf("an integer is accepted: %v", err)
		}
		var channels []*amqp.Channel
		var from []<-chan amqp.Delivery
		for i := range 3 {
			_, ch := dialGo(t, b) // connections of their own, on all loops
			all(t, ch.Qos(2, 0, false))
			channels = append(channels, ch)
			from = append(from, must[<-chan amqp.Delivery](t)(ch.Consume("sac", fmt.Sprint("c", i), false, false, false, false,
				amqp.Table{"x-priority": int32(i)})))
		}
		if err := each(t, conn, func(ch *amqp.Channel) error {
			_, err := ch.Consume("sac", "", false, true, false, false, nil)
			return err
		}); !isCode(err, 403) {
			t.Errorf("an exclusive consumer: %v", err)
		}
		for i := range 10 {
			all(t, ch.PublishWithContext(context.Background(), "", "sac", false, false, amqp.Publishing{Body: fmt.Append(nil, i)}))
		}
		next := 0
		get := func(consumer, n int) (last amqp.Delivery) {
			t.Helper()
			for range n {
				last = await(t, "a delivery", from[consumer])
				if string(last.Body) != fmt.Sprint(next) {
					t.Fatalf("consumer %d got %s, want %d", consumer, last.Body, next)
				}
				next++
			}
			return last
		}
		all(t, get(0, 2).Ack(true))
		get(0, 2) // held when the consumer goes
		next -= 2
		all(t, channels[0].Close())
		all(t, get(1, 2).Ack(true))
		get(1, 2)
		all(t, channels[1].Cancel("c1", false)) // what it holds stays held
		all(t, get(2, 2).Ack(true))
		all(t, get(2, 2).Ack(true))
		for i, d := range []<-chan amqp.Delivery{from[0], from[1]} {
			if d, ok := <-d; ok {
				t.Errorf("consumer %d got %s as well", i, d.Body)
			}
		}
	})
}
