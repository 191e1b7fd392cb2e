package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// BIND-01, BIND-03, BIND-05: identity, unbinding, one copy.
func TestBindings(t *testing.T) {
	h := newHouse(t)
	x := h.exchange("x", "headers", nil)
	q := h.queue("q", nil)
	one, two := core.Args{"a": number(1)}, core.Args{"a": number(2)}
	h.bind(x, q, "k", one)
	h.bind(x, q, "k", core.Args{"a": long(1)}) // the same (widths do not matter)
	if len(x.bindings) != 1 {
		t.Errorf("%d bindings", len(x.bindings))
	}
	epoch := h.v.Epoch()
	h.bind(x, q, "k", one)
	if h.v.Epoch() != epoch {
		t.Error("binding again counts as a change")
	}
	h.bind(x, q, "k", two)
	h.bind(x, q, "other", one)
	if len(x.bindings) != 3 || !h.v.HasBinding(x, q, "k", two) || h.v.HasBinding(x, q, "other", two) {
		t.Errorf("%d bindings", len(x.bindings))
	}
	h.v.Unbind(x, q, "nope", one)
	h.v.Unbind(x, q, "k", core.Args{})
	if len(x.bindings) != 3 {
		t.Error("unbinding what is not bound changes something")
	}
	h.v.Unbind(x, q, "k", core.Args{"a": long(1)})
	h.v.Unbind(x, q, "k", two)
	h.v.Unbind(x, q, "other", one)
	if len(x.bindings) != 0 || len(h.v.incoming) != 0 {
		t.Errorf("%d bindings are left, %d destinations", len(x.bindings), len(h.v.incoming))
	}
	if h.v.Exchange([]byte("x")) != x {
		t.Error("an exchange without auto-delete went with its last binding")
	}

	topic := h.exchange("t", "topic", nil)
	for _, key := range []string{"#", "a.*", "*.b", "a.b"} {
		h.bind(topic, q, key, nil)
	}
	same(t, "one copy", h.route("t", "a.b", ""), words("q"))
	for _, bad := range []struct {
		v    core.Value
		want string
	}{
		{text("foo"), `PRECONDITION_FAILED - Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x`},
		{number(5), "PRECONDITION_FAILED - Invalid x-match field type signedint (value 5); expected longstr"},
	} {
		if got := textOf(h.v.Bind(x, q, "", core.Args{"x-match": bad.v})); got != bad.want {
			t.Errorf("%q, want %q", got, bad.want)
		}
	}
	h.end()
}

// BIND-02: what is gone when the lock is held was found without it.
func TestBindToWhatIsGone(t *testing.T) {
	h := newHouse(t)
	x, y, q := h.exchange("x", "fanout", nil), h.exchange("y", "fanout", nil), h.queue("q", nil)
	h.DeleteQueue(q)
	again := h.queue("q", nil) // the same name is not the same queue
	if got := textOf(h.v.Bind(x, q, "", nil)); got != "NOT_FOUND - no queue 'q' in vhost '/'" {
		t.Error(got)
	}
	if err := h.v.DeleteExchange("y", false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		source *Exchange
		dest   exchange.Dest
	}{{x, y}, {y, x}, {y, y}, {y, again}} {
		if got := textOf(h.v.Bind(c.source, c.dest, "", nil)); got != "NOT_FOUND - no exchange 'y' in vhost '/'" {
			t.Error(got)
		}
	}
	if len(h.v.incoming) != 0 || len(x.bindings) != 0 {
		t.Error("a binding to nothing")
	}
	h.end()
}

// EXC-10, QUE-11: who goes with whom.
func TestAutoDeleteCascade(t *testing.T) {
	auto := func(s *ExchangeSettings) { s.AutoDelete = true }
	for _, c := range []struct {
		name  string
		links string // "a>b" binds; capitals are exchanges that delete themselves
		act   func(h *house)
		left  string // of all that is named in links
	}{
		{"never had a binding", "a>Z", func(h *house) { h.v.Unbind(h.v.Exchange([]byte("a")), h.v.Exchange([]byte("Z")), "", nil) }, "a Z"},
		{"last binding to a queue", "A>q", func(h *house) { h.v.Unbind(h.v.Exchange([]byte("A")), h.v.Queue([]byte("q")), "", nil) }, "q"},
		{"queue deleted", "A>q", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, ""},
		{"one of two left", "A>q A>p", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, "A p"},
		{"a chain", "A>B B>C C>q", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, ""},
		{"a chain with a lasting end", "a>B B>q", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, "a"},
		{"a lasting one in between", "A>b b>C C>q", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, "A b"},
		{"two feed one", "A>C B>C C>q", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, ""},
		{"one feeds two", "A>B A>C B>q C>p", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, "A C p"},
		{"a circle", "A>B B>A A>q", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, "A B"},
		{"a circle broken", "A>B B>A", func(h *house) { h.v.Unbind(h.v.Exchange([]byte("A")), h.v.Exchange([]byte("B")), "", nil) }, ""},
		{"itself", "A>A A>q", func(h *house) { h.DeleteQueue(h.v.Queue([]byte("q"))) }, "A"},
		{"itself alone", "A>A", func(h *house) { h.v.Unbind(h.v.Exchange([]byte("A")), h.v.Exchange([]byte("A")), "", nil) }, ""},
		{"deleted by name", "A>B B>q", func(h *house) { _ = h.v.DeleteExchange("B", false) }, "q"},
		{"deleted source", "A>B B>q", func(h *house) { _ = h.v.DeleteExchange("A", false) }, "B q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			named := map[string]exchange.Dest{}
			for _, link := range words(c.links) {
				for _, name := range []string{link[:1], link[2:]} {
					switch {
					case named[name] != nil:
					case name >= "p":
						named[name] = h.queue(name, nil)
					case name < "a":
						named[name] = h.exchange(name, "fanout", auto)
					default:
						named[name] = h.exchange(name, "fanout", nil)
					}
				}
				h.bind(named[link[:1]].(*Exchange), named[link[2:]], "", nil)
			}
			c.act(h)
			left := map[string]bool{}
			for _, name := range words(c.left) {
				left[name] = true
			}
			for name, d := range named {
				here := h.v.Queue([]byte(name)) != nil
				if x, ok := d.(*Exchange); ok {
					here = h.v.Exchange([]byte(name)) == x
					if here == x.deleted.Load() {
						t.Errorf("%s: in the catalog %v, deleted %v", name, here, !here)
					}
				}
				if here != left[name] {
					t.Errorf("%s is there: %v", name, here)
				}
			}
			h.checkCatalog()
			h.end()
		})
	}
}

// checkCatalog holds bindings, destinations and matchers against one another.
func (h *house) checkCatalog() {
	h.Helper()
	h.v.mu.Lock()
	defer h.v.mu.Unlock()
	n := 0
	h.v.Exchanges(func(x *Exchange) {
		for id, b := range x.bindings {
			n++
			if _, ok := h.v.incoming[b.Dest][b]; !ok || id.dest != b.Dest || b.Source != x {
				h.Errorf("binding of %s to %v is not known at its destination", x.Name, b.Dest)
			}
			found := false
			for _, d := range (*x.matcher.Load()).Match([]byte(b.Key), nil, nil) {
				found = found || d == b.Dest
			}
			if !found && x.Kind != exchange.Headers {
				h.Errorf("%s does not match its binding %q", x.Name, b.Key)
			}
		}
		if x.AutoDelete && x.deleted.Load() {
			h.Errorf("%s is deleted and in the catalog", x.Name)
		}
	})
	for dest, in := range h.v.incoming {
		n -= len(in)
		if len(in) == 0 {
			h.Errorf("an empty list for %v", dest)
		}
		if x, ok := dest.(*Exchange); ok && x.deleted.Load() {
			h.Errorf("bindings to %s, which is gone", x.Name)
		}
	}
	if n != 0 {
		h.Errorf("%d bindings more than destinations know", n)
	}
}

// TestCatalogAtRandom declares, binds and deletes at random.
func TestCatalogAtRandom(t *testing.T) {
	for seed := range uint64(150) {
		h := newHouse(t)
		rng := rand.New(rand.NewPCG(seed, 4))
		exchanges := func() *Exchange { return h.v.Exchange(fmt.Appendf(nil, "x%d", rng.IntN(6))) }
		queues := func() *queue.Queue { return h.v.Queue(fmt.Appendf(nil, "q%d", rng.IntN(6))) }
		dest := func() exchange.Dest {
			if rng.IntN(2) == 0 {
				if x := exchanges(); x != nil {
					return x
				}
			}
			if q := queues(); q != nil {
				return q
			}
			return nil
		}
		for range 200 {
			x, d, key := exchanges(), dest(), []string{"a", "b"}[rng.IntN(2)]
			switch rng.IntN(8) {
			case 0:
				kind := []string{"direct", "fanout", "topic"}[rng.IntN(3)]
				_ = h.v.DeclareExchange(fmt.Sprintf("x%d", rng.IntN(6)), kind, ExchangeSettings{AutoDelete: rng.IntN(2) == 0})
			case 1:
				_, _ = h.v.DeclareQueue(fmt.Sprintf("q%d", rng.IntN(6)), queue.Settings{}, nil, h.Shard, false)
			case 2, 3, 4:
				if x != nil && d != nil {
					_ = h.v.Bind(x, d, key, nil)
				}
			case 5:
				if x != nil && d != nil {
					h.v.Unbind(x, d, key, nil)
				}
			case 6:
				if rng.IntN(3) == 0 {
					_ = h.v.DeleteExchange(fmt.Sprintf("x%d", rng.IntN(6)), rng.IntN(2) == 0)
				}
			case 7:
				if q := queues(); q != nil && rng.IntN(2) == 0 {
					h.DeleteQueue(q)
				}
			}
			if x := exchanges(); x != nil {
				h.publish(x.Name, key, "")
			}
		}
		h.rest()
		h.checkCatalog()
		h.end()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Readers on other loops route while the catalog changes.
func TestRouteWhileBinding(t *testing.T) {
	b := NewBroker(2, textCodec{})
	v := b.VHost("/")
	if err := v.DeclareExchange("x", "topic", ExchangeSettings{}); err != nil {
		t.Fatal(err)
	}
	x := v.Exchange([]byte("x"))
	fixed, err := v.DeclareQueue("fixed", queue.Settings{}, nil, b.Shards[0], false)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Bind(x, fixed, "#", nil); err != nil {
		t.Fatal(err)
	}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for _, s := range b.Shards {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				queues, _ := s.Route(v, x, []byte("a.b"), nil)
				found := false
				for _, q := range queues {
					found = found || q == fixed
				}
				if !found {
					t.Error("a lasting binding was not seen")
					return
				}
			}
		})
	}
	for w := range 2 {
		writers.Go(func() {
			for i := range 300 {
				name := fmt.Sprintf("q%d-%d", w, i%5)
				q, err := v.DeclareQueue(name, queue.Settings{}, nil, b.Shards[w], false)
				if err != nil {
					t.Error(err)
					return
				}
				_ = v.Bind(x, q, "a.*", nil)
				if i%2 == 0 {
					v.removeQueue(q)
				} else {
					v.Unbind(x, q, "a.*", nil)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	queues, _ := b.Shards[0].Route(v, x, []byte("a.b"), nil)
	if len(queues) != 1 {
		t.Errorf("%d queues at the end", len(queues))
	}
}
