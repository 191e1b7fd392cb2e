package uapi

import "unsafe"

// SQE is struct io_uring_sqe: one submission, 64 bytes. Several fields are unions in C; each is named
// after its most common use.
type SQE struct {
	Opcode      uint8  // Op*
	Flags       uint8  // SQE*
	IoPrio      uint16 // RecvSend*, Accept* flags for socket operations
	Fd          int32  // descriptor the operation works on
	Off         uint64 // file offset; addr2; second argument of MSG_RING
	Addr        uint64 // buffer, iovec, msghdr or user_data to cancel
	Len         uint32 // bytes, iovec count, poll flags
	OpFlags     uint32 // msg_flags, accept_flags, rw_flags, poll32_events, cancel_flags, fsync_flags
	UserData    uint64 // comes back in the completion
	BufIndex    uint16 // fixed buffer index or buffer group id
	Personality uint16
	FileIndex   int32 // splice_fd_in, file_index, optlen
	Addr3       uint64
	Pad         uint64
}

// CQE is struct io_uring_cqe: one completion, 16 bytes.
type CQE struct {
	UserData uint64 // of the submission
	Res      int32  // result, or a negated errno
	Flags    uint32 // CQEF*; buffer id in the upper 16 bits
}

// SQRingOffsets is struct io_sqring_offsets.
type SQRingOffsets struct {
	Head, Tail, RingMask, RingEntries, Flags, Dropped, Array, Resv1 uint32
	UserAddr                                                        uint64
}

// CQRingOffsets is struct io_cqring_offsets.
type CQRingOffsets struct {
	Head, Tail, RingMask, RingEntries, Overflow, Cqes, Flags, Resv1 uint32
	UserAddr                                                        uint64
}

// Params is struct io_uring_params: what io_uring_setup takes and fills in, 120 bytes.
type Params struct {
	SQEntries, CQEntries, Flags, SQThreadCPU, SQThreadIdle, Features, WqFd uint32
	Resv                                                                   [3]uint32
	SQOff                                                                  SQRingOffsets
	CQOff                                                                  CQRingOffsets
}

// GetEventsArg is struct io_uring_getevents_arg, the extended argument of io_uring_enter, 24 bytes.
type GetEventsArg struct {
	Sigmask     uint64
	SigmaskSize uint32
	MinWaitUsec uint32
	Ts          uint64 // address of a Timespec
}

// Timespec is struct __kernel_timespec.
type Timespec struct {
	Sec, Nsec int64
}

// BufReg is struct io_uring_buf_reg: how a provided-buffer ring is registered, 40 bytes.
type BufReg struct {
	RingAddr    uint64
	RingEntries uint32
	Bgid        uint16
	Flags       uint16 // PbufRing*
	Resv        [3]uint64
}

// Buf is struct io_uring_buf: one entry of a provided-buffer ring, 16 bytes. In entry 0 Resv is the
// ring's tail.
type Buf struct {
	Addr uint64
	Len  uint32
	Bid  uint16
	Resv uint16
}

// ProbeOp is struct io_uring_probe_op.
type ProbeOp struct {
	Op, Resv uint8
	Flags    uint16 // ProbeOpSupported
	Resv2    uint32
}

// Probe is struct io_uring_probe with room for every opcode the kernel can name.
type Probe struct {
	LastOp, OpsLen uint8
	Resv           uint16
	Resv2          [3]uint32
	Ops            [256]ProbeOp
}

// RsrcUpdate is struct io_uring_rsrc_update: registers the ring's own descriptor, 16 bytes.
type RsrcUpdate struct {
	Offset uint32 // index to use, ^0 lets the kernel choose and write it back
	Resv   uint32
	Data   uint64 // the descriptor
}

// Sizes the kernel insists on; a mismatch is a compile error.
var (
	_ [64 - unsafe.Sizeof(SQE{})]struct{}
	_ [unsafe.Sizeof(SQE{}) - 64]struct{}
	_ [16 - unsafe.Sizeof(CQE{})]struct{}
	_ [unsafe.Sizeof(CQE{}) - 16]struct{}
	_ [120 - unsafe.Sizeof(Params{})]struct{}
	_ [unsafe.Sizeof(Params{}) - 120]struct{}
	_ [24 - unsafe.Sizeof(GetEventsArg{})]struct{}
	_ [unsafe.Sizeof(GetEventsArg{}) - 24]struct{}
	_ [40 - unsafe.Sizeof(BufReg{})]struct{}
	_ [unsafe.Sizeof(BufReg{}) - 40]struct{}
)
