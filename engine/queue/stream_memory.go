package queue

// This file is which bodies of a stream are in memory. All of them are in the log,
// unless everything is kept in memory only.

const (
	// hotBytesMax is how much of a stream's newest bodies stay in memory.
	hotBytesMax = 16 << 20
	// backBytesMin is what may stay in memory of what was read back, for consumers
	// that follow one another; each of them adds backBytesEach, up to backBytesMost.
	backBytesMin  = 4 << 20
	backBytesEach = 512 << 10
	backBytesMost = 64 << 20
	// chillBatch bounds the bodies that leave memory at once when nobody consumes.
	chillBatch = 1024
)

// readBack is what was read from the log, oldest first.
type readBack struct {
	list  []backEntry
	head  int
	bytes int
}

type backEntry struct {
	seq  uint64
	size int
}

func (b *readBack) push(seq uint64, size int) {
	if b.head > 1024 && b.head > len(b.list)/2 {
		b.list = b.list[:copy(b.list, b.list[b.head:])]
		b.head = 0
	}
	b.list = append(b.list, backEntry{seq, size})
	b.bytes += size
}

func (b *readBack) pop() backEntry {
	e := b.list[b.head]
	b.head++
	b.bytes -= e.size
	if b.head == len(b.list) {
		b.list, b.head = b.list[:0], 0
	}
	return e
}

// backBytesMax is how much may stay of what was read back.
func (q *Queue) backBytesMax() int {
	return min(max(backBytesMin, len(q.members)*backBytesEach), backBytesMost)
}

// chill lets bodies that were read back leave memory, the oldest first, until no
// more than limit bytes are left; it reports whether it stopped before that.
func (q *Queue) chill(limit int) (more bool) {
	b := &q.stream.back
	for n := 0; b.bytes > limit; n++ {
		if n == chillBatch && limit == 0 {
			return true
		}
		q.leaves(b.pop().seq)
	}
	return false
}

// cool lets the oldest bodies that never left memory do so when there are too many.
func (q *Queue) cool() {
	s := q.stream
	if q.store == nil || s.hotBytes <= hotBytesMax {
		return
	}
	for s.hotBytes > hotBytesMax && s.hotFrom < q.order.tail {
		if e := q.order.at(s.hotFrom); e != nil {
			s.hotBytes -= e.inMemory()
			q.leaves(s.hotFrom)
		}
		s.hotFrom++
	}
}

// leaves lets the body of an entry leave memory, if it is there and in the log.
func (q *Queue) leaves(seq uint64) {
	if e := q.order.at(seq); e != nil && e.msg != nil && e.pos != 0 {
		q.pageOut(q.order.chunks[(seq-q.order.base)>>chunkShift], seq, e)
	}
}

// drops takes an entry out of the stream for good.
func (q *Queue) drops(seq uint64, e *entry) {
	q.unready(e)
	q.stream.gone(seq, e)
	q.over(seq, e)
}

// gone takes an entry that leaves the stream out of what is known of the newest.
func (s *stream) gone(seq uint64, e *entry) {
	if seq >= s.hotFrom {
		s.hotBytes -= e.inMemory()
	}
}
