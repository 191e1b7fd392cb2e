package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ringmq/test/harness"
)

var bindingRefusals = []refusal{
	{id: "BIND-02", name: "missing exchange", setup: withQueue, code: 404, text: "no exchange 'nowhere' in vhost '/'",
		failed: m(50, 20), send: func(c *client, n map[string]string) {
			c.method(1, 50, 20, bindArgs(n["q"], "nowhere", "k", ""))
		}},
	{id: "BIND-02", name: "missing queue", setup: freshName, code: 404, text: "no queue '{q}' in vhost '/'",
		failed: m(50, 20), send: func(c *client, n map[string]string) {
			c.method(1, 50, 20, bindArgs(n["q"], "amq.direct", "k", ""))
		}},
	{id: "BIND-02", name: "both missing", setup: freshName, code: 404, text: "no exchange 'nowhere' in vhost '/'",
		failed: m(50, 20), send: func(c *client, n map[string]string) {
			c.method(1, 50, 20, bindArgs(n["q"], "nowhere", "k", ""))
		}},
	{id: "BIND-02", name: "missing destination exchange", setup: withExchange, code: 404,
		text: "no exchange 'nowhere' in vhost '/'", failed: m(40, 30), send: func(c *client, n map[string]string) {
			c.method(1, 40, 30, bindArgs("nowhere", n["x"], "k", ""))
		}},
	{id: "BIND-07", name: "odd x-match", setup: withQueue, code: 406, failed: m(50, 20),
		text: `Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x`,
		send: func(c *client, n map[string]string) {
			c.method(1, 50, 20, bindArgs(n["q"], "amq.headers", "k", table("x-match", "foo")))
		}},
	{id: "BIND-07", name: "x-match of a wrong type", setup: withQueue, code: 406, failed: m(50, 20),
		text: `Invalid x-match field type signedint (value 5); expected longstr`,
		send: func(c *client, n map[string]string) {
			c.method(1, 50, 20, bindArgs(n["q"], "amq.headers", "k", table("x-match", 5)))
		}},
}

// TestBindingRefusals: BIND-02 and BIND-07.
func TestBindingRefusals(t *testing.T) { runRefusals(t, bindingRefusals) }

// TestBIND_01_Identity: key and arguments make a binding; the same twice is one.
func TestBIND_01_Identity(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		x, q := c.newExchange(1, "direct"), c.newQueue(1)
		copies := func() int { c.publish(1, x, "k", "m"); return len(c.drain(1, q)) }
		c.bind(1, q, x, "k", "")
		c.bind(1, q, x, "k", "")
		c.bind(1, q, x, "k", table("a", 1))
		if got := copies(); got != 1 { // BIND-05
			t.Errorf("%d copies over three binds, want 1", got)
		}
		c.unbind(1, q, x, "k", "")
		if got := copies(); got != 1 {
			t.Errorf("%d copies, the binding with arguments should be left", got)
		}
		c.unbind(1, q, x, "k", table("a", 2)) // another binding
		c.unbind(1, q, x, "k", table("a", 1))
		if got := copies(); got != 0 {
			t.Errorf("%d copies without a binding", got)
		}
	})
}

// TestBIND_03_UnbindMissing: no error for a missing binding, exchange or queue.
func TestBIND_03_UnbindMissing(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q, x := c.newQueue(1), c.newExchange(1, "topic")
		c.unbind(1, q, x, "k", "")
		c.unbind(1, q, unique("none"), "k", "")
		c.unbind(1, unique("none"), x, "k", "")
		c.unbind(1, unique("none"), unique("none"), "k", "")
		c.unbindExchange(1, x, unique("none"), "k", "")
		c.unbindExchange(1, unique("none"), x, "k", "")
	})
}

// routing binds one queue per pattern and says which patterns a publish reaches.
type routing struct {
	c        *client
	exchange string
	queues   map[string]string // pattern -> queue
}

func newRouting(c *client, kind string, patterns []string) *routing {
	r := &routing{c, c.newExchange(1, kind), map[string]string{}}
	for _, pattern := range patterns {
		r.queues[pattern] = c.newQueue(1)
		c.bind(1, r.queues[pattern], r.exchange, pattern, "")
	}
	return r
}

// reached publishes once and returns the patterns whose queue got it, sorted; two copies fail the test.
func (r *routing) reached(key string) []string {
	r.c.t.Helper()
	r.c.publish(1, r.exchange, key, "m")
	var out []string
	for pattern, q := range r.queues {
		switch got := r.c.drain(1, q); len(got) {
		case 0:
		case 1:
			out = append(out, pattern)
		default:
			r.c.t.Errorf("key %q: %d copies in the queue of %q", key, len(got), pattern)
		}
	}
	slices.Sort(out)
	return out
}

// topicMatch is the obvious slow matcher that the broker is held against.
func topicMatch(pattern, key []string) bool {
	if len(pattern) == 0 {
		return len(key) == 0
	}
	if pattern[0] == "#" {
		return topicMatch(pattern[1:], key) || (len(key) > 0 && topicMatch(pattern, key[1:]))
	}
	return len(key) > 0 && (pattern[0] == "*" || pattern[0] == key[0]) && topicMatch(pattern[1:], key[1:])
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ".")
}

// TestBIND_06_Topic: against the slow matcher, with the patterns and keys that field case 1 names among them.
func TestBIND_06_Topic(t *testing.T) {
	patterns := []string{"a.*.c.#", "#.z", "#", "x.#.y", "*", "", "a.*", "a*", "#.#", "*.#", "#.*", "a", "a.b", "*.*", "a.#.#.c",
		"..", "*.a.#", "#.a.*", "a.b.c", "#.b.#"}
	keys := []string{"a.b.c", "z", "", "x.y", "x.1.2.y", "a", "a.", ".", "..", "a.b", "a.b.c.d.e", "b.a", "a*", "a.c", "q.a.b", "x.z",
		"a.x.c.z", "*", "#", "a.#"}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		r := newRouting(connect(t, b).open(1), "topic", patterns)
		for _, key := range keys {
			var want []string
			for _, pattern := range patterns {
				if topicMatch(words(pattern), words(key)) {
					want = append(want, pattern)
				}
			}
			slices.Sort(want)
			if got := r.reached(key); !slices.Equal(got, want) {
				t.Errorf("key %q reached %q, want %q", key, got, want)
			}
		}
	})
}

// TestBIND_06_DirectFanout: direct compares bytes, fanout ignores the key.
func TestBIND_06_DirectFanout(t *testing.T) {
	keys := []string{"", "k", "K", "k.", "*", "#", "k\x00", "\xff\xfe", strings.Repeat("k", 255)}
	valid := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == "\xff\xfe" })
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		r := newRouting(c, "direct", valid)
		for _, key := range valid {
			if got := r.reached(key); !slices.Equal(got, []string{key}) {
				t.Errorf("direct: key %q reached %q", key, got)
			}
		}
		f := newRouting(c, "fanout", []string{"", "a"})
		for _, key := range []string{"", "a", "other"} {
			if got := f.reached(key); len(got) != 2 {
				t.Errorf("fanout: key %q reached %q", key, got)
			}
		}
	})
}

// headerRow is one binding of a headers exchange and the header sets that match it or do not.
type headerRow struct {
	name    string
	binding tbl
	match   []tbl
	miss    []tbl
}

var headerRows = []headerRow{
	{"all is the default", table("a", 1, "b", "two"), []tbl{table("a", 1, "b", "two"), table("b", "two", "a", 1, "c", true)},
		[]tbl{table("a", 1), table("a", 2, "b", "two"), ""}},
	{"all", table("x-match", "all", "a", 1), []tbl{table("a", 1)}, []tbl{table("b", 1), table("a", 2)}},
	{"any", table("x-match", "any", "a", 1, "b", 2), []tbl{table("a", 1), table("b", 2), table("a", 9, "b", 2)},
		[]tbl{table("a", 2), table("c", 1), ""}},
	{"all skips x- names", table("x-match", "all", "x-own", 1, "a", 1), []tbl{table("a", 1), table("a", 1, "x-own", 2)},
		[]tbl{table("x-own", 1)}},
	{"any skips x- names", table("x-match", "any", "x-own", 1, "a", 1), []tbl{table("a", 1)}, []tbl{table("x-own", 1)}},
	{"all-with-x", table("x-match", "all-with-x", "x-own", 1, "a", 1), []tbl{table("a", 1, "x-own", 1)},
		[]tbl{table("a", 1), table("x-own", 1), table("a", 1, "x-own", 2)}},
	{"any-with-x", table("x-match", "any-with-x", "x-own", 1, "a", 1), []tbl{table("a", 1), table("x-own", 1)},
		[]tbl{table("a", 2, "x-own", 2), ""}},
	{"void means present", table("a", vV()), []tbl{table("a", 1), table("a", "x"), table("a", vV())}, []tbl{table("b", 1), ""}},
	{"numbers by value", table("a", 5), []tbl{table("a", vb(5)), table("a", vl(5)), table("a", vs(5)), table("a", vd(5)),
		table("a", vi(5)), table("a", vL(5))}, []tbl{table("a", "5"), table("a", vd(5.5)), table("a", true)}},
	{"a text is no number", table("a", "5"), []tbl{table("a", "5")}, []tbl{table("a", 5), table("a", "05")}},
	{"nothing with all", "", []tbl{"", table("a", 1)}, nil},
	{"nothing with any", table("x-match", "any"), nil, []tbl{"", table("a", 1)}},
	{"only x- names with any", table("x-match", "any", "x-own", 1), nil, []tbl{table("x-own", 1), ""}},
	{"booleans", table("a", true), []tbl{table("a", true)}, []tbl{table("a", false), table("a", 1), table("a", "true")}},
}

// TestBIND_08_Headers: also field case 3, two queues that must not get each other's messages.
func TestBIND_08_Headers(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, row := range headerRows {
			t.Run(row.name, func(t *testing.T) {
				c := connect(t, b).open(1)
				x, q := c.newExchange(1, "headers"), c.newQueue(1)
				c.bind(1, q, x, "", row.binding)
				send := func(h tbl) int {
					c.publishWith(1, publishArgs(x, "any key", false, false), props{headers: h, hasHeaders: h != ""}, []byte("m"))
					return len(c.drain(1, q))
				}
				for _, h := range row.match {
					if got := send(h); got != 1 {
						t.Errorf("headers %q: %d copies, want 1", h, got)
					}
				}
				for _, h := range row.miss {
					if got := send(h); got != 0 {
						t.Errorf("headers %q: %d copies, want 0", h, got)
					}
				}
			})
		}
	})
}

// TestF3_HeadersApart: two queues with different required headers, for each way of matching.
func TestF3_HeadersApart(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, match := range []string{"all", "any", "all-with-x", "any-with-x"} {
			for _, name := range []string{"kind", "x-kind"} {
				t.Run(match+" "+name, func(t *testing.T) {
					c := connect(t, b).open(1)
					x := c.newExchange(1, "headers")
					q := map[string]string{"one": c.newQueue(1), "two": c.newQueue(1)}
					for v, queue := range q {
						c.bind(1, queue, x, "", table("x-match", match, name, v, "common", vV()))
					}
					for v, queue := range q {
						c.publishWith(1, publishArgs(x, "", false, false), props{headers: table(name, v)}, []byte(v))
						c.publishWith(1, publishArgs(x, "", false, false), props{headers: table(name, v, "common", 1)}, []byte(v+"+"))
						for other, oq := range q {
							want := wantApart(match, name, v, oq == queue)
							if got := fmt.Sprint(c.drain(1, oq)); got != fmt.Sprint(want) {
								t.Errorf("%s=%s in the queue of %s: %s, want %v", name, v, other, got, want)
							}
						}
					}
				})
			}
		}
	})
}

// wantApart is what a queue holds after the two publishes of TestF3_HeadersApart: the second one has both headers.
func wantApart(match, name, v string, own bool) []string {
	considered := own && (name == "kind" || strings.HasSuffix(match, "-with-x"))
	ignored := name == "x-kind" && !strings.HasSuffix(match, "-with-x")
	switch {
	case strings.HasPrefix(match, "any") && considered:
		return []string{v, v + "+"}
	case strings.HasPrefix(match, "any") || considered || ignored:
		return []string{v + "+"} // through "common", or all that is required
	}
	return []string{}
}

// TestBIND_05_OneCopy: many bindings and paths, one copy each; every queue its own.
func TestBIND_05_OneCopy(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		root, left, right := c.newExchange(1, "topic"), c.newExchange(1, "fanout"), c.newExchange(1, "direct")
		q1, q2 := c.newQueue(1), c.newQueue(1)
		c.bindExchange(1, left, root, "#", "")
		c.bindExchange(1, right, root, "a.*", "")
		for _, q := range []string{q1, q2} {
			c.bind(1, q, left, "", "")
			c.bind(1, q, right, "a.b", "")
			c.bind(1, q, root, "a.b", "")
			c.bind(1, q, root, "*.b", "")
		}
		c.publish(1, root, "a.b", "m")
		for _, q := range []string{q1, q2} {
			if got := c.drain(1, q); len(got) != 1 {
				t.Errorf("%d copies, want 1", len(got))
			}
		}
	})
}
