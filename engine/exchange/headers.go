//ringmq:hot

package exchange

import (
	"encoding/binary"
	"math"

	"ringmq/engine/core"
)

// headersMatcher matches header values against binding arguments (BIND-07, BIND-08).
//
// Bindings with the same arguments form one rule. To avoid trying every rule on
// every message, a rule is filed under a name and value that a message must have
// for it to hold: an `all` rule under one of its criteria, an `any` rule under
// each. A match looks up each distinct name once and tries only what is filed
// under the value it finds.
type headersMatcher struct {
	rules core.PMap[*headerRule] // by canonical arguments
	names core.PMap[headerFile]
	// always holds the rules without criteria, which match every message.
	always destSet
}

// headerFile has the rules that are filed under one name: under its mere
// presence, under a text, or under a number (see valueBits).
type headerFile struct {
	present headerRules
	texts   core.PMap[headerRules]
	numbers core.PMap[headerRules]
}

// headerRules is a set of rules by canonical arguments.
type headerRules = core.PMap[*headerRule]

func (m *headersMatcher) Bind(b Binding) Matcher {
	canonical := b.Args.Canonical()
	next := *m
	rule, ok := m.rules.Get(canonical)
	if !ok {
		rule = compileHeaders(b.Args)
		rule.home = m.chooseHome(rule)
	}
	if len(rule.criteria) == 0 {
		if rule.any {
			// No criterion can hold, so there is nothing to keep.
			return m
		}
		next.always = m.always.add(b.Dest, b.identity())
		return &next
	}
	changed := *rule
	changed.dests = rule.dests.add(b.Dest, b.Key)
	next.file(canonical, &changed)
	return &next
}

func (m *headersMatcher) Unbind(b Binding) Matcher {
	canonical := b.Args.Canonical()
	next := *m
	removed := false
	rule, ok := m.rules.Get(canonical)
	if !ok {
		// Only rules without criteria are not in rules.
		if next.always, removed = m.always.remove(b.Dest, b.identity()); !removed {
			return m
		}
		return &next
	}
	changed := *rule
	if changed.dests, removed = rule.dests.remove(b.Dest, b.Key); !removed {
		return m
	}
	next.file(canonical, &changed)
	return &next
}

// file puts rule in all its places instead of an older version of it, or takes
// it out of them when it has no destination left. It changes m, which nobody
// else has seen yet.
func (m *headersMatcher) file(canonical string, rule *headerRule) {
	m.rules = putRule(m.rules, canonical, rule)
	for i := range rule.criteria {
		if !rule.any && i != rule.home {
			continue
		}
		c := &rule.criteria[i]
		file, _ := m.names.Get(c.name)
		switch {
		case c.present:
			file.present = putRule(file.present, canonical, rule)
		case isText(c.value):
			file.texts = putFiled(file.texts, c.value.Str, canonical, rule)
		default:
			key := valueBits(c.value)
			file.numbers = putFiled(file.numbers, string(key[:]), canonical, rule)
		}
		if file.present.Len()+file.texts.Len()+file.numbers.Len() == 0 {
			m.names = m.names.Delete(c.name)
		} else {
			m.names = m.names.Set(c.name, file)
		}
	}
}

func putFiled(byValue core.PMap[headerRules], value, canonical string, rule *headerRule) core.PMap[headerRules] {
	rules, _ := byValue.Get(value)
	if rules = putRule(rules, canonical, rule); rules.Len() == 0 {
		return byValue.Delete(value)
	}
	return byValue.Set(value, rules)
}

func putRule(rules headerRules, canonical string, rule *headerRule) headerRules {
	if rule.dests.empty() {
		return rules.Delete(canonical)
	}
	return rules.Set(canonical, rule)
}

// chooseHome returns the criterion under which the fewest rules are filed yet:
// with "format=pdf, customer=17" in ten thousand bindings that is the customer.
func (m *headersMatcher) chooseHome(rule *headerRule) int {
	home, fewest := 0, math.MaxInt
	for i := range rule.criteria {
		c := &rule.criteria[i]
		file, _ := m.names.Get(c.name)
		count := 0
		switch {
		case c.present:
			// Presence says least about a message; a value is better if equal.
			count = file.present.Len()*2 + 1
		case isText(c.value):
			rules, _ := file.texts.Get(c.value.Str)
			count = rules.Len() * 2
		default:
			key := valueBits(c.value)
			rules, _ := file.numbers.GetBytes(key[:])
			count = rules.Len() * 2
		}
		if count < fewest {
			home, fewest = i, count
		}
	}
	return home
}

// Match implements Matcher. Of two rules either may come first, but always in the
// same order for the same history of binds.
func (m *headersMatcher) Match(_ []byte, headers core.Fields, out []Dest) []Dest {
	var d deduper
	out = m.always.appendTo(&d, out)
	if headers != nil {
		it := m.names.Iter()
		for it.Next() {
			value, ok := headers.Lookup(it.Key())
			if !ok {
				continue
			}
			file := it.Value()
			out = appendRules(file.present, it.Key(), headers, &d, out)
			if isText(value) {
				if rules, ok := file.texts.Get(value.Str); ok {
					out = appendRules(rules, it.Key(), headers, &d, out)
				}
				continue
			}
			key := valueBits(value)
			if rules, ok := file.numbers.GetBytes(key[:]); ok {
				out = appendRules(rules, it.Key(), headers, &d, out)
			}
		}
	}
	d.release()
	return out
}

// appendRules appends the destinations of those rules that hold.
func appendRules(rules headerRules, name string, headers core.Fields, d *deduper, out []Dest) []Dest {
	if rules.Len() == 0 {
		return out
	}
	it := rules.Iter()
	for it.Next() {
		if rule := it.Value(); rule.holds(headers, name) {
			out = rule.dests.appendTo(d, out)
		}
	}
	return out
}

// holds decides about a message for a rule that was found under name. An `any`
// rule is found under each criterion that holds and is taken at the first only,
// so that its destinations are gone through once.
func (r *headerRule) holds(headers core.Fields, name string) bool {
	for i := range r.criteria {
		c := &r.criteria[i]
		held := c.holds(headers)
		if r.any && held {
			return c.name == name
		}
		if !r.any && !held {
			return false
		}
	}
	return !r.any
}

func (c *criterion) holds(headers core.Fields) bool {
	value, ok := headers.Lookup(c.name)
	return ok && (c.present || value.Equal(c.value))
}

func (m *headersMatcher) UsesKey() bool     { return false }
func (m *headersMatcher) UsesHeaders() bool { return true }

// isText tells the kinds whose Str decides about equality from those whose
// number does.
func isText(v core.Value) bool {
	return v.Kind == core.KindString || v.Kind == core.KindBytes || v.Kind == core.KindOther
}

// valueBits is equal for values that Value.Equal calls equal, and may be equal
// for others: whoever finds something under it still has to compare.
func valueBits(v core.Value) [8]byte {
	number := float64(v.Int)
	switch v.Kind {
	case core.KindFloat:
		number = v.Float
	case core.KindUint:
		number = float64(uint64(v.Int))
	}
	if number == 0 {
		number = 0 // also for the other zero, -0.0
	}
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], math.Float64bits(number))
	return key
}
