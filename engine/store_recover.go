package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

var (
	errNotThere   = errors.New("the log has no such message at that place")
	errStatePiece = errors.New("a piece of the checkpoint's state makes no sense")
	errEvent      = errors.New("an event in the log makes no sense")
)

// recovery takes what a log holds while the broker starts. Bodies stay in the
// log: a queue of millions comes back as its index. It implements wal.Recoverer.
type recovery struct {
	st     *store
	log    *walLog
	queues map[uint64]*queue.Queue // those that this log may hold messages of

	mono, wall int64 // now: monotonic nanoseconds, milliseconds since 1970
	deliveries map[dyingKey]uint16
	messages   uint64
	lastID     uint64 // highest id of a durable queue that the log names
	refs       []walRef
	// broker is set while the log of a loop is read that is no more: messages go
	// into the logs of the shards that their queues belong to now.
	broker *Broker
	body   []byte
}

func newRecovery(st *store, l *walLog, queues map[uint64]*queue.Queue) *recovery {
	r := &recovery{st: st, log: l, queues: queues, mono: monotonic(), wall: wallMillis(), deliveries: map[dyingKey]uint16{}}
	if clock := st.opts.hooks.clock; clock != nil {
		r.mono, r.wall = clock()
	}
	return r
}

// names notes the id of a queue. A queue may stand in the log and not in the catalog,
// when a crash came before its definition was durable: its id must not be given to
// another, which would get its messages.
func (r *recovery) names(id uint64) {
	if id < transientID {
		r.lastID = max(r.lastID, id)
	}
}

// State implements wal.Recoverer.
func (r *recovery) State(b []byte) error {
	if len(b) < pieceHeadBytes {
		return errStatePiece
	}
	id := binary.LittleEndian.Uint64(b[1:])
	r.names(id)
	q := r.queues[id]
	switch b[0] {
	case pieceQueue:
		if len(b) != pieceQueueBytes {
			return errStatePiece
		}
		if q != nil {
			q.RecoverTail(binary.LittleEndian.Uint64(b[9:]))
			q.RecoverLease(binary.LittleEndian.Uint64(b[17:]))
		}
	case pieceDeliveries:
		b = b[pieceHeadBytes:]
		if len(b)%deliveryBytes != 0 {
			return errStatePiece
		}
		for ; len(b) > 0 && q != nil; b = b[deliveryBytes:] {
			r.deliveries[dyingKey{id, binary.LittleEndian.Uint64(b)}] = binary.LittleEndian.Uint16(b[8:])
		}
	default:
		return errStatePiece
	}
	return nil
}

// AckSet implements wal.Recoverer.
func (r *recovery) AckSet(id uint64, set *walAckSet) error {
	if q := r.queues[id]; q != nil {
		q.RecoverFloor(set.Floor())
	}
	return nil
}

// Ack implements wal.Recoverer.
func (r *recovery) Ack(id, first, last uint64) error {
	r.names(id)
	if q := r.queues[id]; q != nil {
		q.RecoverAck(first, last, func(p queue.Place) {
			r.messages--
			r.release(q, p)
			if r.broker != nil {
				// It was copied: the other log must know as well that it is done.
				r.broker.Shards[q.Shard].store.note(owed{queue: id, first: p.Seq, last: p.Seq})
			}
		})
	}
	return nil
}

// logOf is the log that holds what was recovered for a queue.
func (r *recovery) logOf(q *queue.Queue) *walLog {
	if r.broker != nil {
		return r.broker.Shards[q.Shard].store.wal
	}
	return r.log
}

// release gives a place back.
func (r *recovery) release(q *queue.Queue, p queue.Place) {
	r.logOf(q).Release(walPosition(p.Pos), cost(p))
}

// Record implements wal.Recoverer.
func (r *recovery) Record(rec *walRecord) error {
	for _, ref := range rec.Refs {
		r.names(ref.Queue)
	}
	switch rec.Kind {
	case kindMessage:
		return r.message(rec)
	case kindSpill:
		return nil // it was in memory: it is gone
	case kindLease:
		b, err := rec.Body(nil)
		if err != nil || len(b) != 16 {
			return eventError(rec, err)
		}
		r.names(binary.LittleEndian.Uint64(b))
		if q := r.queues[binary.LittleEndian.Uint64(b)]; q != nil {
			q.RecoverLease(binary.LittleEndian.Uint64(b[8:]))
		}
	case kindRequeued:
		b, err := rec.Body(nil)
		if err != nil || len(b) != 18 {
			return eventError(rec, err)
		}
		if id := binary.LittleEndian.Uint64(b); r.queues[id] != nil {
			r.deliveries[dyingKey{id, binary.LittleEndian.Uint64(b[8:])}] = binary.LittleEndian.Uint16(b[16:])
		}
	default:
		return fmt.Errorf("a record of kind %d at %s is not known to this version", rec.Kind, rec.Position)
	}
	return nil
}

func eventError(rec *walRecord, err error) error {
	if err == nil {
		err = errEvent
	}
	return fmt.Errorf("%w: kind %d at %s", err, rec.Kind, rec.Position)
}

// message puts one message into the queues where it is still live.
func (r *recovery) message(rec *walRecord) error {
	r.refs = r.refs[:0]
	for _, ref := range rec.Refs {
		if r.queues[ref.Queue] != nil {
			r.refs = append(r.refs, ref)
		}
	}
	if len(r.refs) == 0 {
		return nil
	}
	prefix, err := rec.Prefix()
	if err != nil {
		return fmt.Errorf("message at %s: %w", rec.Position, err)
	}
	h, err := core.ParseStoredHead(prefix)
	if err != nil {
		return fmt.Errorf("message at %s: %w", rec.Position, err)
	}
	if r.broker != nil {
		return r.move(rec, &h)
	}
	r.recover(rec.Position, r.refs, &h)
	return nil
}

// move copies a message to the logs of the shards that its queues belong to.
func (r *recovery) move(rec *walRecord, h *core.StoredHead) error {
	body, err := rec.Body(r.body[:0])
	if err != nil {
		return fmt.Errorf("message at %s: %w", rec.Position, err)
	}
	if rec.Compressed() {
		r.body = body
	}
	for _, s := range r.broker.Shards {
		st := s.store
		st.refs = st.refs[:0]
		for _, ref := range r.refs {
			if r.queues[ref.Queue].Shard == s.Index {
				st.refs = append(st.refs, ref)
			}
		}
		if len(st.refs) == 0 {
			continue
		}
		st.parts[0], st.parts[1] = body[:core.StoredHeadBytes], body[core.StoredHeadBytes:]
		at, err := st.wal.Append(kindMessage, st.refs, st.parts[:])
		for isBusy(err) || err == nil && st.wal.Backlog() > behindBytes {
			st.wal.Flush()
			st.dev.pump(true)
			if err != nil {
				at, err = st.wal.Append(kindMessage, st.refs, st.parts[:])
			}
		}
		if err != nil {
			return fmt.Errorf("message at %s, to another log: %w", rec.Position, err)
		}
		r.recover(at, st.refs, h)
	}
	return nil
}

// recover puts a message that stands at a place into its queues.
func (r *recovery) recover(at walPosition, refs []walRef, h *core.StoredHead) {
	for i, ref := range refs {
		q := r.queues[ref.Queue]
		in := queue.Recovered{Deadline: r.deadline(q, h), Arrival: h.Arrival, Priority: h.Priority}
		in.Place = queue.Place{Seq: ref.Seq, Pos: uint64(at), Size: h.BodyLen, Logged: true, Carrier: i == 0}
		r.logOf(q).Retain(at, cost(in.Place))
		if old, twice := q.Recover(in); twice {
			r.release(q, old)
		} else {
			r.messages++
		}
	}
}

// deadline is when a message expires by this process's clock. One that was due
// already, or had no time at all, expires at once.
func (r *recovery) deadline(q *queue.Queue, h *core.StoredHead) int64 {
	ttl := q.Rules.TTL
	if h.Flags&core.FlagExpires != 0 && (ttl < 0 || h.TTL < ttl) {
		ttl = h.TTL
	}
	if ttl < 0 {
		return 0
	}
	// A wall clock that went backwards must not make messages live for ever, nor
	// one that jumped ahead expire what just arrived: time passed is at least 0.
	passed := max(0, r.wall-h.Arrival)
	return max(r.mono+(ttl-passed)*1e6, r.mono-1)
}

// end applies what had to wait for the messages.
func (r *recovery) end() {
	r.st.shard.Broker.catalog.used(r.lastID)
	for k, n := range r.deliveries {
		r.queues[k.queue].RecoverDeliveries(k.seq, n)
	}
	r.deliveries = nil
	for _, q := range r.queues {
		q.RecoverEnd()
	}
}
