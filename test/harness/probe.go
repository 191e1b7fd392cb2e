package harness

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// The two set-up flags that the broker's ring asks for (kernel 6.1 and later).
const (
	setupSingleIssuer   = 1 << 12
	setupDeferTaskrun   = 1 << 13
	ioUringParamsOctets = 120
)

// uringRefusal says why the kernel refuses an io_uring here, "" when it does not.
var uringRefusal = sync.OnceValue(func() string {
	// struct io_uring_params: sq_entries, cq_entries, flags, ... ; flags is the third 32-bit word.
	params := new([ioUringParamsOctets / 4]uint32)
	params[2] = setupSingleIssuer | setupDeferTaskrun
	// The address through reflect: package unsafe is kept for the event loop. reflect makes params escape, so it
	// does not move while the kernel fills it.
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 8, reflect.ValueOf(params).Pointer(), 0)
	runtime.KeepAlive(params)
	if errno != 0 {
		return fmt.Sprintf("the kernel refuses io_uring: %v", errno)
	}
	_ = unix.Close(int(fd))
	return ""
})

// Backends are the I/O backends that this run covers, in order.
func Backends() []string {
	if one := os.Getenv("RINGMQ_TEST_IO"); one != "" {
		return []string{one}
	}
	return []string{"uring", "epoll"}
}

// Refused says why the kernel cannot serve the backend here, "" when it can.
func Refused(backend string) string {
	if backend == "uring" {
		return uringRefusal()
	}
	return ""
}
