package wal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ringmq/wal"
)

// nothing is a device that is done at once, for what the log itself costs.
type nothing struct{ done []func() }

func (n *nothing) Write(_ wal.File, _ int64, _ []byte, _ bool, done func(error)) {
	n.done = append(n.done, func() { done(nil) })
}
func (n *nothing) Read(wal.File, int64, []byte, func(int, error)) { panic("not used") }
func (n *nothing) Run(job func() error, done func(error)) {
	err := job()
	n.done = append(n.done, func() { done(err) })
}

// instant is nothing without an allocation for each write.
type instant struct {
	nothing
	write func(error)
}

func (n *instant) Write(_ wal.File, _ int64, _ []byte, _ bool, done func(error)) { n.write = done }

func (n *instant) turn() {
	for n.write != nil || len(n.done) > 0 {
		if f := n.write; f != nil {
			n.write = nil
			f(nil)
		}
		for len(n.done) > 0 {
			f := n.done[0]
			n.done = n.done[1:]
			f()
		}
	}
}

// nowhere is a disk that keeps nothing.
type nowhere struct{ size int64 }

func (nowhere) List() ([]wal.FileInfo, error)                 { return nil, nil }
func (nowhere) Create(_ string, size int64) (wal.File, error) { return nowhere{size}, nil }
func (nowhere) Open(string) (wal.File, error)                 { return nowhere{64 << 20}, nil }
func (nowhere) Rename(string, string) error                   { return nil }
func (nowhere) Remove(string) error                           { return nil }
func (nowhere) SyncDir() error                                { return nil }
func (nowhere) ReadAt(p []byte, _ int64) (int, error)         { return len(p), nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error)        { return len(p), nil }
func (nowhere) Sync() error                                   { return nil }
func (nowhere) DropCache() error                              { return nil }
func (n nowhere) Size() int64                                 { return n.size }
func (nowhere) Fd() int                                       { return -1 }
func (nowhere) Close() error                                  { return nil }

func openInstant(t testing.TB, size int64) (*wal.Log, *instant) {
	device := &instant{}
	log, _, err := wal.Open(wal.Options{Disk: nowhere{}, Device: device, Events: newLoop(), SegmentSize: size, SegmentFirst: size}, nil)
	if err != nil {
		t.Fatal(err)
	}
	device.turn()
	t.Cleanup(log.Free)
	return log, device
}

// TestAllocations: appending, acknowledging, flushing, retaining and releasing allocate
// nothing. Records of a whole segment switch included would: that is once per 64 MiB.
func TestAllocations(t *testing.T) {
	log, device := openInstant(t, 256<<20)
	parts := [][]byte{make([]byte, 60), make([]byte, 964)}
	refs := []wal.Ref{{Queue: 1, Seq: 1}, {Queue: 2, Seq: 1}}
	seq := uint64(0)
	run := func() {
		for range 16 {
			p, err := log.Append(kindMessage, refs, parts)
			if err != nil {
				t.Fatal(err)
			}
			log.Retain(p, 1100)
			if _, err := log.AppendAck(1, seq, seq); err != nil {
				t.Fatal(err)
			}
			if _, err := log.AppendAck(1, seq+1, seq+1); err != nil {
				t.Fatal(err)
			}
			log.Release(p, 1100)
			seq += 2
		}
		if _, err := log.Append(kindEvent, nil, parts[:1]); err != nil {
			t.Fatal(err)
		}
		log.Flush()
		device.turn()
	}
	for range 100 {
		run()
	}
	if n := testing.AllocsPerRun(1000, run); n != 0 {
		t.Errorf("%v allocations for 16 messages, 32 acknowledgements and a write", n)
	}
}

// TestThreadAllocations: neither does the way to the writer's thread and back.
func TestThreadAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates on its own")
	}
	log, loop, device := openThreads(t, wal.SyncOff)
	parts := [][]byte{make([]byte, 1024)}
	run := func() {
		p, err := log.Append(kindMessage, nil, parts)
		if err != nil {
			t.Fatal(err)
		}
		log.Flush()
		for loop.committed <= p {
			(<-loop.posts)()
		}
	}
	for range 20 {
		run()
	}
	if n := testing.AllocsPerRun(200, run); n > 0.1 {
		t.Errorf("%v allocations for each write", n)
	}
	closeLog(t, log, loop, device)
}

func openThreads(t testing.TB, mode wal.SyncMode) (*wal.Log, *loop, *wal.Threads) {
	disk, err := wal.OpenDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	loop := newLoop()
	device := wal.NewThreads(loop.post)
	log, _, err := wal.Open(wal.Options{Disk: disk, Device: device, Events: loop, Sync: mode, SegmentFirst: wal.SegmentSizeDefault}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return log, loop, device
}

// BenchmarkAppend is what the loop pays for a record of 1 KiB and for its share of the
// group, without the disk.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{16, 1024, 16384} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			log, device := openInstant(b, wal.SegmentSizeDefault)
			parts := [][]byte{make([]byte, 10), make([]byte, size-10)}
			refs := []wal.Ref{{Queue: 1, Seq: 1}}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				refs[0].Seq++
				if _, err := log.Append(kindMessage, refs, parts); err != nil {
					b.Fatal(err)
				}
				if i%64 == 0 {
					log.Flush()
					device.turn()
				}
			}
		})
	}
}

// BenchmarkCommit: groups of 1 KiB records through the log and its thread, beside the bare
// loops that write and sync as much: see the ratio, not the figure.
func BenchmarkCommit(b *testing.B) {
	for _, group := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("log/%d", group), func(b *testing.B) {
			log, loop, device := openThreads(b, wal.SyncAlways)
			parts := [][]byte{make([]byte, 1024-48)}
			refs := []wal.Ref{{Queue: 1, Seq: 1}}
			done := 0
			for b.Loop() {
				var last wal.Position
				for range group {
					p, err := log.Append(kindMessage, refs, parts)
					if err != nil {
						b.Fatal(err)
					}
					last = p
				}
				log.Flush()
				for loop.committed <= last {
					(<-loop.posts)()
				}
				done += group
			}
			b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(0, "ns/op")
			closeLog(b, log, loop, device)
		})
		for _, bare := range []string{"pwrite+fdatasync", "direct+dsync"} {
			b.Run(fmt.Sprintf("%s/%d", bare, group), func(b *testing.B) { benchmarkBare(b, group, bare == "direct+dsync") })
		}
	}
}

// BenchmarkPipeline keeps up to a thousand records of 1 KiB waiting, as a loop with many
// publishers does: groups form by themselves. What is committed is consumed at once, so
// that segments are used again, as in the long run of a broker.
func BenchmarkPipeline(b *testing.B) {
	log, loop, device := openThreads(b, wal.SyncAlways)
	parts := [][]byte{make([]byte, 1024-48)}
	refs := []wal.Ref{{Queue: 1, Seq: 1}}
	waiting := make([]wal.Position, 0, 2000)
	reap := func() {
		(<-loop.posts)()
		n := 0
		for n < len(waiting) && waiting[n] < loop.committed {
			log.Release(waiting[n], 1024)
			n++
		}
		waiting = append(waiting[:0], waiting[n:]...)
		if n > 0 && log.CheckpointDue() {
			if log.BeginCheckpoint() == nil && log.EndCheckpoint() != nil {
				b.Fatal("checkpoint")
			}
		}
	}
	for b.Loop() {
		for len(waiting) >= 1000 {
			reap()
		}
		p, err := log.Append(kindMessage, refs, parts)
		for err != nil { // the next segment is not ready
			reap()
			p, err = log.Append(kindMessage, refs, parts)
		}
		log.Retain(p, 1024)
		waiting = append(waiting, p)
		if len(waiting)%64 == 0 {
			log.Flush()
		}
	}
	s := log.Stats()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(s.Records)/float64(s.Groups), "records/write")
	b.ReportMetric(float64(s.Recycled), "recycled")
	closeLog(b, log, loop, device)
}

func benchmarkBare(b *testing.B, group int, direct bool) {
	path := filepath.Join(b.TempDir(), "file")
	flags := unix.O_RDWR | unix.O_CREAT
	if direct {
		flags |= unix.O_DIRECT | unix.O_DSYNC
	}
	fd, err := unix.Open(path, flags, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	zeros, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = unix.Munmap(zeros) }()
	const size = 64 << 20
	for off := int64(0); off < size; off += 1 << 20 {
		if _, err := unix.Pwrite(fd, zeros, off); err != nil {
			b.Fatal(err)
		}
	}
	if err := unix.Fdatasync(fd); err != nil {
		b.Fatal(err)
	}
	n := max(4096, group*1024)
	off, done := int64(0), 0
	for b.Loop() {
		if off+int64(n) > size {
			off = 0
		}
		if _, err := unix.Pwrite(fd, zeros[:n], off); err != nil {
			b.Fatal(err)
		}
		if !direct {
			if err := unix.Fdatasync(fd); err != nil {
				b.Fatal(err)
			}
		}
		off += int64(n)
		done += group
	}
	b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRecover reads a log of 1 KiB messages that are all live.
func BenchmarkRecover(b *testing.B) {
	dir := b.TempDir()
	disk, err := wal.OpenDir(dir, true)
	if err != nil {
		b.Fatal(err)
	}
	loop := newLoop()
	device := wal.NewThreads(loop.post)
	log, _, err := wal.Open(wal.Options{Disk: disk, Device: device, Events: loop, Sync: wal.SyncOff}, nil)
	if err != nil {
		b.Fatal(err)
	}
	const count = 200_000
	parts := [][]byte{make([]byte, 1024)}
	for i := range uint64(count) {
		_, err := log.Append(kindMessage, []wal.Ref{{Queue: 1, Seq: i}}, parts)
		for err != nil {
			(<-loop.posts)()
			_, err = log.Append(kindMessage, []wal.Ref{{Queue: 1, Seq: i}}, parts)
		}
		if i%100 == 0 {
			log.Flush()
		}
	}
	closeLog(b, log, loop, device)
	var bytes int64
	for b.Loop() {
		report, err := wal.CheckDisk(disk)
		if err != nil || report.Records < count {
			b.Fatalf("%+v, %v", report, err)
		}
		bytes += report.Bytes
	}
	b.ReportMetric(float64(bytes)/b.Elapsed().Seconds()/1e6, "MB/s")
	b.StopTimer()
	files, _ := disk.List()
	for _, f := range files {
		_ = os.Remove(filepath.Join(dir, f.Name))
	}
}
