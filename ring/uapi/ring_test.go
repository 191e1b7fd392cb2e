package uapi

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newRing makes a ring on the test's own thread, or skips the test where the kernel refuses one.
func newRing(t *testing.T, entries, completions, extra uint32) *Ring {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	const flags = SetupSingleIssuer | SetupDeferTaskrun | SetupTaskrunFlag | SetupSubmitAll | SetupCQSize
	r, errno := Setup(entries, &Params{CQEntries: completions, Flags: flags | extra})
	if errno == syscall.EINVAL && extra != 0 {
		t.Skipf("this kernel lacks setup flags %#x", extra)
	}
	if errno != 0 {
		t.Skipf("no io_uring here: %v", errno)
	}
	t.Cleanup(r.Close)
	return r
}

// reapAll collects n completions.
func reapAll(t *testing.T, r *Ring, n int) []CQE {
	t.Helper()
	var all []CQE
	var some [16]CQE
	for tries := 0; len(all) < n; tries++ {
		if tries > 1000 {
			t.Fatalf("%d completions of %d", len(all), n)
		}
		if errno := r.Wait(10e6); errno != 0 && errno != syscall.ETIME && errno != syscall.EINTR {
			t.Fatal(errno)
		}
		all = append(all, some[:r.Reap(some[:])]...)
	}
	return all
}

func TestNops(t *testing.T) {
	for _, extra := range []uint32{0, SetupNoSQArray} {
		r := newRing(t, 8, 16, extra)
		if errno := r.RegisterSelf(); errno != 0 {
			t.Logf("the ring's descriptor cannot be registered: %v", errno)
		}
		next := uint64(0)
		for round := range 50 { // past the ends of both rings, many times
			n := 1 + round%8
			for i := range n {
				s := r.Next()
				if s == nil {
					t.Fatal("no entry in a ring that has room")
				}
				s.OpFlags = 0xffff // what an earlier user may have left
				PrepNop(s)
				s.UserData = next + uint64(i)
			}
			if got := r.Unsubmitted(); got != uint32(n) {
				t.Fatalf("%d unsubmitted, want %d", got, n)
			}
			if errno := r.Submit(); errno != 0 {
				t.Fatal(errno)
			}
			for _, e := range reapAll(t, r, n) {
				if e.UserData != next || e.Res != 0 {
					t.Fatalf("completion %+v, want user data %d", e, next)
				}
				next++
			}
		}
	}
}

func TestSubmissionRingFull(t *testing.T) {
	r := newRing(t, 4, 8, 0)
	for range r.Entries() {
		PrepNop(r.Next())
	}
	if r.Next() != nil {
		t.Error("a full ring gives an entry")
	}
	if errno := r.SubmitOnly(); errno != 0 {
		t.Fatal(errno)
	}
	if r.Next() == nil {
		t.Error("no entry after the submission")
	}
}

// TestOverflow: more completions than the ring holds arrive all the same.
func TestOverflow(t *testing.T) {
	r := newRing(t, 8, 8, 0)
	for range 5 {
		for range 8 {
			PrepNop(r.Next())
		}
		if errno := r.SubmitOnly(); errno != 0 {
			t.Fatal(errno)
		}
	}
	if !r.Ready() {
		t.Error("Ready is false over a full ring")
	}
	reapAll(t, r, 40)
}

func TestWaitTimesOut(t *testing.T) {
	r := newRing(t, 4, 8, 0)
	if errno := r.Wait(1e6); errno != syscall.ETIME && errno != syscall.EINTR {
		t.Errorf("a wait for nothing gives %v", errno)
	}
	if r.Ready() {
		t.Error("an idle ring is ready")
	}
}

// TestProvidedBuffers receives many messages into two buffers, past the end of the buffer ring.
func TestProvidedBuffers(t *testing.T) {
	r := newRing(t, 8, 16, 0)
	b, errno := NewBufRing(r, 3, 2, 4096)
	if errno != 0 {
		t.Skipf("no provided buffers here: %v", errno)
	}
	t.Cleanup(func() { b.Close(r) })
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Next()
	PrepRecvMultishot(s, int32(pair[0]), b.Group())
	s.UserData = 9
	if errno := r.Submit(); errno != 0 {
		t.Fatal(errno)
	}
	for i := range 70_000 { // the 16-bit tail wraps
		if _, err := unix.Write(pair[1], []byte{byte(i), byte(i >> 8)}); err != nil {
			t.Fatal(err)
		}
		e := reapAll(t, r, 1)[0]
		if e.UserData != 9 || e.Res != 2 || e.Flags&(CQEFBuffer|CQEFMore) != CQEFBuffer|CQEFMore {
			t.Fatalf("message %d: %+v", i, e)
		}
		bid := uint16(e.Flags >> CQEBufferShift)
		if p := b.Bytes(bid, 2); p[0] != byte(i) || p[1] != byte(i>>8) {
			t.Fatalf("message %d came as %v", i, p)
		}
		b.Recycle(bid)
		b.Publish()
	}
	// Starve it: two messages take both buffers, the third ends the receive.
	var got []CQE
	for i := range 3 {
		if _, err := unix.Write(pair[1], []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		got = append(got, reapAll(t, r, 1)...)
	}
	if last := got[2]; last.Res != -int32(syscall.ENOBUFS) || last.Flags&CQEFMore != 0 {
		t.Errorf("without buffers: %+v, want ENOBUFS and the end", last)
	}
	unix.Close(pair[0])
	unix.Close(pair[1])
}

func TestSupported(t *testing.T) {
	r := newRing(t, 4, 8, 0)
	if missing, errno := r.Supported(OpNop, OpRecv, OpSendmsg); missing >= 0 || errno != 0 {
		t.Errorf("missing %d, %v", missing, errno)
	}
	if missing, errno := r.Supported(OpNop, 255); missing != 255 || errno != 0 {
		t.Errorf("missing %d, %v; want 255", missing, errno)
	}
}

// TestCancelAndPoll: a multishot poll reports every write to an eventfd that nobody reads, and ends
// when cancelled.
func TestCancelAndPoll(t *testing.T) {
	r := newRing(t, 8, 16, 0)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	s := r.Next()
	PrepPollMultishot(s, int32(fd), unix.POLLIN)
	s.UserData = 5
	if errno := r.Submit(); errno != 0 {
		t.Fatal(errno)
	}
	one := uint64(1)
	for i := range 10 {
		if _, err := unix.Write(fd, unsafe.Slice((*byte)(unsafe.Pointer(&one)), 8)); err != nil {
			t.Fatal(err)
		}
		if e := reapAll(t, r, 1)[0]; e.UserData != 5 || e.Flags&CQEFMore == 0 {
			t.Fatalf("write %d: %+v", i, e)
		}
	}
	s = r.Next()
	PrepCancel(s, 5, 0)
	s.UserData = 6
	for _, e := range reapAll(t, r, 2) {
		switch {
		case e.UserData == 5 && e.Res == -int32(syscall.ECANCELED) && e.Flags&CQEFMore == 0:
		case e.UserData == 6 && e.Res == 0:
		default:
			t.Errorf("unexpected %+v", e)
		}
	}
}
