package exchange

import (
	"math"

	"ringmq/engine/core"
)

// DelayedTypeArg is the argument that says how a delayed exchange routes.
const DelayedTypeArg = "x-delayed-type"

// DelayHeader is the header with which a message asks a delayed exchange to hold it
// back, in milliseconds.
const DelayHeader = "x-delay"

// RoutesLike is the type whose rules decide where messages of an exchange go: its
// own, or of a delayed exchange the one that its arguments name (XT-02). The error
// has the text that clients see.
func RoutesLike(k Kind, args core.Args) (Kind, error) {
	if k != Delayed {
		return k, nil
	}
	v := args[DelayedTypeArg]
	if routes, ok := ParseKind(v.Str); ok && v.Kind == core.KindString && routes != Delayed {
		return routes, nil
	}
	return 0, refusal("Invalid argument, 'x-delayed-type' must be an existing exchange type")
}

// Delay is for how many milliseconds a delay header has a message held: 0 for a
// value that does not ask for it.
func Delay(v core.Value) int64 {
	if v.Kind != core.KindInt && v.Kind != core.KindUint || v.Int <= 0 || v.Int > math.MaxUint32 {
		return 0
	}
	return v.Int
}
