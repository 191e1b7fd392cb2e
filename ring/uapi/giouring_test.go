//go:build giouring

package uapi

// An independent reading of the kernel's headers, compared with ours field by
// field and number by number. The reference links only with
//
//	go test -tags giouring -ldflags=-checklinkname=0 ./ring/uapi
//
// which is why it is behind a build tag and no program imports it.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"syscall"
	"testing"
	"unsafe"

	"github.com/pawelgaczynski/giouring"
)

func TestLayoutsAgreeWithReference(t *testing.T) {
	for _, c := range []struct{ ours, reference any }{
		{SQE{}, giouring.SubmissionQueueEntry{}},
		{CQE{}, giouring.CompletionQueueEvent{}},
		{SQRingOffsets{}, giouring.SQRingOffsets{}},
		{CQRingOffsets{}, giouring.CQRingOffsets{}},
		{Params{}, giouring.Params{}},
		{GetEventsArg{}, giouring.GetEventsArg{}},
		{BufReg{}, giouring.BufReg{}},
		{Buf{}, giouring.BufAndRing{}},
		{ProbeOp{}, giouring.ProbeOp{}},
		{Probe{}, giouring.Probe{}},
		{RsrcUpdate{}, giouring.RsrcUpdate{}},
		{Timespec{}, syscall.Timespec{}},
	} {
		compareLayout(t, reflect.TypeOf(c.ours), reflect.TypeOf(c.reference))
	}
}

// compareLayout walks two structures side by side. Names differ; offsets, sizes
// and kinds of number must not.
func compareLayout(t *testing.T, ours, reference reflect.Type) {
	t.Helper()
	if ours.Size() != reference.Size() {
		t.Errorf("%v is %d bytes, %v is %d", ours, ours.Size(), reference, reference.Size())
	}
	if ours.NumField() != reference.NumField() {
		t.Errorf("%v has %d fields, %v has %d", ours, ours.NumField(), reference, reference.NumField())
		return
	}
	for i := range ours.NumField() {
		a, b := ours.Field(i), reference.Field(i)
		if a.Offset != b.Offset || a.Type.Size() != b.Type.Size() {
			t.Errorf("%v.%s is %d bytes at %d, %v.%s is %d bytes at %d", ours, a.Name, a.Type.Size(), a.Offset,
				reference, b.Name, b.Type.Size(), b.Offset)
		}
		if a.Type.Kind() == reflect.Struct && b.Type.Kind() == reflect.Struct {
			compareLayout(t, a.Type, b.Type)
		} else if a.Type.Kind() != b.Type.Kind() && b.Type.Kind() != reflect.Array {
			t.Errorf("%v.%s is %v, %v.%s is %v", ours, a.Name, a.Type, reference, b.Name, b.Type)
		}
	}
}

type number interface {
	~int | ~uint8 | ~uint16 | ~uint32
}

// same is one row of the table of constants.
func same[T number](name string, ours uint64, reference T) agreed {
	return agreed{name, ours, uint64(reference)}
}

type agreed struct {
	name            string
	ours, reference uint64
}

func agreedConstants() []agreed {
	return append(agreedFlags(), agreedCodes()...)
}

func agreedFlags() []agreed {
	return []agreed{
		same("SetupIOPoll", SetupIOPoll, giouring.SetupIOPoll),
		same("SetupSQPoll", SetupSQPoll, giouring.SetupSQPoll),
		same("SetupSQAff", SetupSQAff, giouring.SetupSQAff),
		same("SetupCQSize", SetupCQSize, giouring.SetupCQSize),
		same("SetupClamp", SetupClamp, giouring.SetupClamp),
		same("SetupAttachWQ", SetupAttachWQ, giouring.SetupAttachWQ),
		same("SetupRDisabled", SetupRDisabled, giouring.SetupRDisabled),
		same("SetupSubmitAll", SetupSubmitAll, giouring.SetupSubmitAll),
		same("SetupCoopTaskrun", SetupCoopTaskrun, giouring.SetupCoopTaskrun),
		same("SetupTaskrunFlag", SetupTaskrunFlag, giouring.SetupTaskrunFlag),
		same("SetupSQE128", SetupSQE128, giouring.SetupSQE128),
		same("SetupCQE32", SetupCQE32, giouring.SetupCQE32),
		same("SetupSingleIssuer", SetupSingleIssuer, giouring.SetupSingleIssuer),
		same("SetupDeferTaskrun", SetupDeferTaskrun, giouring.SetupDeferTaskrun),
		same("FeatSingleMmap", FeatSingleMmap, giouring.FeatSingleMMap),
		same("FeatNoDrop", FeatNoDrop, giouring.FeatNoDrop),
		same("FeatSubmitStable", FeatSubmitStable, giouring.FeatSubmitStable),
		same("FeatExtArg", FeatExtArg, giouring.FeatExtArg),
		same("FeatCQESkip", FeatCQESkip, giouring.FeatCQESkip),
		same("EnterGetEvents", EnterGetEvents, giouring.EnterGetEvents),
		same("EnterSQWakeup", EnterSQWakeup, giouring.EnterSQWakeup),
		same("EnterSQWait", EnterSQWait, giouring.EnterSQWait),
		same("EnterExtArg", EnterExtArg, giouring.EnterExtArg),
		same("EnterRegisteredRing", EnterRegisteredRing, giouring.EnterRegisteredRing),
		same("SQNeedWakeup", SQNeedWakeup, giouring.SQNeedWakeup),
		same("SQCQOverflow", SQCQOverflow, giouring.SQCQOverflow),
		same("SQTaskrun", SQTaskrun, giouring.SQTaskrun),
		same("SQEFixedFile", SQEFixedFile, giouring.SqeFixedFile),
		same("SQEIODrain", SQEIODrain, giouring.SqeIODrain),
		same("SQEIOLink", SQEIOLink, giouring.SqeIOLink),
		same("SQEIOHardlink", SQEIOHardlink, giouring.SqeIOHardlink),
		same("SQEAsync", SQEAsync, giouring.SqeAsync),
		same("SQEBufferSelect", SQEBufferSelect, giouring.SqeBufferSelect),
		same("SQECQESkipSuccess", SQECQESkipSuccess, giouring.SqeCQESkipSuccess),
		same("CQEFBuffer", CQEFBuffer, giouring.CQEFBuffer),
		same("CQEFMore", CQEFMore, giouring.CQEFMore),
		same("CQEFSockNonempty", CQEFSockNonempty, giouring.CQEFSockNonempty),
		same("CQEFNotif", CQEFNotif, giouring.CQEFNotif),
		same("CQEBufferShift", CQEBufferShift, giouring.CQEBufferShift),
		same("RecvSendPollFirst", RecvSendPollFirst, giouring.RecvsendPollFirst),
		same("RecvMultishot", RecvMultishot, giouring.RecvMultishot),
		same("RecvSendFixedBuf", RecvSendFixedBuf, giouring.RecvsendFixedBuf),
		same("AcceptMultishot", AcceptMultishot, giouring.AcceptMultishot),
		same("PollAddMulti", PollAddMulti, giouring.PollAddMulti),
		same("PollAddLevel", PollAddLevel, giouring.PollAddLevel),
		same("CancelAll", CancelAll, giouring.AsyncCancelAll),
		same("CancelFd", CancelFd, giouring.AsyncCancelFd),
		same("CancelAny", CancelAny, giouring.AsyncCancelAny),
		same("FsyncDatasync", FsyncDatasync, giouring.FsyncDatasync),
	}
}

func agreedCodes() []agreed {
	return []agreed{
		same("OpNop", OpNop, giouring.OpNop),
		same("OpReadv", OpReadv, giouring.OpReadv),
		same("OpWritev", OpWritev, giouring.OpWritev),
		same("OpFsync", OpFsync, giouring.OpFsync),
		same("OpPollAdd", OpPollAdd, giouring.OpPollAdd),
		same("OpPollRemove", OpPollRemove, giouring.OpPollRemove),
		same("OpSendmsg", OpSendmsg, giouring.OpSendmsg),
		same("OpRecvmsg", OpRecvmsg, giouring.OpRecvmsg),
		same("OpTimeout", OpTimeout, giouring.OpTimeout),
		same("OpAccept", OpAccept, giouring.OpAccept),
		same("OpAsyncCancel", OpAsyncCancel, giouring.OpAsyncCancel),
		same("OpLinkTimeout", OpLinkTimeout, giouring.OpLinkTimeout),
		same("OpConnect", OpConnect, giouring.OpConnect),
		same("OpFallocate", OpFallocate, giouring.OpFallocate),
		same("OpClose", OpClose, giouring.OpClose),
		same("OpRead", OpRead, giouring.OpRead),
		same("OpWrite", OpWrite, giouring.OpWrite),
		same("OpSend", OpSend, giouring.OpSend),
		same("OpRecv", OpRecv, giouring.OpRecv),
		same("OpShutdown", OpShutdown, giouring.OpShutdown),
		same("OpMsgRing", OpMsgRing, giouring.OpMsgRing),
		same("OpURingCmd", OpURingCmd, giouring.OpUringCmd),
		same("OpSendZC", OpSendZC, giouring.OpSendZC),
		same("OpSendmsgZC", OpSendmsgZC, giouring.OpSendMsgZC),
		same("MsgRingData", MsgRingData, giouring.MsgData),
		same("MsgRingFd", MsgRingFd, giouring.MsgSendFd),
		same("RegisterBuffers", RegisterBuffers, giouring.RegisterBuffers),
		same("RegisterFiles", RegisterFiles, giouring.RegisterFiles),
		same("RegisterProbe", RegisterProbe, giouring.RegisterProbe),
		same("RegisterEnableRings", RegisterEnableRings, giouring.RegisterEnableRings),
		same("RegisterIOWQAff", RegisterIOWQAff, giouring.RegisterIOWQAff),
		same("RegisterIOWQMax", RegisterIOWQMax, giouring.RegisterIOWQMaxWorkers),
		same("RegisterRingFDs", RegisterRingFDs, giouring.RegisterRingFDs),
		same("UnregisterRingFDs", UnregisterRingFDs, giouring.UnregisterRingFDs),
		same("RegisterPbufRing", RegisterPbufRing, giouring.RegisterPbufRing),
		same("UnregisterPbufRing", UnregisterPbufRing, giouring.UnregisterPbufRing),
		same("RegisterSyncCancel", RegisterSyncCancel, giouring.RegisterSyncCancel),
		same("PbufRingMmap", PbufRingMmap, giouring.PbufRingMMap),
	}
}

// notInReference lists our constants that the reference keeps to itself, is too
// old for, or that belong to another header. Their values are the kernel's.
func notInReference() []agreed {
	return []agreed{
		same("SysSetup", SysSetup, 425), same("SysEnter", SysEnter, 426), same("SysRegister", SysRegister, 427),
		same("OffSQRing", OffSQRing, 0), same("OffCQRing", OffCQRing, 0x8000000), same("OffSQEs", OffSQEs, 0x10000000),
		same("SetupNoSQArray", SetupNoSQArray, 1<<16),
		same("FeatRecvSendBundle", FeatRecvSendBundle, 1<<14), same("FeatMinTimeout", FeatMinTimeout, 1<<15),
		same("CQEFBufMore", CQEFBufMore, 16),
		same("OpReadMultishot", OpReadMultishot, 49),
		same("RecvSendBundle", RecvSendBundle, 1<<4), same("SendVectorized", SendVectorized, 1<<5),
		same("AcceptDontwait", AcceptDontwait, 2), same("AcceptPollFirst", AcceptPollFirst, 4),
		same("RWFDsync", RWFDsync, 2),
		same("RegisterPbufStatus", RegisterPbufStatus, 26),
		same("ProbeOpSupported", ProbeOpSupported, 1), same("PbufRingInc", PbufRingInc, 2),
		same("RegisterRingFDsEmpty", uint64(RegisterRingFDsEmpty), uint32(1<<32-1)),
	}
}

func TestConstantsAgreeWithReference(t *testing.T) {
	compared := make(map[string]bool)
	for _, c := range append(agreedConstants(), notInReference()...) {
		compared[c.name] = true
		if c.ours != c.reference {
			t.Errorf("%s is %#x, should be %#x", c.name, c.ours, c.reference)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "const.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				count++
				if !compared[name.Name] {
					t.Errorf("%s is in neither table", name.Name)
				}
			}
		}
	}
	if count != len(compared) {
		t.Errorf("const.go has %d constants, the tables have %d", count, len(compared))
	}
}

// The helpers fill an entry as the reference does a zeroed one, whatever the
// entry held before.
func TestPreparedEntriesAgreeWithReference(t *testing.T) {
	message := &syscall.Msghdr{}
	messageAddress := uint64(uintptr(unsafe.Pointer(message)))
	type entry = giouring.SubmissionQueueEntry
	for _, c := range []struct {
		name      string
		ours      func(s *SQE)
		reference func(e *entry)
	}{
		{"nop", PrepNop, func(e *entry) { e.PrepareNop() }},
		{"read", func(s *SQE) { PrepRead(s, 5, 0x7000, 100, 4096) }, func(e *entry) { e.PrepareRead(5, 0x7000, 100, 4096) }},
		{"write", func(s *SQE) { PrepWrite(s, 5, 0x7000, 100, 4096) }, func(e *entry) { e.PrepareWrite(5, 0x7000, 100, 4096) }},
		{"fsync", func(s *SQE) { PrepFsync(s, 5, FsyncDatasync) }, func(e *entry) { e.PrepareFsync(5, 1) }},
		{"send", func(s *SQE) { PrepSend(s, 5, 0x7000, 99, 0x4000) }, func(e *entry) { e.PrepareSend(5, 0x7000, 99, 0x4000) }},
		{"sendmsg", func(s *SQE) { PrepSendmsg(s, 5, messageAddress, 0x4000) },
			func(e *entry) { e.PrepareSendMsg(5, message, 0x4000) }},
		{"recv", func(s *SQE) { PrepRecv(s, 5, 0x7000, 99, 2) }, func(e *entry) { e.PrepareRecv(5, 0x7000, 99, 2) }},
		{"recv multishot", func(s *SQE) { PrepRecvMultishot(s, 5, 7) }, func(e *entry) {
			e.PrepareRecvMultishot(5, 0, 0, 0)
			e.Flags |= giouring.SqeBufferSelect
			e.BufIG = 7
		}},
		{"accept", func(s *SQE) { PrepAccept(s, 5, 0x800) }, func(e *entry) { e.PrepareAccept(5, 0, 0, 0x800) }},
		{"accept multishot", func(s *SQE) { PrepAcceptMultishot(s, 5, 0x800) },
			func(e *entry) { e.PrepareMultishotAccept(5, 0, 0, 0x800) }},
		{"cancel", func(s *SQE) { PrepCancel(s, 77, CancelAll) }, func(e *entry) { e.PrepareCancel64(77, 1) }},
		{"cancel fd", func(s *SQE) { PrepCancelFd(s, 5, CancelAll) }, func(e *entry) { e.PrepareCancelFd(5, 1) }},
		{"close", func(s *SQE) { PrepClose(s, 5) }, func(e *entry) { e.PrepareClose(5) }},
		{"shutdown", func(s *SQE) { PrepShutdown(s, 5, 2) }, func(e *entry) { e.PrepareShutdown(5, 2) }},
		{"msg ring", func(s *SQE) { PrepMsgRing(s, 5, 3, 99, 1) }, func(e *entry) { e.PrepareMsgRing(5, 3, 99, 1) }},
		{"poll", func(s *SQE) { PrepPollAdd(s, 5, 1) }, func(e *entry) { e.PreparePollAdd(5, 1) }},
		{"poll multishot", func(s *SQE) { PrepPollMultishot(s, 5, 1) }, func(e *entry) { e.PreparePollMultishot(5, 1) }},
	} {
		var ours SQE
		for i := range unsafe.Sizeof(ours) {
			*(*byte)(unsafe.Add(unsafe.Pointer(&ours), i)) = 0xEE
		}
		var reference entry
		c.ours(&ours)
		c.reference(&reference)
		if got, want := *(*[64]byte)(unsafe.Pointer(&ours)), *(*[64]byte)(unsafe.Pointer(&reference)); got != want {
			t.Errorf("%s:\n got  %x\n want %x", c.name, got, want)
		}
	}
}
