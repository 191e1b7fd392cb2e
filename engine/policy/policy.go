package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Object is a kind of thing that policies apply to.
type Object uint8

// The kinds.
const (
	ClassicQueue Object = iota
	QuorumQueue
	StreamQueue
	Exchange
)

// The values of apply-to.
const (
	ApplyAll       = "all"
	ApplyQueues    = "queues"
	ApplyClassic   = "classic_queues"
	ApplyQuorum    = "quorum_queues"
	ApplyStreams   = "streams"
	ApplyExchanges = "exchanges"
)

// applyTo are those values with what they cover, in the order in which a refusal
// lists them.
var applyTo = []struct {
	name string
	to   []Object
}{
	{ApplyAll, []Object{ClassicQueue, QuorumQueue, StreamQueue, Exchange}},
	{ApplyQueues, []Object{ClassicQueue, QuorumQueue, StreamQueue}},
	{ApplyExchanges, []Object{Exchange}},
	{ApplyClassic, []Object{ClassicQueue}},
	{ApplyQuorum, []Object{QuorumQueue}},
	{ApplyStreams, []Object{StreamQueue}},
}

// Spec is a policy as somebody asks for it.
type Spec struct {
	Name     string
	Pattern  string // a regular expression, searched anywhere in a name
	ApplyTo  string // one of the Apply constants, "" for all
	Priority int
	// Definition has json.Number (or int64), string and bool values.
	Definition map[string]any
	// Operator: it is one that the operator imposes (POL-01).
	Operator bool
}

// Policy is a policy that was checked.
type Policy struct {
	Spec
	// Settings is what the definition means.
	Settings Settings

	pattern *regexp.Regexp
	to      []Object
}

// Parse checks a policy. The errors are those that operators know (POL-03).
func Parse(s Spec) (*Policy, error) {
	if s.Name == "" {
		return nil, errors.New("policy name must not be empty")
	}
	if s.ApplyTo == "" {
		s.ApplyTo = ApplyAll
		if s.Operator {
			s.ApplyTo = ApplyQueues
		}
	}
	p := &Policy{Spec: s}
	var names []string
	for _, a := range applyTo {
		if s.Operator && slices.Contains(a.to, Exchange) && a.name != ApplyAll {
			continue
		}
		names = append(names, term(a.name))
		if a.name == s.ApplyTo {
			p.to = a.to
		}
	}
	if p.to == nil {
		return nil, fmt.Errorf("apply-to should be one of [%s], actually was %s", strings.Join(names, ","), s.ApplyTo)
	}
	var err error
	if p.pattern, err = regexp.Compile(s.Pattern); err != nil {
		return nil, fmt.Errorf("pattern should be regular expression but is invalid: %s", patternProblem(err))
	}
	if p.Settings, err = readSettings(s.Definition, s.Operator); err != nil {
		return nil, err
	}
	return p, nil
}

// patternProblem is the reason without the library's own prefix.
func patternProblem(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

// AppliesTo reports whether the policy could govern an object of that kind and name.
func (p *Policy) AppliesTo(kind Object, name string) bool {
	if p.Operator && kind == Exchange {
		return false
	}
	return slices.Contains(p.to, kind) && p.pattern.MatchString(name)
}

// Set is the policies of one virtual host, of one sort: those of users, or those
// of the operator. It never changes.
type Set struct{ list []*Policy }

// With is the set with a policy added, in the place of one with the same name.
func (s Set) With(p *Policy) Set {
	out := s.Without(p.Name)
	at, _ := slices.BinarySearchFunc(out.list, p, func(a, b *Policy) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		return strings.Compare(a.Name, b.Name)
	})
	out.list = slices.Insert(out.list, at, p)
	return out
}

// Without is the set without the policy of that name.
func (s Set) Without(name string) Set {
	out := Set{list: make([]*Policy, 0, len(s.list)+1)}
	for _, p := range s.list {
		if p.Name != name {
			out.list = append(out.list, p)
		}
	}
	return out
}

// Find is the policy of that name, nil if there is none.
func (s Set) Find(name string) *Policy {
	for _, p := range s.list {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Of is the policy that governs an object, nil if none does.
func (s Set) Of(kind Object, name string) *Policy {
	for _, p := range s.list {
		if p.AppliesTo(kind, name) {
			return p
		}
	}
	return nil
}

// All lists the policies, the strongest first. The slice is the set's own.
func (s Set) All() []*Policy { return s.list }

// number is an integer of a definition.
func number(v any) (int64, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		return int64(v), v == float64(int64(v))
	}
	return 0, false
}
