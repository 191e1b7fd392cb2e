package exchange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringmq/engine/core"
)

// queue is a destination of the tests.
type queue struct{ id int }

func makeQueues(n int) []*queue {
	queues := make([]*queue, n)
	for i := range queues {
		queues[i] = &queue{i}
	}
	return queues
}

// fields is a decoded header table.
type fields map[string]core.Value

func (f fields) Lookup(name string) (core.Value, bool) {
	v, ok := f[name]
	return v, ok
}

func text(s string) core.Value { return core.Value{Kind: core.KindString, Str: s, Type: "longstr"} }
func number(n int64) core.Value {
	return core.Value{Kind: core.KindInt, Int: n, Type: "signedint"}
}
func float(f float64) core.Value { return core.Value{Kind: core.KindFloat, Float: f, Type: "double"} }

// bindings is the obvious exchange: a list that every question goes through.
type bindings []Binding

func (bs bindings) index(b Binding) int {
	return slices.IndexFunc(bs, func(o Binding) bool {
		return o.Dest == b.Dest && o.Key == b.Key && o.Args.Canonical() == b.Args.Canonical()
	})
}

func (bs bindings) match(k Kind, key string, headers fields) map[Dest]bool {
	found := map[Dest]bool{}
	for _, b := range bs {
		if referenceMatch(k, b, key, headers) {
			found[b.Dest] = true
		}
	}
	return found
}

func referenceMatch(k Kind, b Binding, key string, headers fields) bool {
	switch k {
	case Direct:
		return b.Key == key
	case Topic:
		return referenceTopic(splitWords(b.Key), splitWords(key))
	case Headers:
		return referenceHeaders(b.Args, headers)
	}
	return true
}

func splitWords(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ".")
}

func referenceTopic(pattern, words []string) bool {
	if len(pattern) == 0 {
		return len(words) == 0
	}
	if pattern[0] == "#" {
		return referenceTopic(pattern[1:], words) || len(words) > 0 && referenceTopic(pattern, words[1:])
	}
	return len(words) > 0 && (pattern[0] == "*" || pattern[0] == words[0]) &&
		referenceTopic(pattern[1:], words[1:])
}

func referenceHeaders(args core.Args, headers fields) bool {
	mode := "all"
	if v, ok := args["x-match"]; ok {
		mode = v.Str
	}
	wanted, held := 0, 0
	for name, want := range args {
		if name == "x-match" || strings.HasPrefix(name, "x-") && !strings.HasSuffix(mode, "-with-x") {
			continue
		}
		wanted++
		got, ok := headers[name]
		if ok && (want.Kind == core.KindVoid || got.Equal(want)) {
			held++
		}
	}
	if strings.HasPrefix(mode, "any") {
		return held > 0
	}
	return held == wanted
}

// world makes random bindings and messages for one kind.
type world struct {
	kind   Kind
	rng    *rand.Rand
	queues []*queue
}

func (w *world) pick(choices ...string) string { return choices[w.rng.IntN(len(choices))] }

func (w *world) words(choices ...string) string {
	words := make([]string, w.rng.IntN(6))
	for i := range words {
		words[i] = w.pick(choices...)
	}
	return strings.Join(words, ".")
}

func (w *world) value() core.Value {
	switch w.rng.IntN(8) {
	case 0:
		return core.Value{Kind: core.KindVoid, Type: "void"}
	case 1:
		return float(float64(w.rng.IntN(6)) / 2)
	case 2:
		return core.Value{Kind: core.KindUint, Int: int64(w.rng.IntN(3)), Type: "unsignedlong"}
	case 3:
		return core.Value{Kind: core.KindBool, Int: int64(w.rng.IntN(2)), Type: "bool"}
	case 4:
		return core.Value{Kind: core.KindTime, Int: int64(w.rng.IntN(3)), Type: "timestamp"}
	case 5, 6:
		return number(int64(w.rng.IntN(3)))
	default:
		return text(w.pick("1", "2", "pdf", ""))
	}
}

func (w *world) table(size int) map[string]core.Value {
	t := map[string]core.Value{}
	for range w.rng.IntN(size) {
		t[w.pick("a", "b", "c", "x-a", "x-b")] = w.value()
	}
	return t
}

func (w *world) binding() Binding {
	b := Binding{Dest: w.queues[w.rng.IntN(len(w.queues))]}
	switch w.kind {
	case Topic:
		b.Key = w.words("a", "b", "*", "#", "#", "", "a*")
	default:
		b.Key = w.words("a", "b")
	}
	switch {
	case w.kind == Headers:
		b.Args = core.Args(w.table(4))
		if w.rng.IntN(5) > 0 {
			b.Args["x-match"] = text(w.pick("all", "any", "all-with-x", "any-with-x"))
		}
	case w.rng.IntN(4) == 0:
		b.Args = core.Args{"n": number(int64(w.rng.IntN(3)))}
	}
	return b
}

// message returns a key and headers that have a fair chance to match something.
func (w *world) message() (string, fields) {
	return w.words("a", "b", "", "a*"), fields(w.table(6))
}

// check compares one match with the reference. out starts with held.
func check(t *testing.T, m Matcher, k Kind, bs bindings, key string, headers fields, held []Dest) {
	t.Helper()
	want := bs.match(k, key, headers)
	for _, d := range held {
		want[d] = true
	}
	var lookup core.Fields
	if headers != nil {
		lookup = headers
	}
	got := m.Match([]byte(key), lookup, slices.Clone(held))
	seen := map[Dest]bool{}
	for i, d := range got {
		if !want[d] || seen[d] || i < len(held) && d != held[i] {
			t.Fatalf("key %q headers %v: destination %v at %d is wrong or double\nbindings %s", key, headers, d, i, bs)
		}
		seen[d] = true
	}
	if len(seen) != len(want) {
		t.Fatalf("key %q headers %v: %d destinations, want %d\nbindings %s", key, headers, len(seen), len(want), bs)
	}
}

// String lists the bindings for a failure's report.
func (bs bindings) String() string {
	var b strings.Builder
	for _, x := range bs {
		fmt.Fprintf(&b, "\n  %d %q %s", x.Dest.(*queue).id, x.Key, x.Args.Canonical())
	}
	return b.String()
}
