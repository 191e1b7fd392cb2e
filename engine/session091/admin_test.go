package session091

import (
	"fmt"
	"sync"
	"testing"

	"ringmq/engine"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

func (l *live) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// CON-14, CHA-02, QUE-15, SEC-07: what a client hears when a limit is reached, and that
// its place is free again as soon as it hears of the close.
func TestLimits(t *testing.T) {
	l := newLive(t)
	b := l.Broker
	l.must(b.SetVHostLimits("/", engine.Limits{MaxConnections: 2, MaxQueues: 1}))
	first, second := l.mustOpen("/"), l.mustOpen("/")
	refused := func(want string) {
		t.Helper()
		if _, got := l.open("/"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for range 3 {
		refused("NOT_ALLOWED - access to vhost '/' refused for user 'guest': connection limit (2) is reached")
		second.close()
		second = l.mustOpen("/")
	}
	first.call(1, &amqp091.QueueDeclare{Queue: []byte("q")}, amqp091.MethodQueueDeclareOk)
	first.send(1, &amqp091.QueueDeclare{Exclusive: true, Queue: []byte("r")})
	want := "PRECONDITION_FAILED - cannot declare queue 'r': queue limit in vhost '/' (1) is reached"
	if got := first.answer(amqp091.MethodQueueDeclareOk); got != want {
		t.Errorf("%q, want %q", got, want)
	}

	l.must(b.SetUserLimits("guest", engine.Limits{MaxConnections: 2, MaxChannels: 3}))
	l.must(b.ClearVHostLimits("/"))
	refused("NOT_ALLOWED - connection refused for user 'guest': user connection limit (2) is reached")
	l.must(b.SetUserLimits("guest", engine.Limits{MaxConnections: -1, MaxChannels: 3}))
	third := l.mustOpen("/") // the third channel, one of which is closing
	for range 3 {
		third.call(1, &amqp091.ChannelClose{}, amqp091.MethodChannelCloseOk)
		third.call(1, &amqp091.ChannelOpen{}, amqp091.MethodChannelOpenOk)
	}
	third.send(2, &amqp091.ChannelOpen{})
	want = "NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum allowed user limit of (3)"
	if got := third.answer(amqp091.MethodChannelOpenOk); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// The connection that was closed gave its channels back.
	second.call(2, &amqp091.ChannelOpen{}, amqp091.MethodChannelOpenOk)
	second.close()
	l.mustOpen("/").call(2, &amqp091.ChannelOpen{}, amqp091.MethodChannelOpenOk)

	l.must(b.SetUserLimits("guest", engine.Limits{MaxConnections: 0, MaxChannels: -1}))
	refused("NOT_ALLOWED - connection refused for user 'guest': user connection limit (0) is reached")
	l.must(b.ClearUserLimits("guest"))
	l.mustOpen("/")
}

// CON-19: deleting a vhost ends its connections, on every loop, with what they had under
// way; those of others go on.
func TestVHostIsDeleted(t *testing.T) {
	l := newLive(t)
	l.must(l.Broker.AddVHost("v", engine.VHostSettings{}))
	stays := l.mustOpen("/")
	var there []*wire
	for i := range 4 {
		w := l.mustOpen("v")
		w.call(1, &amqp091.QueueDeclare{Queue: []byte("mine" + fmt.Sprint(i)), Exclusive: true}, amqp091.MethodQueueDeclareOk)
		for n := range 200 {
			w.call(1, &amqp091.QueueDeclare{Queue: fmt.Appendf(nil, "q%d-%d", i, n)}, amqp091.MethodQueueDeclareOk)
		}
		w.call(1, &amqp091.BasicConsume{Queue: fmt.Appendf(nil, "q%d-0", max(i-1, 0))}, amqp091.MethodBasicConsumeOk)
		there = append(there, w)
	}
	v := l.Broker.VHost("v")
	l.must(l.Broker.DeleteVHost("v"))
	for _, w := range there {
		if got := w.answer(amqp091.MethodConnectionStart); got != "CONNECTION_FORCED - vhost 'v' is deleted" {
			t.Errorf("the client hears %q", got)
		}
	}
	v.Queues(func(q *queue.Queue) { t.Errorf("queue %s is left", q.Name) })
	if got := l.Queues(); len(got) != 0 {
		t.Errorf("%d queues are left", len(got))
	}
	if _, got := l.open("v"); got != "NOT_ALLOWED - vhost v not found" {
		t.Errorf("opening it: %q", got)
	}
	stays.call(1, &amqp091.QueueDeclare{Queue: []byte("q")}, amqp091.MethodQueueDeclareOk)
	l.must(l.Broker.AddVHost("v", engine.VHostSettings{}))
	l.mustOpen("v").call(1, &amqp091.QueueDeclare{Queue: []byte("q0-0"), Durable: true}, amqp091.MethodQueueDeclareOk)
}

// POL-04: whatever is declared while policies change follows those that are there in
// the end, on every loop.
func TestPoliciesWhileQueuesAreDeclared(t *testing.T) {
	l := newLive(t)
	b := l.Broker
	var wg sync.WaitGroup
	for i := range 2 {
		w := l.mustOpen("/")
		wg.Go(func() {
			for n := range 300 {
				name := fmt.Appendf(nil, "q%d-%d", i, n)
				w.call(1, &amqp091.QueueDeclare{Queue: name}, amqp091.MethodQueueDeclareOk)
				w.write(publishFrames(nil, 1, "", string(name), false, nil, []byte("x"), 131072))
				if n%3 == 0 {
					w.call(1, &amqp091.QueueDelete{Queue: name}, amqp091.MethodQueueDeleteOk)
				}
			}
		})
	}
	wg.Go(func() {
		for n := range 50 {
			p := engine.Policy{VHost: "/", Name: fmt.Sprint("p", n%3), Priority: n, Definition: map[string]any{"max-length": n}}
			if err := b.SetPolicy(p); err != nil {
				t.Error(err)
			}
			if n%5 == 0 {
				if err := b.ClearPolicy("/", p.Name, false); err != nil {
					t.Error(err)
				}
			}
		}
	})
	wg.Wait()
	if err := b.SetPolicy(engine.Policy{VHost: "/", Name: "last", Priority: 99, Definition: map[string]any{"max-length": 0}}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var mu sync.Mutex
	l.onLoops(func(lp *loopState) {
		mu.Lock()
		defer mu.Unlock()
		b.VHost("/").Queues(func(q *queue.Queue) {
			if q.Shard != lp.shard.Index || q.Deleted() {
				return
			}
			lp.shard.Observe(q)
			if seen++; q.Rules.MaxLength != 0 || q.Ready() != 0 {
				t.Errorf("queue %s: %+v, %d ready", q.Name, q.Rules, q.Ready())
			}
		})
	})
	if seen != 400 {
		t.Errorf("%d queues", seen)
	}
}
