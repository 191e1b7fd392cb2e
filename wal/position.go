package wal

import "fmt"

// Position is the place of a record in a log: the id of its segment in the upper
// half, the byte offset in the segment's file in the lower half. Positions of
// one log grow in the order of appending, across restarts too. 0 is no position.
type Position uint64

// MakePosition returns the position of a byte in a segment.
func MakePosition(segment, offset uint32) Position {
	return Position(uint64(segment)<<32 | uint64(offset))
}

// Segment is the id of the segment.
func (p Position) Segment() uint32 { return uint32(p >> 32) }

// Offset is the offset in the segment's file, in bytes.
func (p Position) Offset() uint32 { return uint32(p) }

// String is the position as the tools print it: segment:offset, hexadecimal.
func (p Position) String() string { return fmt.Sprintf("%08x:%08x", p.Segment(), p.Offset()) }
