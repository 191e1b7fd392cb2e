package defs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"ringmq/engine"
)

// rig is a store whose commits and clock are the test's.
type rig struct {
	*Store
	t       *testing.T
	asked   chan batch // a commit that waits for its outcome
	outcome chan error // nil: it is really written
	ticks   chan time.Time
	armed   chan struct{} // the clock was asked for
	trouble chan error
	fatal   chan error
}

// newRig opens a store. Fully manual: no commit ends before the test says how.
func newRig(t *testing.T) *rig {
	r := &rig{t: t, asked: make(chan batch), outcome: make(chan error), ticks: make(chan time.Time),
		armed: make(chan struct{}, 100), trouble: make(chan error, 100), fatal: make(chan error, 100)}
	s := mustOpen(t, t.TempDir()+"/d.db", Options{
		NoSync:  true,
		Fatal:   func(err error) { r.fatal <- err },
		Trouble: func(err error) { r.trouble <- err },
		After: func(d time.Duration) <-chan time.Time {
			if d != time.Second {
				t.Errorf("tried again after %v", d)
			}
			r.armed <- struct{}{}
			return r.ticks
		},
	})
	r.Store = s
	real := s.commit
	s.commit = func(b batch) error {
		r.asked <- maps.Clone(b)
		err := <-r.outcome
		if err == nil {
			err = real(b)
		}
		return err
	}
	return r
}

func mustOpen(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put is a change that puts value under key.
func put(key, value string) engine.Change {
	return engine.Change{Kind: engine.KindQueue, Key: []byte(key), Value: []byte(value)}
}

func del(key string) engine.Change {
	return engine.Change{Kind: engine.KindQueue, Delete: true, Key: []byte(key)}
}

// notify is a Notify whose answer comes on a channel.
func (r *rig) notify(n uint64) <-chan error {
	c := make(chan error, 2)
	r.Notify(n, func(err error) { c <- err })
	return c
}

// queues lists what the file holds of queues.
func queues(t *testing.T, s *Store) (list []string) {
	t.Helper()
	err := s.Load(func(kind engine.ChangeKind, key, value []byte) error {
		if kind == engine.KindQueue {
			list = append(list, string(key)+"="+string(value))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (r *rig) want(list ...string) {
	r.t.Helper()
	if got := queues(r.t, r.Store); !slices.Equal(got, list) {
		r.t.Errorf("the file holds %q, want %q", got, list)
	}
}

// end closes the store, whose pending changes are written meanwhile.
func (r *rig) end() {
	r.t.Helper()
	closed := make(chan error)
	go func() { closed <- r.Close() }()
	for {
		select {
		case <-r.asked:
			r.outcome <- nil
		case err := <-closed:
			if err != nil {
				r.t.Error(err)
			}
			return
		}
	}
}

const errFull = syscall.ENOSPC

// full is what the disk says through bbolt.
func full() error { return &fs.PathError{Op: "write", Path: "d.db", Err: errFull} }

// What gathers while a commit is under way goes out with the next: a burst costs
// a few commits.
func TestGroupCommit(t *testing.T) {
	r := newRig(t)
	const changes, writers = 10_000, 8
	if n := r.Apply([]engine.Change{put("first", "1")}); n != 1 {
		t.Errorf("the first change has number %d", n)
	}
	<-r.asked
	var wg sync.WaitGroup
	var told sync.WaitGroup
	told.Add(changes)
	for w := range writers {
		wg.Go(func() {
			for i := range changes / writers {
				n := r.Apply([]engine.Change{put(fmt.Sprintf("%d.%d", w, i), "x")})
				r.Notify(n, func(err error) {
					if err != nil || r.Durable() < n {
						t.Errorf("change %d: %v at %d", n, err, r.Durable())
					}
					told.Done()
				})
			}
		})
	}
	wg.Wait()
	if r.Durable() != 0 {
		t.Errorf("%d is durable while nothing is written", r.Durable())
	}
	r.outcome <- nil
	if b := <-r.asked; len(b) != changes {
		t.Errorf("the second commit has %d changes of %d", len(b), changes)
	}
	r.outcome <- nil
	told.Wait()
	if r.Durable() != changes+1 || len(queues(t, r.Store)) != changes+1 {
		t.Errorf("%d durable, %d in the file", r.Durable(), len(queues(t, r.Store)))
	}
	r.end()
}

// The last change of a record counts, within a set and across sets.
func TestLastChangeCounts(t *testing.T) {
	r := newRig(t)
	r.Apply([]engine.Change{put("a", "1")})
	<-r.asked
	r.Apply([]engine.Change{put("a", "2"), put("b", "1"), put("c", "1")})
	n := r.Apply([]engine.Change{del("b"), put("a", "3"), del("never")})
	r.outcome <- nil
	<-r.asked
	c := r.notify(n)
	r.outcome <- nil
	if err := <-c; err != nil {
		t.Error(err)
	}
	r.want("a=3", "c=1")
	// What is durable already is told before Notify returns.
	select {
	case err := <-r.notify(n):
		if err != nil {
			t.Error(err)
		}
	default:
		t.Error("not told at once")
	}
	r.end()
}

// A full disk: who waits is told, the changes stay in force and in order, and
// are tried again with the next change and each second.
func TestNoRoom(t *testing.T) {
	r := newRig(t)
	n1 := r.Apply([]engine.Change{put("a", "1"), put("b", "1")})
	<-r.asked
	c1 := r.notify(n1)
	n2 := r.Apply([]engine.Change{put("a", "2")})
	c2 := r.notify(n2)
	r.outcome <- full()
	if err := <-c1; err != errFull {
		t.Errorf("the first was told %v", err)
	}
	if err := <-r.trouble; err != errFull || r.Trouble() != errFull {
		t.Errorf("trouble: %v, %v", err, r.Trouble())
	}
	b := <-r.asked // with the second change
	if got := string(b[recordID{engine.KindQueue, "a"}].Value); got != "2" || len(b) != 2 {
		t.Errorf("tried again: %d changes, a=%s", len(b), got)
	}
	r.outcome <- full()
	if err := <-c2; err != errFull {
		t.Errorf("the second was told %v", err)
	}
	c := r.notify(n1) // somebody asks: he waits for the next attempt
	<-r.armed
	<-r.armed
	r.ticks <- time.Time{}
	<-r.asked
	r.outcome <- full()
	if err := <-c; err != errFull || r.Durable() != 0 {
		t.Errorf("asked again: %v, %d durable", err, r.Durable())
	}
	<-r.armed
	r.Apply([]engine.Change{put("made", "1")})
	<-r.asked
	r.Apply([]engine.Change{del("made"), del("b")})
	r.outcome <- full()
	<-r.asked
	r.outcome <- full()
	<-r.armed
	<-r.armed
	r.ticks <- time.Time{} // each second
	if b := <-r.asked; len(b) != 1 {
		t.Errorf("deletions of what the file never had are kept: %v", b)
	}
	r.want()
	r.outcome <- nil
	if err := <-r.trouble; err != nil {
		t.Errorf("trouble ends with %v", err)
	}
	if err := <-r.notify(n2); err != nil || r.Trouble() != nil {
		t.Errorf("after all: %v, %v", err, r.Trouble())
	}
	if len(r.trouble) != 0 || len(r.fatal) != 0 {
		t.Error("trouble was told more than once")
	}
	r.want("a=2")
	r.end()
}

// Any other failure is the end: nothing is tried again, nobody hears good news.
func TestFatal(t *testing.T) {
	for name, broken := range map[string]error{
		"i/o":                 &fs.PathError{Op: "write", Path: "d.db", Err: syscall.EIO},
		"sync":                syscall.EIO,
		"sync without room":   syscall.ENOSPC, // as fdatasync gives it
		"grow, sync, no room": errors.New("file sync error: sync d.db: no space left on device"),
		"go's sync, no room":  &fs.PathError{Op: "sync", Path: "d.db", Err: syscall.ENOSPC},
		"unknown":             errors.New("what"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			n := r.Apply([]engine.Change{put("a", "1")})
			<-r.asked
			c := r.notify(n)
			r.outcome <- broken
			if err := <-r.fatal; err != broken {
				t.Errorf("fatal: %v", err)
			}
			if err := <-c; err != broken {
				t.Errorf("told %v", err)
			}
			n = r.Apply([]engine.Change{put("b", "1")})
			if err := <-r.notify(n); err != broken || r.Trouble() != broken || r.Durable() != 0 {
				t.Errorf("afterwards: %v, %v, %d durable", err, r.Trouble(), r.Durable())
			}
			r.want()
			if err := r.Close(); err != broken || len(r.fatal) != 0 {
				t.Errorf("close: %v", err)
			}
		})
	}
	for name, room := range map[string]error{
		"write": full(),
		"quota": &fs.PathError{Op: "write", Path: "d.db", Err: syscall.EDQUOT},
		"wrap":  fmt.Errorf("x: %w", full()),
		"grow":  errors.New("file resize error: truncate d.db: no space left on device"),
	} {
		if noRoom(room) == 0 {
			t.Errorf("%s: taken for fatal", name)
		}
	}
}

// Close writes what is pending, and says when it cannot.
func TestClose(t *testing.T) {
	r := newRig(t)
	r.Apply([]engine.Change{put("a", "1")})
	<-r.asked
	n := r.Apply([]engine.Change{put("b", "1")})
	c := r.notify(n)
	closed := make(chan error)
	go func() { closed <- r.Close() }()
	r.outcome <- nil
	<-r.asked
	r.outcome <- nil
	if err := <-c; err != nil {
		t.Errorf("told %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := <-r.notify(n + 1); err != ErrClosed {
		t.Errorf("told %v after the end", err)
	}

	r = newRig(t)
	n = r.Apply([]engine.Change{put("a", "1")})
	<-r.asked
	early := r.notify(n)
	late := r.notify(n + 1)
	go func() { closed <- r.Close() }()
	r.outcome <- full()
	for again := true; again; { // one more try, if Close came after this one
		select {
		case <-r.asked:
			r.outcome <- full()
		case err := <-closed:
			if again = false; err != errFull {
				t.Errorf("closed with %v", err)
			}
		}
	}
	if err := <-early; err != errFull {
		t.Errorf("told %v", err)
	}
	if err := <-late; err != ErrClosed {
		t.Errorf("told %v", err)
	}
}
