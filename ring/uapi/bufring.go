package uapi

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BufRing is a provided-buffer ring with its buffers: the kernel takes a buffer when bytes arrive, so
// an idle connection holds none. Same owner thread as its Ring.
type BufRing struct {
	group   uint16
	count   uint32
	size    int
	tail    uint16
	entries unsafe.Pointer
	base    unsafe.Pointer
	ringMem []byte
	bufMem  []byte
}

// NewBufRing maps count buffers of size bytes and registers them as group. count is a power of two,
// at most 32768. All buffers are handed to the kernel at once.
func NewBufRing(r *Ring, group uint16, count uint32, size int) (*BufRing, syscall.Errno) {
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANON
	b := &BufRing{group: group, count: count, size: size}
	var err error
	if b.ringMem, err = unix.Mmap(-1, 0, int(count)*int(unsafe.Sizeof(Buf{})), prot, flags); err != nil {
		return nil, errnoOf(err)
	}
	if b.bufMem, err = unix.Mmap(-1, 0, int(count)*size, prot, flags); err != nil {
		b.Close(nil)
		return nil, errnoOf(err)
	}
	b.entries, b.base = unsafe.Pointer(&b.ringMem[0]), unsafe.Pointer(&b.bufMem[0])
	reg := BufReg{RingAddr: uint64(uintptr(b.entries)), RingEntries: count, Bgid: group}
	if errno := r.Register(RegisterPbufRing, unsafe.Pointer(&reg), 1); errno != 0 {
		b.Close(nil)
		return nil, errno
	}
	for i := uint32(0); i < count; i++ {
		b.Recycle(uint16(i))
	}
	b.Publish()
	return b, 0
}

// Close unregisters the group (when r is still open) and unmaps the buffers.
func (b *BufRing) Close(r *Ring) {
	if r != nil {
		reg := BufReg{Bgid: b.group}
		_ = r.Register(UnregisterPbufRing, unsafe.Pointer(&reg), 1) // closing the ring does it as well
	}
	for _, m := range [][]byte{b.ringMem, b.bufMem} {
		if m != nil {
			_ = unix.Munmap(m) // our own mapping: it cannot fail
		}
	}
	b.ringMem, b.bufMem = nil, nil
}

// Group returns the group id.
func (b *BufRing) Group() uint16 { return b.group }

// Count returns how many buffers there are.
func (b *BufRing) Count() uint32 { return b.count }

// Bytes returns the first n bytes of buffer bid. They belong to the caller until Recycle.
func (b *BufRing) Bytes(bid uint16, n int) []byte {
	if uint32(bid) >= b.count || n > b.size {
		panic("uapi: the kernel named a buffer that does not exist")
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.base, int(bid)*b.size)), n)
}

// Recycle gives buffer bid back; the kernel sees it after Publish.
func (b *BufRing) Recycle(bid uint16) {
	e := (*Buf)(unsafe.Add(b.entries, uintptr(uint32(b.tail)&(b.count-1))*unsafe.Sizeof(Buf{})))
	e.Addr = uint64(uintptr(unsafe.Add(b.base, int(bid)*b.size)))
	e.Len = uint32(b.size)
	e.Bid = bid // Resv is not touched: in entry 0 it is the ring's tail
	b.tail++
}

// Publish shows the kernel every buffer recycled so far; once per turn is enough.
func (b *BufRing) Publish() {
	// Bytes 12-15 of entry 0 are its bid and the tail; one 32-bit store writes the tail in order after
	// the entries and leaves the bid as it is. Little-endian only, like every target of this program.
	e0 := (*Buf)(b.entries)
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&e0.Bid)), uint32(e0.Bid)|uint32(b.tail)<<16)
}
