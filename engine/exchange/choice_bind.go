package exchange

import (
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"

	"ringmq/engine/core"
)

// The arguments of a consistent hash exchange (XT-01).
const (
	hashHeaderArg   = "hash-header"
	hashPropertyArg = "hash-property"
)

// hashInputOf reads them.
func hashInputOf(args core.Args) hashInput {
	if v, ok := args[hashHeaderArg]; ok {
		return hashInput{hashOnHeader, v.Str}
	}
	if v, ok := args[hashPropertyArg]; ok {
		return hashInput{hashOnProperty, v.Str}
	}
	return hashInput{}
}

// hashProperties are the properties that may be hashed.
var hashProperties = []string{"correlation_id", "message_id", "timestamp"}

// ValidateExchange checks the arguments of a declare that belong to the type
// (XT-01). The error has the text that clients see; the caller adds code and
// scope, 406 on the channel.
func ValidateExchange(k Kind, args core.Args) error {
	if k == Delayed {
		routes, err := RoutesLike(k, args)
		if err != nil {
			return err
		}
		return ValidateExchange(routes, args)
	}
	if k != ConsistentHash {
		return nil
	}
	_, header := args[hashHeaderArg]
	v, property := args[hashPropertyArg]
	switch {
	case header && property:
		return errors.New("hash-header and hash-property are mutually exclusive")
	case property && !slices.Contains(hashProperties, v.Str):
		return errors.New("Unsupported property: " + v.String())
	}
	return nil
}

// refusal is an error whose text goes to a client as it stands: a sentence.
func refusal(text string) error { return errors.New(text) }

// parseWeight reads the key of a binding of a consistent hash exchange (BIND-09).
func parseWeight(key string) (float64, error) {
	digits := strings.TrimLeft(key, "+-")
	if len(key)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, refusal("The binding key must be an integer: " + quoteBinary(key))
	}
	n, _ := strconv.ParseInt(key, 10, 64) // the nearest that fits if it is too large
	if n < 1 {
		return 0, refusal("The binding key must be greater than 0")
	}
	return float64(n), nil
}

// Bind implements Matcher. REQUIRES: ValidateBinding accepted the key; one that
// it would refuse weighs 1.
func (m *consistentMatcher) Bind(b Binding) Matcher {
	c := candidate{Binding: b, ident: b.identity(), weight: 1}
	c.seed = mix(hashBytes(b.Name) ^ mix(hashBytes(c.ident)))
	if w, err := parseWeight(b.Key); err == nil {
		c.weight = w
	}
	return m.with(append(slices.Clip(slices.Clone(m.list)), c))
}

// Unbind implements Matcher.
func (m *consistentMatcher) Unbind(b Binding) Matcher {
	ident := b.identity()
	at := slices.IndexFunc(m.list, func(c candidate) bool { return c.Dest == b.Dest && c.ident == ident })
	if at < 0 {
		return m
	}
	return m.with(slices.Delete(slices.Clone(m.list), at, at+1))
}

func (m *consistentMatcher) with(list []candidate) Matcher {
	next := &consistentMatcher{list: list, on: m.on, even: true}
	for i := range list {
		next.even = next.even && list[i].weight == list[0].weight
	}
	return next
}

// namedSet is an immutable set of destinations in the order of their names, which
// is the same after a restart.
type namedSet []namedMember

type namedMember struct {
	member
	name string
}

func (s namedSet) find(b Binding) (at int, found bool) {
	at = sort.Search(len(s), func(i int) bool { return s[i].name >= b.Name })
	for i := at; i < len(s) && s[i].name == b.Name; i++ {
		if s[i].dest == b.Dest {
			return i, true
		}
	}
	return at, false
}

func (s namedSet) add(b Binding) namedSet {
	at, found := s.find(b)
	next := slices.Clone(s)
	if found {
		next[at].idents = next[at].idents.add(b.identity())
		return next
	}
	return slices.Insert(next, at, namedMember{member{b.Dest, identSet{one: b.identity()}}, b.Name})
}

func (s namedSet) remove(b Binding) (rest namedSet, removed bool) {
	at, found := s.find(b)
	if !found {
		return s, false
	}
	idents, removed, last := s[at].idents.remove(b.identity())
	if !removed {
		return s, false
	}
	next := slices.Clone(s)
	if last {
		return slices.Delete(next, at, at+1), true
	}
	next[at].idents = idents
	return next, true
}

// Bind implements Matcher.
func (m *modulusMatcher) Bind(b Binding) Matcher { return &modulusMatcher{m.set.add(b)} }

// Unbind implements Matcher.
func (m *modulusMatcher) Unbind(b Binding) Matcher {
	set, removed := m.set.remove(b)
	if !removed {
		return m
	}
	return &modulusMatcher{set}
}

// Bind implements Matcher.
func (m *randomMatcher) Bind(b Binding) Matcher { return &randomMatcher{m.set.add(b), m.sequence} }

// Unbind implements Matcher.
func (m *randomMatcher) Unbind(b Binding) Matcher {
	set, removed := m.set.remove(b)
	if !removed {
		return m
	}
	return &randomMatcher{set, m.sequence}
}
