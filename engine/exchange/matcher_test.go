package exchange

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"ringmq/engine/core"
)

var kinds = []Kind{Direct, Fanout, Topic, Headers}

// TestMatchersAgainstReference (BIND-01, BIND-03, BIND-05, BIND-06, BIND-08)
// binds and unbinds at random and holds every match against the obvious list.
// Versions kept on the way must answer as they did when they were the newest.
func TestMatchersAgainstReference(t *testing.T) {
	type version struct {
		m  Matcher
		bs bindings
	}
	for _, k := range kinds {
		for seed := uint64(1); seed <= 40; seed++ {
			t.Run(fmt.Sprintf("%s/seed%d", k, seed), func(t *testing.T) {
				w := &world{k, rand.New(rand.NewPCG(seed, uint64(k))), makeQueues(1 + int(seed)*2)}
				m, bs := New(k, Options{}), bindings(nil)
				var kept []version
				for range 150 {
					b := w.binding()
					at := bs.index(b)
					switch {
					case at < 0 && w.rng.IntN(4) == 0:
						if m.Unbind(b) != m {
							t.Fatalf("unbinding the absent %v made a new version", b)
						}
					case at < 0:
						m, bs = m.Bind(b), append(slices.Clone(bs), b)
					default:
						m, bs = m.Unbind(b), slices.Delete(slices.Clone(bs), at, at+1)
					}
					if len(bs) > 0 && w.rng.IntN(3) == 0 {
						at := w.rng.IntN(len(bs))
						m, bs = m.Unbind(bs[at]), slices.Delete(slices.Clone(bs), at, at+1)
					}
					for range 3 {
						key, headers := w.message()
						var held []Dest
						for _, i := range w.rng.Perm(len(w.queues))[:w.rng.IntN(len(w.queues))/2] {
							held = append(held, w.queues[i])
						}
						check(t, m, k, bs, key, headers, nil)
						check(t, m, k, bs, key, headers, held)
					}
					kept = append(kept, version{m, bs})
				}
				for _, v := range kept {
					key, headers := w.message()
					check(t, v.m, k, v.bs, key, headers, nil)
					check(t, v.m, k, v.bs, "", nil, nil)
				}
			})
		}
	}
}

// TestUses says what the route cache may leave out of its key.
func TestUses(t *testing.T) {
	for _, c := range []struct {
		kind         Kind
		key, headers bool
	}{{Direct, true, false}, {Fanout, false, false}, {Topic, true, false}, {Headers, false, true}, {ConsistentHash, true, false},
		{ModulusHash, true, false}, {Random, false, true}} {
		if m := New(c.kind, Options{}); m.UsesKey() != c.key || m.UsesHeaders() != c.headers {
			t.Errorf("%s: UsesKey %v, UsesHeaders %v", c.kind, m.UsesKey(), m.UsesHeaders())
		}
		if k, ok := ParseKind(c.kind.String()); !ok || k != c.kind {
			t.Errorf("ParseKind(%q) = %v, %v", c.kind, k, ok)
		}
	}
	for _, name := range []string{"", "nosuch", "Direct", "unknown"} {
		if k, ok := ParseKind(name); ok {
			t.Errorf("ParseKind(%q) = %v (EXC-03 wants it refused)", name, k)
		}
	}
}

// TestLastBindingRemovesDestination (BIND-01): fanout ignores the key, yet each
// key is a binding of its own and the queue stays until the last is gone.
func TestLastBindingRemovesDestination(t *testing.T) {
	q := &queue{1}
	m := New(Fanout, Options{})
	var all []Binding
	for i := range 100 {
		all = append(all, Binding{Dest: q, Key: fmt.Sprint(i)},
			Binding{Dest: q, Key: fmt.Sprint(i), Args: core.Args{"a": number(int64(i))}})
	}
	for _, b := range all {
		m = m.Bind(b)
	}
	for i, b := range all {
		if got := m.Match(nil, nil, nil); len(got) != 1 || got[0] != Dest(q) {
			t.Fatalf("after %d of %d unbinds: %v", i, len(all), got)
		}
		m = m.Unbind(b)
	}
	if got := m.Match(nil, nil, nil); len(got) != 0 {
		t.Fatalf("still bound: %v", got)
	}
}

// TestOrderOfBinding proves that the result follows the history of binds: a
// simulation that replays it gets the same deliveries.
func TestOrderOfBinding(t *testing.T) {
	queues := makeQueues(2000)
	m := New(Fanout, Options{})
	for _, q := range queues {
		m = m.Bind(Binding{Dest: q})
	}
	for i, q := range queues {
		if i%7 != 0 {
			m = m.Unbind(Binding{Dest: q})
		}
	}
	got := m.Match(nil, nil, nil)
	if len(got) != (len(queues)+6)/7 {
		t.Fatalf("%d destinations left", len(got))
	}
	for i, d := range got {
		if d != Dest(queues[7*i]) {
			t.Fatalf("place %d has queue %d, want %d", i, d.(*queue).id, 7*i)
		}
	}
}

// TestSetShrinks: a destination set that was large neither keeps the places of
// what has left nor stays in its large form.
func TestSetShrinks(t *testing.T) {
	queues := makeQueues(1000)
	var s destSet
	for _, q := range queues {
		s = s.add(q, "")
	}
	for range 20 { // turn over: the oldest leaves, and comes back as the youngest
		for _, q := range queues {
			s, _ = s.remove(q, "")
			s = s.add(q, "")
		}
	}
	if places := s.large.places.length; places > 2*len(queues)+listMax+1 {
		t.Errorf("%d places for %d destinations", places, len(queues))
	}
	for i, q := range queues[:len(queues)-listMin] {
		if s.large == nil {
			t.Fatalf("a list again with %d left", len(queues)-i)
		}
		s, _ = s.remove(q, "")
	}
	if s.large != nil || len(s.list) != listMin {
		t.Errorf("with %d left: %d in the list, large %v", listMin, len(s.list), s.large != nil)
	}
}

// bindCase is a family of bindings that must scale.
type bindCase struct {
	name    string
	kind    Kind
	binding func(i int, q *queue) Binding
}

var bindCases = []bindCase{
	{"fanout", Fanout, func(_ int, q *queue) Binding { return Binding{Dest: q} }},
	{"direct one key", Direct, func(_ int, q *queue) Binding { return Binding{Dest: q, Key: "k"} }},
	{"direct own keys", Direct, func(i int, q *queue) Binding { return Binding{Dest: q, Key: fmt.Sprint("k", i)} }},
	{"topic one pattern", Topic, func(_ int, q *queue) Binding { return Binding{Dest: q, Key: "a.#"} }},
	{"topic own patterns", Topic, func(i int, q *queue) Binding {
		return Binding{Dest: q, Key: fmt.Sprintf("eu.%d.*.#", i)}
	}},
	{"headers one rule", Headers, func(_ int, q *queue) Binding {
		return Binding{Dest: q, Args: core.Args{"a": text("v")}}
	}},
	{"headers own rules", Headers, func(i int, q *queue) Binding {
		return Binding{Dest: q, Args: core.Args{"format": text("pdf"), "customer": number(int64(i))}}
	}},
}

// bytesOfBinding returns what n binds followed by n unbinds allocate: a stand-in
// for the work they do that is the same on every machine.
func bytesOfBinding(t *testing.T, c bindCase, n int) uint64 {
	queues := makeQueues(n)
	all := make([]Binding, n)
	for i, q := range queues {
		all[i] = c.binding(i, q)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := New(c.kind, Options{})
	for _, b := range all {
		m = m.Bind(b)
	}
	for i := range all {
		m = m.Unbind(all[(i*7919)%n])
	}
	runtime.ReadMemStats(&after)
	if got := m.Match([]byte("k"), fields{}, nil); len(got) != 0 {
		t.Fatalf("%s: %d destinations left", c.name, len(got))
	}
	return after.TotalAlloc - before.TotalAlloc
}

// TestBindingScales: ten times the bindings may cost somewhat more than ten times
// the copying (one more level of a tree), never a hundred times.
func TestBindingScales(t *testing.T) {
	for _, c := range bindCases {
		t.Run(c.name, func(t *testing.T) {
			small, large := bytesOfBinding(t, c, 1000), bytesOfBinding(t, c, 10_000)
			t.Logf("bytes per bind and unbind: %d at 1,000, %d at 10,000", small/1000, large/10_000)
			if large > 25*small {
				t.Errorf("1,000 bindings copy %d bytes, 10,000 copy %d", small, large)
			}
		})
	}
}
