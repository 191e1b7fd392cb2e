//ringmq:hot

package amqp091

import "encoding/binary"

// classBasic is the only class that carries content.
const classBasic = 60

// contentHeadSize is class, weight, body size and property flags.
const contentHeadSize = 14

// ContentHead is a decoded content header. Props, flags and property list, is a
// view into the payload and undecoded: most messages pass through without anyone
// asking for a property.
type ContentHead struct {
	Class    uint16
	Weight   uint16
	BodySize uint64 // octets of all body frames together, as announced
	Props    []byte // property flags and list, at least two octets
}

// ParseContentHead reads the payload of a header frame; false when it is too
// short to hold one. The property list is not looked at, see Properties.Decode.
func ParseContentHead(payload []byte) (ContentHead, bool) {
	if len(payload) < contentHeadSize {
		return ContentHead{}, false
	}
	return ContentHead{
		Class:    binary.BigEndian.Uint16(payload),
		Weight:   binary.BigEndian.Uint16(payload[2:]),
		BodySize: binary.BigEndian.Uint64(payload[4:]),
		Props:    payload[12:len(payload):len(payload)],
	}, true
}

// ContentHeaderSize returns the octets of the header frame that
// PutContentHeader writes.
func ContentHeaderSize(props []byte) int {
	return FrameOverhead + 12 + len(props)
}

// PutContentHeader writes a whole header frame of class basic to the start of b
// and returns its size. props is flags and property list.
//
// REQUIRES: len(b) >= ContentHeaderSize(props).
func PutContentHeader(b []byte, ch uint16, bodySize uint64, props []byte) int {
	size := FrameOverhead + 12 + len(props)
	b = b[:size]
	PutFrameHead(b, FrameHeader, ch, uint32(12+len(props)))
	binary.BigEndian.PutUint32(b[7:], classBasic<<16) // weight is always 0
	binary.BigEndian.PutUint64(b[11:], bodySize)
	copy(b[19:], props)
	b[size-1] = FrameEnd
	return size
}

// AppendContentHeader appends the frame that PutContentHeader writes.
func AppendContentHeader(dst []byte, ch uint16, bodySize uint64, props []byte) []byte {
	dst = AppendFrameHead(dst, FrameHeader, ch, uint32(12+len(props)))
	dst = binary.BigEndian.AppendUint32(dst, classBasic<<16)
	dst = binary.BigEndian.AppendUint64(dst, bodySize)
	dst = append(dst, props...)
	return append(dst, FrameEnd)
}
