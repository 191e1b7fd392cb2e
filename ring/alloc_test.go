package ring

import (
	"testing"
	"unsafe"
)

// TestAllocsTurn: a round trip through the loop, with receive, copied and shared output, release and
// timer, allocates nothing.
func TestAllocsTurn(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		o.Cores = o.Cores[:1]
		block := mapPages(1 << 16)
		shared := unsafe.Slice((*byte)(block), 5000)
		var timer Timer
		timer.Fire = func(int64) {}
		app := &testApp{accept: func(*Loop, *Conn) Handler {
			return &testHandler{data: func(c *Conn, p []byte) {
				c.Loop().Arm(&timer, c.Loop().Now()+1e6)
				copy(c.Reserve(100), p)
				c.Commit(100)
				c.WriteShared(shared, block)
				c.Write(p)
			}}
		}}
		_, addr := startGroup(t, o, app)
		fd := rawDial(t, addr)
		out, in := make([]byte, 64), make([]byte, 8192)
		round := func() {
			writeAll(t, fd, out)
			readN(t, fd, in, 100+len(shared)+64)
		}
		for range 100 {
			round()
		}
		if n := testing.AllocsPerRun(1000, round); n != 0 {
			t.Errorf("%v allocations per round trip", n)
		}
	})
}

func TestConnIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Conn{}); size > 256 {
		t.Errorf("an idle connection costs %d bytes, want at most 256", size)
	}
}
