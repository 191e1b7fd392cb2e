//ringmq:hot

package queue

import "math/bits"

// levels is the order of a queue with priorities: first in, first out within each
// level, the highest level first. Entries stand where those of a fifo stand, by
// sequence number; a level keeps the numbers of its ready entries.
type levels struct {
	lists []seqList
	used  [4]uint64 // bit p: level p may have ready entries
	max   uint8
}

func newLevels(max uint8) *levels {
	return &levels{max: max, lists: make([]seqList, int(max)+1)}
}

// seqList is one level's ready entries: those that were never delivered, rising,
// and those that came back.
type seqList struct {
	fresh    []uint64
	at       int // of fresh: what is before was taken
	returned seqHeap
}

// levelOf maps a message's priority to a level: above the highest is the highest.
func (l *levels) levelOf(priority uint8) uint8 { return min(priority, l.max) }

func (l *levels) push(level uint8, seq uint64) {
	s := &l.lists[level]
	if s.at == len(s.fresh) {
		s.fresh, s.at = s.fresh[:0], 0
	} else if s.at > 1024 && s.at > len(s.fresh)/2 {
		s.fresh, s.at = s.fresh[:copy(s.fresh, s.fresh[s.at:])], 0
	}
	s.fresh = append(s.fresh, seq)
	l.used[level>>6] |= 1 << (level & 63)
}

// giveBack puts a delivered entry back in its place.
func (l *levels) giveBack(level uint8, seq uint64) {
	l.lists[level].returned.push(seq)
	l.used[level>>6] |= 1 << (level & 63)
}

// first finds the next ready entry without taking it. Numbers of entries that are
// gone, or held, are dropped on the way.
func (l *levels) first(f *fifo) (uint64, *entry) {
	for w := len(l.used) - 1; w >= 0; w-- {
		for l.used[w] != 0 {
			level := w<<6 + bits.Len64(l.used[w]) - 1
			if seq, e := l.lists[level].first(f); e != nil {
				return seq, e
			}
			l.used[w] &^= 1 << (level & 63)
		}
	}
	return 0, nil
}

func (s *seqList) first(f *fifo) (uint64, *entry) {
	for len(s.returned) > 0 || s.at < len(s.fresh) {
		back := len(s.returned) > 0 && (s.at == len(s.fresh) || s.returned[0] < s.fresh[s.at])
		var seq uint64
		if back {
			seq = s.returned[0]
		} else {
			seq = s.fresh[s.at]
		}
		if e := f.at(seq); e != nil && e.state() == stateReady {
			return seq, e
		}
		s.drop(back)
	}
	return 0, nil
}

func (s *seqList) drop(back bool) {
	if back {
		s.returned.pop()
	} else {
		s.at++
	}
}

// taken moves order past an entry that first returned.
func (l *levels) taken(level uint8, seq uint64) {
	s := &l.lists[level]
	if len(s.returned) > 0 && s.returned[0] == seq {
		s.returned.pop()
	} else if s.at < len(s.fresh) && s.fresh[s.at] == seq {
		s.at++
	}
}

// clear forgets everything, for an empty queue.
func (l *levels) clear() {
	for w := range l.used {
		for l.used[w] != 0 {
			level := w<<6 + bits.Len64(l.used[w]) - 1
			s := &l.lists[level]
			s.fresh, s.at, s.returned = s.fresh[:0], 0, s.returned[:0]
			l.used[w] &^= 1 << (level & 63)
		}
	}
}
