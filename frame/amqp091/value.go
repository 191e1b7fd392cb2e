//ringmq:hot

package amqp091

import (
	"encoding/binary"
	"math"
)

// The accessors below also check the length of Data, because a Value may be put
// together by hand.

// Int returns the value of any integer tag, b B s u I i l L (FLD-05). L is read
// as two's complement, as l.
func (v Value) Int() (int64, bool) {
	switch v.Tag {
	case 'b', 'B':
		if len(v.Data) != 1 {
			return 0, false
		}
		if v.Tag == 'b' {
			return int64(int8(v.Data[0])), true
		}
		return int64(v.Data[0]), true
	case 's', 'u':
		if len(v.Data) != 2 {
			return 0, false
		}
		n := binary.BigEndian.Uint16(v.Data)
		if v.Tag == 's' {
			return int64(int16(n)), true
		}
		return int64(n), true
	case 'I', 'i':
		if len(v.Data) != 4 {
			return 0, false
		}
		n := binary.BigEndian.Uint32(v.Data)
		if v.Tag == 'I' {
			return int64(int32(n)), true
		}
		return int64(n), true
	case 'l', 'L':
		if len(v.Data) != 8 {
			return 0, false
		}
		return int64(binary.BigEndian.Uint64(v.Data)), true
	}
	return 0, false
}

// Bool returns the value of tag t; any octet but 0 is true.
func (v Value) Bool() (value, ok bool) {
	if v.Tag != 't' || len(v.Data) != 1 {
		return false, false
	}
	return v.Data[0] != 0, true
}

// Str returns the octets of tag S, a view.
func (v Value) Str() ([]byte, bool) {
	if v.Tag != 'S' {
		return nil, false
	}
	return v.Data, true
}

// Float returns the value of tags f and d.
func (v Value) Float() (float64, bool) {
	switch {
	case v.Tag == 'f' && len(v.Data) == 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(v.Data))), true
	case v.Tag == 'd' && len(v.Data) == 8:
		return math.Float64frombits(binary.BigEndian.Uint64(v.Data)), true
	}
	return 0, false
}

// Time returns the seconds since 1970 of tag T.
func (v Value) Time() (uint64, bool) {
	if v.Tag != 'T' || len(v.Data) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(v.Data), true
}

// Table returns the nested table of tag F, a view.
func (v Value) Table() (Table, bool) {
	if v.Tag != 'F' {
		return nil, false
	}
	return v.Data, true
}

// NextItem splits the first item off the data of an array (tag A); ok is false
// at the end and at a damaged item. It is Array for message-path files.
func NextItem(items []byte) (v Value, rest []byte, ok bool) {
	return cutValue(items)
}

// TypeName returns the tag's name in RabbitMQ's error texts.
func (v Value) TypeName() string {
	switch v.Tag {
	case 't':
		return "bool"
	case 'b':
		return "byte"
	case 'B':
		return "unsignedbyte"
	case 's':
		return "short"
	case 'u':
		return "unsignedshort"
	case 'I':
		return "signedint"
	case 'i':
		return "unsignedint"
	case 'l', 'L':
		return "long"
	case 'T':
		return "timestamp"
	case 'S':
		return "longstr"
	case 'x':
		return "binary"
	case 'A':
		return "array"
	case 'F':
		return "table"
	case 'D':
		return "decimal"
	case 'f':
		return "float"
	case 'd':
		return "double"
	case 'V':
		return "void"
	}
	return "unknown"
}

// Append appends tag and encoded value: an item of an array, or the half of a
// table entry after the name.
//
// REQUIRES: Data has the width of the tag, as in every decoded Value.
func (v Value) Append(dst []byte) []byte {
	dst = append(dst, v.Tag)
	if tagWidth[v.Tag] >= widthLong {
		return appendLong(dst, v.Data)
	}
	return append(dst, v.Data...)
}
