package ring

import (
	"bytes"
	"io"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// TestPauseResume: a paused connection stops the peer; nothing is lost or reordered by any number of
// pauses, whatever their timing.
func TestPauseResume(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		const total = 4 << 20
		want := pattern(total, 0)
		var got atomic.Int64
		var bad atomic.Bool
		conns := make(chan *Conn, 1)
		app := &testApp{accept: func(_ *Loop, c *Conn) Handler {
			c.PauseRead() // before the first byte
			conns <- c
			return &testHandler{data: func(c *Conn, p []byte) {
				at := got.Load()
				if at+int64(len(p)) > total || !bytes.Equal(p, want[at:at+int64(len(p))]) {
					bad.Store(true)
				}
				got.Add(int64(len(p)))
				switch (at / 1000) % 4 {
				case 0:
					c.PauseRead()
					c.ResumeRead()
				case 1:
					c.PauseRead()
					c.ResumeRead()
					c.PauseRead()
					c.Loop().Post(c.ResumeRead)
				case 2:
					c.PauseRead()
					c.Loop().Post(func() { c.Loop().Post(c.ResumeRead) })
				}
			}}
		}}
		_, addr := startGroup(t, o, app)
		client := dial(t, addr)
		sent := make(chan error, 1)
		go func() {
			_, err := client.Write(want)
			sent <- err
		}()
		c := await(t, conns, "Accept")
		for range 5 { // turns in which the bytes could come
			onLoop(t, c.Loop(), func() {})
		}
		if n := got.Load(); n != 0 {
			t.Errorf("%d bytes arrived at a connection paused from the start", n)
		}
		onLoop(t, c.Loop(), c.ResumeRead)
		if err := await(t, sent, "the client's write"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the arrival of everything", func() bool { return got.Load() == total })
		if bad.Load() {
			t.Error("bytes were lost or reordered")
		}
	})
}

// TestPausedReaderStopsPeer: the peer's writes block once both socket buffers are full.
func TestPausedReaderStopsPeer(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		var got atomic.Int64
		conns := make(chan *Conn, 1)
		app := &testApp{accept: func(_ *Loop, c *Conn) Handler {
			conns <- c
			return &testHandler{data: func(c *Conn, p []byte) { got.Add(int64(len(p))); c.PauseRead() }}
		}}
		_, addr := startGroup(t, o, app)
		client := dial(t, addr)
		chunk := make([]byte, 1<<20)
		client.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		sent := 0
		for range 64 {
			n, err := client.Write(chunk)
			sent += n
			if err != nil {
				break
			}
		}
		if sent == 64<<20 {
			t.Fatal("a paused reader took 64 MiB")
		}
		c := await(t, conns, "Accept")
		client.CloseWrite()
		eventually(t, "the arrival of the rest", func() bool {
			onLoop(t, c.Loop(), c.ResumeRead)
			return got.Load() == int64(sent)
		})
	})
}

// TestSlowReader: Full turns on at the high mark, Drained comes once per crossing, all bytes arrive.
func TestSlowReader(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		o.OutHighMark, o.OutLowMark = 1<<20, 256<<10
		const total = 32 << 20
		conns := make(chan *Conn, 1)
		var sent, drained, crossings int
		var early bool
		produce := func(c *Conn) {
			if c.Full() {
				early = true
			}
			for !c.Full() && sent < total {
				p := c.Reserve(1000)
				n := copy(p, pattern(min(1000, total-sent), sent))
				c.Commit(n)
				sent += n
			}
			if c.Full() {
				crossings++
			}
		}
		app := &testApp{accept: func(_ *Loop, c *Conn) Handler {
			conns <- c
			return &testHandler{drained: func(c *Conn) {
				drained++
				if c.Pending() >= 256<<10 {
					t.Error("Drained above the low mark")
				}
				produce(c)
			}}
		}}
		_, addr := startGroup(t, o, app)
		client := dial(t, addr)
		c := await(t, conns, "Accept")
		onLoop(t, c.Loop(), func() { produce(c) })
		for at := 0; at < total; {
			p := mustRead(t, client, min(100_000, total-at))
			if !bytes.Equal(p, pattern(len(p), at)) {
				t.Fatalf("the bytes at %d differ", at)
			}
			at += len(p)
		}
		eventually(t, "the last acknowledgement", func() (empty bool) {
			onLoop(t, c.Loop(), func() { empty = c.Pending() == 0 })
			return empty
		})
		onLoop(t, c.Loop(), func() {
			if early || drained != crossings || drained < 10 {
				t.Errorf("Drained %d times for %d crossings (while full: %v)", drained, crossings, early)
			}
			if c.Loop().pool.live.get() > 1 { // the shared chunk
				t.Errorf("an idle connection holds chunks: %d live", c.Loop().pool.live.get())
			}
		})
	})
}

// TestWriteShared mixes copied and shared output of all sizes and counts the releases.
func TestWriteShared(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		const count = 5_000
		block := mapPages(1 << 20)
		memory := unsafe.Slice((*byte)(block), 1<<20)
		copy(memory, pattern(1<<20, 7))
		var released [count]atomic.Int32
		conns := make(chan *Conn, 1)
		app := &testApp{
			accept: func(_ *Loop, c *Conn) Handler { conns <- c; return &echo{} },
			release: func(_ *Loop, token unsafe.Pointer) {
				released[uintptr(token)-uintptr(block)].Add(1)
			},
		}
		_, addr := startGroup(t, o, app)
		client := dial(t, addr)
		c := await(t, conns, "Accept")
		var want []byte
		size := func(i int) int { return (i * i * 131) % 9000 }
		for i := range count {
			want = append(want, pattern(i%50, i)...)
			want = append(want, memory[i:i+size(i)]...)
		}
		go func() {
			for first := 0; first < count; first += 100 {
				onLoop(t, c.Loop(), func() {
					for i := first; i < first+100; i++ {
						c.Write(pattern(i%50, i))
						c.WriteShared(memory[i:i+size(i)], unsafe.Add(block, i))
					}
				})
			}
		}()
		if got := mustRead(t, client, len(want)); !bytes.Equal(got, want) {
			t.Fatal("the bytes differ")
		}
		eventually(t, "the release of all tokens", func() bool { return c.Loop().Stats().SharedLive == 0 })
		// What is written after the end is released as well, but never inside the call.
		onLoop(t, c.Loop(), func() {
			c.Abort()
			c.WriteShared(memory[:10], block)
			if released[0].Load() != 1 {
				t.Error("a token was released inside WriteShared")
			}
		})
		eventually(t, "the release of the late token", func() bool { return released[0].Load() == 2 })
		for i := 1; i < count; i++ {
			if n := released[i].Load(); n != 1 {
				t.Fatalf("token %d was released %d times", i, n)
			}
		}
	})
}

// TestReserve checks the contract of Reserve and Commit at its edges.
func TestReserve(t *testing.T) {
	onBackends(t, func(t *testing.T, o Options) {
		conns := make(chan *Conn, 1)
		_, addr := startGroup(t, o, &testApp{accept: func(_ *Loop, c *Conn) Handler { conns <- c; return &echo{} }})
		client := dial(t, addr)
		c := await(t, conns, "Accept")
		var want []byte
		onLoop(t, c.Loop(), func() {
			for i, n := range []int{0, 1, smallWindow, smallWindow + 1, MaxReserve, 10, MaxReserve - 1, 3, MaxReserve} {
				p := c.Reserve(n)
				if len(p) != n {
					t.Errorf("Reserve(%d) gave %d bytes", n, len(p))
				}
				copy(p, pattern(n, i))
				c.Commit(n / 2)
				want = append(want, pattern(n, i)[:n/2]...)
			}
			if c.Pending() != len(want) {
				t.Errorf("%d pending, want %d", c.Pending(), len(want))
			}
		})
		if got := mustRead(t, client, len(want)); !bytes.Equal(got, want) {
			t.Fatal("the bytes differ")
		}
		onLoop(t, c.Loop(), func() {
			c.Close()
			copy(c.Reserve(100), "dropped")
			c.Commit(100)
			if c.Pending() != 0 {
				t.Error("output of a closing connection is not dropped")
			}
		})
		if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
			t.Errorf("read %d bytes after Close, %v", len(rest), err)
		}
	})
}

// TestBufferStarvation: with two small receive buffers and many busy connections the kernel runs out
// again and again; nothing may be lost.
func TestBufferStarvation(t *testing.T) {
	needBackend(t, "uring")
	o := Options{Cores: []int{0}, Backend: "uring", RecvBufferSize: 512, RecvBuffers: 2}
	g, addr := startGroup(t, o, &testApp{accept: func(*Loop, *Conn) Handler { return &echo{} }})
	done := make(chan bool, 8)
	for i := range 8 {
		c := dial(t, addr)
		go func() {
			p := pattern(200_000, i)
			go c.Write(p)
			got := make([]byte, len(p))
			_, err := io.ReadFull(c, got)
			done <- err == nil && bytes.Equal(got, p)
		}()
	}
	for range 8 {
		if !await(t, done, "the echo") {
			t.Fatal("the echo differs")
		}
	}
	if g.loops[0].Stats().RecvStarved == 0 {
		t.Error("the kernel never ran out of buffers: the test tests nothing")
	}
}
