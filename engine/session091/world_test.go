package session091

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"ringmq/engine/queue"
	"ringmq/ring"
	"ringmq/ring/sim"
)

// world is a server on simulated loops, with its clients.
type world struct {
	t *testing.T
	*sim.World
	seed     uint64
	srv      *Server
	frameMax uint32
	clients  []*client
}

// lateBinder tells the server its loops at the first moment they are all known.
type lateBinder struct {
	*Server
	want  int
	loops []*ring.Loop
}

// Start implements ring.App.
func (b *lateBinder) Start(l *ring.Loop) {
	if b.loops = append(b.loops, l); len(b.loops) < b.want {
		return
	}
	b.Bind(b.loops)
	for _, l := range b.loops {
		b.Server.Start(l)
	}
}

func newWorld(t *testing.T, seed uint64, loops int) *world {
	return newWorldWith(t, seed, loops, Options{}, ring.Options{})
}

func newWorldWith(t *testing.T, seed uint64, loops int, o Options, ro ring.Options) *world {
	o.ChannelMax, o.Version, o.Loops = 2047, "0.0.0", loops
	w := &world{t: t, seed: seed, srv: NewServer(o), frameMax: 131072}
	w.World = sim.NewWith(seed, loops, &lateBinder{Server: w.srv, want: loops}, ro)
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func (w *world) Helper() { w.t.Helper() }

// rest lets everything happen that can, with all clients reading.
func (w *world) rest() {
	w.t.Helper()
	for round := 0; ; round++ {
		w.Settle()
		moved := false
		for _, c := range w.clients {
			moved = !c.deaf && c.pump() || moved
		}
		if !moved {
			return
		}
		if round == 10_000 {
			w.fatalf("the world does not come to rest")
		}
	}
}

// steps takes n steps and lets some of the clients read.
func (w *world) steps(n int) {
	for range n {
		w.Step()
		for _, c := range w.clients {
			if !c.deaf && w.Rand().IntN(3) == 0 {
				c.pump()
			}
		}
	}
}

// queue finds a queue of the broker; for looking at it between two steps.
func (w *world) queue(name string) *queue.Queue {
	w.t.Helper()
	q := w.srv.Broker.VHost("/").Queue([]byte(name))
	if q == nil {
		w.fatalf("no queue %s", name)
	}
	return q
}

// counts are a queue's figures, looked at between two steps.
func (w *world) counts(name string) (ready, unacked int) {
	q := w.queue(name)
	return q.Ready(), q.Unacked()
}

// finish ends all connections, deletes all queues, and checks that nothing is
// left of anything: no message, no output chunk, no shared token, no state.
func (w *world) finish() {
	w.t.Helper()
	w.SetFaults(sim.Faults{DelayMax: 1})
	for _, c := range w.clients {
		c.deaf = false
		c.peer.SetWindow(1 << 30)
		c.peer.Close()
	}
	w.rest()
	w.Run(12*time.Second, time.Second)
	for i, lp := range w.srv.loops {
		if n := len(lp.conns); n != 0 {
			w.fatalf("%d connections are left on loop %d", n, i)
		}
		if len(lp.resume)+len(lp.stalled)+len(lp.confirming)+len(lp.paced) != 0 {
			w.fatalf("loop %d still has to do: resume %d, stalled %d, confirming %d, paced %d",
				i, len(lp.resume), len(lp.stalled), len(lp.confirming), len(lp.paced))
		}
		if lp.shard.Congested() {
			w.fatalf("shard %d is congested at rest", i)
		}
	}
	v := w.srv.Broker.VHost("/")
	v.Queues(func(q *queue.Queue) {
		if q.Unacked() != 0 || q.Consumers() != 0 {
			w.fatalf("queue %s: %d unacked, %d consumers, and no connection", q.Name, q.Unacked(), q.Consumers())
		}
		w.srv.loops[q.Shard].shard.DeleteQueue(q)
	})
	w.Settle()
	w.World.Close()
	for range 2 {
		for _, l := range w.Loops() {
			l.Slab().Collect()
		}
	}
	for i, l := range w.Loops() {
		st := l.Stats()
		if n := l.Slab().Stats().LiveBlocks; n != 0 || st.SharedLive != 0 || st.OutChunksLive != 0 || st.Connections != 0 {
			w.fatalf("loop %d: %d blocks, %d shared tokens, %d output chunks, %d connections are left",
				i, n, st.SharedLive, st.OutChunksLive, st.Connections)
		}
	}
}

// seeds is how many worlds a random test makes: RINGMQ_TEST_SEEDS asks for more.
func seeds(t *testing.T, usual uint64) uint64 {
	if text := os.Getenv("RINGMQ_TEST_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return max(usual/seedShare, 1)
}

// forSeeds runs a story for many seeds.
func forSeeds(t *testing.T, usual uint64, story func(w *world)) {
	for seed := range seeds(t, usual) {
		w := newWorld(t, seed, 2+int(seed%2))
		if seed%4 == 3 {
			w.frameMax = frameMaxMin
		}
		story(w)
		w.finish()
	}
}
