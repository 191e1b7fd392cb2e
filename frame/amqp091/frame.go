//ringmq:hot

package amqp091

import "encoding/binary"

// Frame types (WIR-01).
const (
	FrameMethod    = 1
	FrameHeader    = 2
	FrameBody      = 3
	FrameHeartbeat = 8
)

// FrameEnd is the octet that closes every frame.
const FrameEnd = 0xCE

const (
	// FrameHeaderSize is the octets before the payload: type, channel, size.
	FrameHeaderSize = 7
	// FrameOverhead is the octets of a frame that are not payload: the header
	// and the end octet.
	FrameOverhead = 8
)

// ProtocolHeader opens a connection, and refuses one (CON-01, CON-02). It is
// never written to.
var ProtocolHeader = [8]byte{'A', 'M', 'Q', 'P', 0, 0, 9, 1}

// FrameHead is the decoded first seven octets of a frame.
type FrameHead struct {
	Type    byte
	Channel uint16
	Size    uint32 // payload octets, as announced: check it before use
}

// ParseFrameHead reads the head of a frame. It checks nothing.
//
// REQUIRES: len(b) >= FrameHeaderSize.
func ParseFrameHead(b []byte) FrameHead {
	_ = b[6]
	return FrameHead{
		Type:    b[0],
		Channel: binary.BigEndian.Uint16(b[1:]),
		Size:    binary.BigEndian.Uint32(b[3:]),
	}
}

// PutFrameHead writes the head of a frame into the first seven octets of b.
//
// REQUIRES: len(b) >= FrameHeaderSize.
func PutFrameHead(b []byte, typ byte, ch uint16, size uint32) {
	_ = b[6]
	b[0] = typ
	binary.BigEndian.PutUint16(b[1:], ch)
	binary.BigEndian.PutUint32(b[3:], size)
}

// AppendFrameHead appends the head of a frame; payload and FrameEnd are the
// caller's to add.
func AppendFrameHead(dst []byte, typ byte, ch uint16, size uint32) []byte {
	return append(dst, typ, byte(ch>>8), byte(ch),
		byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
}

// AppendHeartbeat appends a whole heartbeat frame, on channel 0 (WIR-05).
func AppendHeartbeat(dst []byte) []byte {
	return append(dst, FrameHeartbeat, 0, 0, 0, 0, 0, 0, FrameEnd)
}

// finishFrame writes the payload size of the frame that begins at start and
// appends the end octet.
func finishFrame(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+3:], uint32(len(dst)-start-FrameHeaderSize))
	return append(dst, FrameEnd)
}
