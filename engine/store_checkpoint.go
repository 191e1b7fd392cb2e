package engine

import (
	"encoding/binary"
	"slices"

	"ringmq/engine/queue"
)

// A checkpoint is what a restart must know of the queues without the log before
// it: which numbers are used, which messages are done, which were handed out. It
// is written piece by piece over many turns.
//
// Pieces of state, little endian:
//
//	1  queue u64, next sequence u64, lease u64
//	2  queue u64, then for each message: sequence u64, deliveries u16
const (
	pieceQueue      = 1
	pieceDeliveries = 2

	pieceQueueBytes = 25
	pieceHeadBytes  = 9
	deliveryBytes   = 10
	// pieceDeliveriesMax bounds the messages of one piece.
	pieceDeliveriesMax = 4096

	// Bounds of one step.
	stepQueues  = 256
	stepEntries = 16384
	stepChunks  = 16384
)

// checkpointWalk is the checkpoint that is being written.
type checkpointWalk struct {
	open  bool
	clean bool // the last one of an orderly stop: exact deliveries, no lease
	// cleanEnd: that one is complete.
	cleanEnd bool
	walked   bool   // all pieces are written
	goneAt   uint64 // then: see store.goneAt
	queues   []*queue.Queue
	at       int
	gaps     bool   // of the queue at hand: deliveries are done
	begun    bool   // of the queue at hand: its first piece is written
	lease    uint64 // of the queue at hand, as its first piece says
	from     uint64
	buf      []byte
}

// dyingKey names a message that left its queue for the dead letter exchange and
// did not arrive yet. Until then it is not done.
type dyingKey struct{ queue, seq uint64 }

// beginCheckpoint starts one.
func (st *store) beginCheckpoint(clean bool) bool {
	w := &st.checkpoint
	if w.open {
		st.wal.AbortCheckpoint()
		w.open = false
	}
	if err := st.wal.BeginCheckpoint(); err != nil {
		return false
	}
	w.open, w.clean = true, clean
	w.queues = w.queues[:0]
	for _, q := range st.queues {
		if q.Settings.Durable {
			w.queues = append(w.queues, q)
		}
	}
	w.at, w.gaps, w.begun, w.walked, w.from = 0, false, false, false, 0
	return true
}

// stepCheckpoint writes the next pieces; it reports whether there is more to do
// at once.
func (st *store) stepCheckpoint() (more bool) {
	w := &st.checkpoint
	if !w.open {
		return false
	}
	entries, chunks := stepEntries, stepChunks
	for n := 0; n < stepQueues && entries > 0 && chunks > 0; n++ {
		if w.at == len(w.queues) {
			if !w.walked {
				w.walked, w.goneAt = true, st.goneAt
			}
			if st.shard.Broker.catalog.safe(w.goneAt) {
				st.finishCheckpoint()
			}
			return false
		}
		q := w.queues[w.at]
		if q.Deleted() {
			w.next()
			continue
		}
		ok := true
		switch {
		case !w.begun:
			w.begun = true
			ok = st.writeQueue(q)
		case !w.gaps:
			ok = st.writeDeliveries(q, &entries)
		default:
			ok = st.writeGaps(q, &chunks)
		}
		if !ok {
			st.wal.AbortCheckpoint()
			w.open = false
			return false
		}
	}
	return true
}

func (w *checkpointWalk) next() {
	w.queues[w.at] = nil
	w.at++
	w.gaps, w.begun, w.from = false, false, 0
}

func (st *store) finishCheckpoint() {
	w := &st.checkpoint
	w.open = false
	if err := st.wal.EndCheckpoint(); err != nil {
		st.wal.AbortCheckpoint()
		return
	}
	w.cleanEnd = w.clean
}

// writeQueue writes the first piece of a queue.
func (st *store) writeQueue(q *queue.Queue) bool {
	w := &st.checkpoint
	w.lease = q.LeaseMark()
	if w.clean {
		w.lease = 0
	}
	b := append(w.buf[:0], pieceQueue)
	b = binary.LittleEndian.AppendUint64(b, q.ID)
	b = binary.LittleEndian.AppendUint64(b, q.NextSeq())
	b = binary.LittleEndian.AppendUint64(b, w.lease)
	w.buf = b
	return st.wal.AppendState([][]byte{b}) == nil
}

// writeDeliveries writes how often messages were handed out, where a lease does
// not say enough.
func (st *store) writeDeliveries(q *queue.Queue, entries *int) bool {
	w := &st.checkpoint
	n := min(*entries, pieceDeliveriesMax)
	*entries -= n
	b := append(w.buf[:0], pieceDeliveries)
	b = binary.LittleEndian.AppendUint64(b, q.ID)
	add := func(seq uint64, deliveries uint16) {
		b = binary.LittleEndian.AppendUint64(b, seq)
		b = binary.LittleEndian.AppendUint16(b, deliveries)
	}
	if w.from == 0 {
		// What is on its way to a dead letter exchange left the queue, and comes back
		// if it does not arrive. Most of it was handed out.
		for k := range st.dying {
			if k.queue == q.ID && k.seq >= w.lease {
				add(k.seq, 1)
			}
		}
	}
	next, done := q.EachDelivered(w.from, w.lease, n, add)
	w.buf = b
	w.from = next
	if done {
		w.gaps, w.from = true, 0
	}
	return len(b) == pieceHeadBytes || st.wal.AppendState([][]byte{b}) == nil
}

// writeGaps writes what is done in a queue.
func (st *store) writeGaps(q *queue.Queue, chunks *int) bool {
	w := &st.checkpoint
	var set walAckSet
	floor, dying := q.Floor(), st.dyingOf(q)
	add := func(first, last uint64) {
		eachWithout(dying, first, last, set.AddRange)
	}
	if len(dying) > 0 && dying[0] < floor {
		set.SetFloor(dying[0])
		add(dying[0], floor-1)
	} else {
		set.SetFloor(floor)
	}
	next, done := q.EachGap(w.from, *chunks, add)
	*chunks -= 1 + int((next-w.from)>>7)
	w.from = next
	if err := st.wal.AppendAckSet(q.ID, &set); err != nil {
		return false
	}
	if done {
		w.next()
	}
	return true
}

// dyingOf lists, in order, the messages that left a queue and are not done.
func (st *store) dyingOf(q *queue.Queue) (list []uint64) {
	if !q.Rules.DeadLetter {
		return nil
	}
	for k := range st.dying {
		if k.queue == q.ID {
			list = append(list, k.seq)
		}
	}
	slices.Sort(list)
	return list
}

// eachWithout calls f for the parts of a range that dying, in order, leaves of it.
func eachWithout(dying []uint64, first, last uint64, f func(first, last uint64)) {
	at, _ := slices.BinarySearch(dying, first)
	for _, seq := range dying[at:] {
		if seq > last {
			break
		}
		if seq > first {
			f(first, seq-1)
		}
		first = seq + 1
	}
	if first <= last {
		f(first, last)
	}
}
