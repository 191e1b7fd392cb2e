//ringmq:hot

package exchange

import "ringmq/engine/core"

// fanoutMatcher matches everything (BIND-06). A destination that is bound under
// several keys or arguments gets one copy and stays until the last is unbound.
type fanoutMatcher struct {
	set destSet
}

func (m *fanoutMatcher) Bind(b Binding) Matcher {
	return &fanoutMatcher{m.set.add(b.Dest, b.identity())}
}

func (m *fanoutMatcher) Unbind(b Binding) Matcher {
	set, removed := m.set.remove(b.Dest, b.identity())
	if !removed {
		return m
	}
	return &fanoutMatcher{set}
}

func (m *fanoutMatcher) Match(_ []byte, _ core.Fields, out []Dest) []Dest {
	var d deduper
	out = m.set.appendTo(&d, out)
	d.release()
	return out
}

func (m *fanoutMatcher) UsesKey() bool     { return false }
func (m *fanoutMatcher) UsesHeaders() bool { return false }
