//ringmq:hot

package amqp091

import "encoding/binary"

// The builders append one entry each to a table under construction: dst is its
// entries so far, a nil dst begins one. A name longer than 255 octets is cut.
// Numbers that the server makes use l, T, S and t (FLD-03).

// appendName appends the name of an entry.
func appendName(dst []byte, key string) []byte {
	if len(key) > shortMax {
		key = key[:shortMax]
	}
	dst = append(dst, byte(len(key)))
	return append(dst, key...)
}

// AppendString appends a long string entry (S).
func AppendString(dst []byte, key, val string) []byte {
	return ItemString(appendName(dst, key), val)
}

// AppendBool appends a boolean entry (t).
func AppendBool(dst []byte, key string, val bool) []byte {
	dst = append(appendName(dst, key), 't', 0)
	if val {
		dst[len(dst)-1] = 1
	}
	return dst
}

// AppendInt64 appends a 64-bit integer entry (l).
func AppendInt64(dst []byte, key string, val int64) []byte {
	dst = append(appendName(dst, key), 'l')
	return binary.BigEndian.AppendUint64(dst, uint64(val))
}

// AppendInt32 appends a 32-bit integer entry (I).
func AppendInt32(dst []byte, key string, val int32) []byte {
	dst = append(appendName(dst, key), 'I')
	return binary.BigEndian.AppendUint32(dst, uint32(val))
}

// AppendTimestamp appends a time entry (T), in seconds since 1970.
func AppendTimestamp(dst []byte, key string, seconds uint64) []byte {
	dst = append(appendName(dst, key), 'T')
	return binary.BigEndian.AppendUint64(dst, seconds)
}

// AppendTable appends a nested table entry (F).
func AppendTable(dst []byte, key string, t Table) []byte {
	return ItemTable(appendName(dst, key), t)
}

// AppendArray appends an array entry (A); items is what the Item functions and
// Value.Append made.
func AppendArray(dst []byte, key string, items []byte) []byte {
	return appendLong(append(appendName(dst, key), 'A'), items)
}

// AppendRaw appends an entry with a value taken from another table.
func AppendRaw(dst []byte, key string, v Value) []byte {
	return v.Append(appendName(dst, key))
}

// ItemString appends a long string item (S) to an array under construction.
func ItemString(dst []byte, val string) []byte {
	dst = append(dst, 'S')
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(val)))
	return append(dst, val...)
}

// ItemTable appends a table item (F) to an array under construction.
func ItemTable(dst []byte, t Table) []byte {
	return appendLong(append(dst, 'F'), t)
}
