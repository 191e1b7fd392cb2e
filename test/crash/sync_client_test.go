package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// get takes messages one by one, so that no delivery can be on its way unseen.
func (r *run) get(queue int, rng *rand.Rand) error {
	conn, ch, err := dial(r.b)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := r.h.NewClient()
	event := func(kind Kind, id uint64) {
		r.h.Add(Event{Kind: kind, ID: id, Queue: uint16(queue), Client: client})
	}
	for !r.finishing() {
		d, ok, err := ch.Get(r.h.Queues[queue].Name, false)
		if err != nil {
			event(Gone, 0) // an answer may have been on its way
			return fmt.Errorf("get: %w", err)
		}
		if !ok {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		id := r.delivered(queue, client, &d)
		switch k := rng.IntN(10); {
		case k < 2: // held until the channel closes
		case k < 4:
			event(Requeued, id)
			err = d.Nack(false, true)
		default:
			event(Acked, id)
			err = d.Ack(false)
		}
		if err != nil {
			event(Gone, 0)
			return fmt.Errorf("settle: %w", err)
		}
	}
	return r.leave(ch, queue, client)
}

// transaction is a channel in tx mode that moves messages: it takes some from a queue, and publishes others.
type transaction struct {
	r      *run
	ch     *amqp.Channel
	queue  int
	to     []place
	client uint32
	rng    *rand.Rand
	id     uint64
	open   []uint64 // published in it
	took   []uint64 // acknowledged in it, with their events still to be written
}

func (t *transaction) event(kind Kind, id uint64) {
	t.r.h.Add(Event{Kind: kind, ID: id, Queue: uint16(t.queue), Client: t.client})
}

// transact works in transactions until the broker ends or the order to finish.
func (r *run) transact(queue int, to []place, rng *rand.Rand) error {
	conn, ch, err := dial(r.b)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ch.Tx(); err != nil {
		return err
	}
	t := &transaction{r: r, ch: ch, queue: queue, to: to, client: r.h.NewClient(), rng: rng, id: r.h.NewPublisher()}
	for !r.finishing() {
		if err := t.act(); err != nil {
			t.event(Gone, 0)
			return fmt.Errorf("transaction: %w", err)
		}
	}
	return r.leave(ch, queue, t.client)
}

// act is one transaction.
func (t *transaction) act() error {
	t.open, t.took = t.open[:0], t.took[:0]
	err := t.fill()
	back := t.rng.IntN(5) == 0
	if err != nil || back {
		// Not committed, whatever happens next: nothing of it may ever be seen, and what it took is taken back.
		for _, id := range t.open {
			t.event(Undone, id)
		}
		if err != nil {
			return err
		}
		return t.ch.TxRollback()
	}
	for _, id := range t.took {
		t.event(Acked, id)
	}
	if err := t.ch.TxCommit(); err != nil {
		return err
	}
	if t.r.atCommit != nil {
		t.r.atCommit()
	}
	t.event(Committed, 0)
	for _, id := range t.open {
		t.event(Confirmed, id)
	}
	return nil
}

func (t *transaction) fill() error {
	for range t.rng.IntN(7) {
		to := t.to[t.rng.IntN(len(t.to))]
		t.id++
		m, event := t.r.message(t.id, size(t.rng)/4, to.route, true)
		t.r.h.Add(event)
		t.open = append(t.open, t.id)
		if err := t.ch.Publish(to.exchange, to.key, false, false, m); err != nil {
			return err
		}
	}
	for range t.rng.IntN(6) {
		d, ok, err := t.ch.Get(t.r.h.Queues[t.queue].Name, false)
		if err != nil || !ok {
			return err
		}
		id := t.r.delivered(t.queue, t.client, &d)
		t.took = append(t.took, id)
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

// drain consumes all that is left, each queue by one consumer, until the broker says that there is no more. deleted are
// queues that are not there any more.
func drain(t *testing.T, h *History, b *harness.Broker, deleted ...int) {
	t.Helper()
	r := newRun(h, b)
	h.Add(Event{Kind: Draining})
	for queue := range h.Queues {
		if slices.Contains(deleted, queue) {
			continue
		}
		r.start("drain of "+h.Queues[queue].Name, func() error { return r.drain(queue) })
	}
	r.await(t)
	if r.problem != nil {
		t.Fatalf("%v\n%s", r.problem, b.Output())
	}
}

// drainIdle is how long nothing must have come before the broker is asked whether there is more. It only saves
// questions: the answer decides.
const drainIdle = 20 * time.Millisecond

func (r *run) drain(queue int) error {
	conn, ch, err := dial(r.b)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &consumer{habit: habit{queue: queue, prefetch: 500, multiple: 1}, r: r, ch: ch, client: r.h.NewClient()}
	c.event(Attached, 0)
	in, err := c.open()
	if err != nil {
		return err
	}
	for cancelled := false; ; {
		select {
		case d, open := <-in:
			if !open && cancelled {
				return c.left(true)
			}
			if !open {
				return errors.New("the deliveries ended")
			}
			id := r.delivered(queue, c.client, &d)
			c.event(Acked, id)
			if err := d.Ack(false); err != nil {
				return err
			}
		case <-time.After(drainIdle):
			if cancelled {
				continue
			}
			q, err := ch.QueueDeclarePassive(r.h.Queues[queue].Name, true, false, false, false, nil)
			if err != nil {
				return err
			}
			if q.Messages > 0 {
				continue
			}
			// Nothing is ready, and what was sent comes out of in before it closes.
			if err := ch.Cancel(tagOf(c.client), false); err != nil {
				return err
			}
			cancelled = true
		}
	}
}
