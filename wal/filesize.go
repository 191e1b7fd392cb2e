package wal

// The first files of a log are small and later ones grow, in steps, up to
// Options.SegmentSize. So the log of a small broker is small, and there is little to fill
// with zeros when it starts; a busy one has full segments after five files, and goes on
// with those alone.
const (
	growAfter = 2 // files of one size are made before larger ones
	growBy    = 4
	// lightPart: nothing is prepared before so much of the first segment is used. At
	// 200 MB/s there are 15 ms left then until the next one is needed.
	lightPart = 4
)

// fileMade counts a new file.
func (l *Log) fileMade() {
	if l.filesMade++; l.filesMade >= growAfter {
		l.growTo(l.fileSize + 1)
	}
}

// growTo makes the next files no smaller than size bytes, within the limit.
func (l *Log) growTo(size int64) {
	for l.fileSize < min(size, l.opts.SegmentSize) {
		l.fileSize = min(l.fileSize*growBy, l.opts.SegmentSize)
		l.filesMade = 0
	}
}

// reusable reports whether a dead segment's file of that size is used again. Small ones
// go as the log grows, but not while there is no room for better.
func (l *Log) reusable(size int64) bool {
	least := l.fileSize
	if l.space != nil {
		least = l.opts.SegmentFirst
	}
	return size >= least && size <= l.opts.SegmentSize
}

// want is how many segments should be ready. A log that has hardly begun needs no more
// than its first: the room that is left there is more than it has to take back.
func (l *Log) want() int {
	switch {
	case l.space != nil || l.stats.Segments > 1:
	case l.cur == nil:
		return 1
	case l.cur.next < l.cur.size/lightPart:
		return 0
	}
	return l.opts.Spares + 1
}
