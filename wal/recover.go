package wal

// Recoverer takes what a log holds while it is opened. An error of any method ends
// Open with that error. What is passed is valid during the call.
type Recoverer interface {
	// State is a piece of the user's state of the last checkpoint, in order. It
	// comes before everything else.
	State(piece []byte) error
	// AckSet is what was done in a queue when the last checkpoint was made. Records
	// leaves those messages out by itself. It comes after the state.
	AckSet(queue uint64, set *AckSet) error
	// Record is a message of any age, or an event since the last checkpoint, in the
	// order of the log. Refs are the places where the message may still be live; a
	// later Ack may name them. The owner retains what it keeps: Log.Retain.
	Record(r *Record) error
	// Ack is an acknowledgement since the last checkpoint. It may name messages
	// that were never seen, and come twice.
	Ack(queue, first, last uint64) error
}

// reading is one pass over a stopped log.
type reading struct {
	*fileSet
	to         Recoverer
	checkpoint *checkpointEnd
	acked      map[uint64]*AckSet
	retired    map[uint32]bool
	live       []Ref
	state      [][]byte
	progress   func(done, total int64)
	seq        uint64 // of the record behind the last one
	// visit sees every record, before it goes to the recoverer; may be nil.
	visit func(r *Record) error
}

// read goes through the whole log.
func (in *reading) read() error {
	in.retired = make(map[uint32]bool)
	in.chain()
	if err := in.findCheckpoint(); err != nil {
		return err
	}
	if err := in.deliverCheckpoint(); err != nil {
		return err
	}
	if in.scan.ahead = in.readAhead(); in.scan.ahead != nil {
		defer in.endAhead()
	}
	var done, total int64
	for _, f := range in.parts {
		total += f.limit()
	}
	for i, f := range in.parts {
		if err := in.readSegment(f, i == len(in.parts)-1); err != nil {
			return err
		}
		if done += f.limit(); in.progress != nil {
			in.progress(done, total)
		}
	}
	in.findMissing()
	return nil
}

// endAhead ends reading ahead; the scanner looks at nothing of it any more.
func (in *reading) endAhead() {
	a := in.scan.ahead
	in.scan.ahead = nil
	in.scan.reset(nil, 0, 0, 0)
	a.end()
}

// readSegment hands out the records of one segment.
func (in *reading) readSegment(f *segmentFile, last bool) error {
	w := in.walk(f, last, false)
	defer in.close(f)
	var r Record
	for w.next(&r) {
		in.report.Records++
		in.report.Bytes += int64(r.size)
		in.report.LastSeq = r.Seq
		in.report.Clean = r.Kind == kindClose
		in.seq = r.Seq + 1
		if in.visit != nil {
			if err := in.visit(&r); err != nil {
				return err
			}
		}
		if err := in.deliver(&r); err != nil {
			return err
		}
	}
	if w.err != nil {
		return w.err
	}
	in.seq = max(in.seq, f.head.firstSeq, f.nextSeq)
	if last {
		f.end, f.nextSeq = w.off, in.seq
		in.report.End = MakePosition(f.id, uint32(w.off))
		if w.cut != nil {
			in.report.Cut = w.cut
		}
	} else if f.end < 0 {
		f.end, f.nextSeq = w.off, in.seq
	}
	return nil
}

// deliver hands one record to the recoverer, if it still means something.
func (in *reading) deliver(r *Record) error {
	since := in.checkpoint == nil || r.Position >= in.checkpoint.from
	switch {
	case r.Kind == kindRetire:
		if len(r.payload) == 4 {
			in.retired[le32(r.payload)] = true
		}
	case in.to == nil:
	case r.Kind == kindAck:
		if since && len(r.payload) == ackPayloadSize {
			return in.to.Ack(le64(r.payload), le64(r.payload[8:]), le64(r.payload[16:]))
		}
	case r.Kind >= KindEventMin && r.Kind <= KindEventMax:
		if since {
			return in.to.Record(r)
		}
	case r.Kind >= KindMessageMin && r.Kind <= KindMessageMax:
		if len(r.Refs) > 0 && len(in.acked) > 0 {
			in.live = in.live[:0]
			for _, ref := range r.Refs {
				if set := in.acked[ref.Queue]; set == nil || !set.Contains(ref.Seq) {
					in.live = append(in.live, ref)
				}
			}
			if len(in.live) == 0 {
				return nil
			}
			r.Refs = in.live
		}
		return in.to.Record(r)
	}
	return nil
}

// findMissing reports segments that should be there: those that a header behind
// them names, and those that the checkpoint lists, unless a record says that they
// were retired.
func (in *reading) findMissing() {
	var covered uint32
	if in.checkpoint != nil {
		covered = in.checkpoint.from.Segment()
		for _, entry := range in.checkpoint.segments {
			in.checkMissing(entry.id)
		}
	}
	for _, f := range in.parts {
		if id := f.head.previous; id != 0 && id >= covered {
			in.checkMissing(id)
		}
	}
}

func (in *reading) checkMissing(id uint32) {
	if in.part(id) != nil || in.retired[id] {
		return
	}
	in.retired[id] = true // reported once
	in.damage(&segmentFile{id: id}, &CorruptionError{Cause: causeGone})
}

// Open reads the log from the disk, hands what it holds to the recoverer, and makes
// the log ready for appending. It blocks, for as long as reading takes. to may be
// nil for a log that is known to be new.
//
// A torn tail is cut. On damage everything that is readable is handed out, and
// Open returns the report and an error that wraps ErrDamaged, unless the damage was
// accepted (Repair, Options.AcceptDamage): the log cannot be used then.
//
// On a disk without space the log opens, and Space says so from the beginning.
func Open(opts Options, to func(*Log) Recoverer) (*Log, *Report, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	l := &Log{opts: opts, disk: opts.Disk, dev: opts.Device, events: opts.Events, fileSize: opts.SegmentFirst}
	l.pool = make([]*group, groupPoolMax)
	l.writeDoneFn, l.syncDoneFn = l.writeDone, l.syncDone
	// Names that were never made durable must not be built upon.
	if err := l.disk.SyncDir(); err != nil {
		return nil, nil, err
	}
	set, err := loadFiles(l.disk)
	if err != nil {
		return nil, nil, err
	}
	defer set.free()
	if err := syncTail(set); err != nil {
		return nil, set.report, err
	}
	l.adopt(set)
	in := &reading{fileSet: set, progress: opts.Progress}
	if to != nil {
		in.to = to(l)
	}
	if err := in.read(); err != nil {
		return nil, set.report, err
	}
	if bad := set.report.unaccepted(); len(bad) > 0 && !opts.AcceptDamage {
		return nil, set.report, &damagedError{bad}
	}
	if err := l.start(in); err != nil {
		l.Free()
		return nil, set.report, err
	}
	return l, set.report, nil
}

// syncTail makes durable what the last segment holds, and forgets what the page
// cache says of it: after the death of the process only, the kernel may hold data
// that never reached the disk, and recovery is about to build on it.
func syncTail(set *fileSet) error {
	if len(set.parts) == 0 {
		return nil
	}
	f := set.parts[len(set.parts)-1]
	if err := set.open(f); err != nil {
		return err
	}
	defer set.close(f)
	if err := f.file.Sync(); err != nil {
		return &IOError{Op: "sync", File: f.name(), Err: err}
	}
	return f.file.DropCache()
}

// adopt enters the segments, so that the recoverer can retain records.
func (l *Log) adopt(set *fileSet) {
	l.logID = set.logID
	for _, f := range set.parts {
		l.addSegment(&segment{id: f.id, size: f.size, salt: segmentSalt(set.logID, f.id), usable: true, opened: true, sealed: true})
	}
}
