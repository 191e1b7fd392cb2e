// Package exchange decides which destinations a routing key and headers select.
//
// What lives here: the matchers of the exchange types, and the rules for binding
// keys and arguments. What may not: names, durability, permissions,
// alternate exchanges and the walk over exchange-to-exchange bindings (those
// belong to the engine's catalog), locks, clocks, sockets, codecs.
//
// # Versions
//
// A Matcher is a value that never changes. Bind and Unbind copy the path that
// leads to the change and share everything else:
//
//	version 1 ──► root ──► orders ──► eu ──► {q1, q2}
//	                 ╲
//	                  ╲──► stock ─────► {q3}          shared by both versions
//	                  ╱
//	version 2 ──► root'──► orders'──► eu'──► {q1, q2, q4}
//
// The control plane publishes the newest version with one atomic store; loops go
// on reading the one they loaded. No reader waits, no reader sees half a bind.
//
// # Where bindings rest
//
//	direct   PMap: key -> destSet
//	fanout   one destSet
//	topic    trie of words, `*` and `#`; a destSet where a pattern ends
//	headers  rules (one per distinct argument list, each with a destSet), indexed
//	         by a header that must be there for the rule to hold
//
//	x-consistent-hash                 a list of bindings with weights
//	x-modulus-hash, x-random          destinations in the order of their names
//	x-delayed-message                 as those of the type it routes like
//
// A destSet counts how often a destination is bound, so that it goes away with
// its last binding, and grows from a short list into a persistent vector.
//
// # Laws
//
//   - Match appends a destination at most once, whatever out held (BIND-05).
//   - Match allocates nothing but room in out, takes no lock, and its work is
//     bounded by the size of the pattern set times the words of the key, or by
//     the number of bindings of a consistent hash.
//   - Bind costs O(log n) however many bindings there are; so does Unbind. The
//     types that choose one destination copy their list instead.
//   - The order of the result depends on the history of binds alone, never on
//     addresses or on the process, so that simulations replay.
package exchange
