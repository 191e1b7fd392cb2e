//ringmq:hot

package ring

import (
	"io"
	"syscall"
)

// FileBackend is what a Backend implements besides if it can write files without blocking the loop.
// io_uring does; with the others WriteFile must not be called (see Loop.WritesFiles).
type FileBackend interface {
	// WriteFile starts what op.Action says. The next Poll hands it to the kernel at the latest, and a
	// later Poll reports its result by Port.Wrote, exactly once. Until then op and its bytes stay as
	// they are.
	WriteFile(op *FileOp)
}

// FileAction is one operation on a file.
type FileAction uint8

// The actions of a FileOp.
const (
	FileNothing   FileAction = iota // completes with 0
	FileWrite                       // writes Rest at Offset
	FileSync                        // all that was written before is durable at completion (fdatasync)
	FileWriteSync                   // FileWrite, durable at completion (RWF_DSYNC); only for a syncWriter
)

// syncWriter is a FileBackend that can carry out FileWriteSync.
type syncWriter interface{ SyncsWrites() }

// FileOp is one WriteFile on its way through the kernel. Its exported fields tell the backend what to do
// now; all of it is the loop's to change.
type FileOp struct {
	Action FileAction
	Fd     int32
	Offset int64  // bytes; of Rest
	Rest   []byte // what is not written yet

	sync    bool // a FileSync follows when all is written
	retries int  // in a row
	tag     uint64
	err     error
	oneStep bool  // by FileWriteSync, all of it: decided at the beginning
	began   int64 // a FileWriteSync, ns
	done    func(error)
	next    *FileOp // in the free list or the list of the finished
}

// Tag names the operation in its completion; at most 32 bits.
func (op *FileOp) Tag() uint64 { return op.tag }

// fileRetriesMax bounds how often in a row a write is submitted again because the kernel said EINTR or
// EAGAIN. It ends a livelock, it is no policy: both are rare already for a regular file.
const fileRetriesMax = 200

// fileState is the part of a Loop that is about files.
type fileState struct {
	backend  FileBackend // nil: this loop cannot write files
	ops      []*FileOp   // all there are, by tag
	free     *FileOp
	inFlight int     // WriteFile calls whose done was not called yet
	finished *FileOp // results are in, done is to be called, in this order
	last     *FileOp // of finished
	holds    int     // see HoldSpin

	// For FileWriteSync, see oneStep.
	oneStepOn   bool  // the backend can, and nothing has spoken against it for good
	oneStepRest int64 // how long it is left alone after it was slow, ns
	oneStepFrom int64 // not before, ns
	oneStepGood int   // in a row
}

// WritesFiles reports whether WriteFile may be used: the backend is io_uring. Any goroutine.
func (l *Loop) WritesFiles() bool { return l.files.backend != nil }

// WriteFile writes all of buf at offset of the file fd and, with sync, makes it durable together with all
// that earlier WriteFiles wrote to fd and had ended. An empty buf with sync is an fdatasync. Loop thread
// only. REQUIRES: WritesFiles(), and it is not called in App.Stop.
//
// done is called once, on the loop's thread, in a later turn and never inside this call. Its error is nil
// only if every byte was taken and the sync that was asked for succeeded; else it is the syscall.Errno, or
// io.ErrShortWrite if the kernel takes nothing. A sync that failed is never repeated: the kernel may have
// dropped what it could not write and would report success.
//
// buf lies outside the Go heap and stays as it is until done. For a descriptor opened with O_DIRECT its
// address and length and offset are multiples of 4096. The order of several writes in flight is undefined.
//
// A small write and its sync are one operation (RWF_DSYNC) as long as that is fast, see oneStep. Else the
// sync is an operation of its own, begun when the write has ended.
func (l *Loop) WriteFile(fd int, offset int64, buf []byte, sync bool, done func(error)) {
	must(l.files.backend != nil, "this loop cannot write files")
	op := l.takeFileOp()
	op.Fd, op.Offset, op.Rest, op.sync, op.done = int32(fd), offset, buf, sync, done
	if len(buf) > 0 {
		l.stats.fileWrites.add(1)
	}
	if sync {
		l.stats.fileSyncs.add(1)
	} else if len(buf) > 0 {
		// A write that syncs itself need not cover what was written without a sync.
		l.files.oneStepOn = false
	}
	op.oneStep = sync && l.oneStep(len(buf))
	l.files.inFlight++
	l.startFile(op)
}

// HoldSpin counts disk I/O that other threads do for this loop, +1 before and -1 after. While the sum is
// above zero, or a WriteFile is in flight, the loop does not spin before it blocks: the kernel's workers
// that complete writes run on the loop's core, and a thread that spins keeps them waiting for the next
// tick (2 to 4 ms where 50 us were due). Loop thread only.
func (l *Loop) HoldSpin(delta int) {
	l.files.holds += delta
	must(l.files.holds >= 0, "HoldSpin is below zero")
}

// mayDelayDisk reports that spinning would hold up disk I/O.
func (l *Loop) mayDelayDisk() bool { return l.files.inFlight+l.files.holds > 0 }

// takeFileOp returns an empty operation.
func (l *Loop) takeFileOp() *FileOp {
	op := l.files.free
	if op == nil {
		op = &FileOp{tag: uint64(len(l.files.ops))}
		l.files.ops = append(l.files.ops, op)
		return op
	}
	l.files.free = op.next
	op.next = nil
	return op
}

// startFile starts what is next to do: write the rest, then sync.
func (l *Loop) startFile(op *FileOp) {
	switch {
	case len(op.Rest) > 0 && op.oneStep:
		op.Action = FileWriteSync
		op.began = l.now
	case len(op.Rest) > 0:
		op.Action = FileWrite
	case op.sync:
		op.Action = FileSync
	default:
		op.Action = FileNothing
	}
	l.files.backend.WriteFile(op)
}

// wrote takes the result of an action: the bytes taken, or a negated errno. It reports whether another
// action was started.
func (l *Loop) wrote(op *FileOp, res int32) (started bool) {
	if res < 0 {
		return l.fileFailed(op, syscall.Errno(-res))
	}
	if op.Action != FileWrite && op.Action != FileWriteSync {
		l.finishFile(op, nil)
		return false
	}
	if op.Action == FileWriteSync {
		l.judgeOneStep(op)
	}
	n := int(res)
	must(n <= len(op.Rest), "more was written than there is")
	if n == 0 {
		l.finishFile(op, io.ErrShortWrite)
		return false
	}
	op.retries = 0
	op.Rest = op.Rest[n:]
	op.Offset += int64(n)
	if len(op.Rest) == 0 && (!op.sync || op.Action == FileWriteSync) {
		l.finishFile(op, nil)
		return false
	}
	l.startFile(op)
	return true
}

// fileFailed judges an errno. An interrupted write is begun again, a sync is not, whatever the errno.
func (l *Loop) fileFailed(op *FileOp, errno syscall.Errno) (started bool) {
	again := errno == syscall.EINTR || errno == syscall.EAGAIN
	if op.Action == FileWriteSync && (again || errno == syscall.EOPNOTSUPP || errno == syscall.EINVAL) {
		// Not this way: what is left is written anew, and synced by itself.
		l.files.oneStepOn, op.oneStep = false, false
		l.startFile(op)
		return true
	}
	if again && op.Action == FileWrite && op.retries < fileRetriesMax {
		op.retries++
		l.startFile(op)
		return true
	}
	l.finishFile(op, errno)
	return false
}

// finishFile queues an operation whose outcome is known.
func (l *Loop) finishFile(op *FileOp, err error) {
	op.err = err
	if l.files.last == nil {
		l.files.finished = op
	} else {
		l.files.last.next = op
	}
	l.files.last = op
}

const (
	// oneStepBytes is the largest write that syncs itself: larger ones come from a loop with much to do.
	oneStepBytes = 64 << 10
	// oneStepSlow is what it may take, oneStepRestMin and oneStepRestMax how long it is left alone after
	// it took longer, and oneStepTrust how many in a row make up for that.
	oneStepSlow    = int64(2e6)
	oneStepRestMin = int64(1e9)
	oneStepRestMax = int64(60e9)
	oneStepTrust   = 100
)

// oneStep decides whether a write syncs itself. On a quiet loop that is a third faster, because the loop
// is woken once and not twice. But such a write is completed by a common worker thread of the kernel,
// which cannot interrupt whoever has the core: beside another busy process, or on a loop with more to do,
// it takes a tick of 4 ms where an fdatasync, carried out by a thread that belongs to the ring and
// inherits our short slice (askShortSlice), takes 0.1. So it is tried, and left alone where it is slow. It
// may cover its own bytes only (FUA), which is all there is unless something was written without a sync.
func (l *Loop) oneStep(bytes int) bool {
	f := &l.files
	return f.oneStepOn && bytes <= oneStepBytes && l.now >= f.oneStepFrom
}

// judgeOneStep looks at how long a write took that synced itself.
func (l *Loop) judgeOneStep(op *FileOp) {
	f := &l.files
	if l.now-op.began <= oneStepSlow {
		if f.oneStepGood++; f.oneStepGood >= oneStepTrust {
			f.oneStepRest = 0
		}
		return
	}
	f.oneStepGood = 0
	f.oneStepRest = min(max(2*f.oneStepRest, oneStepRestMin), oneStepRestMax)
	f.oneStepFrom = l.now + f.oneStepRest
}

// runFiles calls done of what has finished and returns how many that were.
func (l *Loop) runFiles() (count int) {
	op := l.files.finished
	l.files.finished, l.files.last = nil, nil
	for op != nil {
		next, done, err := op.next, op.done, op.err
		*op = FileOp{tag: op.tag, next: l.files.free}
		l.files.free = op
		l.files.inFlight--
		count++
		done(err) // may write again, with this very op
		op = next
	}
	if count > 0 && l.stopping {
		l.checkStopped()
	}
	return count
}

// drainFiles waits for the last file operations of a loop that makes no more turns: the kernel must not
// read from, and report to, memory that is gone.
func (l *Loop) drainFiles() {
	for l.files.inFlight > 0 {
		l.backend.Poll(-1)
	}
}
