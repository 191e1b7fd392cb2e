package core

import (
	"math"
	"testing"
)

func number(n int64) Value    { return Value{Kind: KindInt, Int: n, Type: "signedint"} }
func unsigned(n uint64) Value { return Value{Kind: KindUint, Int: int64(n), Type: "unsignedint"} }
func float(f float64) Value   { return Value{Kind: KindFloat, Float: f, Type: "double"} }
func text(s string) Value     { return Value{Kind: KindString, Str: s, Type: "longstr"} }
func octets(s string) Value   { return Value{Kind: KindBytes, Str: s, Type: "binary"} }
func truth(n int64) Value     { return Value{Kind: KindBool, Int: n, Type: "bool"} }
func instant(n int64) Value   { return Value{Kind: KindTime, Int: n, Type: "timestamp"} }
func table(s string) Value    { return Value{Kind: KindOther, Str: s, Type: "table"} }
func array(s string) Value    { return Value{Kind: KindOther, Str: s, Type: "array"} }

// BIND-08, QUE-04: numbers by value across widths and signs, 5 = 5.0, a string
// never equals a number.
func TestValueEqual(t *testing.T) {
	void := Value{Kind: KindVoid, Type: "void"}
	narrow := Value{Kind: KindInt, Int: 5, Type: "byte"}
	for _, c := range []struct {
		name string
		a, b Value
		want bool
	}{
		{"the same number", number(5), number(5), true},
		{"another width", number(5), narrow, true},
		{"another number", number(5), number(6), false},
		{"negative", number(-1), number(-1), true},
		{"signed and unsigned", number(5), unsigned(5), true},
		{"the sign bit is not a sign", number(-1), unsigned(math.MaxUint64), false},
		{"large unsigned", unsigned(math.MaxUint64), unsigned(math.MaxUint64), true},
		{"integer and float", number(5), float(5), true},
		{"integer and fraction", number(5), float(5.5), false},
		{"unsigned and float", unsigned(1 << 63), float(1 << 63), true},
		{"floats", float(1.5), float(1.5), true},
		{"zeros", float(0), float(math.Copysign(0, -1)), true},
		{"not a number", float(math.NaN()), float(math.NaN()), false},
		{"infinity", number(math.MaxInt64), float(math.Inf(1)), false},
		{"text", text("5"), text("5"), true},
		{"other text", text("5"), text("6"), false},
		{"text and number", text("5"), number(5), false},
		{"text and float", text("5"), float(5), false},
		{"text and bytes", text("a"), octets("a"), false},
		{"bytes", octets("a"), octets("a"), true},
		{"truths", truth(1), truth(1), true},
		{"truth and lie", truth(1), truth(0), false},
		{"truth and number", truth(1), number(1), false},
		{"times", instant(7), instant(7), true},
		{"other times", instant(7), instant(8), false},
		{"time and number", instant(7), number(7), false},
		{"voids", void, void, true},
		{"void and empty text", void, text(""), false},
		{"void and zero", void, number(0), false},
		{"tables", table("ab"), table("ab"), true},
		{"other tables", table("ab"), table("ac"), false},
		{"table and array", table("ab"), array("ab"), false},
	} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := c.b.Equal(c.a); got != c.want {
			t.Errorf("%s, the other way round: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestValueString(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{number(-5), "-5"},
		{unsigned(math.MaxUint64), "18446744073709551615"},
		{float(2.5), "2.5"},
		{truth(1), "true"},
		{truth(0), "false"},
		{instant(99), "99"},
		{text("a b"), "a b"},
		{octets("\x00"), "\x00"},
		{Value{Kind: KindVoid}, "undefined"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.v, got, c.want)
		}
	}
}

// BIND-01: arguments are part of a binding's identity.
func TestArgsCanonical(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Args
		same bool
	}{
		{"none and empty", nil, Args{}, true},
		{"none and one", nil, Args{"a": text("")}, false},
		{"any order", Args{"a": number(1), "b": text("x")}, Args{"b": text("x"), "a": number(1)}, true},
		{"widths", Args{"a": number(1)}, Args{"a": unsigned(1)}, true},
		{"number and text", Args{"a": number(1)}, Args{"a": text("1")}, false},
		{"number and float", Args{"a": number(1)}, Args{"a": float(1)}, false},
		{"number and time", Args{"a": number(1)}, Args{"a": instant(1)}, false},
		{"text and bytes", Args{"a": text("x")}, Args{"a": octets("x")}, false},
		{"table and array", Args{"a": table("x")}, Args{"a": array("x")}, false},
		{"truth and text", Args{"a": truth(1)}, Args{"a": text("true")}, false},
		{"void and text", Args{"a": {Kind: KindVoid}}, Args{"a": text("undefined")}, false},
		{"other name", Args{"a": number(1)}, Args{"b": number(1)}, false},
		{"text that looks like two", Args{"a": text(`x";"b"=5:"y`)}, Args{"a": text("x"), "b": text("y")}, false},
		{"name that looks like two", Args{`a"=5:"";"b`: text("")}, Args{"a": text(""), "b": text("")}, false},
		{"large unsigned", Args{"a": unsigned(math.MaxUint64)}, Args{"a": number(-1)}, false},
	} {
		if a, b := c.a.Canonical(), c.b.Canonical(); (a == b) != c.same {
			t.Errorf("%s: %q and %q, want the same: %v", c.name, a, b, c.same)
		}
	}
	if (Args{}).Canonical() != "" {
		t.Error("no arguments are not the empty text")
	}
}

func TestRefusalTable(t *testing.T) {
	for r, row := range Refusals {
		if row.Name == "" || row.Code == 0 || row.Condition == "" || row.HTTP == 0 {
			t.Errorf("refusal %d is incomplete: %+v", r, row)
		}
		// The specification's hard errors are those from 500 on, and 320 and 402. A
		// full disk ends the channel alone: the connection may still consume, and
		// acknowledge what makes room.
		hard := row.Code >= 500 && Refusal(r) != StorageFull
		if row.Connection != hard {
			t.Errorf("%s: code %d at the wrong scope", row.Name, row.Code)
		}
	}
	if got := Refuse(NotFound, "no queue '%s' in vhost '%s'", "q", "/").Error(); got != "NOT_FOUND - no queue 'q' in vhost '/'" {
		t.Errorf("%q", got)
	}
	for want, why := range map[string]DeathReason{"rejected": DiedRejected, "expired": DiedExpired, "maxlen": DiedMaxLength} {
		if why.String() != want {
			t.Errorf("%d is %q, want %q", why, why.String(), want)
		}
	}
}
