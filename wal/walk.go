package wal

// walker goes through the records of one segment, over damage, to its end.
type walker struct {
	set  *fileSet
	f    *segmentFile
	last bool // the last segment: its end may be torn
	// quiet walks do not report; recovery walks the last segment twice.
	quiet bool

	off int64  // of the next record
	end int64  // where records end, or the limit
	seq uint64 // of the next record, 0 if not known
	cut *Cut
	err error
}

// walk starts at the first record of a segment. The segment's file stays open
// until the next walk.
func (set *fileSet) walk(f *segmentFile, last, quiet bool) *walker {
	w := &walker{set: set, f: f, last: last, quiet: quiet, off: segmentDataAt, end: f.limit(), seq: f.head.firstSeq}
	switch {
	case f.end >= 0:
		w.end = min(w.end, f.end)
	case f.tail != nil:
		w.end = f.tail.end
	}
	w.err = set.open(f)
	if w.err == nil {
		set.scan.reset(f.file, f.id, segmentSalt(set.logID, f.id), f.limit())
	}
	return w
}

// next reads the next valid record; false at the end, or with w.err set.
func (w *walker) next(r *Record) bool {
	for w.err == nil {
		f := w.set.scan.next(w.off, w.end, r)
		switch {
		case f.step == stepFault:
			w.err = f.err
			return false
		case f.step == stepRecord && (w.seq == 0 || r.Seq == w.seq):
			w.off, w.seq = f.next, r.Seq+1
			w.f.claim = max(w.f.claim, int64(f.head.synced))
			return true
		case f.step == stepRecord:
			// Zeros where records were look like padding; the numbers tell.
			f.step, f.cause, f.next = stepBad, causeSequence, 0
			f.at = w.off
		case f.step == stepLimit:
			w.finish(f.at)
			return false
		case f.step == stepEmpty:
			f.cause = causeMissing
		}
		if !w.trouble(f) {
			return false
		}
	}
	return false
}

// finish compares the end with what another header says of it.
func (w *walker) finish(at int64) {
	f := w.f
	if f.end < 0 && f.tail != nil {
		w.cut = f.tail.cut
		return
	}
	lost := uint64(0)
	if f.nextSeq > w.seq && w.seq != 0 {
		lost = f.nextSeq - w.seq
	}
	switch {
	case f.end > at:
		w.report(&CorruptionError{From: w.off, To: f.end, Records: lost, Cause: causeShort})
	case f.end >= 0 && lost > 0:
		w.report(&CorruptionError{From: w.off, To: at, Records: lost, Cause: causeSequence})
	case f.end < 0 && w.last && f.size < f.head.size:
		w.cut = &Cut{File: f.name(), Offset: w.off, Cause: causeShort}
	}
}

// trouble decides what becomes of something that is no record; it returns false
// where the log ends.
//
// In a segment that another one follows everything was synced: it is damage. In
// the last one it is damage if a valid record further on claims that this place
// was synced when it was written; without such a witness it is what was being
// written when the log ended, and the log is cut there, with everything behind it.
func (w *walker) trouble(f finding) bool {
	known := w.f.end >= 0
	if !known && w.f.claim <= f.at {
		witness, whole, err := w.witness(f.at)
		switch {
		case err != nil:
			w.err = err
			return false
		case witness:
		case w.last:
			w.tear(f, whole)
			return false
		case whole == 0:
			// A segment with others behind it, whose end nobody remembers. Nothing
			// of it follows here.
			return false
		}
	}
	e := &CorruptionError{From: f.at, Cause: f.cause, Err: f.err}
	if f.next > 0 {
		// The place of the next record is known: only this one is lost, or none.
		e.To = f.next
		if f.cause == causeBody && w.seq != 0 && f.head.seq >= w.seq {
			e.Records = f.head.seq + 1 - w.seq
		}
		if f.cause == causeBody {
			w.seq = f.head.seq + 1
		}
		w.off = f.next
		w.report(e)
		return true
	}
	return w.skip(f, e)
}

// skip goes on at the next whole record behind damage.
func (w *walker) skip(f finding, e *CorruptionError) bool {
	at, err := w.set.scan.resync(f.at+recordAlign, w.end)
	if err != nil {
		w.err = err
		return false
	}
	if at < 0 {
		e.To = w.end
		if w.f.nextSeq > w.seq && w.seq != 0 {
			e.Records = w.f.nextSeq - w.seq
		}
		w.report(e)
		return false
	}
	var r Record
	found := w.set.scan.record(at, w.end, &r)
	e.To = at
	if w.seq != 0 && found.head.seq > w.seq {
		e.Records = found.head.seq - w.seq
	}
	w.report(e)
	w.off, w.seq = at, found.head.seq
	return true
}

// witness looks for a valid record behind at that claims at as synced, and counts
// the whole records on the way.
func (w *walker) witness(at int64) (found bool, whole uint64, err error) {
	off := at + recordAlign
	for {
		off, err = w.set.scan.resync(off, w.end)
		if err != nil || off < 0 {
			return false, whole, err
		}
		var r Record
		f := w.set.scan.record(off, w.end, &r)
		whole++
		if int64(f.head.synced) > at {
			w.f.claim = int64(f.head.synced)
			return true, whole, nil
		}
		off = f.next
	}
}

// tear notes the torn tail, if it looks like one and not like the zeros or the
// older records that a prepared file holds.
func (w *walker) tear(f finding, whole uint64) {
	if whole > 0 || w.looksWritten(f) || w.f.size < w.f.head.size {
		w.cut = &Cut{File: w.f.name(), Offset: w.off, Records: whole, Cause: f.cause}
	}
}

// looksWritten reports whether a bad place holds something of this segment, going
// by each field on its own: one flipped bit must not hide the rest.
func (w *walker) looksWritten(f finding) bool {
	if f.step == stepEmpty {
		return false
	}
	if f.next > 0 && f.cause == causeBody || !w.f.head.recycled {
		return true
	}
	if w.end-f.at < recordHeaderSize {
		return false
	}
	b, err := w.set.scan.view(f.at, recordHeaderSize)
	if err != nil {
		return false
	}
	var h header
	if parseHeader(b, w.set.scan.salt, &h) || h.segment == w.f.id {
		return true
	}
	// The next number, in a header that is not the sound one of an older segment.
	return h.seq == w.seq && !parseHeader(b, segmentSalt(w.set.logID, h.segment), &h)
}

func (w *walker) report(e *CorruptionError) {
	if !w.quiet {
		w.set.damage(w.f, e)
	}
}
