//ringmq:hot

package exchange

import (
	"bytes"
	"strings"

	"ringmq/engine/core"
)

// topicMatcher is a trie of the words of all patterns (BIND-06).
type topicMatcher struct {
	root *topicNode // nil when nothing is bound
	// hashes counts the nested `#` nodes ever made, to give each a mark of its own.
	hashes uint64
}

// topicNode stands for the words on the way to it. Nodes are immutable.
type topicNode struct {
	words core.PMap[*topicNode]
	star  *topicNode // `*`, exactly one word
	hash  *topicNode // `#`, zero or more words
	dests destSet    // bindings whose pattern ends here
	// mark is not zero on a `#` with another `#` above it, and then its own: such
	// a node can be entered more than once per match, see topicWalk.enter. A copy
	// keeps it.
	mark uint64
}

func (n *topicNode) empty() bool {
	return n.words.Len() == 0 && n.star == nil && n.hash == nil && n.dests.empty()
}

func (m *topicMatcher) Bind(b Binding) Matcher {
	next := &topicMatcher{hashes: m.hashes}
	next.root = next.bind(m.root, patternStart(b.Key), b.Key, false, b)
	return next
}

// patternStart is the place of the first word: an empty pattern has none.
func patternStart(pattern string) int {
	if pattern == "" {
		return 1
	}
	return 0
}

// nextWord returns the word at the given place of a pattern and the place of the
// one behind it; the place behind the last word is len(pattern)+1.
func nextWord(pattern string, at int) (word string, next int) {
	if dot := strings.IndexByte(pattern[at:], '.'); dot >= 0 {
		return pattern[at : at+dot], at + dot + 1
	}
	return pattern[at:], len(pattern) + 1
}

// bind returns a copy of n (which may be nil) with the rest of the pattern below it.
func (m *topicMatcher) bind(n *topicNode, at int, pattern string, underHash bool, b Binding) *topicNode {
	next := &topicNode{}
	if n != nil {
		*next = *n
	}
	if at > len(pattern) {
		next.dests = next.dests.add(b.Dest, b.Args.Canonical())
		return next
	}
	word, at := nextWord(pattern, at)
	switch word {
	case "*":
		next.star = m.bind(next.star, at, pattern, underHash, b)
	case "#":
		next.hash = m.bind(next.hash, at, pattern, true, b)
		if underHash && next.hash.mark == 0 {
			m.hashes++
			next.hash.mark = m.hashes
		}
	default:
		child, _ := next.words.Get(word)
		next.words = next.words.Set(word, m.bind(child, at, pattern, underHash, b))
	}
	return next
}

func (m *topicMatcher) Unbind(b Binding) Matcher {
	root, removed := m.root.unbind(patternStart(b.Key), b.Key, b)
	if !removed {
		return m
	}
	return &topicMatcher{root: root, hashes: m.hashes}
}

// unbind returns a copy of n without the binding, nil when nothing is left of it.
func (n *topicNode) unbind(at int, pattern string, b Binding) (*topicNode, bool) {
	if n == nil {
		return nil, false
	}
	next := *n
	removed := false
	if at > len(pattern) {
		next.dests, removed = n.dests.remove(b.Dest, b.Args.Canonical())
	} else {
		var word string
		word, at = nextWord(pattern, at)
		switch word {
		case "*":
			next.star, removed = n.star.unbind(at, pattern, b)
		case "#":
			next.hash, removed = n.hash.unbind(at, pattern, b)
		default:
			child, _ := n.words.Get(word)
			child, removed = child.unbind(at, pattern, b)
			if child == nil {
				next.words = n.words.Delete(word)
			} else {
				next.words = n.words.Set(word, child)
			}
		}
	}
	if !removed {
		return n, false
	}
	if next.empty() {
		return nil, true
	}
	return &next, true
}

func (m *topicMatcher) Match(key []byte, _ core.Fields, out []Dest) []Dest {
	if m.root == nil {
		return out
	}
	w := topicWalk{key: key, end: len(key) + 1, out: out}
	start := 0
	if len(key) == 0 {
		start = w.end
	}
	w.visit(m.root, start)
	w.dedupe.release()
	if w.entered != nil {
		returnTable(w.entered)
	}
	return w.out
}

func (m *topicMatcher) UsesKey() bool     { return true }
func (m *topicMatcher) UsesHeaders() bool { return false }

// topicWalk is one match. A place is the offset of a word in key; end stands for
// "no word left". Its depth is the number of words of the longest pattern.
type topicWalk struct {
	key    []byte
	end    int
	out    []Dest
	dedupe deduper
	// entered has the marks of the nested `#` that this match has entered.
	// Borrowed when the first one is met.
	entered *seenTable
	visits  int // of (node, place): what the tests hold against the bound
}

// next returns the place behind the word at the given place.
func (w *topicWalk) next(at int) int {
	if dot := bytes.IndexByte(w.key[at:], '.'); dot >= 0 {
		return at + dot + 1
	}
	return w.end
}

// visit matches the words from at on against what lies below n.
func (w *topicWalk) visit(n *topicNode, at int) {
	w.visits++
	if at == w.end {
		if !n.dests.empty() {
			w.out = n.dests.appendTo(&w.dedupe, w.out)
		}
	} else if n.star != nil || n.words.Len() != 0 {
		next := w.next(at)
		if n.star != nil {
			w.visit(n.star, next)
		}
		if child, ok := n.words.GetBytes(w.key[at : next-1]); ok {
			w.visit(child, next)
		}
	}
	if n.hash != nil {
		w.enter(n.hash, at)
	}
}

// enter lets a `#` swallow every number of words, beginning with none at all.
//
// A node below one `#` is reached at most once per place: the words before and
// behind the `#` are counted, so what it swallowed is known. Below two, the same
// place can be reached in many ways, and in exponentially many below a row of
// them. But every node is reached at ever later places: the root at one, a `#`
// at each in turn, and a word or `*` one behind its parent. So the first time
// that a `#` is entered is the earliest, covers all that follow, and those are
// skipped. Each (node, place) is then visited once, and a match costs at most
// nodes times words.
func (w *topicWalk) enter(n *topicNode, at int) {
	if n.mark != 0 {
		if w.entered == nil {
			w.entered = borrowTable()
		}
		if !w.entered.insertNew(n.mark * 0x9e3779b97f4a7c15) {
			return
		}
	}
	for w.visit(n, at); at != w.end; w.visit(n, at) {
		at = w.next(at)
	}
}
