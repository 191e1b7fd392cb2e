package wal

import (
	"maps"
	"slices"
)

// findCheckpoint finds the last checkpoint: in the last segment, or where that
// one's header says. It also learns from it where older segments end.
func (in *reading) findCheckpoint() error {
	n := len(in.parts)
	if n == 0 {
		return nil
	}
	last := in.parts[n-1]
	var found []Position
	if err := in.listCheckpoints(last, true, &found); err != nil {
		return err
	}
	if len(found) == 0 && last.head.checkpoint != 0 {
		found = append(found, last.head.checkpoint)
	}
	if len(found) == 0 && last.state != headerNone {
		return nil
	}
	if len(found) > 0 {
		ok, err := in.loadCheckpoint(found[len(found)-1])
		if ok || err != nil {
			return err
		}
		at := found[len(found)-1]
		in.damage(in.partOr(at.Segment()), &CorruptionError{From: int64(at.Offset()), To: int64(at.Offset()) + recordHeaderSize, Cause: causeCheckpnt})
	}
	return in.findOlderCheckpoint()
}

// findOlderCheckpoint tries all checkpoints that are left, the newest first. Only
// damage leads here: messages that were acknowledged may come back.
func (in *reading) findOlderCheckpoint() error {
	var all []Position
	for i, f := range in.parts {
		if err := in.listCheckpoints(f, i == len(in.parts)-1, &all); err != nil {
			return err
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		if ok, err := in.loadCheckpoint(all[i]); ok || err != nil {
			return err
		}
	}
	return nil
}

// partOr is part, or a stand-in for a segment that is gone.
func (in *reading) partOr(id uint32) *segmentFile {
	if f := in.part(id); f != nil {
		return f
	}
	return &segmentFile{id: id}
}

// listCheckpoints appends the end records of one segment.
func (in *reading) listCheckpoints(f *segmentFile, last bool, found *[]Position) error {
	w := in.walk(f, last, true)
	defer in.close(f)
	var r Record
	for w.next(&r) {
		if r.Kind == kindCheckpoint {
			*found = append(*found, r.Position)
		}
	}
	if last && w.err == nil {
		// The search behind the tail is not made twice.
		f.tail = &tail{w.off, w.cut}
	}
	return w.err
}

// loadCheckpoint reads the checkpoint that ends at p, all or nothing.
func (in *reading) loadCheckpoint(p Position) (bool, error) {
	f := in.part(p.Segment())
	if f == nil {
		return false, nil
	}
	w := in.walk(f, false, true)
	w.off, w.seq = int64(p.Offset()), 0
	var r Record
	ok := w.err == nil && int64(p.Offset()) >= segmentDataAt && w.next(&r) && r.Position == p && r.Kind == kindCheckpoint
	var end *checkpointEnd
	if ok {
		end, ok = parseCheckpointEnd(r.payload)
	}
	in.close(f)
	if w.err != nil || !ok {
		return false, w.err
	}
	for _, entry := range end.segments {
		if f := in.part(entry.id); f != nil && f.end < 0 && entry.end > 0 {
			f.end, f.nextSeq = int64(entry.end), entry.nextSeq
		}
	}
	in.acked, in.state = make(map[uint64]*AckSet), nil
	pieces, err := in.loadPieces(end, p)
	if err != nil || pieces != end.pieces {
		return false, err
	}
	in.checkpoint = end
	in.report.Checkpoint, in.report.CheckpointFrom = p, end.from
	return true, nil
}

// loadPieces reads the pieces of a checkpoint and returns how many there are.
func (in *reading) loadPieces(end *checkpointEnd, p Position) (uint32, error) {
	pieces := uint32(0)
	if end.pieces == 0 {
		return 0, nil
	}
	for _, f := range in.parts {
		if f.id < end.first.Segment() || f.id > p.Segment() {
			continue
		}
		w := in.walk(f, false, true)
		if f.id == end.first.Segment() {
			w.off, w.seq = int64(end.first.Offset()), 0
		}
		var r Record
		for w.next(&r) && r.Position < p {
			if in.takePiece(&r, end.id) {
				pieces++
			}
		}
		in.close(f)
		if w.err != nil {
			return 0, w.err
		}
	}
	return pieces, nil
}

// takePiece keeps a piece of the checkpoint id.
func (in *reading) takePiece(r *Record, id uint64) bool {
	if r.Kind != kindState && r.Kind != kindAckSet || len(r.payload) < 8 || le64(r.payload) != id {
		return false
	}
	body := r.payload[8:]
	if r.Kind == kindState {
		in.state = append(in.state, append([]byte(nil), body...))
		return true
	}
	if len(body) < 8 {
		return false
	}
	set, err := DecodeAckSet(body[8:])
	if err != nil {
		return false
	}
	if old := in.acked[le64(body)]; old != nil {
		old.Merge(set)
	} else {
		in.acked[le64(body)] = set
	}
	return true
}

// deliverCheckpoint hands the checkpoint to the recoverer.
func (in *reading) deliverCheckpoint() error {
	if in.checkpoint == nil {
		in.acked = nil
	}
	if in.to == nil || in.checkpoint == nil {
		return nil
	}
	for _, piece := range in.state {
		if err := in.to.State(piece); err != nil {
			return err
		}
	}
	in.state = nil
	for _, queue := range slices.Sorted(maps.Keys(in.acked)) {
		if err := in.to.AckSet(queue, in.acked[queue]); err != nil {
			return err
		}
	}
	return nil
}
