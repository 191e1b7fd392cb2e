//ringmq:hot

package ring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wake makes the loop take another turn if it sleeps, and costs one load if it does not. Call it after
// publishing to a mailbox that the loop reads. Any thread.
//
// The sleeper sets its word, then looks at its mailboxes, then blocks; we publish, then look at the
// word. Both sides are sequentially consistent, so at least one sees the other. Whoever turns the word
// off rings, so there is one bell per sleep however many peers there are.
func (l *Loop) Wake() {
	if l.sleeping.Load() != 0 && l.sleeping.CompareAndSwap(1, 0) {
		l.stats.bells.Add(1)
		l.backend.Bell()
	}
}

// one is what ringing an eventfd adds.
var one = [8]byte{1}

// bell is an eventfd. It is watched edge-triggered and never read: every write is an event.
type bell struct{ fd int }

func newBell() (bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return bell{fd: fd}, err
}

func (b bell) ring() {
	// It cannot fail: the counter would have to reach 2^64.
	unix.RawSyscall(unix.SYS_WRITE, uintptr(b.fd), uintptr(unsafe.Pointer(&one)), 8) //nolint:errcheck
}

func (b bell) close() { _ = unix.Close(b.fd) } // an eventfd has nothing to report at close
