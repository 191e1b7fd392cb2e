package uapi

// System call numbers, the same on every Linux architecture.
const (
	SysSetup    = 425
	SysEnter    = 426
	SysRegister = 427
)

// Offsets for mmap on a ring descriptor.
const (
	OffSQRing = 0
	OffCQRing = 0x8000000
	OffSQEs   = 0x10000000
)

// Params.Flags of io_uring_setup.
const (
	SetupIOPoll       = 1 << 0
	SetupSQPoll       = 1 << 1
	SetupSQAff        = 1 << 2
	SetupCQSize       = 1 << 3
	SetupClamp        = 1 << 4
	SetupAttachWQ     = 1 << 5
	SetupRDisabled    = 1 << 6
	SetupSubmitAll    = 1 << 7
	SetupCoopTaskrun  = 1 << 8
	SetupTaskrunFlag  = 1 << 9
	SetupSQE128       = 1 << 10
	SetupCQE32        = 1 << 11
	SetupSingleIssuer = 1 << 12
	SetupDeferTaskrun = 1 << 13
	SetupNoSQArray    = 1 << 16
)

// Params.Features.
const (
	FeatSingleMmap     = 1 << 0
	FeatNoDrop         = 1 << 1
	FeatSubmitStable   = 1 << 2
	FeatExtArg         = 1 << 8
	FeatCQESkip        = 1 << 11
	FeatRecvSendBundle = 1 << 14
	FeatMinTimeout     = 1 << 15
)

// Flags of io_uring_enter.
const (
	EnterGetEvents      = 1 << 0
	EnterSQWakeup       = 1 << 1
	EnterSQWait         = 1 << 2
	EnterExtArg         = 1 << 3
	EnterRegisteredRing = 1 << 4
)

// Flags the kernel publishes in the submission ring.
const (
	SQNeedWakeup = 1 << 0
	SQCQOverflow = 1 << 1
	SQTaskrun    = 1 << 2
)

// SQE.Flags.
const (
	SQEFixedFile      = 1 << 0
	SQEIODrain        = 1 << 1
	SQEIOLink         = 1 << 2
	SQEIOHardlink     = 1 << 3
	SQEAsync          = 1 << 4
	SQEBufferSelect   = 1 << 5
	SQECQESkipSuccess = 1 << 6
)

// CQE.Flags.
const (
	CQEFBuffer       = 1 << 0
	CQEFMore         = 1 << 1
	CQEFSockNonempty = 1 << 2
	CQEFNotif        = 1 << 3
	CQEFBufMore      = 1 << 4
	CQEBufferShift   = 16
)

// Opcodes.
const (
	OpNop           = 0
	OpReadv         = 1
	OpWritev        = 2
	OpFsync         = 3
	OpPollAdd       = 6
	OpPollRemove    = 7
	OpSendmsg       = 9
	OpRecvmsg       = 10
	OpTimeout       = 11
	OpAccept        = 13
	OpAsyncCancel   = 14
	OpLinkTimeout   = 15
	OpConnect       = 16
	OpFallocate     = 17
	OpClose         = 19
	OpRead          = 22
	OpWrite         = 23
	OpSend          = 26
	OpRecv          = 27
	OpShutdown      = 34
	OpMsgRing       = 40
	OpURingCmd      = 46
	OpSendZC        = 47
	OpSendmsgZC     = 48
	OpReadMultishot = 49
)

// SQE.IoPrio of receive and send operations.
const (
	RecvSendPollFirst = 1 << 0
	RecvMultishot     = 1 << 1
	RecvSendFixedBuf  = 1 << 2
	RecvSendBundle    = 1 << 4
	SendVectorized    = 1 << 5
)

// SQE.IoPrio of accept.
const (
	AcceptMultishot = 1 << 0
	AcceptDontwait  = 1 << 1
	AcceptPollFirst = 1 << 2
)

// SQE.Len of poll.
const (
	PollAddMulti = 1 << 0
	PollAddLevel = 1 << 3
)

// SQE.OpFlags of cancel.
const (
	CancelAll = 1 << 0
	CancelFd  = 1 << 1
	CancelAny = 1 << 2
)

// SQE.OpFlags of fsync, and rw_flags of a write that must be durable when it completes.
const (
	FsyncDatasync = 1 << 0
	RWFDsync      = 1 << 1
)

// Commands of MSG_RING.
const (
	MsgRingData = 0
	MsgRingFd   = 1
)

// Opcodes of io_uring_register.
const (
	RegisterBuffers      = 0
	RegisterFiles        = 2
	RegisterProbe        = 8
	RegisterEnableRings  = 12
	RegisterIOWQAff      = 17
	RegisterIOWQMax      = 19
	RegisterRingFDs      = 20
	UnregisterRingFDs    = 21
	RegisterPbufRing     = 22
	UnregisterPbufRing   = 23
	RegisterSyncCancel   = 24
	RegisterPbufStatus   = 26
	ProbeOpSupported     = 1 << 0
	PbufRingMmap         = 1 << 0
	PbufRingInc          = 1 << 1
	RegisterRingFDsEmpty = ^uint32(0)
)
