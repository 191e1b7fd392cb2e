package wal

// fail ends the log after a write or sync that went wrong.
//
// It is never tried again. After a failed sync the kernel may have marked the
// pages clean: a second sync would succeed and the bytes would be gone, which is
// how data was lost by those who retried. The next start reads what the disk has.
func (l *Log) fail(op string, s *segment, offset int64, err error) {
	l.failErr(&IOError{Op: op, File: segmentName(s.id), Offset: offset, Err: err})
}

func (l *Log) failErr(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.stop = ErrFailed
	l.events.Failed(err)
	if done := l.closing; done != nil {
		l.closing = nil
		done(err)
	}
}

// Close writes out what was appended, notes the orderly end, and calls done on the
// loop once nothing of the log is in flight and it is all durable, or has failed.
// Nothing can be appended any more. Free gives the memory back after that.
func (l *Log) Close(done func(error)) {
	if l.err != nil {
		done(l.err)
		return
	}
	if l.stop != nil {
		done(ErrClosed)
		return
	}
	// The end's claim covers what was synced before its group leaves: so the group
	// holds nothing else.
	if l.tail != nil && !l.tail.closed {
		l.closeGroup(l.tail)
	}
	// Without room for it the end is not noted, that is all.
	if l.cur != nil {
		if _, err := l.appendRecord(kindClose, 0, classSystem, nil, nil); err == nil {
			l.tail.barrier = true
		}
	}
	l.stop = ErrClosed
	l.closePos = l.end
	l.closing = done
	l.Sync()
	l.submit()
	l.closeProgress()
}

// closeProgress finishes Close.
func (l *Log) closeProgress() {
	if l.closing == nil || l.inflight != nil || l.syncOnly || l.jobs > 0 || l.fetches.inFlight > 0 {
		return
	}
	var err error
	if l.synced < l.closePos {
		// Only a segment whose file could not be made holds the rest back.
		if l.head == nil || l.head.seg.usable || l.space == nil {
			return
		}
		err = l.space
	}
	done := l.closing
	l.closing = nil
	done(err)
}

// Free closes the files and gives the memory back. Nothing may be in flight: call
// it after Close is done, or when the device is dead. The log must not be used
// after it.
func (l *Log) Free() {
	for _, g := range l.pool[:l.poolSize] {
		unmapBuffer(g.buf)
	}
	for g := l.head; g != nil; g = g.next {
		unmapBuffer(g.buf)
	}
	if l.inflight != nil {
		unmapBuffer(l.inflight.buf)
	}
	l.pool, l.poolSize, l.head, l.tail, l.inflight = nil, 0, nil, nil, nil
	l.compactor.free()
	for _, s := range l.segs {
		closeFile(s)
	}
	for _, s := range l.ready {
		closeFile(s)
	}
	for _, s := range l.retiring {
		closeFile(s)
	}
	for _, s := range l.overtaken {
		closeFile(s)
	}
	l.stop = ErrClosed
}

// closeFile closes a segment's file, which holds nothing that is not durable or
// given up.
func closeFile(s *segment) {
	if s != nil && s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}
