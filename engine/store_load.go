package engine

import (
	"slices"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// This file brings bodies back from the log.

// loadBytes is how much one read asks for: messages that were published together
// come back together.
const loadBytes = 256 << 10

// bodyFetch is one read of the log for a queue or for dead letters.
type bodyFetch struct {
	st   *store
	q    *queue.Queue
	seq  uint64
	pos  walPosition
	buf  []byte
	body []byte // scratch for compressed bodies
	done func(walChunk, error)
	next *bodyFetch
	// short: the system refused memory. Nothing is lost by that; it is tried again.
	short bool
}

// loadPool keeps idle fetches with their buffers.
type loadPool struct {
	idle  *bodyFetch
	count int
}

const loadsKept = 8

func (st *store) newFetch(done func(*bodyFetch, walChunk, error)) *bodyFetch {
	f := st.loads.idle
	if f == nil {
		f = &bodyFetch{st: st, buf: make([]byte, loadBytes)}
	} else {
		st.loads.idle, f.next = f.next, nil
		st.loads.count--
	}
	f.done = func(c walChunk, err error) { done(f, c, err) }
	return f
}

func (st *store) endFetch(f *bodyFetch) {
	f.q, f.done, f.short = nil, nil, false
	if len(f.buf) == loadBytes && st.loads.count < loadsKept {
		f.next = st.loads.idle
		st.loads.idle = f
		st.loads.count++
	}
}

// Load implements queue.Store.
func (st *store) Load(q *queue.Queue, seq, pos uint64) {
	f := st.newFetch((*bodyFetch).filled)
	f.q, f.seq, f.pos = q, seq, walPosition(pos)
	st.wal.Fetch(f.pos, f.buf, f.done)
}

// grow asks again with a buffer that holds the first record.
func (f *bodyFetch) grow(c *walChunk) {
	f.buf = make([]byte, c.Need)
	f.st.wal.Fetch(f.pos, f.buf, f.done)
}

// filled takes what was read for a queue.
func (f *bodyFetch) filled(c walChunk, err error) {
	st, q := f.st, f.q
	switch {
	case needsRoom(err):
		f.grow(&c)
		return
	case isEnded(err):
		return // the process ends
	case err != nil:
		st.lost(q, f.seq, f.pos, err)
	default:
		f.fill(&c)
		if !f.short && q.Absent(f.seq, uint64(f.pos)) {
			st.lost(q, f.seq, f.pos, errNotThere)
		}
	}
	st.endFetch(f)
	q.Loaded()
}

// fill gives the bodies of a chunk to the entries that wait for them.
func (f *bodyFetch) fill(c *walChunk) {
	var r walRecord
	for c.Next(&r) {
		if r.Kind != kindMessage && r.Kind != kindSpill {
			continue
		}
		for _, ref := range r.Refs {
			if ref.Queue != f.q.ID || !f.q.Absent(ref.Seq, uint64(r.Position)) {
				continue
			}
			m := f.message(&r)
			if m == nil {
				return
			}
			f.st.paged.in++
			f.q.Fill(ref.Seq, m)
		}
	}
}

// message makes a message of a record, nil when that is impossible: then it stays
// away, and whoever needs it finds out.
func (f *bodyFetch) message(r *walRecord) *core.Message {
	body, err := r.Body(f.body[:0])
	if err != nil || len(body) < core.StoredHeadBytes {
		return nil
	}
	if r.Compressed() {
		f.body = body
	}
	h, err := core.ParseStoredHead(body)
	if err != nil {
		return nil
	}
	m, err := core.NewStored(f.st.shard.arena, h, body[core.StoredHeadBytes:])
	if err != nil {
		return nil
	}
	f.short = m == nil
	return m
}

// lost gives up a message whose record cannot be read: the rest of the queue must
// not stand behind it.
func (st *store) lost(q *queue.Queue, seq uint64, pos walPosition, err error) {
	if q.Lost(seq, uint64(pos)) {
		st.shard.Stats.Lost++
		st.opts.Log.Error("a message cannot be read back from the log and is dropped",
			"queue", q.Name, "loop", st.shard.Index, "position", pos.String(), "error", err)
	}
}

// mourn reads the body of the dead letter at the head of the list, and of those
// behind it that stand in the same piece of the log.
func (st *store) mourn() {
	d := &st.shard.deaths[0]
	if st.shard.scattered() {
		st.mournScattered()
		return
	}
	f := st.newFetch((*bodyFetch).mourned)
	f.pos = walPosition(d.Pos)
	st.mourns = f
	st.wal.Fetch(f.pos, f.buf, f.done)
}

// mourned takes what was read for dead letters.
func (f *bodyFetch) mourned(c walChunk, err error) {
	st := f.st
	if needsRoom(err) {
		f.grow(&c)
		return
	}
	st.mourns = nil
	if isEnded(err) {
		return
	}
	deaths := st.shard.deaths
	if err == nil {
		var r walRecord
		for at := 0; at < len(deaths) && c.Next(&r); {
			// Most often the dead follow one another in the log.
			for at < len(deaths) && (deaths[at].Msg != nil || walPosition(deaths[at].Pos) < r.Position) {
				at++
			}
			if at < len(deaths) && walPosition(deaths[at].Pos) == r.Position {
				if deaths[at].Msg = f.message(&r); deaths[at].Msg != nil {
					st.paged.in++
				}
				at++
			}
		}
	}
	if deaths[0].Msg == nil && !f.short {
		st.lostDeath(0, err)
	}
	st.endFetch(f)
}

// lostDeath gives up a dead letter whose body cannot be read; err may be nil.
func (st *store) lostDeath(i int, err error) {
	if err == nil {
		err = errNotThere
	}
	d := &st.shard.deaths[i]
	st.shard.Stats.Lost++
	st.opts.Log.Error("a dead letter cannot be read back from the log and is dropped",
		"queue", d.q.Name, "loop", st.shard.Index, "position", walPosition(d.Pos).String(), "error", err)
	st.buried(d.q, d.Place)
	st.shard.deaths = slices.Delete(st.shard.deaths, i, i+1)
}
