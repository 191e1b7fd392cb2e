package ring

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawDial connects a blocking socket that the Go poller knows nothing of.
func rawDial(b testing.TB, addr string) int {
	b.Helper()
	var port int
	if _, err := fmt.Sscanf(addr, "127.0.0.1:%d", &port); err != nil {
		b.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		b.Fatal(err)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { unix.Close(fd) })
	return fd
}

// readN reads exactly n bytes in pieces of at most len(p).
func readN(b testing.TB, fd int, p []byte, n int) {
	for n > 0 {
		k, err := syscall.Read(fd, p[:min(n, len(p))])
		if err != nil || k == 0 {
			b.Errorf("read: %d, %v", k, err)
			return
		}
		n -= k
	}
}

// writeAll writes all of p.
func writeAll(b testing.TB, fd int, p []byte) {
	for len(p) > 0 {
		k, err := syscall.Write(fd, p)
		if err != nil {
			b.Errorf("write: %v", err)
			return
		}
		p = p[k:]
	}
}

func benchBackends(b *testing.B, f func(b *testing.B, o Options)) {
	for _, name := range []string{"uring", "epoll"} {
		b.Run(name, func(b *testing.B) {
			needBackend(b, name)
			allowed, err := allowedCores()
			if err != nil {
				b.Fatal(err)
			}
			f(b, Options{Cores: allowed[len(allowed)-1:], Pin: true, Backend: name})
		})
	}
}

// BenchmarkEcho: one request of 64 bytes at a time.
func BenchmarkEcho(b *testing.B) {
	benchBackends(b, func(b *testing.B, o Options) {
		g, addr := startGroup(b, o, &testApp{accept: func(*Loop, *Conn) Handler { return &echo{} }})
		fd := rawDial(b, addr)
		p := make([]byte, 64)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		b.ReportAllocs()
		for b.Loop() {
			writeAll(b, fd, p)
			readN(b, fd, p, len(p))
		}
		perOp(b, g)
	})
}

// perOp reports what the loop did per operation.
func perOp(b *testing.B, g *Group) {
	s := g.loops[0].Stats()
	b.ReportMetric(float64(s.BusyNS)/float64(b.N), "busy-ns/op")
	b.ReportMetric(float64(s.Syscalls)/float64(b.N), "calls/op")
	b.ReportMetric(float64(s.Turns)/float64(b.N), "turns/op")
}

// BenchmarkEchoMany: many connections with a batch of 64-byte messages under way on each; one op is one
// message.
func BenchmarkEchoMany(b *testing.B) {
	for _, s := range []struct{ conns, batch int }{{4, 1}, {256, 1}, {64, 16}} {
		b.Run(fmt.Sprintf("conns=%d/batch=%d", s.conns, s.batch), func(b *testing.B) {
			benchBackends(b, func(b *testing.B, o Options) {
				g, addr := startGroup(b, o, &testApp{accept: func(*Loop, *Conn) Handler { return &echo{} }})
				fds := make([]int, s.conns)
				for i := range fds {
					fds[i] = rawDial(b, addr)
				}
				p := make([]byte, s.batch*64)
				b.ResetTimer()
				for i := 0; i < b.N; i += s.conns * s.batch {
					for _, fd := range fds {
						writeAll(b, fd, p)
					}
					for _, fd := range fds {
						readN(b, fd, p, len(p))
					}
				}
				perOp(b, g)
			})
		})
	}
}

// BenchmarkReceive: one-way streams into the loop by receive buffer size; one op is 64 KiB.
func BenchmarkReceive(b *testing.B) {
	type shape struct{ size, count, chunk, conns int }
	for _, s := range []shape{
		{16 << 10, 256, 64 << 10, 1}, {64 << 10, 64, 64 << 10, 1}, {256 << 10, 16, 64 << 10, 1},
		{16 << 10, 256, 4 << 10, 16}, {64 << 10, 64, 4 << 10, 16}, {256 << 10, 16, 4 << 10, 16},
	} {
		b.Run(fmt.Sprintf("%dx%dK/chunk=%dK/conns=%d", s.count, s.size>>10, s.chunk>>10, s.conns), func(b *testing.B) {
			benchBackends(b, func(b *testing.B, o Options) {
				o.RecvBufferSize, o.RecvBuffers = s.size, s.count
				var got atomic.Int64
				g, addr := startGroup(b, o, &testApp{accept: func(*Loop, *Conn) Handler {
					return &testHandler{data: func(c *Conn, p []byte) {
						for i := 0; i < len(p); i += 64 { // look at it, as a parser does
							sinkByte += p[i]
						}
						got.Store(got.Load() + int64(len(p)))
					}}
				}})
				var fds []int
				for range s.conns {
					fds = append(fds, rawDial(b, addr))
				}
				p := make([]byte, s.chunk)
				b.SetBytes(64 << 10)
				total := int64(0)
				for total < int64(b.N)<<16 {
					for _, fd := range fds {
						writeAll(b, fd, p)
						total += int64(len(p))
					}
				}
				for got.Load() < total {
					runtime.Gosched()
				}
				perOp(b, g)
			})
		})
	}
}

var sinkByte byte

// BenchmarkSend: one-way stream out of the loop in messages of 1 KiB, copied or shared; one op is one
// message.
func BenchmarkSend(b *testing.B) {
	block := mapPages(1 << 20)
	memory := unsafe.Slice((*byte)(block), 1<<20)
	for _, shared := range []bool{false, true} {
		for _, size := range []int{100, 1 << 10, 4 << 10, 16 << 10} {
			b.Run(fmt.Sprintf("shared=%v/size=%d", shared, size), func(b *testing.B) {
				benchBackends(b, func(b *testing.B, o Options) {
					o.OutHighMark = 1 << 20
					conns := make(chan *Conn, 1)
					left := 0
					produce := func(c *Conn) {
						for ; left > 0 && !c.Full(); left-- {
							copy(c.Reserve(48), "header")
							c.Commit(48)
							if at := left * size & (1<<20 - 1); shared {
								at = min(at, 1<<20-size)
								c.WriteShared(memory[at:at+size], block)
							} else {
								at = min(at, 1<<20-size)
								c.Write(memory[at : at+size])
							}
						}
					}
					g, addr := startGroup(b, o, &testApp{accept: func(_ *Loop, c *Conn) Handler {
						conns <- c
						return &testHandler{drained: produce}
					}})
					fd := rawDial(b, addr)
					c := await(b, conns, "Accept")
					p := make([]byte, 256<<10)
					b.SetBytes(int64(size))
					b.ReportAllocs()
					b.ResetTimer()
					c.Loop().Post(func() { left = b.N; produce(c) })
					readN(b, fd, p, b.N*(size+48))
					perOp(b, g)
				})
			})
		}
	}
}
