package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// The first block of a segment holds its header, a record of its own kind whose
// checksums are not salted, twice. Payload, little endian:
//
//	 0 magic       u32
//	 4 version     u32
//	 8 log id      u64  drawn when the log was made; the salt comes from it
//	16 size        u64  bytes of the file that are the segment's
//	24 previous    u32  id of the segment before this one, 0 for the first
//	28 end         u32  where that one ends: what stands behind it was cut
//	32 checkpoint  u64  position of the last checkpoint's end record, 0 if none
//	40 recycled    u32  1 if the file held another segment before
//	44 zero        u32
const (
	segmentMagic       = 0x4c574d52 // "RMWL"
	formatVersion      = 1
	segmentPayloadSize = 48
	// segmentCopyAt is where the second copy stands: in another sector, so that
	// one bad sector does not take both.
	segmentCopyAt = 2048
	// segmentDataAt is the offset of the first record.
	segmentDataAt = blockSize
	segmentSuffix = ".wal"
	damagedSuffix = ".damaged"
)

// segmentHeader is the decoded header of a segment.
type segmentHeader struct {
	id         uint32
	version    uint32
	firstSeq   uint64 // sequence number of the first record
	logID      uint64
	size       int64
	previous   uint32
	end        uint32
	checkpoint Position
	recycled   bool
}

// segmentName is the file name of a segment.
func segmentName(id uint32) string { return fmt.Sprintf("%08x%s", id, segmentSuffix) }

// segmentID is the inverse of segmentName.
func segmentID(name string) (uint32, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 8 {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || id == 0 || segmentName(uint32(id)) != name {
		return 0, false
	}
	return uint32(id), true
}

// segmentSalt is where the checksums of a segment's records start from. Nobody
// who only publishes messages can know it.
func segmentSalt(logID uint64, id uint32) uint32 {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], logID)
	binary.LittleEndian.PutUint32(b[8:], id)
	return crc32.Checksum(b[:], castagnoli)
}

// putSegmentHeader fills the first block of a segment.
func putSegmentHeader(block []byte, s *segmentHeader) {
	clear(block[:blockSize])
	const size = recordHeaderSize + segmentPayloadSize
	b := block[:size]
	putHeader(b, &header{length: segmentPayloadSize, segment: s.id, seq: s.firstSeq, kind: kindSegment})
	p := b[recordHeaderSize:]
	binary.LittleEndian.PutUint32(p, segmentMagic)
	binary.LittleEndian.PutUint32(p[4:], s.version)
	binary.LittleEndian.PutUint64(p[8:], s.logID)
	binary.LittleEndian.PutUint64(p[16:], uint64(s.size))
	binary.LittleEndian.PutUint32(p[24:], s.previous)
	binary.LittleEndian.PutUint32(p[28:], s.end)
	binary.LittleEndian.PutUint64(p[32:], uint64(s.checkpoint))
	if s.recycled {
		binary.LittleEndian.PutUint32(p[40:], 1)
	}
	putChecksums(b, 0)
	copy(block[segmentCopyAt:], b)
}

// headerState says how much of a segment's header block is sound.
type headerState int

const (
	headerSound headerState = iota
	// headerTorn: one copy is valid, and where the other belongs are zeros or another
	// segment's header, as a torn first write leaves them.
	headerTorn
	headerHalf    // one copy is valid, and something else in the block is wrong
	headerNone    // no copy is valid
	headerVersion // valid, but of another version of the format
)

// parseSegmentHeader reads the first block of a segment.
func parseSegmentHeader(block []byte) (segmentHeader, headerState) {
	const size = recordHeaderSize + segmentPayloadSize
	first, ok1 := parseSegmentCopy(block[:size])
	second, ok2 := parseSegmentCopy(block[segmentCopyAt : segmentCopyAt+size])
	empty1, empty2 := isZero(block[:size]), isZero(block[segmentCopyAt:segmentCopyAt+size])
	clean := isZero(block[size:segmentCopyAt]) && isZero(block[segmentCopyAt+size:blockSize])
	head := first
	if !ok1 {
		head = second
	}
	switch {
	case !ok1 && !ok2:
		return segmentHeader{}, headerNone
	case head.version != formatVersion:
		return head, headerVersion
	case !clean || !ok1 && !empty1 || !ok2 && !empty2:
		return head, headerHalf
	case first != second:
		return head, headerTorn
	}
	return head, headerSound
}

func parseSegmentCopy(b []byte) (segmentHeader, bool) {
	var h header
	if !parseHeader(b, 0, &h) || h.kind != kindSegment || h.length != segmentPayloadSize || !checkBody(b, 0) {
		return segmentHeader{}, false
	}
	p := b[recordHeaderSize:]
	s := segmentHeader{
		id:         h.segment,
		version:    binary.LittleEndian.Uint32(p[4:]),
		firstSeq:   h.seq,
		logID:      binary.LittleEndian.Uint64(p[8:]),
		size:       int64(binary.LittleEndian.Uint64(p[16:])),
		previous:   binary.LittleEndian.Uint32(p[24:]),
		end:        binary.LittleEndian.Uint32(p[28:]),
		checkpoint: Position(binary.LittleEndian.Uint64(p[32:])),
		recycled:   binary.LittleEndian.Uint32(p[40:]) == 1,
	}
	return s, binary.LittleEndian.Uint32(p) == segmentMagic && s.id != 0
}
