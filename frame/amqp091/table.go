//ringmq:hot

package amqp091

import "encoding/binary"

// TableDepthMax bounds how deep tables and arrays nest, the outer table included
// (FLD-04). Real headers nest four deep (x-death); the bound keeps the
// validator's stack a fixed array.
const TableDepthMax = 64

// Table is the entries of a field table, without the 4-octet length before them.
// nil is the empty table. It is a view: see the laws in the package's page.
type Table []byte

// Value is one field value: its tag and the octets after it. Strings, byte
// arrays, arrays and tables are without their 4-octet length.
type Value struct {
	Tag  byte
	Data []byte
}

// Classes of tags in tagWidth beside the fixed widths 0 to 8. The zero entry
// must mean unknown, so widths are stored plus one.
const (
	widthUnknown = 0
	widthLong    = 100 // 4-octet length, opaque octets
	widthNested  = 101 // 4-octet length, entries or items
)

// tagWidth gives each tag's fixed width plus one, or its class (FLD-01).
var tagWidth = [256]uint8{
	't': 1 + 1, 'b': 1 + 1, 'B': 1 + 1,
	's': 1 + 2, 'u': 1 + 2,
	'I': 1 + 4, 'i': 1 + 4, 'f': 1 + 4,
	'l': 1 + 8, 'L': 1 + 8, 'd': 1 + 8, 'T': 1 + 8,
	'D': 1 + 5, 'V': 1 + 0,
	'S': widthLong, 'x': widthLong,
	'A': widthNested, 'F': widthNested,
}

// Validate walks the table and everything nested in it and returns ErrTable for
// an unknown tag, an entry that overruns what it lies in, or nesting beyond
// TableDepthMax. Names and strings are not checked for UTF-8.
func (t Table) Validate() error {
	if len(t) == 0 {
		return nil
	}
	// A recursive walk would let the peer choose our stack depth. Open tables and
	// arrays are kept as their end offsets instead, and one bit each for the kind.
	var ends [TableDepthMax]int
	var arrays uint64
	depth, pos := 0, 0
	ends[0] = len(t)
	for {
		end := ends[depth]
		if pos == end {
			if depth == 0 {
				return nil
			}
			depth--
			continue
		}
		if arrays>>uint(depth)&1 == 0 {
			pos += 1 + int(t[pos]) // the name, which items of an array lack
			if pos >= end {
				return ErrTable
			}
		}
		class := tagWidth[t[pos]]
		pos++
		switch {
		case class == widthUnknown:
			return ErrTable
		case class < widthLong:
			pos += int(class) - 1
			if pos > end {
				return ErrTable
			}
			continue
		}
		if end-pos < 4 {
			return ErrTable
		}
		n := binary.BigEndian.Uint32(t[pos:])
		array := t[pos-1] == 'A'
		pos += 4
		if uint64(n) > uint64(end-pos) {
			return ErrTable
		}
		if class == widthLong {
			pos += int(n)
			continue
		}
		depth++
		if depth == TableDepthMax {
			return ErrTable
		}
		ends[depth] = pos + int(n)
		arrays &^= 1 << uint(depth)
		if array {
			arrays |= 1 << uint(depth)
		}
	}
}

// cutValue splits tag and value off the front of b; false when they are damaged
// or not all there. What is nested inside is not looked at.
func cutValue(b []byte) (v Value, rest []byte, ok bool) {
	if len(b) == 0 {
		return Value{}, nil, false
	}
	class := tagWidth[b[0]]
	switch {
	case class == widthUnknown:
		return Value{}, nil, false
	case class < widthLong:
		end := int(class) // tag octet and width
		if len(b) < end {
			return Value{}, nil, false
		}
		return Value{b[0], b[1:end:end]}, b[end:], true
	}
	if len(b) < 5 {
		return Value{}, nil, false
	}
	n := binary.BigEndian.Uint32(b[1:])
	if uint64(n) > uint64(len(b)-5) {
		return Value{}, nil, false
	}
	end := 5 + int(n)
	return Value{b[0], b[5:end:end]}, b[end:], true
}

// Next splits the first entry off the table. ok is false at the end and at a
// damaged entry. It is All for message-path files, which may not use closures:
//
//	for key, v, rest, ok := t.Next(); ok; key, v, rest, ok = rest.Next() { ... }
func (t Table) Next() (key []byte, v Value, rest Table, ok bool) {
	if len(t) == 0 {
		return nil, Value{}, nil, false
	}
	end := 1 + int(t[0])
	if len(t) <= end {
		return nil, Value{}, nil, false
	}
	v, b, ok := cutValue(t[end:])
	if !ok {
		return nil, Value{}, nil, false
	}
	return t[1:end:end], v, b, true
}

// Len returns the number of entries, duplicates counted.
func (t Table) Len() int {
	count := 0
	for _, _, rest, ok := t.Next(); ok; _, _, rest, ok = rest.Next() {
		count++
	}
	return count
}

// Lookup returns the value of the first entry with that name (FLD-02).
func (t Table) Lookup(name string) (Value, bool) {
	for key, v, rest, ok := t.Next(); ok; key, v, rest, ok = rest.Next() {
		if string(key) == name {
			return v, true
		}
	}
	return Value{}, false
}
