package defs

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"ringmq/engine"
)

// A file of a version that did not know the later kinds opens, loads, and takes them.
func TestOlderFileTakesNewKinds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.db")
	s := mustOpen(t, path, Options{})
	s.Close()
	db, err := bbolt.Open(path, fileMode, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets[bucketsAlways:] {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, Options{})
	if got := everything(t, s); len(got) != 0 {
		t.Errorf("it holds %q", got)
	}
	done := make(chan error, 1)
	n := s.Apply([]engine.Change{
		{Kind: engine.KindPolicy, Key: []byte("p"), Value: []byte("1")},
		{Kind: engine.KindLimits, Delete: true, Key: []byte("l")},
		{Kind: engine.KindParameter, Key: []byte("a"), Value: []byte("2")},
	})
	s.Notify(n, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = mustOpen(t, path, Options{})
	defer s.Close()
	if got := everything(t, s); len(got) != 2 || got[0] != `5 "p"="1"` || got[1] != `7 "a"="2"` {
		t.Errorf("it holds %q", got)
	}
}
