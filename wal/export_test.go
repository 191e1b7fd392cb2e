package wal

import "encoding/binary"

// What the tests outside the package need of its inside.

// Visit reads a stopped log and shows every valid record.
func Visit(disk Disk, visit func(*Record) error) (*Report, error) { return readDisk(disk, visit) }

// AheadPiece is how much is read ahead at a time.
const AheadPiece = aheadPiece

// NewFileWriter returns what the goroutine of Threads does with a write.
func NewFileWriter() func(f File, offset int64, buf []byte, sync bool) error {
	return new(fileWriter).write
}

// Payload is a record's payload as it is stored.
func (r *Record) Payload() []byte { return r.payload }

// WithPayload is the record with another payload.
func (r *Record) WithPayload(p []byte) *Record {
	c := *r
	c.payload = p
	return &c
}

// AppendRawRecord appends a whole record with all its fields as wanted.
func AppendRawRecord(dst []byte, logID uint64, segment uint32, seq uint64, synced uint32, kind uint8, payload []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, recordSize(len(payload)))...)
	b := dst[at:]
	putHeader(b, &header{length: uint32(len(payload)), segment: segment, seq: seq, synced: synced, kind: kind})
	copy(b[recordHeaderSize:], payload)
	putChecksums(b, segmentSalt(logID, segment))
	return dst
}

// SegmentName is segmentName.
func SegmentName(id uint32) string { return segmentName(id) }

// SegmentHeaderBlock is the first block of a segment.
func SegmentHeaderBlock(logID uint64, id uint32, firstSeq uint64, size int64, previous, end uint32) []byte {
	block := make([]byte, blockSize)
	putSegmentHeader(block, &segmentHeader{id: id, version: formatVersion, firstSeq: firstSeq, logID: logID, size: size, previous: previous, end: end})
	return block
}

// Records of the log's own kinds that tests look for.
const (
	KindCheckpointEnd = kindCheckpoint
	KindCloseRecord   = kindClose
)

// SetVersion makes a segment one of another version of the format.
func SetVersion(file []byte, version uint32) {
	for _, at := range []int{0, segmentCopyAt} {
		b := file[at : at+recordHeaderSize+segmentPayloadSize]
		binary.LittleEndian.PutUint32(b[recordHeaderSize+4:], version)
		putChecksums(b, 0)
	}
}

// FixChecksums makes the headers and records of a segment valid that would be but for
// their checksums.
func FixChecksums(b []byte, logID uint64) {
	for _, at := range []int{0, segmentCopyAt} {
		if size := recordHeaderSize + segmentPayloadSize; at+size <= len(b) {
			putChecksums(b[at:at+size], 0)
		}
	}
	for at := segmentDataAt; at+recordHeaderSize <= len(b); {
		n := int(binary.LittleEndian.Uint32(b[at+8:]))
		if n < 0 || n > len(b)-at-recordHeaderSize || isZero(b[at:at+recordHeaderSize]) {
			at = alignUp(at + 1)
			continue
		}
		end := min(at+recordSize(n), len(b))
		putChecksums(b[at:end], segmentSalt(logID, binary.LittleEndian.Uint32(b[at+12:])))
		at = end
	}
}
