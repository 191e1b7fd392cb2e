//ringmq:hot

package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes of the format, in bytes.
const (
	// blockSize is the unit of writing. Every write starts on a block of its own:
	// a sector that was synced is never written again, so no torn write can harm
	// what was promised.
	blockSize = 4096
	// recordHeaderSize precedes each record's payload.
	recordHeaderSize = 32
	// refSize is one reference (queue, sequence) at the start of a payload.
	refSize = 16
	// recordAlign is what records are padded to, with zeros that the checksum
	// covers.
	recordAlign = 8
	// ackPayloadSize is the payload of an acknowledgement: queue, first, last.
	ackPayloadSize = 24
)

// RecordBytesMax is the largest record, header and references included. It keeps
// every offset within 32 bits.
const RecordBytesMax = 1 << 30

// RefsMax is how many references one record may carry.
const RefsMax = 1<<16 - 1

// Kinds of records. Users choose kinds of their own in the first two ranges; what
// the ranges differ in is what becomes of a record when a checkpoint covers it.
const (
	// KindEventMin to KindEventMax are events: a checkpoint stands for all events
	// before it, so recovery hands out only later ones, and their space comes back.
	KindEventMin = 0x01
	KindEventMax = 0x3f
	// KindMessageMin to KindMessageMax are messages: recovery hands them out,
	// however old, until each of their references was acknowledged.
	KindMessageMin = 0x40
	KindMessageMax = 0x7f

	kindAck        = 0x80 // an acknowledged range of one queue
	kindState      = 0x81 // a piece of the user's state, part of a checkpoint
	kindAckSet     = 0x82 // an AckSet of one queue, part of a checkpoint
	kindCheckpoint = 0x83 // the end of a checkpoint, which makes it valid
	kindRetire     = 0x84 // a segment is dead; its file is about to be reused
	kindClose      = 0x85 // the log was shut down; claims all before it as synced
	kindSegment    = 0x86 // the header of a segment
)

// Flags of a record.
const (
	// flagMoved marks a copy that compaction made of an older record.
	flagMoved = 1 << iota
	// flagS2 and flagZstd say how the payload was compressed.
	flagS2
	flagZstd
)

// Ref is one place where a message stands: a queue, by an id that is never used
// again, and the message's sequence number in that queue.
type Ref struct {
	Queue, Seq uint64
}

// header is the fixed part of a record. On disk, little endian:
//
//	 0 crc      u32  CRC32C of bytes 4 to the end, padding included
//	 4 hcrc     u32  CRC32C of bytes 8 to 31
//	 8 length   u32  bytes of payload, references included
//	12 segment  u32  id of the segment: what a recycled file held before has others
//	16 seq      u64  one more than the record before
//	24 synced   u32  the segment is known to be synced up to this offset
//	28 kind     u8
//	29 flags    u8
//	30 refs     u16  references at the start of the payload
//
// Both checksums start from the segment's salt, not from zero: a message body
// that holds a copy of some log's bytes never passes for a record. The second
// one is there for the search behind a damaged record, which has to look at
// every eighth byte and must not follow each plausible length through megabytes.
type header struct {
	length  uint32
	segment uint32
	seq     uint64
	synced  uint32
	kind    uint8
	flags   uint8
	refs    uint16
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordSize is what a payload of n bytes occupies in a segment.
func recordSize(n int) int {
	return (recordHeaderSize + n + recordAlign - 1) &^ (recordAlign - 1)
}

// size is what the record occupies in its segment.
func (h *header) size() int { return recordSize(int(h.length)) }

// alignUp rounds up to whole blocks.
func alignUp(n int) int { return (n + blockSize - 1) &^ (blockSize - 1) }

// putHeader writes all but the checksums.
func putHeader(b []byte, h *header) {
	_ = b[recordHeaderSize-1]
	binary.LittleEndian.PutUint32(b[8:], h.length)
	binary.LittleEndian.PutUint32(b[12:], h.segment)
	binary.LittleEndian.PutUint64(b[16:], h.seq)
	binary.LittleEndian.PutUint32(b[24:], h.synced)
	b[28], b[29] = h.kind, h.flags
	binary.LittleEndian.PutUint16(b[30:], h.refs)
}

// putChecksums completes a record; b is the whole of it, padding included.
func putChecksums(b []byte, salt uint32) {
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(salt, castagnoli, b[8:recordHeaderSize]))
	binary.LittleEndian.PutUint32(b, crc32.Update(salt, castagnoli, b[4:]))
}

// parseHeader reads a header; false if its own checksum does not hold.
func parseHeader(b []byte, salt uint32, h *header) bool {
	_ = b[recordHeaderSize-1]
	h.length = binary.LittleEndian.Uint32(b[8:])
	h.segment = binary.LittleEndian.Uint32(b[12:])
	h.seq = binary.LittleEndian.Uint64(b[16:])
	h.synced = binary.LittleEndian.Uint32(b[24:])
	h.kind, h.flags = b[28], b[29]
	h.refs = binary.LittleEndian.Uint16(b[30:])
	return binary.LittleEndian.Uint32(b[4:]) == crc32.Update(salt, castagnoli, b[8:recordHeaderSize])
}

// checkBody holds a whole record, padding included, against its checksum.
func checkBody(b []byte, salt uint32) bool {
	return binary.LittleEndian.Uint32(b) == crc32.Update(salt, castagnoli, b[4:])
}

// putRefs writes references and returns their size in bytes.
func putRefs(b []byte, refs []Ref) int {
	for i := range refs {
		at := b[i*refSize : i*refSize+refSize]
		binary.LittleEndian.PutUint64(at, refs[i].Queue)
		binary.LittleEndian.PutUint64(at[8:], refs[i].Seq)
	}
	return len(refs) * refSize
}

// appendRefs appends the n references at the start of b to dst.
func appendRefs(dst []Ref, b []byte, n int) []Ref {
	for i := 0; i < n; i++ {
		at := b[i*refSize : i*refSize+refSize]
		dst = append(dst, Ref{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])})
	}
	return dst
}

// isZero reports whether b is all zeros.
func isZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
