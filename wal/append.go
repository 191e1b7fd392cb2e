//ringmq:hot

package wal

import "encoding/binary"

// recordClass says who may be refused when room is short.
type recordClass uint8

const (
	classMessage recordClass = iota // publishers can wait
	classEvent                      // acknowledgements and events have the ballast
	classSystem                     // the log's own records have the reserve too
)

// reserveFor is the room at a segment's end that a class must leave.
func reserveFor(c recordClass) int64 {
	if c == classSystem {
		return 0
	}
	return systemReserve
}

// Append copies a record into the group that leaves with the next write, and
// returns its position. kind is one of the user's; a message names the places
// where it stands in refs, an event may. The parts are concatenated. Nothing is
// written before Flush; nothing is promised before Committed is past the position.
//
// The first part of a message is never compressed, so that recovery reads it
// cheaply; it may be empty.
//
// Errors, all without any effect: ErrNoSpace and ErrBusy (messages only, except on
// a disk that is full beyond the ballast), ErrTooLarge, ErrKind, ErrFailed,
// ErrClosed.
func (l *Log) Append(kind uint8, refs []Ref, parts [][]byte) (Position, error) {
	if kind < KindEventMin || kind > KindMessageMax || len(refs) > RefsMax {
		return 0, ErrKind
	}
	if kind < KindMessageMin {
		return l.appendRecord(kind, 0, classEvent, refs, parts)
	}
	var flags uint8
	if l.opts.Compression != CompressNone {
		parts, flags = l.compress.parts(l.opts.Compression, l.opts.CompressMin, parts)
	}
	return l.appendRecord(kind, flags, classMessage, refs, parts)
}

// AppendAck records that the messages first to last of a queue are done. A range
// that goes on where the last record of the same group ended extends that record.
func (l *Log) AppendAck(queue, first, last uint64) (Position, error) {
	g := l.tail
	if g != nil && !g.closed && g.ackEnd != 0 && g.ackQueue == queue && g.ackLast+1 == first && l.stop == nil {
		at := g.ackEnd - recordHeaderSize - ackPayloadSize
		b := g.buf[at:g.ackEnd]
		binary.LittleEndian.PutUint64(b[recordHeaderSize+16:], last)
		putChecksums(b, g.seg.salt)
		g.ackLast = last
		return MakePosition(g.seg.id, uint32(g.off)+uint32(at)), nil
	}
	binary.LittleEndian.PutUint64(l.small[:], queue)
	binary.LittleEndian.PutUint64(l.small[8:], first)
	binary.LittleEndian.PutUint64(l.small[16:], last)
	l.scratch[0] = l.small[:]
	p, err := l.appendRecord(kindAck, 0, classEvent, nil, l.scratch[:])
	if err != nil {
		return 0, err
	}
	g = l.tail
	g.ackEnd = g.n
	g.ackQueue, g.ackLast = queue, last
	return p, nil
}

// appendRecord forms a record in the open group, or in a new one.
func (l *Log) appendRecord(kind, flags uint8, class recordClass, refs []Ref, parts [][]byte) (Position, error) {
	if l.stop != nil {
		return 0, l.stop
	}
	length := len(refs) * refSize
	for _, part := range parts {
		length += len(part)
	}
	if length > RecordBytesMax-recordHeaderSize-recordAlign {
		return 0, ErrTooLarge
	}
	if class == classMessage {
		if l.space != nil {
			return 0, l.space
		}
		if l.backlog >= l.opts.BacklogMax {
			return 0, ErrBusy
		}
	}
	size := recordSize(length)
	g := l.tail
	if g == nil || g.closed || g.n+size > g.limit {
		var err error
		if g, err = l.openGroup(size, class); err != nil {
			return 0, err
		}
	}
	b := g.buf[g.n : g.n+size]
	putHeader(b, &header{
		length: uint32(length), segment: g.seg.id, seq: l.seq, synced: l.claim(g.seg),
		kind: kind, flags: flags, refs: uint16(len(refs)),
	})
	at := recordHeaderSize + putRefs(b[recordHeaderSize:], refs)
	for _, part := range parts {
		at += copy(b[at:], part)
	}
	clear(b[at:])
	putChecksums(b, g.seg.salt)
	p := MakePosition(g.seg.id, uint32(g.off)+uint32(g.n))
	g.n += size
	g.records++
	g.ackEnd = 0
	l.seq++
	l.backlog += int64(size)
	l.end = MakePosition(g.seg.id, uint32(g.off)+uint32(g.n))
	l.stats.Records++
	l.stats.RecordBytes += uint64(size)
	return p, nil
}

// claim is what a record of a segment may say about it: how far it is synced.
func (l *Log) claim(s *segment) uint32 {
	if l.synced.Segment() == s.id {
		return l.synced.Offset()
	}
	return 0
}
