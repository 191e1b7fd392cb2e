package exchange

import (
	"fmt"
	"testing"

	"ringmq/engine/core"
)

// matchCase is a matcher with a message that reaches want destinations.
type matchCase struct {
	name    string
	m       Matcher
	key     string
	headers core.Fields
	held    int // destinations that out has before
	want    int
}

func bindMany(k Kind, n int, binding func(i int, q *queue) Binding) Matcher {
	m := New(k, Options{})
	for i, q := range makeQueues(n) {
		m = m.Bind(binding(i, q))
	}
	return m
}

// weighted gives the bindings weights in turn.
func weighted(weights ...string) func(int, *queue) Binding {
	return func(i int, q *queue) Binding { return hashBinding(q, weights[i%len(weights)]) }
}

func topicPatterns(n int) Matcher {
	return bindMany(Topic, n, func(i int, q *queue) Binding {
		shape := [...]string{"eu.%d.orders.*", "*.%d.orders.created", "eu.%d.#", "#.stock.%d"}[i%4]
		return Binding{Dest: q, Key: fmt.Sprintf(shape, i/4)}
	})
}

func matchCases() []matchCase {
	headers := fields{"format": text("pdf"), "customer": number(17), "region": text("eu")}
	own := func(i int, q *queue) Binding { return Binding{Dest: q, Key: fmt.Sprint("queue-", i)} }
	rules := func(i int, q *queue) Binding {
		return Binding{Dest: q, Args: core.Args{"format": text("pdf"), "customer": number(int64(i))}}
	}
	anyRules := func(i int, q *queue) Binding {
		return Binding{Dest: q, Args: core.Args{"x-match": text("any"), "region": text("eu"), "customer": number(int64(i))}}
	}
	one := &queue{0}
	nested := New(Topic, Options{}).Bind(Binding{Dest: one, Key: "#.a.#.a.#.a.#"}).Bind(Binding{Dest: one, Key: "#.b.#"})
	return []matchCase{
		{"direct/10000", bindMany(Direct, 10_000, own), "queue-4711", nil, 0, 1},
		{"direct/miss", bindMany(Direct, 10_000, own), "queue-x", nil, 0, 0},
		{"direct/one key 100", bindMany(Direct, 100, bindCases[1].binding), "k", nil, 3, 103},
		{"fanout/1", bindMany(Fanout, 1, own), "", nil, 0, 1},
		{"fanout/100", bindMany(Fanout, 100, own), "", nil, 0, 100},
		{"fanout/10000", bindMany(Fanout, 10_000, own), "", nil, 0, 10_000},
		{"fanout/10000 held", bindMany(Fanout, 10_000, own), "", nil, 10_000, 20_000},
		{"topic/4", topicPatterns(4), "eu.0.orders.created", nil, 0, 3},
		{"topic/1000", topicPatterns(1000), "eu.17.orders.created", nil, 0, 3},
		{"topic/10000", topicPatterns(10_000), "eu.17.orders.created", nil, 0, 3},
		{"topic/same key 1000", bindMany(Topic, 1000, bindCases[3].binding), "a.b.c", nil, 5, 1005},
		{"topic/nested", nested, "x.a.y.a.b.a.a.z", nil, 0, 1},
		{"headers/1", bindMany(Headers, 18, rules), "", headers, 0, 1},
		{"headers/10000", bindMany(Headers, 10_000, rules), "", headers, 0, 1},
		{"hash/10", bindMany(ConsistentHash, 10, weighted("1", "1")), "k", nil, 0, 1},
		{"hash/10 weights", bindMany(ConsistentHash, 10, weighted("1", "7")), "k", nil, 0, 1},
		{"hash/1000", bindMany(ConsistentHash, 1000, weighted("1", "1")), "k", nil, 0, 1},
		{"modulus/1000", bindMany(ModulusHash, 1000, weighted("1", "1")), "k", nil, 0, 1},
		{"random/1000", bindMany(Random, 1000, weighted("1", "1")), "k", nil, 0, 1},
		{"headers/any 1000", bindMany(Headers, 1000, anyRules), "", headers, 0, 1000},
	}
}

func (c *matchCase) out() []Dest {
	out := make([]Dest, 0, c.want+16)
	for _, q := range makeQueues(c.held) {
		out = append(out, q)
	}
	return out
}

// TestAllocsMatch: routing a message allocates nothing when out has room.
func TestAllocsMatch(t *testing.T) {
	for _, c := range matchCases() {
		out, key := c.out(), []byte(c.key)
		if got := len(c.m.Match(key, c.headers, out)); got != c.want {
			t.Errorf("%s: %d destinations, want %d", c.name, got, c.want)
		}
		if poolsForget {
			continue
		}
		if n := testing.AllocsPerRun(100, func() { c.m.Match(key, c.headers, out) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// TestTableGeneration: a table whose counter goes round does not take slots of
// earlier matches for its own.
func TestTableGeneration(t *testing.T) {
	table := borrowTable()
	table.generation = 1
	table.insert(42, 7)
	table.generation = ^uint32(0)
	returnTable(table)
	for range 3 {
		next := borrowTable()
		if !next.insertNew(42) {
			t.Fatal("a table that was just borrowed is not empty")
		}
		if next.insertNew(42) {
			t.Fatal("the table forgets what was put into it")
		}
		returnTable(next)
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, c := range matchCases() {
		b.Run(c.name, func(b *testing.B) {
			out, key := c.out(), []byte(c.key)
			b.ReportAllocs()
			for b.Loop() {
				c.m.Match(key, c.headers, out)
			}
		})
	}
}

func BenchmarkBind(b *testing.B) {
	for _, c := range bindCases {
		b.Run(c.name, func(b *testing.B) {
			m := bindMany(c.kind, 10_000, c.binding)
			next := c.binding(10_000, &queue{10_000})
			b.ReportAllocs()
			for b.Loop() {
				m.Bind(next).Unbind(next)
			}
		})
	}
}
