//ringmq:hot

package ring

import (
	"unsafe"

	"ringmq/ring/uapi"
)

// uringWriteMax bounds one write; the kernel takes no more than 2 GiB at a time. The rest follows.
const uringWriteMax = 1 << 30

var _ FileBackend = (*uring)(nil)

// SyncsWrites implements syncWriter.
func (u *uring) SyncsWrites() {}

// WriteFile prepares the operation; it leaves with the turn's enter. A write with O_DIRECT over bytes that
// exist is issued there and then; buffered ones and syncs go to a worker thread of the ring.
func (u *uring) WriteFile(op *FileOp) {
	s := u.sqe()
	switch op.Action {
	case FileWrite:
		addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(op.Rest))))
		n := uint32(min(len(op.Rest), uringWriteMax))
		uapi.PrepWrite(s, op.Fd, addr, n, uint64(op.Offset))
	case FileWriteSync:
		addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(op.Rest))))
		uapi.PrepWrite(s, op.Fd, addr, uint32(len(op.Rest)), uint64(op.Offset))
		s.OpFlags = uapi.RWFDsync
	case FileSync:
		uapi.PrepFsync(s, op.Fd, uapi.FsyncDatasync)
	default:
		uapi.PrepNop(s)
	}
	s.UserData = uringOpFile<<uringOpShift | op.Tag()
}

// onFile notes a result. What follows it leaves at once: the disk must not wait for the rest of the turn.
func (u *uring) onFile(e *uapi.CQE) {
	if u.port.Wrote(u.port.FileOp(e.UserData&uringTagMask), e.Res) {
		u.fileNext = true
	}
}
