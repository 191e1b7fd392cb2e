package wal

import "encoding/binary"

// A checkpoint is the user's state, cut into records that stand anywhere in the
// log among others, and an end record that makes it valid. It is fuzzy: it stands
// for the moment when it began, and what happens while it is written is in the log
// behind that moment. So recovery may replay events that a piece of the state
// already knows; applying an event or an acknowledgement twice must change
// nothing.
//
// Payload of its records, little endian:
//
//	kindState       id u64, then the user's bytes
//	kindAckSet      id u64, queue u64, then the set
//	kindCheckpoint  id u64, from u64, first u64, pieces u32, segments u32,
//	                then for each segment: id u32, end u32, next sequence u64
//
// id is the sequence number at the beginning; from is the position there; first is
// that of the first piece. The list of segments says which ones exist, and where
// their records end.
const (
	checkpointFixed   = 32
	checkpointSegment = 16
)

// checkpointState is the checkpoint in the making, and the last one.
type checkpointState struct {
	open    bool
	id      uint64
	from    Position
	first   Position
	pieces  uint32
	pending Position // of an end record that is not durable yet
	// pendingFrom becomes covered when pending is durable.
	pendingFrom Position
	durable     Position // of the last end record that is durable
	covered     Position // everything below is covered by it
	fresh       bool     // durable changed, and nothing was done about it yet
	buf         []byte
	parts       [][]byte
}

// CheckpointDue reports whether recovery would have much to replay, or dead
// segments wait for a checkpoint to be used again.
func (l *Log) CheckpointDue() bool {
	c := &l.checkpoint
	if c.open || c.pending != 0 || l.cur == nil || l.stop != nil {
		return false
	}
	if l.growth() >= l.opts.CheckpointBytes {
		return true
	}
	if !l.reclaimCovered() {
		return true
	}
	return false
}

// growth is how many bytes of log the last checkpoint does not cover, about.
func (l *Log) growth() int64 {
	covered, total := l.checkpoint.covered, int64(0)
	for i := len(l.segs) - 1; i >= 0; i-- {
		s := l.segs[i]
		if s == nil {
			continue
		}
		end := int64(s.endAt)
		if !s.sealed {
			end = s.next
		}
		if s.id == covered.Segment() {
			return total + end - int64(covered.Offset())
		}
		if s.id < covered.Segment() {
			return total
		}
		total += end
	}
	return total
}

// reclaimCovered is false if a sealed segment holds nothing live and only a
// checkpoint is missing.
func (l *Log) reclaimCovered() bool {
	for i := len(l.segs) - 1; i >= 0; i-- {
		s := l.segs[i]
		if s == nil || !s.sealed {
			continue
		}
		if s.id < l.checkpoint.covered.Segment() {
			break
		}
		if s.liveCount == 0 {
			return false
		}
	}
	return true
}

// BeginCheckpoint starts a checkpoint that stands for this moment. The pieces may
// follow over many turns.
func (l *Log) BeginCheckpoint() error {
	c := &l.checkpoint
	if l.stop != nil {
		return l.stop
	}
	if c.open || c.pending != 0 {
		return ErrCheckpoint
	}
	c.open = true
	c.id, c.from, c.first, c.pieces = l.seq, l.end, 0, 0
	return nil
}

// AppendState adds a piece of the user's state; recovery hands the pieces out in
// this order.
func (l *Log) AppendState(parts [][]byte) error {
	l.checkpoint.buf = l.checkpoint.buf[:0]
	return l.appendPiece(kindState, parts)
}

// AppendAckSet adds what is done in one queue. Several sets of a queue add up.
func (l *Log) AppendAckSet(queue uint64, set *AckSet) error {
	c := &l.checkpoint
	var err error
	c.buf = binary.LittleEndian.AppendUint64(c.buf[:0], queue)
	if c.buf, err = set.Append(c.buf); err != nil {
		return err
	}
	return l.appendPiece(kindAckSet, nil)
}

func (l *Log) appendPiece(kind uint8, parts [][]byte) error {
	c := &l.checkpoint
	if !c.open {
		return ErrCheckpoint
	}
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], c.id)
	c.parts = append(append(c.parts[:0], id[:], c.buf), parts...)
	p, err := l.appendRecord(kind, 0, classEvent, nil, c.parts)
	if err != nil {
		return err
	}
	if c.pieces == 0 {
		c.first = p
	}
	c.pieces++
	return nil
}

// EndCheckpoint makes the checkpoint valid, once it is durable; segments before
// its beginning that hold nothing live come back then. After an error it is still
// open: try again, or abort.
func (l *Log) EndCheckpoint() error {
	c := &l.checkpoint
	if !c.open {
		return ErrCheckpoint
	}
	b := binary.LittleEndian.AppendUint64(c.buf[:0], c.id)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.from))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.first))
	b = binary.LittleEndian.AppendUint32(b, c.pieces)
	count := len(b)
	b = binary.LittleEndian.AppendUint32(b, 0)
	n := uint32(0)
	for _, s := range l.segs {
		if s == nil {
			continue
		}
		b = binary.LittleEndian.AppendUint32(b, s.id)
		b = binary.LittleEndian.AppendUint32(b, s.endAt)
		b = binary.LittleEndian.AppendUint64(b, s.nextSeq)
		n++
	}
	binary.LittleEndian.PutUint32(b[count:], n)
	c.buf = b
	c.parts = append(c.parts[:0], b)
	p, err := l.appendRecord(kindCheckpoint, 0, classEvent, nil, c.parts)
	if err != nil {
		return err
	}
	// Whatever the mode is: space comes back by this record.
	l.tail.sync = true
	c.open = false
	c.pending, c.pendingFrom = p, c.from
	return nil
}

// AbortCheckpoint forgets an open checkpoint. Its pieces stay behind as records
// that mean nothing.
func (l *Log) AbortCheckpoint() { l.checkpoint.open = false }

// checkpointDone uses what a checkpoint that became durable sets free.
func (l *Log) checkpointDone() {
	l.checkpoint.fresh = false
	l.stats.Checkpoints++
	l.reclaim()
	l.submit()
}

// checkpointEnd is a decoded end record.
type checkpointEnd struct {
	id       uint64
	from     Position
	first    Position
	pieces   uint32
	segments []checkpointEntry
}

type checkpointEntry struct {
	id, end uint32
	nextSeq uint64
}

// parseCheckpointEnd decodes the payload of an end record.
func parseCheckpointEnd(b []byte) (*checkpointEnd, bool) {
	if len(b) < checkpointFixed {
		return nil, false
	}
	e := &checkpointEnd{
		id:     binary.LittleEndian.Uint64(b),
		from:   Position(binary.LittleEndian.Uint64(b[8:])),
		first:  Position(binary.LittleEndian.Uint64(b[16:])),
		pieces: binary.LittleEndian.Uint32(b[24:]),
	}
	n := int(binary.LittleEndian.Uint32(b[28:]))
	b = b[checkpointFixed:]
	if n < 0 || len(b) != n*checkpointSegment {
		return nil, false
	}
	for ; len(b) > 0; b = b[checkpointSegment:] {
		e.segments = append(e.segments, checkpointEntry{
			id:      binary.LittleEndian.Uint32(b),
			end:     binary.LittleEndian.Uint32(b[4:]),
			nextSeq: binary.LittleEndian.Uint64(b[8:]),
		})
	}
	return e, true
}
