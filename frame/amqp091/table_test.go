package amqp091

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

// everyTag holds each tag of FLD-01 once, values written by hand.
var everyTag = []struct {
	tag   byte
	data  string // octets after the tag, length prefix included
	typ   string
	isInt bool
	n     int64
}{
	{'t', "01", "bool", false, 0},
	{'b', "FF", "byte", true, -1},
	{'B', "FF", "unsignedbyte", true, 255},
	{'s', "FFFE", "short", true, -2},
	{'u', "FFFE", "unsignedshort", true, 65534},
	{'I', "FFFFFFFD", "signedint", true, -3},
	{'i', "FFFFFFFD", "unsignedint", true, 4294967293},
	{'l', "FFFFFFFFFFFFFFFC", "long", true, -4},
	{'L', "FFFFFFFFFFFFFFFC", "long", true, -4},
	{'f', "3FC00000", "float", false, 0},
	{'d', "BFF8000000000000", "double", false, 0},
	{'D', "02 0000007B", "decimal", false, 0},
	{'S', "00000003 616200", "longstr", false, 0},
	{'x', "00000002 00FF", "binary", false, 0},
	{'T', "FFFFFFFFFFFFFFFF", "timestamp", false, 0},
	{'A', "00000008 42 07 53 00000001 61", "array", false, 0},
	{'F', "00000003 01 6B 56", "table", false, 0},
	{'V', "", "void", false, 0},
}

func everyTagTable() Table {
	var t Table
	for _, e := range everyTag {
		t = append(t, 1, e.tag, e.tag) // the name is the tag
		t = append(t, unhex(e.data)...)
	}
	return t
}

// FLD-01: every tag is understood and goes round unchanged.
func TestTableEveryTag(t *testing.T) {
	table := everyTagTable()
	if err := table.Validate(); err != nil {
		t.Fatal(err)
	}
	if table.Len() != len(everyTag) {
		t.Fatalf("%d entries", table.Len())
	}
	i := 0
	var again []byte
	for key, v := range table.All() {
		e := everyTag[i]
		if string(key) != string(e.tag) || v.Tag != e.tag || v.TypeName() != e.typ {
			t.Errorf("entry %d: %q %c %s", i, key, v.Tag, v.TypeName())
		}
		if n, ok := v.Int(); ok != e.isInt || n != e.n {
			t.Errorf("%c: Int %d %v", e.tag, n, ok)
		}
		if got, ok := table.Lookup(string(e.tag)); !ok || !bytes.Equal(got.Data, v.Data) {
			t.Errorf("%c: not found", e.tag)
		}
		if got := v.Append(nil); !bytes.Equal(got, append([]byte{e.tag}, unhex(e.data)...)) {
			t.Errorf("%c: appended as %X", e.tag, got)
		}
		again = AppendRaw(again, string(key), v)
		i++
	}
	if i != len(everyTag) || !bytes.Equal(again, table) {
		t.Errorf("after %d entries:\n got %X\nwant %X", i, again, table)
	}
}

func TestValueAccessors(t *testing.T) {
	table := everyTagTable()
	get := func(key string) Value { v, _ := table.Lookup(key); return v }
	if v, ok := get("t").Bool(); !ok || !v {
		t.Error("bool")
	}
	if v, ok := (Value{'t', []byte{0}}).Bool(); !ok || v {
		t.Error("false")
	}
	if v, ok := get("S").Str(); !ok || string(v) != "ab\x00" {
		t.Error("longstr")
	}
	if v, ok := get("f").Float(); !ok || v != 1.5 {
		t.Error("float")
	}
	if v, ok := get("d").Float(); !ok || v != -1.5 {
		t.Error("double")
	}
	if v, ok := get("T").Time(); !ok || v != math.MaxUint64 {
		t.Error("timestamp")
	}
	if v, ok := get("F").Table(); !ok || v.Len() != 1 {
		t.Error("table")
	}
	var items []Value
	for v := range get("A").Array() {
		items = append(items, v)
	}
	if len(items) != 2 || items[0].TypeName() != "unsignedbyte" || string(items[1].Data) != "a" {
		t.Errorf("array %v", items)
	}
	for v := range get("S").Array() {
		t.Errorf("a string has item %v", v)
	}
	// Other tags are refused by each accessor.
	v := get("V")
	_, i := v.Int()
	_, b := v.Bool()
	_, s := v.Str()
	_, f := v.Float()
	_, tm := v.Time()
	_, tb := v.Table()
	_, x := get("x").Str()
	if i || b || s || f || tm || tb || x {
		t.Error("an accessor took a foreign tag")
	}
	if (Value{Tag: 'U'}).TypeName() != "unknown" {
		t.Error("U is none of RabbitMQ's tags")
	}
	// A Value made by hand with too little data is refused, not read beyond.
	for _, tag := range []byte("tbBsuIilLfdT") {
		v := Value{Tag: tag}
		_, i := v.Int()
		_, b := v.Bool()
		_, f := v.Float()
		_, tm := v.Time()
		if i || b || f || tm {
			t.Errorf("%c without data has a value", tag)
		}
	}
}

func TestTableBuilders(t *testing.T) {
	items := ItemTable(ItemString(nil, "one"), AppendBool(nil, "b", false))
	var b []byte
	b = AppendString(b, "s", "text")
	b = AppendBool(b, "t", true)
	b = AppendInt64(b, "l", -1)
	b = AppendInt32(b, "i", 258)
	b = AppendTimestamp(b, "w", 1)
	b = AppendTable(b, "f", AppendInt32(nil, "z", 0))
	b = AppendArray(b, "a", items)
	want := unhex("01 73 53 00000004 74657874" + "01 74 74 01" + "01 6C 6C FFFFFFFFFFFFFFFF" +
		"01 69 49 00000102" + "01 77 54 0000000000000001" + "01 66 46 00000007 01 7A 49 00000000" +
		"01 61 41 00000011 53 00000003 6F6E65 46 00000004 01 62 74 00")
	if !bytes.Equal(b, want) {
		t.Fatalf("got %X\nwant %X", b, want)
	}
	if err := Table(b).Validate(); err != nil {
		t.Fatal(err)
	}
	long := AppendBool(nil, string(make([]byte, 300)), true)
	if err := Table(long).Validate(); err != nil || Table(long).Len() != 1 {
		t.Fatalf("a name too long breaks the table: %v", err)
	}
}

// FLD-02: duplicates are accepted and the first wins.
func TestTableDuplicates(t *testing.T) {
	b := AppendInt32(AppendInt32(AppendInt32(nil, "a", 0), "k", 1), "k", 2)
	if err := Table(b).Validate(); err != nil {
		t.Fatal(err)
	}
	v, ok := Table(b).Lookup("k")
	if n, isInt := v.Int(); !ok || !isInt || n != 1 {
		t.Errorf("found %d", n)
	}
	if _, ok := Table(b).Lookup("x"); ok {
		t.Error("found what is not there")
	}
	if Table(b).Len() != 3 {
		t.Errorf("%d entries", Table(b).Len())
	}
	if _, ok := Table(nil).Lookup(""); ok || Table(nil).Len() != 0 || Table(nil).Validate() != nil {
		t.Error("nil is the empty table")
	}
}

// nest wraps v in depth layers: tables, or arrays.
func nest(depth int, array bool) Table {
	inner := []byte{}
	for i := range depth {
		switch {
		case i == depth-1:
			if array {
				inner = AppendArray(nil, "k", inner)
			} else {
				inner = AppendTable(nil, "k", inner)
			}
		case array:
			inner = appendLong([]byte{'A'}, inner)
		default:
			inner = AppendTable(nil, "k", inner)
		}
	}
	return inner
}

// FLD-04: nesting is bounded, also when the whole frame is nothing else.
func TestTableDepth(t *testing.T) {
	for _, array := range []bool{false, true} {
		for depth, want := range map[int]error{
			0: nil, 1: nil, TableDepthMax - 1: nil, TableDepthMax: ErrTable, 2000: ErrTable,
		} {
			if err := nest(depth, array).Validate(); !errors.Is(err, want) {
				t.Errorf("depth %d, array %v: %v", depth, array, err)
			}
		}
	}
}

// After an inner table or array the outer kind is in force again.
func TestTableMixedNesting(t *testing.T) {
	var b []byte
	b = AppendArray(b, "a", ItemTable(ItemString(ItemTable(nil, AppendArray(nil, "x", ItemString(nil, "i"))), "s"), nil))
	b = AppendTable(b, "f", AppendArray(AppendBool(nil, "t", true), "a", nil))
	b = AppendBool(b, "z", true)
	if err := Table(b).Validate(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(b); n++ {
		if err := Table(b[:n]).Validate(); (err == nil) != referenceTable(b[:n], 1) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

// referenceTable is the obvious recursive validator that Validate must agree with.
func referenceTable(b []byte, level int) bool {
	if level > TableDepthMax {
		return false
	}
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n {
			return false
		}
		var ok bool
		if b, ok = referenceValue(b[1+n:], level); !ok {
			return false
		}
	}
	return true
}

func referenceArray(b []byte, level int) bool {
	if level > TableDepthMax {
		return false
	}
	ok := true
	for len(b) > 0 && ok {
		b, ok = referenceValue(b, level)
	}
	return ok
}

func referenceValue(b []byte, level int) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	widths := map[byte]int{'t': 1, 'b': 1, 'B': 1, 's': 2, 'u': 2, 'I': 4, 'i': 4, 'l': 8, 'L': 8,
		'f': 4, 'd': 8, 'D': 5, 'T': 8, 'V': 0}
	tag, b := b[0], b[1:]
	if w, fixed := widths[tag]; fixed {
		if len(b) < w {
			return nil, false
		}
		return b[w:], true
	}
	if !bytes.ContainsRune([]byte("SxAF"), rune(tag)) || len(b) < 4 {
		return nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if int64(n) > int64(len(b)-4) {
		return nil, false
	}
	inner, rest := b[4:4+n], b[4+n:]
	switch tag {
	case 'A':
		return rest, referenceArray(inner, level+1)
	case 'F':
		return rest, referenceTable(inner, level+1)
	}
	return rest, true
}
