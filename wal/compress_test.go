package wal_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"ringmq/wal"
	"ringmq/wal/crashfs"
)

// TestCompression: what is large and shrinks is stored small, comes back the same, from
// recovery, from Fetch and after compaction moved it; its first part stays readable.
func TestCompression(t *testing.T) {
	text := bytes.Repeat([]byte("all the same, again and again. "), 400)
	noise := body(1, 10000)
	for _, how := range []wal.Compression{wal.CompressNone, wal.CompressS2, wal.CompressZstd} {
		w := newWorld(rand.New(rand.NewPCG(1, 1)), crashfs.New())
		w.opts.Compression, w.opts.CompressMin = how, 100
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		first := []byte("the first part")
		want := map[wal.Position][]byte{}
		for _, rest := range [][]byte{text, noise, text[:50], nil} {
			p, err := w.log.Append(kindMessage, []wal.Ref{{Queue: 1, Seq: uint64(len(want))}}, [][]byte{first, rest[:len(rest)/2], rest[len(rest)/2:]})
			if err != nil {
				t.Fatal(err)
			}
			want[p] = append(bytes.Clone(first), rest...)
		}
		if shrunk := w.log.Stats().RecordBytes < 20000; shrunk != (how != wal.CompressNone) {
			t.Errorf("%v: %d bytes", how, w.log.Stats().RecordBytes)
		}
		check := func(r *wal.Record) {
			got, err := r.Body(nil)
			if err != nil || !bytes.Equal(got, want[r.Position]) {
				t.Errorf("%v: %v: body of %d bytes, want %d, %v", how, r.Position, len(got), len(want[r.Position]), err)
			}
			if prefix, err := r.Prefix(); err != nil || !bytes.HasPrefix(prefix, first) {
				t.Errorf("%v: %v: prefix %q, %v", how, r.Position, prefix, err)
			}
			if r.Compressed() != (how != wal.CompressNone && len(got) > 10100) {
				t.Errorf("%v: %d bytes compressed: %v", how, len(got), r.Compressed())
			}
		}
		fetched := 0
		for p := range want {
			w.log.Fetch(p, make([]byte, 16<<10), func(c wal.Chunk, err error) {
				var r wal.Record
				if err == nil && c.Next(&r) {
					check(&r)
					fetched++
				}
			})
		}
		w.settle()
		w.log.Free()
		seen := 0
		if _, err := wal.Visit(w.fs.Clone(), func(r *wal.Record) error {
			check(r)
			seen++
			return nil
		}); err != nil || seen != len(want) || fetched != len(want) {
			t.Errorf("%v: %d recovered, %d fetched, %v", how, seen, fetched, err)
		}
	}
}
