package conformance

import (
	"strings"
	"testing"
	"time"

	"ringmq/test/harness"
)

// TestSTR_02_Restart (CNF-01): what was confirmed is there after an orderly stop and after a kill, transient messages
// as well, at the same offsets; the next message gets the next offset; a time means the same.
func TestSTR_02_Restart(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "restarts the broker")
		conn, ch := dialGo(t, b)
		q := newStream(t, ch)
		next := 0
		more := func(n int, pad string) {
			fill(t, conn, q, next, next+n-1, pad)
			next += n
		}
		more(70, "")
		more(3, " "+strings.Repeat("x", 600_000))
		for round := range 4 {
			half := time.Now().Add(time.Second).Truncate(time.Second)
			if round == 0 {
				time.Sleep(time.Until(half.Add(50 * time.Millisecond)))
			}
			from := next
			more(50+round, "")
			if round%2 == 0 {
				all(t, b.Kill())
			}
			b = b.Restart(t, nil)
			conn, _ = dialGo(t, b)
			if n := kept(t, conn, q); n != next {
				t.Fatalf("%d messages are kept, want %d", n, next)
			}
			first := read(t, conn, q, "first", 1000)
			last := read(t, conn, q, "last", 1000)
			middle := read(t, conn, q, int64(from+3), 1000)
			first.acked(0, next-1)
			last.acked(next-1, next-1)
			middle.acked(from+3, next-1)
			if round == 0 {
				read(t, conn, q, half, 100).acked(from, next-1)
			}
			waiting := read(t, conn, q, nil, 100)
			more(1, "")
			waiting.acked(next-1, next-1)
			first.acked(next-1, next-1)
		}
	})
}

// TestFieldCase45: a stream with x-max-age keeps all of its segments over a restart, and drops what is too old, and
// nothing younger, whether the broker runs or not when its time comes (STR-03).
func TestFieldCase45(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "restarts the broker")
		conn, ch := dialGo(t, b)
		long := newStream(t, ch, "x-max-age", "1h", "x-stream-max-segment-size-bytes", int32(1<<20))
		short := newStream(t, ch, "x-max-age", "6s", "x-stream-max-segment-size-bytes", int32(1<<20))
		pad := " " + strings.Repeat("x", 64<<10)
		old := time.Now()
		fill(t, conn, long, 0, 79, pad)
		fill(t, conn, short, 0, 79, pad)
		b = b.Restart(t, nil)
		conn, _ = dialGo(t, b)
		read(t, conn, long, "first", 10).acked(0, 79)
		if time.Since(old) < 5*time.Second {
			read(t, conn, short, "first", 10).acked(0, 79)
		}
		time.Sleep(time.Until(old.Add(4 * time.Second)))
		young := time.Now()
		fill(t, conn, short, 80, 99, pad)
		all(t, b.Kill())
		b = b.Restart(t, nil)
		conn, _ = dialGo(t, b)
		if passed := time.Since(young); passed > 3*time.Second {
			t.Skipf("too slow to tell: killed and started in %v", passed)
		}
		awaitKept(t, conn, short, 20)
		read(t, conn, short, "first", 10).acked(80, 99)
		// While it is down.
		all(t, b.Stop())
		time.Sleep(time.Until(young.Add(7 * time.Second)))
		b = b.Restart(t, nil)
		conn, _ = dialGo(t, b)
		awaitKept(t, conn, short, 0)
		fill(t, conn, short, 100, 100, pad)
		read(t, conn, short, "first", 10).acked(100, 100)
		if n := kept(t, conn, long); n != 80 {
			t.Errorf("%d messages of the long-lived stream are kept", n)
		}
		read(t, conn, long, "first", 10).acked(0, 79)
	})
}
