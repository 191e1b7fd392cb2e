package core

import (
	"encoding/binary"
	"errors"
)

// StoredHead is what precedes a message's bytes in the log. Little endian:
//
//	version u8, encoding u8, flags u16, priority u8, exchange length u8,
//	route length u16, header length u32, body length u32, time to live i64 (ms),
//	arrival i64 (ms since 1970)
type StoredHead struct {
	Encoding uint8
	Flags    uint16
	Priority uint8
	exchLen  uint8
	routeLen uint16
	headLen  uint32
	BodyLen  uint32
	TTL      int64 // milliseconds, valid with FlagExpires
	Arrival  int64 // milliseconds since 1970
}

const (
	// StoredHeadBytes is the size of the encoded head.
	StoredHeadBytes = 32
	storedVersion   = 1
)

var (
	errStoredShort   = errors.New("core: stored message is cut short")
	errStoredVersion = errors.New("core: stored message has an unknown version")
	errStoredLengths = errors.New("core: the lengths of a stored message do not fit its size")
)

// PutStoredHead writes the head of m into b, StoredHeadBytes long.
func (m *Message) PutStoredHead(b []byte) {
	_ = b[StoredHeadBytes-1]
	b[0], b[1] = storedVersion, m.Encoding
	binary.LittleEndian.PutUint16(b[2:], m.Flags)
	b[4], b[5] = m.Priority, m.exchLen
	binary.LittleEndian.PutUint16(b[6:], m.routeLen)
	binary.LittleEndian.PutUint32(b[8:], m.headLen)
	binary.LittleEndian.PutUint32(b[12:], m.bodyLen)
	binary.LittleEndian.PutUint64(b[16:], uint64(m.TTL))
	binary.LittleEndian.PutUint64(b[24:], uint64(m.Arrival))
}

// Stored is everything behind the head: route, protocol header and body, as they
// lie in memory. It is a view.
func (m *Message) Stored() []byte {
	return m.at(0, int(m.routeLen)+int(m.headLen)+int(m.bodyLen))
}

// ParseStoredHead is the inverse of PutStoredHead.
func ParseStoredHead(b []byte) (h StoredHead, err error) {
	if len(b) < StoredHeadBytes {
		return h, errStoredShort
	}
	if b[0] != storedVersion {
		return h, errStoredVersion
	}
	h = StoredHead{
		Encoding: b[1],
		Flags:    binary.LittleEndian.Uint16(b[2:]),
		Priority: b[4], exchLen: b[5],
		routeLen: binary.LittleEndian.Uint16(b[6:]),
		headLen:  binary.LittleEndian.Uint32(b[8:]),
		BodyLen:  binary.LittleEndian.Uint32(b[12:]),
		TTL:      int64(binary.LittleEndian.Uint64(b[16:])),
		Arrival:  int64(binary.LittleEndian.Uint64(b[24:])),
	}
	if int(h.exchLen)+2 > int(h.routeLen) {
		return h, errStoredLengths
	}
	return h, nil
}

// NewStored makes a message of its stored form, with one reference. stored is what
// Stored returned and is copied. The message is nil when memory is refused.
func NewStored(a Arena, h StoredHead, stored []byte) (*Message, error) {
	n := int(h.routeLen) + int(h.headLen) + int(h.BodyLen)
	if len(stored) != n {
		return nil, errStoredLengths
	}
	p := a.Alloc(messageHeadSize + n)
	if p == nil {
		return nil, nil
	}
	m := (*Message)(p)
	m.refs.Store(1)
	m.routeLen, m.exchLen, m.Encoding = h.routeLen, h.exchLen, h.Encoding
	m.headLen, m.bodyLen, m.filled = h.headLen, h.BodyLen, h.BodyLen
	m.Flags, m.Priority, m.TTL, m.Arrival = h.Flags, h.Priority, h.TTL, h.Arrival
	copy(m.at(0, n), stored)
	return m, nil
}
