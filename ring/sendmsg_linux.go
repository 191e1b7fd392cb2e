//ringmq:hot

package ring

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendNow sends the elements of iov (one at least) without waiting and returns how many bytes the
// kernel took. m is scratch space in mapped memory.
func sendNow(fd int32, iov []iovec, m *unix.Msghdr) (int, syscall.Errno) {
	const flags = unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT
	var n uintptr
	var errno syscall.Errno
	if len(iov) == 1 { // saves the kernel the import of two structures
		n, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(iov[0].Base)),
			uintptr(iov[0].Len), flags, 0, 0)
	} else {
		m.Iov, m.Iovlen = &iov[0], uint64(len(iov))
		n, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), flags)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// sendTransient reports send errors after which trying again later is right.
func sendTransient(errno syscall.Errno) bool {
	return errno == syscall.EAGAIN || errno == syscall.EINTR || errno == syscall.ENOBUFS || errno == syscall.ENOMEM
}
