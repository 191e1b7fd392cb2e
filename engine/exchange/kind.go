package exchange

import "ringmq/engine/core"

// Kind is an exchange type.
type Kind uint8

// The exchange types: four that every virtual host offers (EXC-01), those that
// choose one destination for each message (XT-01, XT-03), and one that holds
// messages back and routes as another does (XT-02).
const (
	Direct Kind = iota
	Fanout
	Topic
	Headers
	ConsistentHash
	ModulusHash
	Random
	Delayed
)

// kindNames are the names that clients use, in the order of the kinds.
var kindNames = [...]string{"direct", "fanout", "topic", "headers", "x-consistent-hash", "x-modulus-hash", "x-random",
	"x-delayed-message"}

// ParseKind returns the kind that a client names in a declare.
func ParseKind(name string) (Kind, bool) {
	for k, known := range kindNames {
		if name == known {
			return Kind(k), true
		}
	}
	return 0, false
}

// String returns the name that clients use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Chooses reports that an exchange of this type sends a message to one of its
// destinations, however many keys the message has.
func (k Kind) Chooses() bool { return k >= ConsistentHash && k <= Random }

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
	// Name is the destination's, unlike any other's. Types that choose one
	// destination go by it, so that after a restart a key leads where it did.
	Name string
}

// Options are what a declare says about an exchange beside its kind.
type Options struct {
	// Args are the arguments. REQUIRES: ValidateExchange accepted them.
	Args core.Args
	// Seed begins the sequence of a type that chooses at random.
	Seed uint64
}

// Properties is what a message's Fields may offer beside its headers: the
// properties that have a field of their own in the protocol, by their names
// there, message_id and the like.
type Properties interface {
	Property(name string) (core.Value, bool)
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
	// UsesHeaders reports whether the result depends on anything beside the key,
	// so that it must not be remembered: headers, properties, chance.
	UsesHeaders() bool
}

// New returns a matcher of kind k without bindings. REQUIRES: k is not Delayed,
// which has none of its own.
func New(k Kind, o Options) Matcher {
	switch k {
	case Fanout:
		return &fanoutMatcher{}
	case Topic:
		return &topicMatcher{}
	case Headers:
		return &headersMatcher{}
	case ConsistentHash:
		return &consistentMatcher{on: hashInputOf(o.Args)}
	case ModulusHash:
		return &modulusMatcher{}
	case Random:
		return &randomMatcher{sequence: newSequence(o.Seed)}
	}
	return &directMatcher{}
}
