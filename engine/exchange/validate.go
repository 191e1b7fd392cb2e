package exchange

import (
	"errors"
	"strconv"
	"strings"

	"ringmq/engine/core"
)

// The argument of a headers binding that says how its other arguments combine,
// and the values that it may have.
const (
	matchArg      = "x-match"
	matchAll      = "all"
	matchAny      = "any"
	matchAllWithX = "all-with-x"
	matchAnyWithX = "any-with-x"
)

// ValidateBinding checks a new binding's key and arguments (BIND-07, BIND-09).
// The error has the text that clients see; the caller adds code and scope, 406
// on the channel.
func ValidateBinding(k Kind, key string, args core.Args) error {
	if k == ConsistentHash {
		_, err := parseWeight(key)
		return err
	}
	v, ok := args[matchArg]
	if k != Headers || !ok {
		return nil
	}
	if v.Kind != core.KindString {
		return errors.New("Invalid x-match field type " + v.Type + " (value " + quoteTerm(v) + "); expected longstr")
	}
	switch v.Str {
	case matchAll, matchAny, matchAllWithX, matchAnyWithX:
		return nil
	}
	return errors.New("Invalid x-match field value " + quoteTerm(v) +
		"; expected all, any, all-with-x, or any-with-x")
}

// quoteTerm writes a value as clients know it from such texts: strings as
// <<"text">>, or as a list of bytes when they are not plain text.
func quoteTerm(v core.Value) string {
	switch v.Kind {
	case core.KindString, core.KindBytes:
		return quoteBinary(v.Str)
	case core.KindFloat:
		text := strconv.FormatFloat(v.Float, 'g', -1, 64)
		if !strings.ContainsAny(text, ".eIN") {
			text += ".0"
		}
		return text
	case core.KindOther:
		return "..."
	}
	return v.String()
}

func quoteBinary(s string) string {
	if s == "" {
		return "<<>>"
	}
	var b strings.Builder
	b.WriteString(`<<"`)
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' {
			return quoteBytes(s)
		}
		if c == '"' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	b.WriteString(`">>`)
	return b.String()
}

func quoteBytes(s string) string {
	var b strings.Builder
	b.WriteString("<<")
	for i := range len(s) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(s[i])))
	}
	b.WriteString(">>")
	return b.String()
}
