package exchange

import "ringmq/engine/core"

// Kind is an exchange type.
type Kind uint8

// The exchange types that every virtual host offers (EXC-01).
const (
	Direct Kind = iota
	Fanout
	Topic
	Headers
)

// ParseKind returns the kind that a client names in a declare.
func ParseKind(name string) (Kind, bool) {
	switch name {
	case "direct":
		return Direct, true
	case "fanout":
		return Fanout, true
	case "topic":
		return Topic, true
	case "headers":
		return Headers, true
	}
	return 0, false
}

// String returns the name that clients use.
func (k Kind) String() string {
	switch k {
	case Direct:
		return "direct"
	case Fanout:
		return "fanout"
	case Topic:
		return "topic"
	case Headers:
		return "headers"
	}
	return "unknown"
}

// Dest is where a binding leads: a pointer to a queue or to an exchange of the
// catalog. Values are compared with ==, so a pointer is the only right thing to
// put in.
type Dest any

// Binding is one binding of an exchange; the exchange itself is the Matcher's.
// Dest, Key and the canonical text of Args together are its identity (BIND-01).
type Binding struct {
	Dest Dest
	Key  string
	Args core.Args
}

// Matcher selects destinations. It is immutable: any loop may call Match on any
// version at any time, without locks.
type Matcher interface {
	// Bind returns a version with b added. REQUIRES: b is not bound yet.
	Bind(b Binding) Matcher
	// Unbind returns a version without b, or the receiver when b is not bound
	// (BIND-03).
	Unbind(b Binding) Matcher
	// Match appends to out every destination that key and headers select and
	// that out does not hold yet (BIND-05), and returns it. headers may be nil;
	// key and headers are not kept.
	Match(key []byte, headers core.Fields, out []Dest) []Dest
	// UsesKey reports whether the result depends on the key.
	UsesKey() bool
	// UsesHeaders reports whether the result depends on the headers.
	UsesHeaders() bool
}

// New returns a matcher of kind k without bindings.
func New(k Kind) Matcher {
	switch k {
	case Fanout:
		return &fanoutMatcher{}
	case Topic:
		return &topicMatcher{}
	case Headers:
		return &headersMatcher{}
	}
	return &directMatcher{}
}
