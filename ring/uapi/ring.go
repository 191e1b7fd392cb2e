package uapi

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ring is one mapped io_uring. Only the thread that called Setup may use it.
type Ring struct {
	FD       int    // the descriptor; also the target of MSG_RING
	Features uint32 // Feat* of this kernel
	Flags    uint32 // Setup* in force

	sqHead, sqTail, sqFlags *uint32
	cqHead, cqTail          *uint32
	sqMask, cqMask          uint32
	sqEntries               uint32
	tail                    uint32 // ours; published to the kernel by Enter
	sqes                    unsafe.Pointer
	cqes                    unsafe.Pointer

	enterFD    uintptr
	enterFlags uintptr

	ringMem, sqeMem []byte
	waitMem         []byte
	waitArg         *GetEventsArg
	waitTS          *Timespec
}

// Setup makes a ring with the wanted entry count and the flags in p and maps it; p is filled in by
// the kernel. The errno is 0 on success.
func Setup(entries uint32, p *Params) (*Ring, syscall.Errno) {
	fd, _, errno := syscall.Syscall(SysSetup, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	if errno != 0 {
		return nil, errno
	}
	syscall.CloseOnExec(int(fd))
	r := &Ring{FD: int(fd), Features: p.Features, Flags: p.Flags, enterFD: fd}
	if errno = r.mapAll(p); errno != 0 {
		r.Close()
		return nil, errno
	}
	return r, 0
}

func (r *Ring) mapAll(p *Params) syscall.Errno {
	if p.Features&FeatSingleMmap == 0 {
		return syscall.ENOSYS // older than 5.4: nothing we support
	}
	sqSize := p.SQOff.Array + p.SQEntries*4
	if p.Flags&SetupNoSQArray != 0 {
		sqSize = 0
	}
	size := max(sqSize, p.CQOff.Cqes+p.CQEntries*uint32(unsafe.Sizeof(CQE{})))
	var err error
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.ringMem, err = unix.Mmap(r.FD, OffSQRing, int(size), prot, flags); err != nil {
		return errnoOf(err)
	}
	if r.sqeMem, err = unix.Mmap(r.FD, OffSQEs, int(p.SQEntries)*int(unsafe.Sizeof(SQE{})), prot, flags); err != nil {
		return errnoOf(err)
	}
	if r.waitMem, err = unix.Mmap(-1, 0, unix.Getpagesize(), prot, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		return errnoOf(err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.ringMem[off])) }
	r.sqHead, r.sqTail, r.sqFlags = word(p.SQOff.Head), word(p.SQOff.Tail), word(p.SQOff.Flags)
	r.cqHead, r.cqTail = word(p.CQOff.Head), word(p.CQOff.Tail)
	r.sqMask, r.cqMask = *word(p.SQOff.RingMask), *word(p.CQOff.RingMask)
	r.sqEntries = p.SQEntries
	r.tail = *r.sqTail
	r.sqes = unsafe.Pointer(&r.sqeMem[0])
	r.cqes = unsafe.Pointer(&r.ringMem[p.CQOff.Cqes])
	r.waitTS = (*Timespec)(unsafe.Pointer(&r.waitMem[0]))
	r.waitArg = (*GetEventsArg)(unsafe.Pointer(&r.waitMem[64]))
	r.waitArg.Ts = uint64(uintptr(unsafe.Pointer(r.waitTS)))
	if p.Flags&SetupNoSQArray == 0 {
		for i := uint32(0); i < p.SQEntries; i++ {
			*word(p.SQOff.Array + 4*i) = i // the index array stays the identity for ever
		}
	}
	return 0
}

func errnoOf(err error) syscall.Errno {
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return syscall.EINVAL
}

// Close unmaps and closes the ring. What the kernel still holds is cancelled by it, later.
func (r *Ring) Close() {
	for _, m := range [][]byte{r.ringMem, r.sqeMem, r.waitMem} {
		if m != nil {
			_ = unix.Munmap(m) // our own mapping: it cannot fail
		}
	}
	r.ringMem, r.sqeMem, r.waitMem = nil, nil, nil
	_ = unix.Close(r.FD) // a ring descriptor has nothing to report at close
}

// Register is io_uring_register.
func (r *Ring) Register(op uint32, arg unsafe.Pointer, n uint32) syscall.Errno {
	_, _, errno := syscall.Syscall6(SysRegister, uintptr(r.FD), uintptr(op), uintptr(arg), uintptr(n), 0, 0)
	return errno
}

// RegisterSelf registers the ring's own descriptor with the calling thread, which makes every later
// enter a little cheaper. A refusal is harmless.
func (r *Ring) RegisterSelf() syscall.Errno {
	u := RsrcUpdate{Offset: RegisterRingFDsEmpty, Data: uint64(r.FD)}
	_, _, errno := syscall.Syscall6(SysRegister, uintptr(r.FD), RegisterRingFDs, uintptr(unsafe.Pointer(&u)), 1, 0, 0)
	if errno == 0 {
		r.enterFD, r.enterFlags = uintptr(u.Offset), EnterRegisteredRing
	}
	return errno
}

// Supported asks the kernel which operations it knows and reports the first of ops that it lacks.
func (r *Ring) Supported(ops ...uint8) (missing int, errno syscall.Errno) {
	p := new(Probe)
	if errno = r.Register(RegisterProbe, unsafe.Pointer(p), 256); errno != 0 {
		return -1, errno
	}
	for _, op := range ops {
		if op > p.LastOp || p.Ops[op].Flags&ProbeOpSupported == 0 {
			return int(op), 0
		}
	}
	return -1, 0
}

// Entries returns the size of the submission ring.
func (r *Ring) Entries() uint32 { return r.sqEntries }
