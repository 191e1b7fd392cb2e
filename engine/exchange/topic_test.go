package exchange

import (
	"fmt"
	"strings"
	"testing"
)

// TestTopicPatterns holds each pattern against each key (BIND-06).
func TestTopicPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		match   []string
		not     []string
	}{
		{"", []string{""}, []string{"a", ".", "#"}},
		{"#", []string{"", "a", "a.b", ".", "a."}, nil},
		{"*", []string{"a", "*", "#"}, []string{"", "a.b", "."}},
		{"a.*", []string{"a.b", "a."}, []string{"a", "a.b.c", ".a"}},
		{"*.*", []string{".", "a.b", "a."}, []string{"", "a", ".."}},
		{"a*", []string{"a*"}, []string{"ab", "a"}},
		{"a#", []string{"a#"}, []string{"a", "a.b", "ab"}},
		{"#.#", []string{"", "a", "a.b", "a.b.c"}, nil},
		{"*.#", []string{"a", "a.b", "a.b.c", "."}, []string{""}},
		{"#.*", []string{"a", "a.b", "a.b.c"}, []string{""}},
		{"#.a.#", []string{"a", "b.a", "a.b", "b.a.b", "a.a"}, []string{"", "b", "ab"}},
		{"#.a.#.a.#", []string{"a.a", "a.b.a", "b.a.a.b"}, []string{"a", "b.a.b"}},
		{"a.#.b.*.#.c", []string{"a.b.x.c", "a.x.b.y.z.c", "a.b.b.b.c"}, []string{"a.b.c", "a.x.b.c"}},
		{"..", []string{".."}, []string{".", "...", "a.b.c"}},
		{"*.*.*", []string{"..", "a.b.c"}, []string{".", "..."}},
	} {
		q := &queue{1}
		m := New(Topic, Options{}).Bind(Binding{Dest: q, Key: c.pattern})
		for want, keys := range map[int][]string{1: c.match, 0: c.not} {
			for _, key := range keys {
				if got := m.Match([]byte(key), nil, nil); len(got) != want {
					t.Errorf("pattern %q key %q: %d matches, want %d", c.pattern, key, len(got), want)
				}
			}
		}
	}
}

// TestFieldCase1 : `#` also stands for no word at all, and a queue gets one copy
// (BIND-05, BIND-06).
func TestFieldCase1(t *testing.T) {
	patterns := []string{"a.*.c.#", "#.z", "#", "x.#.y"}
	want := map[string][]int{
		"a.b.c":   {0, 2},
		"z":       {1, 2},
		"":        {2},
		"x.y":     {2, 3},
		"x.1.2.y": {2, 3},
	}
	queues := makeQueues(len(patterns))
	one := &queue{100}
	separate, together := New(Topic, Options{}), New(Topic, Options{})
	for i, p := range patterns {
		separate = separate.Bind(Binding{Dest: queues[i], Key: p})
		together = together.Bind(Binding{Dest: one, Key: p})
	}
	for key, ids := range want {
		got := separate.Match([]byte(key), nil, nil)
		if len(got) != len(ids) {
			t.Errorf("key %q reaches %d queues, want %d", key, len(got), len(ids))
		}
		for _, id := range ids {
			n := 0
			for _, d := range got {
				if d == Dest(queues[id]) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("key %q: %d copies for pattern %q", key, n, patterns[id])
			}
		}
		if got := together.Match([]byte(key), nil, nil); len(got) != 1 {
			t.Errorf("key %q: one queue with all patterns gets %d copies", key, len(got))
		}
	}
}

// countVisits returns how many (node, place) pairs a match goes through.
func countVisits(m Matcher, key string) int {
	w := topicWalk{key: []byte(key), end: len(key) + 1}
	w.visit(m.(*topicMatcher).root, 0)
	return w.visits
}

func countNodes(n *topicNode) int {
	if n == nil {
		return 0
	}
	count := 1 + countNodes(n.star) + countNodes(n.hash)
	for _, child := range n.words.All() {
		count += countNodes(child)
	}
	return count
}

// TestTopicWorkIsBounded: rows of `#`, which make a backtracking matcher try
// exponentially many ways, cost at most nodes times places (BIND-06).
func TestTopicWorkIsBounded(t *testing.T) {
	hostile := map[string][]string{
		"one":   {strings.Repeat("#.a.", 30) + "#"},
		"two":   {strings.Repeat("#.a.", 30) + "#", strings.Repeat("#.*.", 30) + "b"},
		"row":   {strings.Repeat("#.", 60) + "b"},
		"stars": {strings.Repeat("*.#.", 30) + "b"},
		"no":    {strings.Repeat("#.a.#.*.", 15) + "no"},
	}
	var mixed []string
	for i := range 200 {
		mixed = append(mixed, fmt.Sprintf("#.a.#.%d.#.a.#", i%20), fmt.Sprintf("#.*.#.a.#.%d", i))
	}
	hostile["mixed"] = mixed
	for name, patterns := range hostile {
		m := New(Topic, Options{})
		for i, p := range patterns {
			m = m.Bind(Binding{Dest: &queue{i}, Key: p})
		}
		for _, key := range []string{strings.Repeat("a.", 127) + "a", strings.Repeat(".", 255), "a.b"} {
			places := strings.Count(key, ".") + 2
			bound := countNodes(m.(*topicMatcher).root) * places
			if got := countVisits(m, key); got > bound {
				t.Errorf("%s: %d visits for %d words, the bound is %d", name, got, places-1, bound)
			}
		}
	}
}

// TestTopicForgetsNodes: what binds put into the trie, unbinds take out again.
func TestTopicForgetsNodes(t *testing.T) {
	m := New(Topic, Options{})
	q := &queue{1}
	patterns := []string{"", "#", "*", "a.b.c", "a.b", "a.#.b.#", "a.*.c", "#.#"}
	for _, p := range patterns {
		m = m.Bind(Binding{Dest: q, Key: p})
	}
	for _, p := range patterns {
		m = m.Unbind(Binding{Dest: q, Key: p})
	}
	if root := m.(*topicMatcher).root; root != nil {
		t.Errorf("%d nodes left", countNodes(root))
	}
}
