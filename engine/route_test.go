package engine

import (
	"fmt"
	"slices"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// E2E-01, ALT-01, BIND-05: the walk over exchanges.
func TestRoute(t *testing.T) {
	alternate := func(name string) func(*ExchangeSettings) {
		return func(s *ExchangeSettings) { s.Args = core.Args{"alternate-exchange": text(name)} }
	}
	type link struct{ source, dest, key string }
	for _, c := range []struct {
		name  string
		kinds map[string]string // of exchanges
		alt   map[string]string // their alternates
		links []link            // lower case destinations q... are queues
		from  string
		key   string
		want  string
	}{
		{"default exchange", nil, nil, []link{{"amq.direct", "q1", "x"}}, "", "q1", "q1"},
		{"default exchange, nobody", nil, nil, nil, "", "q1", ""},
		{"direct", nil, nil, []link{{"amq.direct", "q1", "a"}, {"amq.direct", "q2", "b"}}, "amq.direct", "a", "q1"},
		{"chain", map[string]string{"x": "fanout", "y": "topic"}, nil,
			[]link{{"x", "y", ""}, {"y", "q1", "a.*"}, {"y", "q2", "b.*"}}, "x", "a.b", "q1"},
		{"two ways to one queue", map[string]string{"x": "fanout", "y": "fanout", "z": "fanout"}, nil,
			[]link{{"x", "y", ""}, {"x", "z", ""}, {"y", "q1", ""}, {"z", "q1", ""}, {"x", "q1", ""}}, "x", "k", "q1"},
		{"to itself", map[string]string{"x": "fanout"}, nil, []link{{"x", "x", ""}, {"x", "q1", ""}}, "x", "k", "q1"},
		{"circle", map[string]string{"x": "fanout", "y": "fanout", "z": "fanout"}, nil,
			[]link{{"x", "y", ""}, {"y", "z", ""}, {"z", "x", ""}, {"z", "q1", ""}, {"y", "q2", ""}}, "x", "k", "q1 q2"},
		{"circle that reaches nobody", map[string]string{"x": "fanout", "y": "fanout"}, nil, []link{{"x", "y", ""}, {"y", "x", ""}}, "x", "k", ""},
		{"alternate", map[string]string{"x": "direct", "y": "fanout"}, map[string]string{"x": "y"},
			[]link{{"y", "q1", ""}, {"x", "q2", "a"}}, "x", "b", "q1"},
		{"alternate not needed", map[string]string{"x": "direct", "y": "fanout"}, map[string]string{"x": "y"},
			[]link{{"y", "q1", ""}, {"x", "q2", "a"}}, "x", "a", "q2"},
		{"alternate of the alternate", map[string]string{"x": "direct", "y": "direct", "z": "fanout"}, map[string]string{"x": "y", "y": "z"},
			[]link{{"z", "q1", ""}}, "x", "b", "q1"},
		{"alternate that is missing", map[string]string{"x": "direct"}, map[string]string{"x": "nope"}, nil, "x", "b", ""},
		{"alternates in a circle", map[string]string{"x": "direct", "y": "direct"}, map[string]string{"x": "y", "y": "x"}, nil, "x", "b", ""},
		{"alternate is itself", map[string]string{"x": "direct"}, map[string]string{"x": "x"}, nil, "x", "b", ""},
		{"alternate behind a binding", map[string]string{"x": "fanout", "y": "direct", "z": "fanout"}, map[string]string{"y": "z"},
			[]link{{"x", "y", ""}, {"z", "q1", ""}}, "x", "b", "q1"},
		{"alternate of the branch that matched nothing", map[string]string{"x": "fanout", "y": "direct", "z": "fanout"}, map[string]string{"y": "z"},
			[]link{{"x", "y", ""}, {"x", "q2", ""}, {"z", "q1", ""}}, "x", "b", "q1 q2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			for name, kind := range c.kinds {
				edit := func(*ExchangeSettings) {}
				if ae := c.alt[name]; ae != "" {
					edit = alternate(ae)
				}
				h.exchange(name, kind, edit)
			}
			for _, l := range c.links {
				source := h.v.Exchange([]byte(l.source))
				if dest := h.v.Exchange([]byte(l.dest)); dest != nil {
					h.bind(source, dest, l.key, nil)
				} else {
					h.bind(source, h.queue(l.dest, nil), l.key, nil)
				}
			}
			for range 2 { // from the catalog, then from the cache
				same(t, "queues", h.route(c.from, c.key, ""), words(c.want))
			}
			h.end()
		})
	}
}

// SSD-01, SSD-02: further keys count in every exchange on the way; a queue gets one
// copy, and nothing of it is remembered for messages without such keys.
func TestRouteAll(t *testing.T) {
	h := newHouse(t)
	x := h.exchange("x", "direct", func(s *ExchangeSettings) { s.Args = core.Args{"alternate-exchange": text("y")} })
	y := h.exchange("y", "topic", nil)
	z := h.exchange("z", "headers", nil)
	h.bind(x, h.queue("q1", nil), "a", nil)
	h.bind(x, h.queue("q2", nil), "b", nil)
	h.bind(x, y, "to y", nil)
	h.bind(x, z, "to z", nil)
	h.bind(y, h.queue("q3", nil), "*", nil)
	h.bind(y, h.queue("q4", nil), "d.#", nil)
	h.bind(z, h.queue("q5", nil), "", nil)
	for _, c := range []struct{ exchange, key, more, want string }{
		{"x", "a", "b", "q1 q2"},
		{"x", "a", "a a", "q1"},
		{"x", "nobody", "b", "q2"},
		{"x", "a", "to-z", "q1"},
		{"x", "none.none", "d.1 e", "q3 q4"}, // by the alternate exchange
		{"x", "none.none", "none.none", ""},
		{"", "q1", "q2 q1 nobody", "q1 q2"},
		{"", "nobody", "q2 q2", "q2"},
		{"z", "", "a b", "q5"},
	} {
		var more [][]byte
		for _, k := range words(c.more) {
			more = append(more, []byte(k))
		}
		m := h.message(c.exchange, c.key, "")
		var names []string
		for _, q := range h.RouteAll(h.v, h.v.Exchange([]byte(c.exchange)), m.Key(), more, textCodec{}.Headers(m)) {
			names = append(names, q.Name)
		}
		m.Release(h.arena)
		slices.Sort(names)
		same(t, c.exchange+" "+c.key+" "+c.more, names, words(c.want))
	}
	same(t, "without further keys", h.route("x", "a", ""), words("q1"))
	more := [][]byte{[]byte("to y"), []byte("to z"), []byte("b")}
	if got := len(h.RouteAll(h.v, x, []byte("a"), more, nil)); got != 4 {
		t.Errorf("%d queues behind both exchanges, want q1, q2, q3 and q5", got)
	}
	h.end()
}

// XT-03: chance is not remembered, and XT-01: further keys choose no further queue.
func TestRouteChoice(t *testing.T) {
	h := newHouse(t)
	for _, kind := range []string{"x-consistent-hash", "x-modulus-hash", "x-random"} {
		x := h.exchange(kind, kind, nil)
		for _, q := range []string{"q1", "q2", "q3"} {
			dest := h.v.Queue([]byte(q))
			if dest == nil {
				dest = h.queue(q, nil)
			}
			h.bind(x, dest, "1", nil)
		}
		if got := len(h.RouteAll(h.v, x, []byte("k"), [][]byte{[]byte("a"), []byte("b"), []byte("c")}, nil)); got != 1 {
			t.Errorf("%s: %d queues with further keys", kind, got)
		}
		seen := map[string]bool{}
		for range 100 {
			names := h.route(kind, "k", "")
			if len(names) != 1 {
				t.Fatalf("%s: %v", kind, names)
			}
			seen[names[0]] = true
		}
		if want := map[string]int{"x-random": 3}[kind]; len(seen) != max(want, 1) {
			t.Errorf("%s: one key reaches %v", kind, seen)
		}
	}
	h.end()
}

// DLX-02: dead letters go by all keys of their sender, or by the queue's one.
func TestDeadKeys(t *testing.T) {
	for _, rekeyed := range []bool{false, true} {
		h := newHouse(t)
		x := h.exchange("dlx", "direct", nil)
		args := core.Args{"x-dead-letter-exchange": text("dlx")}
		want := words("k c1 c2")
		if rekeyed {
			args["x-dead-letter-routing-key"] = text("other")
			want = words("other")
		}
		for _, key := range words("k c1 c2 c3 other") {
			h.bind(x, h.queue(key, nil), key, nil)
		}
		q := h.queue("q", args)
		h.bind(h.v.Exchange([]byte("amq.fanout")), q, "", nil)
		h.publish("amq.fanout", "k", "CC=c1 c2\n")
		h.Discard(q, h.take(q).Seq, nil)
		h.rest()
		var got []string
		for _, key := range words("k c1 c2 c3 other") {
			if h.v.Queue([]byte(key)).Ready() == 1 {
				got = append(got, key)
			}
		}
		same(t, "queues", got, want)
		h.end()
	}
}

// A walk over many exchanges and queues is as exact as one over few.
func TestRouteLarge(t *testing.T) {
	h := newHouse(t)
	hub := h.exchange("hub", "fanout", nil)
	const n = 100
	for i := range n {
		x := h.exchange(fmt.Sprint("x", i), "fanout", nil)
		h.bind(hub, x, "", nil)
		h.bind(x, hub, "", nil)
		for j := range 3 { // each queue is reached three times
			h.bind(x, h.queue(fmt.Sprint("q", (i+j)%n), nil), "", nil)
		}
	}
	for range 2 {
		if got := h.route("hub", "k", ""); len(got) != n || len(slices.Compact(got)) != n {
			t.Errorf("%d queues, want %d once each", len(got), n)
		}
	}
	h.end()
}

// What depends on headers is not remembered; what does not is, until the
// catalog changes in any way that may matter.
func TestRouteCache(t *testing.T) {
	h := newHouse(t)
	x := h.exchange("x", "headers", nil)
	direct := h.exchange("d", "direct", nil)
	h.bind(x, h.queue("q1", nil), "", core.Args{"a": text("1")})
	h.bind(direct, x, "k", nil)
	keyed := func(name, key string) bool {
		_, keyed := h.Route(h.v, h.v.Exchange([]byte(name)), []byte(key), textFields{})
		return keyed
	}
	for _, name := range []string{"x", "d"} {
		same(t, "headers match", h.route(name, "k", "a=1\n"), words("q1"))
		same(t, "headers differ", h.route(name, "k", "a=2\n"), nil)
		same(t, "headers match again", h.route(name, "k", "a=1\n"), words("q1"))
		if keyed(name, "k") {
			t.Errorf("%s: a route by headers passes for one by key", name)
		}
	}
	if !keyed("d", "other") || !keyed("", "q1") {
		t.Error("a route by key does not pass for one")
	}

	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"nothing yet", func() {}, ""},
		{"bind", func() { h.bind(direct, h.queue("q2", nil), "c", nil) }, "q2"},
		{"bind another", func() { h.bind(direct, h.queue("q3", nil), "c", nil) }, "q2 q3"},
		{"unbind", func() { h.v.Unbind(direct, h.v.Queue([]byte("q2")), "c", nil) }, "q3"},
		{"delete the queue", func() { h.DeleteQueue(h.v.Queue([]byte("q3"))) }, ""},
		{"bind an exchange", func() { h.bind(direct, h.exchange("f", "fanout", nil), "c", nil) }, ""},
		{"bind behind it", func() { h.bind(h.v.Exchange([]byte("f")), h.queue("q4", nil), "", nil) }, "q4"},
		{"delete what is behind", func() { _ = h.v.DeleteExchange("f", false) }, ""},
		{"declare it again", func() { h.exchange("f", "fanout", nil) }, ""},
	} {
		c.do()
		for range 2 {
			same(t, c.name, h.route("d", "c", ""), words(c.want))
		}
	}
	// An alternate exchange that comes into being.
	h.exchange("late", "direct", func(s *ExchangeSettings) { s.Args = core.Args{"alternate-exchange": text("ae")} })
	same(t, "no alternate yet", h.route("late", "k", ""), nil)
	h.bind(h.exchange("ae", "fanout", nil), h.queue("q5", nil), "", nil)
	same(t, "alternate", h.route("late", "k", ""), words("q5"))
	// The default exchange sees queues come and go.
	same(t, "no queue", h.route("", "q6", ""), nil)
	q6 := h.queue("q6", nil)
	same(t, "a queue", h.route("", "q6", ""), words("q6"))
	h.DeleteQueue(q6)
	same(t, "no queue again", h.route("", "q6", ""), nil)
	h.end()
}

// Keys that share a slot of the cache push each other out, and nothing else.
func TestRouteCacheCollisions(t *testing.T) {
	h := newHouse(t)
	x := h.exchange("x", "direct", nil)
	y := h.exchange("y", "direct", nil)
	const n = 3 * core.RouteCacheEntries
	for i := range 20 {
		h.bind(x, h.queue(fmt.Sprint("q", i), nil), fmt.Sprint(i), nil)
		h.bind(y, h.queue(fmt.Sprint("p", i), nil), fmt.Sprint(i), nil)
	}
	for i := range n {
		key := []byte(fmt.Sprint(i))
		for _, s := range []struct {
			x      *Exchange
			prefix string
		}{{x, "q"}, {y, "p"}} {
			queues, _ := h.Route(h.v, s.x, key, nil)
			if i < 20 != (len(queues) == 1) || len(queues) == 1 && queues[0].Name != s.prefix+string(key) {
				t.Fatalf("key %s of %s leads to %d queues", key, s.x.Name, len(queues))
			}
		}
	}
	h.end()
}

// A message to a queue that was deleted after its route was remembered is
// swallowed (QUE-11), and released.
func TestPublishToDeletedQueue(t *testing.T) {
	h := newHouse(t)
	q := h.queue("q", nil)
	h.publish("", "q", "")
	if got := h.DeleteQueue(q); got != 1 {
		t.Errorf("%d deleted", got)
	}
	if h.Shard.Publish(q, h.message("", "q", ""), nil, 0) != Accepted {
		t.Error("not accepted")
	}
	h.rest()
	h.end()
}

// QUE-09 in the catalog: an auto-delete queue goes with its last consumer, and
// its bindings go too.
func TestAutoDeleteQueue(t *testing.T) {
	h := newHouse(t)
	q, err := h.v.DeclareQueue("q", queue.Settings{AutoDelete: true}, nil, h.Shard, false)
	if err != nil {
		t.Fatal(err)
	}
	x := h.exchange("x", "fanout", func(s *ExchangeSettings) { s.AutoDelete = true })
	h.bind(x, q, "", nil)
	sub := &Subscription{Queue: q}
	h.Subscribe(sub, &deafSink{}, func(err *core.Error) {
		if err != nil {
			t.Error(err)
		}
	})
	h.publish("x", "", "")
	h.rest()
	done := false
	h.Unsubscribe(sub, func() { done = true })
	if !done || h.v.Queue([]byte("q")) != nil || h.v.Exchange([]byte("x")) != nil {
		t.Error("the queue or its exchange is still there")
	}
	h.Subscribe(&Subscription{Queue: q}, &deafSink{}, func(err *core.Error) {
		if textOf(err) != "NOT_FOUND - no queue 'q' in vhost '/'" {
			t.Error(err)
		}
	})
	h.end()
}

// deafSink takes nothing.
type deafSink struct{}

func (*deafSink) Full() bool                                        { return true }
func (*deafSink) Deliver(uint64, *core.Message, queue.DeliverFlags) {}
func (*deafSink) Cancelled()                                        {}
