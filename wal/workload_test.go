package wal_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ringmq/wal"
)

// step does one random thing. Refusals are counted, anything else ends up in
// w.problem.
func (w *world) step() {
	var err error
	switch k := w.rng.IntN(100); {
	case k < 40:
		err = w.randomPublish()
	case k < 58:
		err = w.randomAck()
	case k < 61:
		err = w.event(byte(1+w.rng.IntN(5)), w.rng.Uint64())
	case k < 75:
		w.log.Flush()
	case k < 90:
		w.dev.Step()
	case k < 94:
		err = w.checkpointStep()
	case k < 96:
		w.log.Compact(w.store)
	case k < 97:
		w.log.Sync()
	case k < 98:
		w.log.RetrySpace()
	default:
		w.randomFetch()
	}
	if err != nil && !w.expected(err) && w.problem == nil {
		w.problem = err
	}
}

// expected reports whether an error is a refusal that the world has reason for.
func (w *world) expected(err error) bool {
	switch {
	case errors.Is(err, wal.ErrBusy):
	case errors.Is(err, wal.ErrNoSpace):
		if w.log.Space() == nil {
			// Only a large record may be refused on its own.
			var space *wal.SpaceError
			return errors.As(err, &space)
		}
	case errors.Is(err, wal.ErrFailed):
		return w.failed != nil
	default:
		return false
	}
	w.total.refused++
	return true
}

func (w *world) randomPublish() error {
	n := w.rng.IntN(300)
	switch w.rng.IntN(60) {
	case 0, 1, 2:
		n = w.rng.IntN(6000)
	case 3:
		n = w.rng.IntN(30000)
	case 4:
		n = w.rng.IntN(4) * 25000 // may be more than a segment
	}
	queues := []int{w.rng.IntN(queueCount)}
	for q := range queueCount {
		if w.rng.IntN(8) == 0 && !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	_, err := w.publish(n, queues...)
	return err
}

func (w *world) randomAck() error {
	q := w.rng.IntN(queueCount)
	live := slices.Sorted(maps.Keys(w.store.queues[q]))
	if len(live) == 0 {
		return nil
	}
	switch w.rng.IntN(3) {
	case 0: // in order, many
		last := live[w.rng.IntN(len(live))]
		return w.ack(q, live[0], last)
	case 1: // in order, one
		return w.ack(q, live[0], live[0])
	}
	seq := live[w.rng.IntN(len(live))]
	return w.ack(q, seq, seq)
}

// checkpointStep makes the next piece of a checkpoint.
func (w *world) checkpointStep() error {
	switch {
	case w.piece < 0:
		if !w.log.CheckpointDue() && w.rng.IntN(4) != 0 {
			return nil
		}
		err := w.log.BeginCheckpoint()
		if errors.Is(err, wal.ErrCheckpoint) {
			return nil // the last one is not durable yet
		}
		if err == nil {
			w.piece = 0
		}
		return err
	case w.piece < queueCount:
		if err := w.log.AppendAckSet(uint64(w.piece), w.store.ackSet(w.piece)); err != nil {
			return err
		}
	case w.piece < queueCount+2:
		kind := byte("nv"[w.piece-queueCount])
		if err := w.log.AppendState([][]byte{w.store.statePiece(kind)}); err != nil {
			return err
		}
	default:
		if err := w.log.EndCheckpoint(); err != nil {
			return err
		}
		w.piece = -1
		return nil
	}
	w.piece++
	return nil
}

// checkpoint makes a whole one.
func (w *world) checkpoint() error {
	if err := w.log.BeginCheckpoint(); err != nil {
		return err
	}
	w.piece = 0
	for w.piece >= 0 {
		if err := w.checkpointStep(); err != nil {
			return err
		}
	}
	w.log.Flush()
	return nil
}

// randomFetch reads a live message back and compares it.
func (w *world) randomFetch() {
	q := w.rng.IntN(queueCount)
	live := slices.Sorted(maps.Keys(w.store.queues[q]))
	if len(live) == 0 {
		return
	}
	ref := wal.Ref{Queue: uint64(q), Seq: live[w.rng.IntN(len(live))]}
	e := w.store.queues[q][ref.Seq]
	buf := make([]byte, e.size+w.rng.IntN(9000))
	w.log.Fetch(e.pos, buf, func(c wal.Chunk, err error) {
		now, still := w.store.queues[q][ref.Seq]
		if w.fs.Crashed() || w.failed != nil || !still || now.pos != e.pos {
			return
		}
		if err != nil {
			w.fetchProblem(ref, e, err)
			return
		}
		var r wal.Record
		if !c.Next(&r) || r.Position != e.pos || !slices.Contains(r.Refs, ref) {
			w.fetchProblem(ref, e, fmt.Errorf("got %+v", r))
			return
		}
		if b, err := r.Body(nil); err != nil || hashOf(b) != e.hash {
			w.fetchProblem(ref, e, fmt.Errorf("another body, %v", err))
			return
		}
		w.total.fetched++
	})
}

func (w *world) fetchProblem(ref wal.Ref, e entry, err error) {
	if w.cause != nil && errors.Is(err, w.cause) {
		return
	}
	if errors.Is(err, wal.ErrShortBuffer) && e.size < 90000 {
		err = fmt.Errorf("%w for size %d", err, e.size)
	}
	w.problem = fmt.Errorf("fetch %v at %v: %w", ref, e.pos, err)
}
