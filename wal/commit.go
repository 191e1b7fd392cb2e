//ringmq:hot

package wal

// Flush hands what was appended to the device, unless a write is in flight: then
// it leaves when that one is done. Call it once at the end of a loop's turn. It
// also does the log's small housekeeping.
func (l *Log) Flush() {
	if l.reclaimDue {
		l.reclaim()
	}
	if l.fetches.ready != nil {
		l.runReadyFetches()
	}
	l.submit()
	if len(l.ready) < l.want() {
		l.supply()
	}
}

// Sync makes everything that was appended so far durable soon, whatever the mode.
// With SyncInterval the owner calls it on a timer.
func (l *Log) Sync() {
	if l.synced < l.end {
		l.syncTarget = l.end
		l.submit()
	}
}

// submit starts the next write. At most one is in flight: what is appended
// meanwhile gathers for the next, which is all that group commit is.
//
// A segment's first group leaves only after everything before is durable, in
// every mode. Recovery builds on it: damage before the last segment is never a
// torn tail.
func (l *Log) submit() {
	if l.inflight != nil || l.syncOnly || l.err != nil {
		return
	}
	g := l.head
	if g == nil {
		if l.synced < l.syncTarget {
			l.submitSync()
		}
		return
	}
	if !g.seg.usable {
		return
	}
	if (g.opens || g.barrier) && l.synced < l.written {
		l.submitSync()
		return
	}
	if g.opens {
		l.putHeaderBlock(g)
	}
	if !g.closed {
		l.closeGroup(g)
	}
	l.head = g.next
	if l.head == nil {
		l.tail = nil
	}
	g.next = nil
	l.claimFirst(g)
	l.writeSync = l.opts.Sync == SyncAlways || g.sync || l.synced < l.syncTarget
	l.inflight = g
	if l.opts.Now != nil {
		l.startedAt = l.opts.Now()
	}
	l.dev.Write(g.seg.file, g.off, g.buf[:alignUp(g.n)], l.writeSync, l.writeDoneFn)
}

// claimFirst renews the claim of a group's first record. It was written when the
// record was appended, while the write before this one was in flight; that write
// is done now. This way any one whole record of this group proves that the group
// before it was synced, which is what lets recovery tell damage from a torn tail.
func (l *Log) claimFirst(g *group) {
	var h header
	b := g.buf[g.first:]
	if !parseHeader(b, g.seg.salt, &h) {
		panic("wal: group without a first record")
	}
	if h.synced == l.claim(g.seg) {
		return
	}
	h.synced = l.claim(g.seg)
	putHeader(b, &h)
	putChecksums(b[:h.size()], g.seg.salt)
}

// putHeaderBlock fills in the header of a segment, as late as that: now all groups
// before it are durable, and a checkpoint among them with them.
func (l *Log) putHeaderBlock(g *group) {
	s := g.seg
	putSegmentHeader(g.buf, &segmentHeader{
		id: s.id, version: formatVersion, firstSeq: s.firstSeq, logID: l.logID, size: s.size,
		previous: s.previous, end: s.previousEnd, checkpoint: l.checkpoint.durable, recycled: s.recycled,
	})
}

// submitSync syncs what is written, without writing.
func (l *Log) submitSync() {
	if l.synced >= l.written {
		return
	}
	l.syncOnly = true
	if l.opts.Now != nil {
		l.startedAt = l.opts.Now()
	}
	l.dev.Write(l.writtenTo.file, int64(l.written.Offset()), nil, true, l.syncDoneFn)
}

// writeDone is the completion of a group.
func (l *Log) writeDone(err error) {
	g := l.inflight
	l.inflight = nil
	if err != nil {
		l.fail("write", g.seg, g.off, err)
	}
	if l.err != nil {
		// It may have been the folder that failed meanwhile: nothing is promised now,
		// even if this write is fine.
		l.putGroup(g)
		return
	}
	n := alignUp(g.n)
	l.written = MakePosition(g.seg.id, uint32(g.off)+uint32(n))
	l.writtenTo = g.seg
	l.backlog -= int64(g.n - g.first)
	l.stats.Groups++
	l.stats.WrittenBytes += uint64(n)
	l.stats.GroupRecordsMax = max(l.stats.GroupRecordsMax, uint64(g.records))
	if l.writeSync {
		l.syncedTo(l.written)
	}
	l.putGroup(g)
	l.advance()
}

// syncDone is the completion of a sync without data.
func (l *Log) syncDone(err error) {
	l.syncOnly = false
	if err != nil {
		l.fail("sync", l.writtenTo, int64(l.written.Offset()), err)
	}
	if l.err != nil {
		return
	}
	l.syncedTo(l.written)
	l.advance()
}

// syncedTo notes that everything below p is durable.
func (l *Log) syncedTo(p Position) {
	l.synced = p
	l.stats.Syncs++
	// Before the next segment's header is formed: it names the last checkpoint, and
	// recovery looks for no other.
	if c := &l.checkpoint; c.pending != 0 && p > c.pending {
		c.durable, c.covered, c.pending = c.pending, c.pendingFrom, 0
		c.fresh = true
	}
	if l.opts.Now != nil {
		l.stats.addSync(l.opts.Now() - l.startedAt)
	}
}

// advance starts the next write and then tells the owner: the disk works while
// confirms are written.
func (l *Log) advance() {
	l.submit()
	if l.checkpoint.fresh {
		l.checkpointDone()
	}
	if len(l.retiring) > 0 {
		l.supply()
	}
	committed := l.synced
	if l.opts.Sync != SyncAlways {
		committed = l.written
	}
	if committed > l.committed {
		l.committed = committed
		l.events.Committed(committed)
	}
	if l.closing != nil {
		l.closeProgress()
	}
}
