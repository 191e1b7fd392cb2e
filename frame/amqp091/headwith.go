//ringmq:hot

package amqp091

import "encoding/binary"

// contentFixed is class, weight and body size in front of the properties.
const contentFixed = 12

// AppendHeadWith appends head, the payload of a content header frame that is known
// to be well-formed, with the header name set to the number v (FLD-03). All else
// stays octet for octet as it is; headers that have the name already go. It
// allocates nothing when dst has room.
func AppendHeadWith(dst, head []byte, name string, v int64) []byte {
	flags := binary.BigEndian.Uint16(head[contentFixed:])
	at := contentFixed + 2
	for _, f := range [...]uint16{FlagContentType, FlagContentEncoding} {
		if flags&f != 0 {
			at += 1 + int(head[at])
		}
	}
	dst = append(dst, head[:contentFixed]...)
	dst = binary.BigEndian.AppendUint16(dst, flags|FlagHeaders)
	dst = append(dst, head[contentFixed+2:at]...)
	size := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if flags&FlagHeaders != 0 {
		end := at + 4 + int(binary.BigEndian.Uint32(head[at:]))
		dst = appendWithout(dst, Table(head[at+4:end]), name)
		at = end
	}
	dst = AppendInt64(dst, name, v)
	binary.BigEndian.PutUint32(dst[size:], uint32(len(dst)-size-4))
	return append(dst, head[at:]...)
}

// appendWithout appends the entries of a table but those of a name.
func appendWithout(dst []byte, t Table, name string) []byte {
	if _, ok := t.Lookup(name); !ok {
		return append(dst, t...)
	}
	for key, v, rest, ok := t.Next(); ok; key, v, rest, ok = rest.Next() {
		if string(key) != name {
			dst = append(dst, byte(len(key)))
			dst = append(dst, key...)
			dst = v.Append(dst)
		}
	}
	return dst
}
