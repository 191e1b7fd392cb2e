package core

import (
	"math"
	"sort"
	"strconv"
	"strings"
)

// Kind is the protocol-neutral type of a Value.
type Kind uint8

// The kinds. KindOther is anything the engine passes through without looking
// inside: tables, arrays, decimals.
const (
	KindVoid Kind = iota
	KindBool
	KindInt
	KindUint
	KindFloat
	KindString
	KindBytes
	KindTime
	KindOther
)

// Value is one argument or header value. Str may be a view into a receive
// buffer when the Value comes from Fields; it is a copy when it comes from Args.
type Value struct {
	Kind  Kind
	Int   int64
	Float float64
	Str   string
	// Type is the protocol's own name of the type, for error texts.
	Type string
}

// String is a readable form for error texts and management.
func (v Value) String() string {
	switch v.Kind {
	case KindBool:
		return strconv.FormatBool(v.Int != 0)
	case KindInt, KindTime:
		return strconv.FormatInt(v.Int, 10)
	case KindUint:
		return strconv.FormatUint(uint64(v.Int), 10)
	case KindFloat:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	case KindVoid:
		return "undefined"
	}
	return v.Str
}

// IsInteger reports a value of any integer type.
func (v Value) IsInteger() bool { return v.Kind == KindInt || v.Kind == KindUint }

// Equal compares by meaning: numbers by value whatever their width, an integer
// also with a float; a string never equals a number (BIND-08, QUE-04).
func (v Value) Equal(o Value) bool {
	switch {
	case v.IsInteger() && o.IsInteger():
		return v.Int == o.Int && (v.Kind == o.Kind || v.Int >= 0)
	case v.Kind == KindFloat && o.Kind == KindFloat:
		return v.Float == o.Float
	case v.Kind == KindFloat && o.IsInteger():
		return v.Float == o.asFloat() && !math.IsInf(v.Float, 0)
	case v.IsInteger() && o.Kind == KindFloat:
		return o.Float == v.asFloat() && !math.IsInf(o.Float, 0)
	case v.Kind != o.Kind:
		return false
	case v.Kind == KindVoid:
		return true
	case v.Kind == KindBool || v.Kind == KindTime:
		return v.Int == o.Int
	case v.Kind == KindOther:
		return v.Type == o.Type && v.Str == o.Str
	}
	return v.Str == o.Str
}

func (v Value) asFloat() float64 {
	if v.Kind == KindUint {
		return float64(uint64(v.Int))
	}
	return float64(v.Int)
}

// Args are the arguments of a declare or a binding. They are never changed
// after they were made.
type Args map[string]Value

// Canonical is a sorted, unambiguous text of the arguments: two bindings are
// the same when it is equal (BIND-01). Empty for no arguments.
func (a Args) Canonical() string {
	if len(a) == 0 {
		return ""
	}
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		v := a[name]
		b.WriteString(strconv.Quote(name))
		b.WriteByte('=')
		if v.IsInteger() {
			b.WriteByte('i')
		} else {
			b.WriteString(strconv.Itoa(int(v.Kind)))
			if v.Kind == KindOther {
				b.WriteString(v.Type) // a table is not an array, whatever its bytes
			}
		}
		b.WriteByte(':')
		b.WriteString(strconv.Quote(v.String()))
		b.WriteByte(';')
	}
	return b.String()
}

// Fields gives access to a message's headers without decoding them first. The
// session's codec implements it; values are valid only during routing.
type Fields interface {
	Lookup(name string) (Value, bool)
}
