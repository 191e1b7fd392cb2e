package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// state is what is known of a definition.
type state uint8

const (
	absent state = iota
	there
	unknown // an answer did not come
)

const (
	definedQueues    = 40
	definedExchange  = "crash-defined"
	definedExchanges = 10
)

// defined is what one client knows of the durable definitions that it alone changes.
type defined struct {
	queues    [definedQueues]state
	bindings  [definedQueues]state // of the queue to definedExchange, by its name
	exchanges [definedExchanges]state
}

func definedQueue(i int) string { return fmt.Sprintf("crash-defined-%d", i) }

// act changes one definition and remembers what the answer proves.
func (d *defined) act(ch *amqp.Channel, rng *rand.Rand) error {
	i := rng.IntN(definedQueues)
	name := definedQueue(i)
	var s *state
	var after state
	var err error
	switch rng.IntN(9) {
	case 0, 1, 2:
		s, after = &d.queues[i], there
		_, err = ch.QueueDeclare(name, true, false, false, false, nil)
	case 3:
		s, after = &d.queues[i], absent
		binding := d.bindings[i]
		d.bindings[i] = max(binding, unknown)
		if binding == absent {
			d.bindings[i] = absent
		}
		if _, err = ch.QueueDelete(name, false, false, false); err == nil {
			d.bindings[i] = absent
		}
	case 4, 5:
		if d.queues[i] != there {
			return nil
		}
		s, after = &d.bindings[i], there
		err = ch.QueueBind(name, name, definedExchange, false, nil)
	case 6:
		if d.queues[i] != there {
			return nil
		}
		s, after = &d.bindings[i], absent
		err = ch.QueueUnbind(name, name, definedExchange, nil)
	case 7:
		i %= definedExchanges
		s, after = &d.exchanges[i], there
		err = ch.ExchangeDeclare(fmt.Sprintf("crash-x-%d", i), "topic", true, false, false, false, nil)
	case 8:
		i %= definedExchanges
		s, after = &d.exchanges[i], absent
		err = ch.ExchangeDelete(fmt.Sprintf("crash-x-%d", i), false, false)
	}
	if err != nil {
		*s = unknown
		return err
	}
	*s = after
	return nil
}

// verify holds a broker that has restarted against what is known, and learns what was unknown.
func (d *defined) verify(b *harness.Broker) error {
	conn, ch, err := dial(b)
	if err != nil {
		return err
	}
	defer conn.Close()
	check := func(what string, s *state, call func(ch *amqp.Channel) error) error {
		one, err := conn.Channel()
		if err != nil {
			return err
		}
		err = call(one)
		var refusal *amqp.Error
		switch {
		case err == nil && *s == absent:
			return fmt.Errorf("%s is there, though its deletion was answered", what)
		case err == nil:
			*s = there
			return one.Close()
		case !errors.As(err, &refusal) || refusal.Code != amqp.NotFound:
			return fmt.Errorf("%s: %w", what, err)
		case *s == there:
			return fmt.Errorf("%s is gone, though its declaration was answered", what)
		}
		*s = absent
		return nil
	}
	for i := range d.exchanges {
		name := fmt.Sprintf("crash-x-%d", i)
		if err := check("exchange "+name, &d.exchanges[i], func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive(name, "topic", true, false, false, false, nil)
		}); err != nil {
			return err
		}
	}
	for i := range d.queues {
		name := definedQueue(i)
		if err := check("queue "+name, &d.queues[i], func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			return err
		}); err != nil {
			return err
		}
	}
	return d.verifyBindings(ch)
}

// verifyBindings publishes to each binding: what is not bound comes back.
func (d *defined) verifyBindings(ch *amqp.Channel) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, definedQueues))
	for i := range d.bindings {
		name := definedQueue(i)
		confirm, err := ch.PublishWithDeferredConfirm(definedExchange, name, true, false, amqp.Publishing{Body: []byte("probe")})
		if err != nil {
			return err
		}
		if !confirm.Wait() {
			return fmt.Errorf("probe of binding %s: nacked", name)
		}
		bound := there
		select {
		case <-returns: // the return comes before the confirm
			bound = absent
		default:
		}
		if d.bindings[i] != unknown && d.bindings[i] != bound {
			return fmt.Errorf("binding of %s: state %d after the restart, %d before", name, bound, d.bindings[i])
		}
		d.bindings[i] = bound
		if bound == there {
			if _, err := ch.QueuePurge(name, false); err != nil {
				return fmt.Errorf("the binding of %s is there, the queue not: %w", name, err)
			}
		}
	}
	return nil
}

// TestDefinitions: what was declared, bound, unbound or deleted, and answered, is so after a kill.
func TestDefinitions(t *testing.T) {
	const rounds = 6
	seed := firstSeed(t)
	for _, backend := range harness.Backends() {
		t.Run(backend, func(t *testing.T) {
			if why := harness.Refused(backend); why != "" {
				t.Skip(why)
			}
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 2))
			opts := harness.Options{Backend: backend, Cores: "0,1", Data: folder(t), HTTP: "off"}
			known, acts := &defined{}, 0
			for round := range rounds + 1 {
				b, err := harness.Launch(opts)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Kill() })
				conn, ch, err := dial(b)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if round == 0 {
					err = ch.ExchangeDeclare(definedExchange, "direct", true, false, false, false, nil)
				} else {
					err = known.verify(b)
				}
				if err != nil {
					t.Fatalf("seed %d, round %d: %v\n%s", seed, round, err, b.Output())
				}
				time.AfterFunc(time.Duration(20+rng.IntN(200))*time.Millisecond, func() { _ = b.Kill() })
				for err == nil {
					err = known.act(ch, rng)
					acts++
				}
				var refusal *amqp.Error
				if errors.As(err, &refusal) && refusal.Server {
					t.Fatalf("round %d: %v\n%s", round, err, b.Output())
				}
				<-b.Exited()
				if b.ExitCode() != -1 {
					t.Fatalf("the broker ended by itself\n%s", b.Output())
				}
			}
			if acts < 10*rounds {
				t.Errorf("only %d definitions changed", acts)
			}
		})
	}
}
