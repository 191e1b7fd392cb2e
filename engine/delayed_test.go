package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// delayed makes the settings of a delayed exchange that routes like another type.
func delayed(like string, more core.Args) func(*ExchangeSettings) {
	return func(s *ExchangeSettings) {
		s.Args = core.Args{exchange.DelayedTypeArg: text(like)}
		for k, v := range more {
			s.Args[k] = v
		}
	}
}

// pass lets milliseconds go by, and what is due leave.
func (h *house) pass(x *Exchange, ms int64) {
	h.Helper()
	h.now += ms * 1e6
	h.MarkDirty(x.held)
	h.rest()
}

// bodies takes all messages of a queue and tells each by its number.
func (h *house) bodies(q *queue.Queue) (list []int) {
	h.Helper()
	h.Observe(q)
	for q.Ready() > 0 {
		g := h.take(q)
		b := g.Message.Body()
		list = append(list, int(b[0])<<8|int(b[1]))
		h.Ack(q, g.Seq, 1, nil)
	}
	return list
}

// clear deletes a delayed exchange, and checks that its queue is no longer counted.
func (h *house) clear(x *Exchange) {
	h.Helper()
	if err := h.v.DeleteExchange(x.Name, false); err != nil {
		h.Fatal(err)
	}
	if !x.held.Deleted() || x.held.Ready() != 0 {
		h.Errorf("deleted %v, %d held", x.held.Deleted(), x.held.Ready())
	}
	h.end()
	if n := h.Broker.queuesOn[0].Load(); n != 0 {
		h.Errorf("%d queues are counted", n)
	}
}

// XT-02: what is held and for how long, and in which order it leaves.
func TestDelayedHolds(t *testing.T) {
	h := newHouse(t)
	x, q := h.exchange("x", "x-delayed-message", delayed("direct", nil)), h.queue("q", nil)
	h.bind(x, q, "k", nil)
	for _, delay := range []string{"30", "10", "0", "20", "-5", "10", "4294967295", "4294967296", "soon"} {
		h.publish("x", "k", "x-delay="+delay+"\n")
	}
	h.publish("x", "k", "")
	h.rest()
	if got := h.bodies(q); !slices.Equal(got, []int{3, 5, 8, 9, 10}) {
		t.Errorf("at once: %v", got)
	}
	if h.v.Queue([]byte("x")) != nil {
		t.Error("what is held has a name")
	}
	for _, c := range []struct {
		ms   int64
		want []int
	}{{9, nil}, {1, []int{2, 6}}, {9, nil}, {15, []int{4, 1}}, {1 << 31, nil}, {1<<31 - 36, nil}, {1, []int{7}}} {
		h.pass(x, c.ms)
		if got := h.bodies(q); !slices.Equal(got, c.want) {
			t.Errorf("after %d ms: %v, want %v", c.ms, got, c.want)
		}
	}
	if h.Stats.Released != 5 || h.Stats.DeadLettered != 0 {
		t.Errorf("%d released, %d dead letters", h.Stats.Released, h.Stats.DeadLettered)
	}
	h.clear(x)
}

// XT-02: the message that leaves is the one that came, with its delay turned, and its
// own time to live begins.
func TestDelayedMessage(t *testing.T) {
	h := newHouse(t)
	x, q := h.exchange("x", "x-delayed-message", delayed("fanout", nil)), h.queue("q", nil)
	h.bind(x, q, "", nil)
	m := h.message("x", "key", "a=1\nx-delay=1000\nexpires=50\n")
	m.Flags, m.TTL, m.Priority = core.FlagPersistent|core.FlagExpires, 50, 7
	held, keyed := h.Route(h.v, x, m.Key(), textCodec{}.Headers(m))
	if len(held) != 1 || held[0] != x.held || keyed {
		t.Fatalf("routed to %v, keyed %v", held, keyed)
	}
	if h.Publish(held[0], m, nil, 0) != Accepted {
		t.Fatal("not accepted")
	}
	h.pass(x, 999)
	if q.Ready() != 0 || x.held.Ready() != 1 {
		t.Fatalf("%d arrived, %d held", q.Ready(), x.held.Ready())
	}
	h.pass(x, 1)
	got := h.take(q)
	m = got.Message
	if string(m.Exchange()) != "x" || string(m.Key()) != "key" || m.Priority != 7 || m.BodyLen() != 2 ||
		string(m.Head()) != "a=1\nx-delay=-1000\nexpires=50\n" {
		t.Errorf("exchange %q, key %q, priority %d, head %q", m.Exchange(), m.Key(), m.Priority, m.Head())
	}
	if m.Flags != core.FlagPersistent|core.FlagExpires || m.TTL != 50 {
		t.Errorf("flags %d, time to live %d", m.Flags, m.TTL)
	}
	h.Requeue(q, got.Seq, nil, false)
	h.now += 50e6
	h.MarkDirty(q)
	h.rest()
	if q.Ready() != 0 || q.Expired != 1 {
		t.Errorf("%d ready, %d expired", q.Ready(), q.Expired)
	}
	h.clear(x)
}

// XT-02: bindings, further keys and the alternate exchange count when a message leaves.
func TestDelayedRoutesLate(t *testing.T) {
	h := newHouse(t)
	x := h.exchange("x", "x-delayed-message", func(s *ExchangeSettings) {
		delayed("topic", core.Args{"alternate-exchange": text("ae")})(s)
	})
	early, late, cc, other := h.queue("early", nil), h.queue("late", nil), h.queue("cc", nil), h.queue("other", nil)
	h.bind(h.exchange("ae", "fanout", nil), other, "", nil)
	h.bind(x, early, "a.*", nil)
	h.publish("x", "a.b", "CC=c.d\nx-delay=10\n")
	h.publish("x", "z", "x-delay=10\n")
	h.rest()
	h.v.Unbind(x, early, "a.*", nil)
	h.bind(x, late, "#.b", nil)
	h.bind(x, cc, "c.d", nil)
	h.pass(x, 10)
	for _, c := range []struct {
		q    *queue.Queue
		want []int
	}{{early, nil}, {late, []int{1}}, {cc, []int{1}}, {other, []int{2}}} {
		if got := h.bodies(c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.q.Name, got, c.want)
		}
	}
	h.clear(x)
}

// XT-02, E2E-01, DLX-01: a delayed exchange holds what comes from an exchange before
// it and what dies, and lets the copies of others alone.
func TestDelayedBehindOthers(t *testing.T) {
	h := newHouse(t)
	first := h.exchange("first", "fanout", nil)
	x := h.exchange("x", "x-delayed-message", delayed("fanout", nil))
	now, then := h.queue("now", dlx("x", "-", nil)), h.queue("then", nil)
	h.bind(first, now, "", nil)
	h.bind(first, x, "", nil)
	h.bind(x, then, "", nil)
	h.publish("first", "", "x-delay=10\n")
	h.rest()
	g := h.take(now)
	if g.Message.Flags != 0 || string(g.Message.Head()) != "x-delay=10\n" || then.Ready() != 0 {
		t.Errorf("flags %d, head %q, %d arrived", g.Message.Flags, g.Message.Head(), then.Ready())
	}
	h.pass(x, 4)
	h.Discard(now, g.Seq, nil)
	h.rest()
	if x.held.Ready() != 2 {
		t.Errorf("%d held", x.held.Ready())
	}
	h.pass(x, 6)
	if got := h.bodies(then); !slices.Equal(got, []int{1}) {
		t.Errorf("published: %v", got)
	}
	h.pass(x, 4)
	m := h.take(then).Message
	if string(m.Head()) != "death now rejected\nx-delay=-10\n" {
		t.Errorf("dead letter: %q", m.Head())
	}
	// One that was held already is not held again.
	h.publish("x", "", "x-delay=-10\n")
	h.rest()
	if x.held.Ready() != 0 || then.Ready() != 1 {
		t.Errorf("%d held, %d arrived", x.held.Ready(), then.Ready())
	}
	h.clear(x)
}

// XT-02: what is held goes with the exchange, however it goes.
func TestDelayedDeleted(t *testing.T) {
	h := newHouse(t)
	x := h.exchange("x", "x-delayed-message", func(s *ExchangeSettings) {
		delayed("direct", nil)(s)
		s.AutoDelete = true
	})
	q := h.queue("q", nil)
	h.bind(x, q, "k", nil)
	for range 1000 {
		h.publish("x", "k", "x-delay=10\n")
	}
	h.rest()
	h.now += 20e6 // they are overdue, and nobody has looked yet
	h.v.Unbind(x, q, "k", nil)
	h.rest()
	if h.v.Exchange([]byte("x")) != nil || !x.held.Deleted() || q.Ready() != 0 {
		t.Errorf("deleted %v, %d arrived", x.held.Deleted(), q.Ready())
	}
	m := h.message("x", "k", "x-delay=10\n") // it was on its way
	if h.Publish(x.held, m, nil, 0) != Accepted {
		t.Error("not swallowed")
	}
	again := h.exchange("x", "x-delayed-message", delayed("direct", nil))
	if again.held == x.held {
		t.Error("the new exchange has the old one's place")
	}
	h.clear(again)
}

// XT-02, EXC-06, EXC-07: arguments, and redeclaring.
func TestDelayedDeclare(t *testing.T) {
	const invalid = "PRECONDITION_FAILED - Invalid argument, 'x-delayed-type' must be an existing exchange type"
	h := newHouse(t)
	h.exchange("x", "x-delayed-message", delayed("topic", nil))
	for _, c := range []struct {
		name, kind string
		args       core.Args
		want       string
	}{
		{"new", "x-delayed-message", nil, invalid},
		{"new", "x-delayed-message", core.Args{"x-delayed-type": text("nope")}, invalid},
		{"new", "x-delayed-message", core.Args{"x-delayed-type": text("")}, invalid},
		{"new", "x-delayed-message", core.Args{"x-delayed-type": number(1)}, invalid},
		{"new", "x-delayed-message", core.Args{"x-delayed-type": text("x-delayed-message")}, invalid},
		{"new", "x-delayed-message", core.Args{"x-delayed-type": text("x-consistent-hash"), "hash-property": text("zz")},
			"PRECONDITION_FAILED - Unsupported property: zz"},
		{"x", "x-delayed-message", core.Args{"x-delayed-type": text("topic"), "other": number(1)}, ""},
		{"x", "x-delayed-message", core.Args{"x-delayed-type": text("direct")},
			"PRECONDITION_FAILED - inequivalent arg 'x-delayed-type' for exchange 'x' in vhost '/': received 'direct' but current is 'topic'"},
		{"x", "topic", nil,
			"PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received 'topic' but current is 'x-delayed-message'"},
	} {
		err := h.v.DeclareExchange(c.name, c.kind, ExchangeSettings{Args: c.args})
		if got := textOf(err); got != c.want {
			t.Errorf("%s %s %s: %q, want %q", c.name, c.kind, c.args.Canonical(), got, c.want)
		}
	}
	// Rules of the type that it routes like hold for its bindings.
	hash := h.exchange("hash", "x-delayed-message", delayed("x-consistent-hash", nil))
	if err := h.v.Bind(hash, h.queue("q", nil), "abc", nil); err == nil {
		t.Error("a weight that is no number is accepted")
	}
	h.bind(hash, h.v.Queue([]byte("q")), "1", nil)
	h.bind(hash, h.queue("r", nil), "1", nil)
	more := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d"), []byte("e"), []byte("f")}
	if got := h.RouteAll(h.v, hash, []byte("key"), more, nil); len(got) != 1 {
		t.Errorf("%d of two destinations are chosen", len(got))
	}
	if err := h.v.DeleteExchange("x", false); err != nil {
		t.Error(err)
	}
	h.clear(hash)
}

// XT-02, EXC-15: a durable delayed exchange keeps its place over restarts, beside a
// queue of its name, and on fewer loops.
func TestDelayedRestore(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	x := h.exchange("x", "x-delayed-message", func(s *ExchangeSettings) { delayed("direct", nil)(s); s.Durable = true })
	h.exchange("brief", "x-delayed-message", delayed("direct", nil))
	q := h.durableQueue("x", queue.Settings{})
	if n := len(d.sets[len(d.sets)-2]); n != 3 {
		t.Errorf("the exchange, its place and the last id are %d changes", n)
	}
	for shards := 3; shards > 0; shards-- {
		b := restart(t, d, shards)
		again := b.VHost("/").Exchange([]byte("x"))
		if again.held == nil || again.held.ID != x.held.ID || again.held.Shard != 0 || !again.held.Settings.Durable || !holds(again.held) ||
			again.held.Rules != x.held.Rules {
			t.Fatalf("the place is %+v", again.held)
		}
		if other := b.VHost("/").Queue([]byte("x")); other == nil || other.ID != q.ID || holds(other) {
			t.Fatalf("the queue is %+v", other)
		}
		if id := b.newQueueID(true); id <= q.ID {
			t.Errorf("id %d is given anew", id)
		}
		own, _ := b.durableQueues()
		if own[0][x.held.ID] != again.held || own[0][q.ID] == nil {
			t.Errorf("the log knows %v", own[0])
		}
		if b.queuesOn[0].Load() != 2 {
			t.Errorf("%d queues are counted", b.queuesOn[0].Load())
		}
	}
	b := restart(t, d, 1)
	again := b.VHost("/").Exchange([]byte("x")).held
	again.Shard, again.WasShard = 0, 4
	sets := len(d.sets)
	b.Reassigned(again)
	if len(d.sets) != sets+1 || !strings.Contains(string(d.sets[sets][0].Value), `"holds":true`) {
		t.Error("its new loop is not recorded")
	}
	if err := b.VHost("/").DeleteExchange("x", false); err != nil || !again.Deleted() {
		t.Errorf("deleted %v: %v", again.Deleted(), err)
	}
	b.Reassigned(again)
	if n := len(d.records[KindExchange]); n != 0 {
		t.Errorf("%d exchanges are left", n)
	}
	if got := fmt.Sprint(len(d.records[KindQueue])); got != "1" {
		t.Errorf("%s queues are left", got)
	}
}

// A catalog whose parts do not fit each other is refused.
func TestDelayedRestoreErrors(t *testing.T) {
	record := func(edit func(d *memory, key, value string)) string {
		d := newMemory()
		h := recorded(t, d)
		h.exchange("x", "x-delayed-message", func(s *ExchangeSettings) { delayed("direct", nil)(s); s.Durable = true })
		h.exchange("plain", "direct", durable)
		for key, value := range d.records[KindQueue] {
			edit(d, key, string(value))
		}
		err := NewBroker(1, textCodec{}).Restore(d.reborn())
		return fmt.Sprint(err)
	}
	for _, c := range []struct {
		name string
		edit func(d *memory, key, value string)
		want string
	}{
		{"as it was", func(*memory, string, string) {}, "<nil>"},
		{"no place", func(d *memory, key, _ string) { delete(d.records[KindQueue], key) }, "exchange 'x' in vhost '/' has no place for what it holds"},
		{"twice", func(d *memory, key, value string) { d.records[KindQueue]["zz"] = []byte(value) }, "has a place for what it holds already"},
		{"another type", func(d *memory, key, value string) {
			d.records[KindQueue][key] = []byte(strings.Replace(value, `"name":"x"`, `"name":"plain"`, 1))
		}, "exchange 'plain' in vhost '/' holds nothing"},
		{"no exchange", func(d *memory, key, value string) {
			d.records[KindQueue][key] = []byte(strings.Replace(value, `"name":"x"`, `"name":"nope"`, 1))
		}, "no exchange 'nope' in vhost '/'"},
	} {
		if got := record(c.edit); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %q", c.name, got, c.want)
		}
	}
}
