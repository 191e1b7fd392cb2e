//ringmq:hot

package queue

// late is an entry that came back to a queue which puts it behind all that is ready.
type late struct {
	seq   uint64
	after uint64 // the tail when it came back: everything below goes first
}

// giveBackLast puts a delivered entry behind everything that is ready now, and before
// everything that comes later (DLX-09).
func (f *fifo) giveBackLast(seq uint64) { f.last = append(f.last, late{seq: seq, after: f.tail}) }

// firstLast returns the first of those entries if it is its turn: fresh has moved head
// beyond what was there before it.
func (f *fifo) firstLast() (uint64, *entry) {
	for f.lastAt < len(f.last) {
		l := f.last[f.lastAt]
		if l.after > f.head {
			return 0, nil
		}
		if e := f.at(l.seq); e != nil && e.state() == stateReady {
			return l.seq, e
		}
		f.popLast() // it expired, or was purged
	}
	return 0, nil
}

// popLast forgets the first of them. The list is moved down when half of it is done, so
// that a message which goes round for ever does not make it grow.
func (f *fifo) popLast() {
	f.lastAt++
	if f.lastAt*2 > len(f.last) {
		f.last = f.last[:copy(f.last, f.last[f.lastAt:])]
		f.lastAt = 0
	}
}
