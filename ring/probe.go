package ring

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"ringmq/ring/uapi"
)

// chooseBackend returns the maker of backends for a wish ("auto", "uring", "epoll") and, when "auto"
// ended at epoll, the reason.
func chooseBackend(wish string) (make func(int) (Backend, error), reason string, err error) {
	switch wish {
	case "epoll":
		return newEpoll, "", nil
	case "", "auto":
		if err := probeUring(); err != nil {
			return newEpoll, err.Error(), nil
		}
		return newUring, "", nil
	case "uring", uringName:
		if err := probeUring(); err != nil {
			return nil, "", fmt.Errorf("ring: io_uring was demanded: %w", err)
		}
		return newUring, "", nil
	}
	return nil, "", fmt.Errorf("ring: unknown I/O backend %q (want auto, uring or epoll)", wish)
}

// probeUring tries, on a thread of its own, everything that the backend is going to need.
func probeUring() error {
	outcome := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the ring belongs to one thread
		defer runtime.UnlockOSThread()
		outcome <- probeUringHere()
	}()
	return <-outcome
}

// setupUring makes a ring with the flags this package relies on.
func setupUring(entries, completions uint32) (*uapi.Ring, syscall.Errno) {
	const flags = uapi.SetupSingleIssuer | uapi.SetupDeferTaskrun | uapi.SetupTaskrunFlag |
		uapi.SetupSubmitAll | uapi.SetupCQSize | uapi.SetupClamp
	r, errno := uapi.Setup(entries, &uapi.Params{CQEntries: completions, Flags: flags | uapi.SetupNoSQArray})
	if errno == syscall.EINVAL { // before 6.6
		r, errno = uapi.Setup(entries, &uapi.Params{CQEntries: completions, Flags: flags})
	}
	return r, errno
}

func probeUringHere() error {
	r, errno := setupUring(8, 16)
	if errno != 0 {
		return fmt.Errorf("io_uring_setup: %w (%s)", errno, setupHint(errno))
	}
	defer r.Close()
	const features = uapi.FeatNoDrop | uapi.FeatSubmitStable | uapi.FeatExtArg | uapi.FeatCQESkip
	if r.Features&features != features {
		return fmt.Errorf("io_uring lacks features (has %#x, needs %#x)", r.Features, features)
	}
	missing, errno := r.Supported(uapi.OpRecv, uapi.OpSend, uapi.OpSendmsg, uapi.OpAccept,
		uapi.OpAsyncCancel, uapi.OpPollAdd, uapi.OpNop, uapi.OpWrite, uapi.OpFsync)
	if errno != 0 {
		return fmt.Errorf("io_uring probe: %w", errno)
	}
	if missing >= 0 {
		return fmt.Errorf("io_uring lacks operation %d", missing)
	}
	bufs, errno := uapi.NewBufRing(r, 0, 2, 4096)
	if errno != 0 {
		return fmt.Errorf("io_uring provided buffers: %w", errno)
	}
	defer bufs.Close(r)
	return probeReceive(r, bufs)
}

// probeReceive receives one message by multishot receive into a provided buffer.
func probeReceive(r *uapi.Ring, bufs *uapi.BufRing) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	defer func() {
		_ = unix.Close(pair[0]) // the probe's own pair: nothing to report
		_ = unix.Close(pair[1])
	}()
	uapi.PrepRecvMultishot(r.Next(), int32(pair[0]), bufs.Group())
	if errno := r.Submit(); errno != 0 {
		return fmt.Errorf("io_uring_enter: %w (%s)", errno, setupHint(errno))
	}
	if _, err := unix.Write(pair[1], []byte("probe")); err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	for range 10 {
		errno := r.Wait(100e6)
		if errno != 0 && errno != syscall.EINTR && errno != syscall.ETIME {
			return fmt.Errorf("io_uring_enter: %w", errno)
		}
		var cqe [1]uapi.CQE
		if r.Reap(cqe[:]) == 0 {
			continue
		}
		if cqe[0].Res != 5 || cqe[0].Flags&(uapi.CQEFBuffer|uapi.CQEFMore) != uapi.CQEFBuffer|uapi.CQEFMore {
			return fmt.Errorf("multishot receive does not work (result %d, flags %#x)", cqe[0].Res, cqe[0].Flags)
		}
		return nil
	}
	return errors.New("multishot receive does not complete")
}

// setupHint names the likely cause of a refusal.
func setupHint(errno syscall.Errno) string {
	switch errno {
	case syscall.EPERM, syscall.EACCES:
		return "refused by a container's seccomp profile or by sysctl kernel.io_uring_disabled"
	case syscall.ENOSYS:
		return "the kernel has no io_uring, or a sandbox hides it"
	case syscall.EINVAL:
		return "the kernel is older than 6.1"
	case syscall.ENOMEM:
		return "RLIMIT_MEMLOCK is too small"
	case syscall.EMFILE, syscall.ENFILE:
		return "out of descriptors"
	}
	return "unexpected"
}
