//ringmq:hot

package exchange

import "ringmq/engine/core"

// directMatcher matches keys byte by byte (BIND-06). Under a key, bindings differ
// by destination and arguments.
type directMatcher struct {
	keys core.PMap[destSet]
}

func (m *directMatcher) Bind(b Binding) Matcher {
	set, _ := m.keys.Get(b.Key)
	return &directMatcher{m.keys.Set(b.Key, set.add(b.Dest, b.Args.Canonical()))}
}

func (m *directMatcher) Unbind(b Binding) Matcher {
	set, _ := m.keys.Get(b.Key)
	set, removed := set.remove(b.Dest, b.Args.Canonical())
	switch {
	case !removed:
		return m
	case set.empty():
		return &directMatcher{m.keys.Delete(b.Key)}
	}
	return &directMatcher{m.keys.Set(b.Key, set)}
}

func (m *directMatcher) Match(key []byte, _ core.Fields, out []Dest) []Dest {
	set, ok := m.keys.GetBytes(key)
	if !ok {
		return out
	}
	var d deduper
	out = set.appendTo(&d, out)
	d.release()
	return out
}

func (m *directMatcher) UsesKey() bool     { return true }
func (m *directMatcher) UsesHeaders() bool { return false }
