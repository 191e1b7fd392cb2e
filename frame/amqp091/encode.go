//ringmq:hot

package amqp091

import (
	"encoding/binary"
	"unicode/utf8"
)

// shortMax is the longest short string, in octets.
const shortMax = 255

// clip cuts s to what a short string can hold. It is split from clipLong so that
// the usual case is inlined.
func clip(s []byte) []byte {
	if len(s) <= shortMax {
		return s
	}
	return clipLong(s)
}

// clipLong cuts at a character boundary: clients decode reply texts as UTF-8
// and some of them fail on half a character.
func clipLong(s []byte) []byte {
	n := shortMax
	for n > shortMax-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// appendShort appends a short string, cut to 255 octets.
func appendShort(dst, s []byte) []byte {
	s = clip(s)
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}

// appendLong appends a long string, or the entries of a table.
func appendLong(dst, s []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

// putShort writes a short string at b[at:] and returns where it ends.
//
// REQUIRES: len(s) <= shortMax.
func putShort(b []byte, at int, s []byte) int {
	b[at] = byte(len(s))
	return at + 1 + copy(b[at+1:], s)
}

// deliverFixed is the octets of a basic.deliver frame with three empty strings:
// head, identifier, three lengths, tag, flag octet, end.
const deliverFixed = FrameOverhead + 4 + 3 + 8 + 1

// DeliverSize returns the octets of the frame that PutDeliver writes.
func DeliverSize(consumerTag, exchange, key []byte) int {
	return deliverFixed + len(clip(consumerTag)) + len(clip(exchange)) + len(clip(key))
}

// PutDeliver writes a whole basic.deliver frame to the start of b and returns
// its size. It is BasicDeliver.Append for the one place that sends millions.
//
// REQUIRES: len(b) >= DeliverSize(consumerTag, exchange, key).
func PutDeliver(b []byte, ch uint16, consumerTag []byte, tag uint64, redelivered bool, exchange, key []byte) int {
	consumerTag, exchange, key = clip(consumerTag), clip(exchange), clip(key)
	size := deliverFixed + len(consumerTag) + len(exchange) + len(key)
	b = b[:size]
	PutFrameHead(b, FrameMethod, ch, uint32(size-FrameOverhead))
	binary.BigEndian.PutUint32(b[7:], uint32(MethodBasicDeliver))
	at := putShort(b, 11, consumerTag)
	binary.BigEndian.PutUint64(b[at:], tag)
	var bits byte
	if redelivered {
		bits = 1
	}
	b[at+8] = bits
	at = putShort(b, at+9, exchange)
	at = putShort(b, at, key)
	b[at] = FrameEnd
	return size
}
