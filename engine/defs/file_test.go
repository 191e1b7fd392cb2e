package defs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"ringmq/engine"
)

// everything lists the file's records in the order of Load.
func everything(t *testing.T, s *Store) (list []string) {
	t.Helper()
	err := s.Load(func(kind engine.ChangeKind, key, value []byte) error {
		list = append(list, fmt.Sprintf("%d %q=%q", kind, key, value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestFileKeepsRecords(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "d.db")
		s := mustOpen(t, path, Options{NoSync: noSync})
		if got := everything(t, s); len(got) != 0 {
			t.Errorf("a new file holds %q", got)
		}
		changes := []engine.Change{
			{Kind: engine.KindMeta, Key: []byte("m"), Value: []byte("1")},
			{Kind: engine.KindBinding, Key: []byte("b"), Value: []byte("2")},
			{Kind: engine.KindQueue, Key: []byte("q \xff\x00"), Value: []byte("3")},
			{Kind: engine.KindExchange, Key: []byte("x"), Value: []byte{}},
			{Kind: engine.KindVHost, Key: []byte("v"), Value: bytes.Repeat([]byte("5"), 100_000)},
		}
		want := []string{`0 "v"="` + strings.Repeat("5", 100_000) + `"`, `1 "x"=""`, `2 "q \xff\x00"="3"`, `3 "b"="2"`, `4 "m"="1"`}
		s.Apply(changes)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, path, Options{NoSync: noSync})
		if got := everything(t, s); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		if s.Durable() != 0 {
			t.Errorf("numbers go on at %d", s.Durable())
		}
		// An error of the reader ends the reading.
		stop, n := os.ErrProcessDone, 0
		if err := s.Load(func(engine.ChangeKind, []byte, []byte) error { n++; return stop }); err != stop || n != 1 {
			t.Errorf("%v after %d records", err, n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
}

// Files that cannot be used say why, and are left alone.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	open := func(name, want string) {
		t.Helper()
		path := filepath.Join(dir, name)
		before, _ := os.ReadFile(path)
		s, err := Open(path, Options{})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", name)
		}
	}
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("garbage.db", bytes.Repeat([]byte("garbage."), 8192))
	open("garbage.db", "is damaged or not a definitions file")
	write("zero.db", make([]byte, 16384))
	open("zero.db", "is damaged or not a definitions file")
	open("no/folder.db", "no such file or directory")

	s := mustOpen(t, filepath.Join(dir, "busy.db"), Options{})
	open("busy.db", "is in use by another process")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, format := range map[string]string{"newer.db": "2", "none.db": "x", "old.db": "0"} {
		s := mustOpen(t, filepath.Join(dir, name), Options{})
		err := s.file.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte(formatKey), []byte(format))
		})
		if err != nil || s.Close() != nil {
			t.Fatal(err)
		}
	}
	open("newer.db", "its format is 2, and this version knows formats up to 1")
	open("none.db", `its format is "x", which is none`)
	open("old.db", `its format is "0", which is none`)
}

// A crash while the file was made leaves nothing that the next start minds.
func TestUnfinishedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.db")
	if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path, Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// A record that changed on the disk is found, and named.
func TestDamagedRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.db")
	s := mustOpen(t, path, Options{})
	s.Apply([]engine.Change{put("the key", "the value of the record")})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"the key", "the value of", "of the record"} {
		text := bytes.Clone(whole)
		at := bytes.Index(text, []byte(place))
		if at < 0 {
			t.Fatalf("no %q in the file", place)
		}
		text[at+4] ^= 1
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, path, Options{})
		err := s.Load(func(kind engine.ChangeKind, _, _ []byte) error {
			t.Errorf("%q: the record was taken", place)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "is damaged: the checksum of record the") {
			t.Errorf("%q: %v", place, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A page that is no page any more does not end the process but the start.
func TestDamagedPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.db")
	s := mustOpen(t, path, Options{})
	var changes []engine.Change
	for i := range 2000 {
		changes = append(changes, put(fmt.Sprintf("key %04d", i), strings.Repeat("v", 100)))
	}
	s.Apply(changes)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	found := 0
	for at := 2 * page; at < len(whole); at += page {
		text := bytes.Clone(whole)
		clear(text[at : at+page])
		// A file of its own each: one whose opening failed in the middle stays locked.
		path := fmt.Sprintf("%s.%d", path, at/page)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{NoSync: true})
		if err == nil {
			n := 0
			err = s.Load(func(engine.ChangeKind, []byte, []byte) error { n++; return nil })
			if err == nil && n < len(changes) {
				t.Errorf("page %d: %d of %d records and no error", at/page, n, len(changes))
			}
			s.Close()
		}
		if err != nil {
			found++
		}
	}
	if found < 50 {
		t.Errorf("%d damaged pages were found", found)
	}
}
