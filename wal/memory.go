package wal

import "golang.org/x/sys/unix"

// mapBuffer returns n bytes outside the Go heap, aligned to a page: the kernel
// is given their address while a write is in flight, and O_DIRECT wants the
// alignment. n is rounded up to whole blocks. It is zeroed.
func mapBuffer(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, alignUp(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// unmapBuffer gives the memory back. A slice that still points into it is a bug
// that ends the process.
func unmapBuffer(b []byte) {
	if len(b) == 0 {
		return
	}
	if err := unix.Munmap(b[:cap(b)]); err != nil {
		panic("wal: munmap: " + err.Error())
	}
}
