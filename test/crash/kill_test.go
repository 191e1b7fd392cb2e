package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// The queues of the test, by their index in its history.
const (
	qDirect = iota // by its name
	qSource        // what is rejected here goes to qDead
	qDead
	qFan1 // these three from one exchange
	qFan2
	qFan3
	qTx  // fed and emptied by transactions
	qGet // emptied by basic.get only
)

const (
	rDirect = iota
	rSource
	rFan
	rTx
	rGet
)

const fanExchange = "crash-fan"

// topology names the queues and routes in a new history.
func topology(seed uint64) *History {
	h := NewHistory(seed)
	for _, q := range []Queue{qDirect: {"direct", -1}, qSource: {"source", qDead}, qDead: {"dead", -1}, qFan1: {"fan1", -1},
		qFan2: {"fan2", -1}, qFan3: {"fan3", -1}, qTx: {"tx", -1}, qGet: {"get", -1}} {
		h.AddQueue("crash-"+q.Name, q.DeadLetter)
	}
	for _, route := range [][]int{rDirect: {qDirect}, rSource: {qSource}, rFan: {qFan1, qFan2, qFan3}, rTx: {qTx}, rGet: {qGet}} {
		h.AddRoute(route...)
	}
	return h
}

// to is how a route is reached.
func to(h *History, route int) place {
	if route == rFan {
		return place{route, fanExchange, ""}
	}
	return place{route, "", h.Queues[h.Routes[route][0]].Name}
}

// declare makes the topology, or, passively, wants it to be there.
func declare(h *History, b *harness.Broker, passive bool) error {
	conn, ch, err := dial(b)
	if err != nil {
		return err
	}
	defer conn.Close()
	exchange, queue := ch.ExchangeDeclare, ch.QueueDeclare
	if passive {
		exchange, queue = ch.ExchangeDeclarePassive, ch.QueueDeclarePassive
	}
	if err := exchange(fanExchange, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	for i, q := range h.Queues {
		args := amqp.Table{}
		if q.DeadLetter >= 0 {
			args["x-dead-letter-exchange"] = ""
			args["x-dead-letter-routing-key"] = h.Queues[q.DeadLetter].Name
		}
		if _, err := queue(q.Name, true, false, false, false, args); err != nil {
			return fmt.Errorf("queue %s: %w", q.Name, err)
		}
		if !passive && i >= qFan1 && i <= qFan3 {
			if err := ch.QueueBind(q.Name, "", fanExchange, false, nil); err != nil {
				return fmt.Errorf("bind %s: %w", q.Name, err)
			}
		}
	}
	return nil
}

// load starts the clients of one run: what each does is drawn. Of 100 consumers, idle do not come.
func load(r *run, rng *rand.Rand, idle int) {
	child := func() *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), 1)) }
	for i, p := range []publisher{
		{to(r.h, rDirect), 1, 0, 3000, 8 << 20},
		{to(r.h, rDirect), 1000, 10, 6000, 24 << 20},
		{to(r.h, rSource), 10, 5, 3000, 12 << 20},
		{to(r.h, rFan), 10, 0, 2000, 12 << 20},
		{to(r.h, rFan), 1000, 20, 3000, 12 << 20},
		{to(r.h, rGet), 10, 10, 1000, 4 << 20},
	} {
		own := child()
		r.start(fmt.Sprintf("publisher %d", i), func() error { return r.publish(p, own) })
	}
	for i, c := range []habit{
		{queue: qDirect, prefetch: 100, multiple: 1},
		{queue: qDirect, prefetch: 20, multiple: 1, requeue: 30},
		{queue: qSource, prefetch: 50, multiple: 1, reject: 30},
		{queue: qSource, prefetch: 10, multiple: 1, reject: 10, requeue: 10},
		{queue: qDead, prefetch: 50, multiple: 1, requeue: 10},
		{queue: qFan1, prefetch: 200, multiple: 50},
		{queue: qFan2, prefetch: 300, hold: true},
		{queue: qFan2, prefetch: 20, multiple: 5},
	} {
		if rng.IntN(100) < idle {
			continue
		}
		own := child()
		r.start(fmt.Sprintf("consumer %d", i), func() error { return r.consume(c, own) })
	}
	getter := child()
	r.start("getter", func() error { return r.get(qGet, getter) })
	for i := range 2 {
		own := child()
		r.start(fmt.Sprintf("transactions %d", i), func() error {
			return r.transact(qTx, []place{to(r.h, rTx), to(r.h, rFan), to(r.h, rDirect)}, own)
		})
	}
}

// roundsDefault is what runs beside all other tests; "make crash" runs more. From roundsFull on, everything must
// have happened.
const (
	roundsDefault = 6
	roundsFull    = 40
)

// roundsEach is how many rounds one data folder lives, and one history remembers.
const roundsEach = 10

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func firstSeed(t *testing.T) uint64 {
	return setting(t, "RINGMQ_TEST_SEED", uint64(time.Now().UnixNano()))
}

// TestKill is test 1 of the reliability notes: brokers that are killed at random, or stopped under load or at rest, lose
// nothing that was confirmed, invent nothing, and say "redelivered" where they must.
func TestKill(t *testing.T) {
	rounds := int(setting(t, "RINGMQ_TEST_ROUNDS", roundsDefault))
	seed := firstSeed(t)
	var total Counts
	backends := harness.Backends()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			if why := harness.Refused(backend); why != "" {
				t.Skip(why)
			}
			left := (rounds + len(backends) - 1) / len(backends)
			for n := 0; left > 0; n++ {
				counts := kill(t, backend, seed+uint64(n), min(left, roundsEach))
				total.Add(counts)
				left -= roundsEach
			}
		})
	}
	t.Logf("seed %d, %d rounds: %+v", seed, rounds, total)
	if rounds >= roundsFull && !t.Failed() && !t.Skipped() {
		total.wantAll(t)
	}
}

// wantAll fails a test in which something never happened.
func (c *Counts) wantAll(t *testing.T) {
	t.Helper()
	if c.Confirmed == 0 || c.Unanswered == 0 || c.Undone == 0 || c.Redelivered == 0 || c.Acked == 0 || c.Rejected == 0 || c.Requeued == 0 ||
		c.Drained == 0 || c.DeadLettered == 0 || c.Kills == 0 || c.Stops == 0 || c.Vanished == 0 {
		t.Errorf("something never happened: %+v", *c)
	}
}

// kill is the life of one data folder.
func kill(t *testing.T, backend string, seed uint64, rounds int) Counts {
	t.Helper()
	t.Logf("%s: seed %d, %d rounds", backend, seed, rounds)
	rng := rand.New(rand.NewPCG(seed, 1))
	h := topology(seed)
	opts := harness.Options{Backend: backend, Cores: "0,1", Data: folder(t), HTTP: "off"}
	if rng.IntN(2) == 0 {
		opts.Args = []string{"--wal-segment-size", "1MiB"}
	}
	slow, err := harness.FaultsBinary()
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds + 1 {
		opts.Cores = []string{"0,1", "0,1", "0"}[rng.IntN(3)]
		opts.Binary, opts.Env = "", nil
		if round < rounds && rng.IntN(3) == 0 {
			// What is answered before the disk has it is lost with the process then, and not a moment later written.
			opts.Binary, opts.Env = slow, []string{"RINGMQ_TEST_FAULT=delay:" + strconv.Itoa(1+rng.IntN(10))}
		}
		h.Note("loops on %s %v", opts.Cores, opts.Env)
		b, err := harness.Launch(opts)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		t.Cleanup(func() { _ = b.Kill() })
		if err := declare(h, b, round > 0); err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, b.Output())
		}
		if round == rounds {
			drain(t, h, b)
			if err := b.Stop(); err != nil {
				t.Fatalf("stopping: %v\n%s", err, b.Output())
			}
			break
		}
		life(t, h, b, rng)
	}
	report := h.Check()
	if text := h.Error(report); text != "" {
		t.Fatalf("seed %d: %s", seed, text)
	}
	return report.Counts
}

// life loads a broker and ends it.
func life(t *testing.T, h *History, b *harness.Broker, rng *rand.Rand) {
	t.Helper()
	r := newRun(h, b)
	load(r, rng, 25)
	time.Sleep(time.Duration(50+rng.IntN(1450)) * time.Millisecond)
	switch rng.IntN(10) {
	case 0: // in order, under load
		r.end(t, b.Stop)
		h.Add(Event{Kind: Stopped})
	case 1, 2: // in order, at rest
		r.end(t, nil)
		if err := b.Stop(); err != nil {
			t.Fatalf("stopping: %v\n%s", err, b.Output())
		}
		h.Add(Event{Kind: Stopped})
	default:
		r.end(t, b.Kill)
		h.Add(Event{Kind: Killed})
	}
}

// folder is a data folder that stays when the test fails and RINGMQ_TEST_KEEP is set.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ringmq-crash-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("RINGMQ_TEST_KEEP") != "" {
			t.Logf("kept: %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}
