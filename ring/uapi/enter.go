//ringmq:hot

package uapi

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Next returns the next free submission entry, or nil when the ring is full (enter, then ask again).
// The entry still holds an earlier operation: the Prep helpers zero it.
func (r *Ring) Next() *SQE {
	if r.tail-atomic.LoadUint32(r.sqHead) >= r.sqEntries {
		return nil
	}
	s := (*SQE)(unsafe.Add(r.sqes, uintptr(r.tail&r.sqMask)*unsafe.Sizeof(SQE{})))
	r.tail++
	return s
}

// Unsubmitted returns how many prepared entries the kernel has not taken yet.
func (r *Ring) Unsubmitted() uint32 { return r.tail - atomic.LoadUint32(r.sqHead) }

// Ready reports, without a system call, whether completions wait or an enter would bring some.
func (r *Ring) Ready() bool {
	return atomic.LoadUint32(r.cqTail) != *r.cqHead || r.NeedsEnter()
}

// NeedsEnter reports whether completions exist that only an enter with EnterGetEvents delivers.
func (r *Ring) NeedsEnter() bool {
	return atomic.LoadUint32(r.sqFlags)&(SQTaskrun|SQCQOverflow) != 0
}

// Submit hands the prepared entries over and collects what is ready, never waiting. It uses a raw
// system call: the Go scheduler does not hear of it, so it must stay short.
func (r *Ring) Submit() syscall.Errno {
	n := r.publish()
	_, _, errno := syscall.RawSyscall6(SysEnter, r.enterFD, uintptr(n), 0, r.enterFlags|EnterGetEvents, 0, 0)
	return errno
}

// SubmitOnly hands the prepared entries over without running completions.
func (r *Ring) SubmitOnly() syscall.Errno {
	n := r.publish()
	_, _, errno := syscall.RawSyscall6(SysEnter, r.enterFD, uintptr(n), 0, r.enterFlags, 0, 0)
	return errno
}

// Wait hands the prepared entries over and waits for one completion, at most timeout nanoseconds
// (negative: no limit). The Go scheduler knows of the wait. ETIME and EINTR are ordinary outcomes.
func (r *Ring) Wait(timeout int64) syscall.Errno {
	n := r.publish()
	if timeout < 0 {
		_, _, errno := syscall.Syscall6(SysEnter, r.enterFD, uintptr(n), 1, r.enterFlags|EnterGetEvents, 0, 0)
		return errno
	}
	r.waitTS.Sec, r.waitTS.Nsec = timeout/1e9, timeout%1e9
	_, _, errno := syscall.Syscall6(SysEnter, r.enterFD, uintptr(n), 1, r.enterFlags|EnterGetEvents|EnterExtArg,
		uintptr(unsafe.Pointer(r.waitArg)), unsafe.Sizeof(GetEventsArg{}))
	return errno
}

// publish makes the prepared entries visible. The kernel reads the tail inside the enter of this same
// thread, so the order of the two is the program's.
func (r *Ring) publish() uint32 {
	atomic.StoreUint32(r.sqTail, r.tail)
	return r.tail - atomic.LoadUint32(r.sqHead)
}

// Reap copies up to len(dst) completions out, gives their places back to the kernel and returns how
// many there were.
func (r *Ring) Reap(dst []CQE) int {
	head := *r.cqHead // only this thread moves it
	n := min(int(atomic.LoadUint32(r.cqTail)-head), len(dst))
	if n == 0 {
		return 0
	}
	for i := range dst[:n] {
		dst[i] = *(*CQE)(unsafe.Add(r.cqes, uintptr((head+uint32(i))&r.cqMask)*unsafe.Sizeof(CQE{})))
	}
	atomic.StoreUint32(r.cqHead, head+uint32(n))
	return n
}
