//ringmq:hot

package uapi

// The helpers below zero the entry and fill what the operation needs. UserData and SQE.Flags are the
// caller's to set afterwards. Addresses must lie in mapped memory that outlives the submission (the
// msghdr and iovecs) or the completion (the bytes themselves).

func prep(s *SQE, op uint8, fd int32, addr uint64, n uint32, off uint64) {
	*s = SQE{}
	s.Opcode = op
	s.Fd = fd
	s.Addr = addr
	s.Len = n
	s.Off = off
}

// PrepNop does nothing and completes.
func PrepNop(s *SQE) { prep(s, OpNop, -1, 0, 0, 0) }

// PrepRead reads n bytes at file offset off into addr.
func PrepRead(s *SQE, fd int32, addr uint64, n uint32, off uint64) { prep(s, OpRead, fd, addr, n, off) }

// PrepWrite writes n bytes from addr at file offset off.
func PrepWrite(s *SQE, fd int32, addr uint64, n uint32, off uint64) {
	prep(s, OpWrite, fd, addr, n, off)
}

// PrepFsync syncs the file; flags is 0 or FsyncDatasync.
func PrepFsync(s *SQE, fd int32, flags uint32) {
	prep(s, OpFsync, fd, 0, 0, 0)
	s.OpFlags = flags
}

// PrepSend sends n bytes from addr on a connected socket; flags are MSG_* values.
func PrepSend(s *SQE, fd int32, addr uint64, n uint32, flags uint32) {
	prep(s, OpSend, fd, addr, n, 0)
	s.OpFlags = flags
}

// PrepSendmsg sends what the msghdr at addr names; flags are MSG_* values.
func PrepSendmsg(s *SQE, fd int32, addr uint64, flags uint32) {
	prep(s, OpSendmsg, fd, addr, 1, 0)
	s.OpFlags = flags
}

// PrepRecv receives up to n bytes into addr; flags are MSG_* values.
func PrepRecv(s *SQE, fd int32, addr uint64, n uint32, flags uint32) {
	prep(s, OpRecv, fd, addr, n, 0)
	s.OpFlags = flags
}

// PrepRecvMultishot receives again and again, each time into a buffer of group bgid, until a
// completion arrives without CQEFMore.
func PrepRecvMultishot(s *SQE, fd int32, bgid uint16) {
	prep(s, OpRecv, fd, 0, 0, 0)
	s.IoPrio = RecvMultishot
	s.Flags = SQEBufferSelect
	s.BufIndex = bgid
}

// PrepAccept accepts one connection; flags are SOCK_* values. The peer's address is not reported.
func PrepAccept(s *SQE, fd int32, flags uint32) {
	prep(s, OpAccept, fd, 0, 0, 0)
	s.OpFlags = flags
}

// PrepAcceptMultishot accepts until a completion arrives without CQEFMore; flags are SOCK_* values.
func PrepAcceptMultishot(s *SQE, fd int32, flags uint32) {
	PrepAccept(s, fd, flags)
	s.IoPrio = AcceptMultishot
}

// PrepCancel cancels the operation submitted with the given user data; flags are Cancel* values.
func PrepCancel(s *SQE, userData uint64, flags uint32) {
	prep(s, OpAsyncCancel, -1, userData, 0, 0)
	s.OpFlags = flags
}

// PrepCancelFd cancels operations on a descriptor; CancelFd is added to flags.
func PrepCancelFd(s *SQE, fd int32, flags uint32) {
	prep(s, OpAsyncCancel, fd, 0, 0, 0)
	s.OpFlags = flags | CancelFd
}

// PrepClose closes a descriptor.
func PrepClose(s *SQE, fd int32) { prep(s, OpClose, fd, 0, 0, 0) }

// PrepShutdown shuts a socket down; how is SHUT_RD, SHUT_WR or SHUT_RDWR.
func PrepShutdown(s *SQE, fd int32, how uint32) { prep(s, OpShutdown, fd, 0, how, 0) }

// PrepMsgRing posts a completion with user data data and result n on another ring.
func PrepMsgRing(s *SQE, ringFd int32, n uint32, data uint64, flags uint32) {
	prep(s, OpMsgRing, ringFd, MsgRingData, n, data)
	s.OpFlags = flags
}

// PrepPollAdd waits once for the poll events in mask.
func PrepPollAdd(s *SQE, fd int32, mask uint32) {
	prep(s, OpPollAdd, fd, 0, 0, 0)
	s.OpFlags = mask
}

// PrepPollMultishot reports the poll events in mask until a completion arrives without CQEFMore.
func PrepPollMultishot(s *SQE, fd int32, mask uint32) {
	prep(s, OpPollAdd, fd, 0, PollAddMulti, 0)
	s.OpFlags = mask
}
