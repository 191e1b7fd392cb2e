package ring

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The calls below go straight to the kernel and do not wait: the scheduler need not hear of them.

// closeSocket closes a descriptor. There is nobody to tell about an error, and none is possible that
// would leave the descriptor open.
func closeSocket(fd int) {
	unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) //nolint:errcheck
}

// shutdownSocket ends one or both directions. It fails only on a connection that has already ended.
func shutdownSocket(fd int32, how int) {
	unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), uintptr(how), 0) //nolint:errcheck
}

// resetOnClose makes close drop what the kernel has not sent and send a reset.
func resetOnClose(fd int) {
	// A refusal leaves the ordinary close, which is no less correct.
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// acceptTransient reports accept errors that concern one connection, not the listener.
func acceptTransient(errno syscall.Errno) bool {
	switch errno {
	case syscall.ECONNABORTED, syscall.EINTR, syscall.EAGAIN, syscall.EPROTO, syscall.EPERM,
		syscall.ENETDOWN, syscall.ENOPROTOOPT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
		syscall.ENETUNREACH, syscall.ECANCELED:
		return true
	}
	return false
}
