//ringmq:hot

package engine

import (
	"encoding/binary"

	"ringmq/engine/queue"
)

// This file writes acknowledgements and events. The log has no segment for them
// now and then, for as long as the next one is being made: what it does not take
// then is owed, and everything behind it waits. Dropping it instead would bring
// acknowledged messages back.

// owed is one record that the log did not take yet.
type owed struct {
	kind        uint8        // 0 = an acknowledgement of first to last
	queue       uint64       // its id
	first, last uint64       // of kindLease the end is first, of kindRequeued the message
	deliveries  uint16       // of kindRequeued
	leased      *queue.Queue // of kindLease: who waits
}

// note writes a record, or owes it.
func (st *store) note(o owed) {
	if len(st.owed) > 0 && !st.pay() {
		st.owe(o)
		return
	}
	if err := st.write(&o); isBusy(err) {
		st.owe(o)
	}
}

func (st *store) owe(o owed) {
	if n := len(st.owed); n > 0 && o.kind == 0 {
		if last := &st.owed[n-1]; last.kind == 0 && last.queue == o.queue && last.last+1 == o.first {
			last.last = o.last
			return
		}
	}
	st.owed = append(st.owed, o)
	st.keeper.active = true
}

// write appends a record. An acknowledgement that is refused for other reasons than
// ErrBusy is gone: the disk is full beyond the log's reserve or has failed, and a
// restart will bring the message back, marked as redelivered.
func (st *store) write(o *owed) (err error) {
	b := st.small[:0]
	switch o.kind {
	case 0:
		_, err = st.wal.AppendAck(o.queue, o.first, o.last)
	case kindLease:
		b = binary.LittleEndian.AppendUint64(b, o.queue)
		b = binary.LittleEndian.AppendUint64(b, o.first)
		st.parts[0], st.parts[1] = b, nil
		_, err = st.wal.Append(kindLease, nil, st.parts[:1])
		switch {
		case err == nil:
			st.waiters.push(waiter{end: st.wal.End(), q: o.leased, lease: o.first})
		case !isBusy(err):
			// Consumers must not wait for a disk that is full: after a crash some
			// deliveries may repeat without a mark.
			o.leased.Leased(o.first)
		}
	case kindRequeued:
		b = binary.LittleEndian.AppendUint64(b, o.queue)
		b = binary.LittleEndian.AppendUint64(b, o.first)
		b = binary.LittleEndian.AppendUint16(b, o.deliveries)
		st.parts[0], st.parts[1] = b, nil
		_, err = st.wal.Append(kindRequeued, nil, st.parts[:1])
	}
	if err == nil {
		st.keeper.active = true
	}
	return err
}

// pay writes what is owed; it reports whether that is all.
func (st *store) pay() bool {
	n := 0
	for n < len(st.owed) && !isBusy(st.write(&st.owed[n])) {
		st.owed[n].leased = nil
		n++
	}
	if n > 0 {
		st.owed = st.owed[:copy(st.owed, st.owed[n:])]
	}
	if len(st.owed) > 0 {
		return false
	}
	if len(st.paid) > 0 {
		list := st.paid
		st.paid = nil
		for _, fn := range list {
			st.afterCommit(fn)
		}
	}
	return true
}
