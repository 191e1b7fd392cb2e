package ring

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
)

// scriptedFiles is a backend without sockets whose file operations end as a script says. It is driven by
// the test.
type scriptedFiles struct {
	Backend // nil: nothing else is called
	port    *Port
	results []int32 // of the operations, in the order of their start; then everything succeeds
	pending []*FileOp
	log     []string // what was started
	held    bool     // Poll reports nothing
}

func (b *scriptedFiles) Name() string       { return "scripted" }
func (b *scriptedFiles) Open(p *Port) error { b.port = p; return nil }
func (b *scriptedFiles) Bell()              {}
func (b *scriptedFiles) Quiet() bool        { return true }
func (b *scriptedFiles) Close()             {}

func (b *scriptedFiles) WriteFile(op *FileOp) {
	b.log = append(b.log, fmt.Sprintf("%d fd %d at %d, %d bytes", op.Action, op.Fd, op.Offset, len(op.Rest)))
	b.pending = append(b.pending, op)
}

func (b *scriptedFiles) Poll(wait int64) int {
	b.port.Tick()
	if b.held {
		must(wait >= 0 || !b.port.loop.stopped, "the loop's end waits for a write that the test holds")
		return 0
	}
	ended := b.pending
	b.pending = nil
	for _, op := range ended {
		b.end(op)
	}
	return b.port.RunFiles()
}

// end reports an operation's result.
func (b *scriptedFiles) end(op *FileOp) {
	res := int32(0)
	if op.Action == FileWrite || op.Action == FileWriteSync {
		res = int32(len(op.Rest))
	}
	if len(b.results) > 0 {
		res, b.results = b.results[0], b.results[1:]
	}
	b.port.Wrote(b.port.FileOp(op.Tag()), res)
}

// driveScripted makes one loop on a scripted backend.
func driveScripted(t *testing.T) (*Loop, *scriptedFiles) {
	t.Helper()
	b := &scriptedFiles{}
	return driveFiles(t, b, nil), b
}

// syncingFiles is one whose writes can sync themselves.
type syncingFiles struct{ *scriptedFiles }

func (syncingFiles) SyncsWrites() {}

func driveFiles(t *testing.T, b Backend, clock func() int64) *Loop {
	t.Helper()
	g, err := New(Options{Cores: []int{0}, Clock: clock, NewBackend: func(int) (Backend, error) { return b, nil }}, &testApp{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Drive(); err != nil {
		t.Fatal(err)
	}
	return g.loops[0]
}

func errnoResult(e syscall.Errno) int32 { return -int32(e) }

// TestWriteFileResults: what is started for each result of the kernel, and what done gets.
func TestWriteFileResults(t *testing.T) {
	const nothing, write, sync = FileNothing, FileWrite, FileSync
	row := func(a FileAction, at, n int) string { return fmt.Sprintf("%d fd 7 at %d, %d bytes", a, at, n) }
	eio, eintr, eagain := errnoResult(syscall.EIO), errnoResult(syscall.EINTR), errnoResult(syscall.EAGAIN)
	for _, c := range []struct {
		name    string
		bytes   int
		sync    bool
		results []int32
		started []string
		want    error
	}{
		{"whole", 8192, false, nil, []string{row(write, 100, 8192)}, nil},
		{"whole, durable", 8192, true, nil, []string{row(write, 100, 8192), row(sync, 8292, 0)}, nil},
		{"nothing", 0, false, nil, []string{row(nothing, 100, 0)}, nil},
		{"sync", 0, true, nil, []string{row(sync, 100, 0)}, nil},
		{"short", 8192, false, []int32{4096}, []string{row(write, 100, 8192), row(write, 4196, 4096)}, nil},
		{"short twice, durable", 8192, true, []int32{4096, 4095},
			[]string{row(write, 100, 8192), row(write, 4196, 4096), row(write, 8291, 1), row(sync, 8292, 0)}, nil},
		{"short, then an error", 8192, true, []int32{4096, errnoResult(syscall.ENOSPC)},
			[]string{row(write, 100, 8192), row(write, 4196, 4096)}, syscall.ENOSPC},
		{"none taken", 8192, true, []int32{0}, []string{row(write, 100, 8192)}, io.ErrShortWrite},
		{"none taken of the rest", 8192, false, []int32{1, 0},
			[]string{row(write, 100, 8192), row(write, 101, 8191)}, io.ErrShortWrite},
		{"interrupted", 4096, true, []int32{eintr, eagain},
			[]string{row(write, 100, 4096), row(write, 100, 4096), row(write, 100, 4096), row(sync, 4196, 0)}, nil},
		{"failed: no sync", 4096, true, []int32{eio}, []string{row(write, 100, 4096)}, syscall.EIO},
		{"the sync failed", 4096, true, []int32{4096, eio},
			[]string{row(write, 100, 4096), row(sync, 4196, 0)}, syscall.EIO},
		{"a failed sync is final", 0, true, []int32{eio}, []string{row(sync, 100, 0)}, syscall.EIO},
		{"an interrupted sync as well", 4096, true, []int32{4096, eintr},
			[]string{row(write, 100, 4096), row(sync, 4196, 0)}, syscall.EINTR},
		{"interrupted often, but it moves", 4096, false,
			slices.Concat(slices.Repeat([]int32{eintr}, 150), []int32{1000}, slices.Repeat([]int32{eintr}, 150)),
			slices.Concat(slices.Repeat([]string{row(write, 100, 4096)}, 151),
				slices.Repeat([]string{row(write, 1100, 3096)}, 151)), nil},
		{"interrupted for ever", 4096, false, slices.Repeat([]int32{eintr}, 1000),
			slices.Repeat([]string{row(write, 100, 4096)}, 1+fileRetriesMax), syscall.EINTR},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, b := driveScripted(t)
			b.results = c.results
			calls, got := 0, error(nil)
			l.WriteFile(7, 100, make([]byte, c.bytes), c.sync, func(err error) { calls++; got = err })
			if calls != 0 {
				t.Error("done was called inside WriteFile")
			}
			for range 2 * fileRetriesMax {
				b.port.Turn()
			}
			if calls != 1 || got != c.want {
				t.Errorf("done was called %d times, with %v, want %v", calls, got, c.want)
			}
			if !slices.Equal(b.log, c.started) {
				t.Errorf("started %q\nwant    %q", b.log, c.started)
			}
		})
	}
}

// TestWriteFileOneStep: which writes sync themselves, and what becomes of those that cannot.
func TestWriteFileOneStep(t *testing.T) {
	const write, sync, both = FileWrite, FileSync, FileWriteSync
	row := func(a FileAction, at, n int) string { return fmt.Sprintf("%d fd 7 at %d, %d bytes", a, at, n) }
	pair := []string{row(write, 0, 4096), row(sync, 4096, 0)}
	for _, c := range []struct {
		name    string
		bytes   int
		results []int32
		started []string
		want    error
		later   []string // a second write of 4096 durable bytes
	}{
		{"whole", 4096, nil, []string{row(both, 0, 4096)}, nil, []string{row(both, 0, 4096)}},
		{"large", 128 << 10, nil, []string{row(write, 0, 128<<10), row(sync, 128<<10, 0)}, nil, []string{row(both, 0, 4096)}},
		{"short", 8192, []int32{4096}, []string{row(both, 0, 8192), row(both, 4096, 4096)}, nil, []string{row(both, 0, 4096)}},
		{"interrupted", 4096, []int32{errnoResult(syscall.EINTR)}, append([]string{row(both, 0, 4096)}, pair...), nil, pair},
		{"not supported", 4096, []int32{errnoResult(syscall.EOPNOTSUPP)}, append([]string{row(both, 0, 4096)}, pair...), nil, pair},
		{"not supported for the rest", 8192, []int32{4096, errnoResult(syscall.EINVAL)},
			[]string{row(both, 0, 8192), row(both, 4096, 4096), row(write, 4096, 4096), row(sync, 8192, 0)}, nil, pair},
		{"failed", 4096, []int32{errnoResult(syscall.EIO)}, []string{row(both, 0, 4096)}, syscall.EIO, []string{row(both, 0, 4096)}},
		{"nothing taken", 4096, []int32{0}, []string{row(both, 0, 4096)}, io.ErrShortWrite, []string{row(both, 0, 4096)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &scriptedFiles{results: c.results}
			l := driveFiles(t, syncingFiles{b}, nil)
			durable := func(n int) (err error) {
				calls := 0
				l.WriteFile(7, 0, make([]byte, n), true, func(e error) { calls++; err = e })
				for range 10 {
					b.port.Turn()
				}
				if calls != 1 {
					t.Errorf("done was called %d times", calls)
				}
				return err
			}
			if err := durable(c.bytes); err != c.want {
				t.Errorf("%v, want %v", err, c.want)
			}
			if !slices.Equal(b.log, c.started) {
				t.Errorf("started %q\nwant    %q", b.log, c.started)
			}
			b.log = nil
			if err := durable(4096); err != nil || !slices.Equal(b.log, c.later) {
				t.Errorf("later started %q, %v\nwant          %q", b.log, err, c.later)
			}
		})
	}
}

// TestWriteFileOneStepRests: a write that was slow is no example to follow, for longer each time; and one that
// began as a pair stays one, whatever the time, because its first part is not synced.
func TestWriteFileOneStepRests(t *testing.T) {
	now := int64(1e12)
	b := &scriptedFiles{}
	l := driveFiles(t, syncingFiles{b}, func() int64 { return now })
	var started []FileAction
	write := func(took int64, results ...int32) {
		b.results, b.held = results, true
		done := false
		b.port.Turn()
		l.WriteFile(7, 0, make([]byte, 4096), true, func(error) { done = true })
		started = append(started, b.pending[0].Action)
		now += took
		b.held = false
		for !done {
			b.port.Turn()
			now++
		}
	}
	const second = int64(1e9)
	write(oneStepSlow + 1)
	write(0) // a second's rest
	now += second
	write(oneStepSlow + 1)
	now += second
	write(0) // two seconds' rest
	b.log = nil
	write(2*second, 1000) // short, and the rest is over meanwhile
	if last := b.log[len(b.log)-1]; last != "2 fd 7 at 4096, 0 bytes" {
		t.Errorf("a write that began as a pair ended with %q", last)
	}
	write(0)
	for range oneStepTrust {
		write(0)
	}
	write(oneStepSlow + 1)
	now += second + 1000
	write(0) // trusted again: a second's rest was enough
	want := []FileAction{FileWriteSync, FileWrite, FileWriteSync, FileWrite, FileWrite, FileWriteSync}
	if !slices.Equal(started[:6], want) || started[len(started)-1] != FileWriteSync {
		t.Errorf("started %v, want %v, then FileWriteSync to the end", started, want)
	}
	l.WriteFile(7, 0, make([]byte, 4096), false, func(error) {})
	b.port.Turn()
	write(0)
	if got := started[len(started)-1]; got != FileWrite {
		t.Errorf("after a write without a sync %v", got)
	}
}

// TestWriteFileKeepsTheLoop: a loop that is asked to stop goes on turning until done was called, and what
// done starts is waited for as well.
func TestWriteFileKeepsTheLoop(t *testing.T) {
	l, b := driveScripted(t)
	b.held = true
	var ended []int
	l.WriteFile(7, 0, make([]byte, 10), true, func(error) {
		ended = append(ended, 1)
		l.WriteFile(7, 10, make([]byte, 10), true, func(error) { ended = append(ended, 2) })
	})
	l.group.Shutdown(t.Context())
	for range 10 {
		if !b.port.Turn() {
			t.Fatal("the loop ended with a write in flight")
		}
	}
	if len(ended) != 0 {
		t.Fatalf("done was called without a result")
	}
	b.held = false
	for range 10 {
		b.port.Turn()
	}
	if !slices.Equal(ended, []int{1, 2}) || !l.stopped {
		t.Errorf("ended %v, stopped %v", ended, l.stopped)
	}
}

// TestWriteFileAfterTheLastTurn: a write that a function posted at the very end begins is waited for.
func TestWriteFileAfterTheLastTurn(t *testing.T) {
	l, b := driveScripted(t)
	ended := false
	l.Post(func() {
		l.beginStop()
		l.Post(func() { l.WriteFile(7, 0, make([]byte, 10), true, func(error) { ended = true }) })
	})
	for b.port.Turn() {
	}
	if !ended {
		t.Error("the loop ended with a write in flight")
	}
}
