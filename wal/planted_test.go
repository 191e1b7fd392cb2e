package wal_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// A checker that has never failed proves nothing. Here it has to: each case plants
// one fault, and the same run that TestPowerCut trusts must find it.

// meddler stands between the log and the store and does its worst at one record.
type meddler struct {
	wal.Recoverer
	at     int // which message
	n      int
	record func(m *meddler, r *wal.Record) error
	ack    func(m *meddler, queue, first, last uint64) error
	held   *wal.Record
	done   bool
}

func (m *meddler) Record(r *wal.Record) error {
	if r.Kind != kindMessage || m.record == nil {
		return m.Recoverer.Record(r)
	}
	m.n++
	if m.n < m.at || m.done {
		return m.Recoverer.Record(r)
	}
	return m.record(m, r)
}

func (m *meddler) Ack(queue, first, last uint64) error {
	if m.ack == nil || m.done {
		return m.Recoverer.Ack(queue, first, last)
	}
	return m.ack(m, queue, first, last)
}

// hold keeps a copy of a record.
func hold(r *wal.Record) *wal.Record {
	c := r.WithPayload(slices.Clone(r.Payload()))
	c.Refs = slices.Clone(r.Refs)
	return c
}

func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	meddle := func(m meddler) func(*world) {
		return func(w *world) {
			w.wrap = func(to wal.Recoverer) wal.Recoverer {
				c := m
				c.Recoverer, c.at = to, 1+w.rng.IntN(20)
				return &c
			}
		}
	}
	for _, c := range []struct {
		name    string
		prepare func(*world)
	}{
		{"a sync is skipped", func(w *world) { w.fs.LieAboutSync(4 + w.rng.IntN(30)) }},
		{"all syncs are skipped", func(w *world) { w.fs.LieAboutSyncs() }},
		{"a sync write is believed to cover earlier ones", func(w *world) {
			w.opts.Sync = wal.SyncInterval
			w.carry = func(f wal.File, offset int64, buf []byte, sync bool) error {
				// A new one each time has forgotten that something was not synced.
				return wal.NewFileWriter()(f, offset, buf, sync)
			}
		}},
		{"confirmed before the sync", func(w *world) { w.early = true }},
		{"a record is dropped", meddle(meddler{record: func(m *meddler, _ *wal.Record) error {
			m.done = true
			return nil
		}})},
		{"a record comes twice", meddle(meddler{record: func(m *meddler, r *wal.Record) error {
			m.done = true
			if err := m.Recoverer.Record(r); err != nil {
				return err
			}
			return m.Recoverer.Record(r)
		}})},
		{"two bodies are swapped", meddle(meddler{record: func(m *meddler, r *wal.Record) error {
			if m.held == nil {
				m.held = hold(r)
				return nil
			}
			m.done = true
			first := m.held.WithPayload(slices.Clone(r.Payload()))
			if err := m.Recoverer.Record(first); err != nil {
				return err
			}
			return m.Recoverer.Record(r.WithPayload(m.held.Payload()))
		}})},
		{"an acknowledgement is dropped", meddle(meddler{ack: func(m *meddler, _, _, _ uint64) error {
			m.done = true
			return nil
		}})},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= 200; seed++ {
				_, err := powerCut(seed, func(w *world) {
					w.opts.Sync = wal.SyncAlways
					c.prepare(w)
				})
				if err != nil {
					t.Logf("found with seed %d: %v", seed, err)
					return
				}
			}
			t.Error("200 seeds and nothing was found")
		})
	}
}

// TestPlantedStaleFile shows that the checker would see a segment come back from the
// dead: here the disk brings back the file as it was.
func TestPlantedStaleFile(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		w := newWorld(rand.New(rand.NewPCG(seed, 5)), crashfs.New())
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		run := func(steps int) {
			for i := 0; i < steps && w.problem == nil; i++ {
				w.step()
			}
			w.log.Flush()
			w.dev.Drain()
		}
		run(200)
		old := w.fs.Clone()
		run(600)
		if w.problem != nil {
			t.Fatal(w.problem)
		}
		promised := w.promised()
		w.log.Free()
		w.fs = w.fs.Clone()
		for _, name := range old.Names() {
			if slices.Contains(w.fs.Names(), name) {
				w.fs.Put(name, slices.Clone(old.Bytes(name)))
			}
		}
		if err := w.recovered(promised); err != nil {
			t.Logf("found with seed %d: %v", seed, err)
			return
		}
	}
	t.Error("50 seeds and nothing was found")
}
