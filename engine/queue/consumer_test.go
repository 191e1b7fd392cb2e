package queue

import (
	"slices"
	"testing"

	"ringmq/engine/core"
)

// BAS-17, CSM-01: round robin among equals, the highest priority with credit
// first.
func TestDispatchOrder(t *testing.T) {
	type who struct {
		priority int32
		prefetch uint32
		noAck    bool
		full     bool
	}
	for _, c := range []struct {
		name    string
		who     []who
		publish int
		want    [][]uint64 // per consumer
	}{
		{"alone", []who{{}}, 3, [][]uint64{{1, 2, 3}}},
		{"round robin", []who{{}, {}, {}}, 7, [][]uint64{{1, 4, 7}, {2, 5}, {3, 6}}},
		{"round robin, no ack", []who{{noAck: true}, {}}, 4, [][]uint64{{1, 3}, {2, 4}}},
		{"prefetch", []who{{prefetch: 2}}, 5, [][]uint64{{1, 2}}},
		{"prefetch does not count without ack", []who{{prefetch: 1, noAck: true}}, 3, [][]uint64{{1, 2, 3}}},
		{"who is full is passed over", []who{{full: true}, {}}, 3, [][]uint64{{}, {1, 2, 3}}},
		{"one credit used up", []who{{prefetch: 1}, {}}, 5, [][]uint64{{1}, {2, 3, 4, 5}}},
		{"who has no more credit passes the turn on", []who{{prefetch: 1}, {}, {}}, 6, [][]uint64{{1}, {2, 4, 6}, {3, 5}}},
		{"priority", []who{{priority: 1}, {priority: 2}}, 3, [][]uint64{{}, {1, 2, 3}}},
		{"negative priority", []who{{priority: -1}, {}}, 2, [][]uint64{{}, {1, 2}}},
		{"priority without credit", []who{{priority: 1}, {priority: 2, prefetch: 2}}, 4, [][]uint64{{3, 4}, {1, 2}}},
		{"priority with a full connection", []who{{}, {priority: 9, full: true}}, 2, [][]uint64{{1, 2}, {}}},
		{"equals at the top", []who{{priority: 5}, {}, {priority: 5}}, 4, [][]uint64{{1, 3}, {}, {2, 4}}},
		{"three levels", []who{{priority: 1, prefetch: 1}, {priority: 3, prefetch: 1}, {priority: 2, prefetch: 1}}, 5, [][]uint64{{3}, {1}, {2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, defaults())
			var sinks []*fakeSink
			for _, w := range c.who {
				_, sink := b.consumer(func(k *Consumer) { k.Priority, k.Prefetch, k.NoAck = w.priority, w.prefetch, w.noAck })
				sink.full = w.full
				sinks = append(sinks, sink)
			}
			b.publish(c.publish)
			b.settle()
			for i, sink := range sinks {
				same(t, "consumer", sink.ids(), c.want[i])
			}
			b.end()
		})
	}
}

// The round goes on where it stopped, whoever joins and leaves meanwhile.
func TestRoundRobinGoesOn(t *testing.T) {
	b := newBench(t, defaults())
	_, one := b.consumer(nil)
	second, two := b.consumer(nil)
	b.publish(1)
	b.settle()
	b.publish(1)
	b.settle()
	same(t, "one", one.ids(), []uint64{1})
	same(t, "two", two.ids(), []uint64{2})
	_, three := b.consumer(nil)
	b.publish(3)
	b.settle()
	same(t, "one", one.ids(), []uint64{3})
	same(t, "two", two.ids(), []uint64{4})
	same(t, "three", three.ids(), []uint64{5})
	b.Unsubscribe(second, b.now)
	b.publish(4)
	b.settle()
	same(t, "one", one.ids(), []uint64{6, 8})
	same(t, "two", two.ids(), []uint64{})
	same(t, "three", three.ids(), []uint64{7, 9})
	b.end()
}

// QOS-01, QOS-05: credit comes back with each settlement, of any kind.
func TestPrefetchCredit(t *testing.T) {
	for _, c := range []struct {
		name   string
		settle func(b *bench, seq uint64, k *Consumer)
		then   []uint64
	}{
		{"ack", func(b *bench, seq uint64, k *Consumer) { b.Ack(seq, k) }, []uint64{3}},
		{"discard", func(b *bench, seq uint64, k *Consumer) { b.Discard(seq, k) }, []uint64{3}},
		{"requeue comes straight back", func(b *bench, seq uint64, k *Consumer) { b.Requeue(seq, k, false) }, []uint64{1}},
		{"an ack of a get frees nothing", func(b *bench, seq uint64, _ *Consumer) { b.Ack(seq, nil) }, []uint64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, defaults())
			k, sink := b.consumer(func(k *Consumer) { k.Prefetch = 2 })
			b.publish(5)
			b.settle()
			if k.Unacked() != 2 {
				t.Fatalf("%d unacked", k.Unacked())
			}
			seq := sink.got[0].seq
			same(t, "first", sink.ids(), []uint64{1, 2})
			c.settle(b, seq, k)
			b.settle()
			same(t, "then", sink.ids(), c.then)
			b.end()
		})
	}
}

// QOS-02, QOS-03: one window over consumers of several queues, beside each one's
// own prefetch.
func TestSharedWindow(t *testing.T) {
	w := &Window{}
	w.SetLimit(3)
	one, two := newBench(t, defaults()), newBench(t, defaults())
	k1, s1 := one.consumer(func(k *Consumer) { k.Window, k.Prefetch = w, 2 })
	k2, s2 := two.consumer(func(k *Consumer) { k.Window = w })
	_, free := two.consumer(func(k *Consumer) { k.Window, k.NoAck, k.Priority = w, true, -1 })
	one.publish(5)
	one.settle()
	same(t, "own prefetch", s1.ids(), []uint64{1, 2})
	two.publish(3)
	two.settle()
	same(t, "what the window leaves", s2.ids(), []uint64{1})
	same(t, "no ack ignores it", free.ids(), []uint64{2, 3})
	if s1.counted+s2.counted != 3 || free.counted != 0 {
		t.Errorf("%d, %d and %d deliveries counted", s1.counted, s2.counted, free.counted)
	}

	one.Ack(0, k1) // its place in the window goes to whoever asks first
	w.Give(1)
	one.Resume(k1)
	two.Resume(k2)
	two.publish(1)
	two.settle()
	one.settle()
	same(t, "the other queue", s2.ids(), []uint64{4})
	same(t, "nothing left", s1.ids(), []uint64{})

	w.SetLimit(5)
	one.SetWindow(k1, w)
	one.settle()
	same(t, "a larger window", s1.ids(), []uint64{3})
	w.SetLimit(0) // lifted: only its own prefetch holds
	one.SetWindow(k1, w)
	one.settle()
	same(t, "prefetch holds", s1.ids(), []uint64{})
	two.publish(2)
	two.Resume(k2)
	two.settle()
	same(t, "no window", s2.ids(), []uint64{5, 6})
	one.end()
	two.end()
}

// TestWindowRefusesWithoutATrace: a Take that fails never makes another one
// fail, as it would if it took its place for a moment.
func TestWindowRefusesWithoutATrace(t *testing.T) {
	for range 200 {
		w := &Window{}
		w.SetLimit(1)
		w.Add(1) // taken
		done, stop := make(chan struct{}), make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					close(done)
					return
				default:
					if w.Take() {
						w.Give(1)
					}
				}
			}
		}()
		for range 50 {
			w.Give(1)
			// With one place free, and one other that takes and gives, used is
			// never above the limit.
			if used := w.used.Load(); used > 1 {
				t.Fatalf("%d places of 1 in use", used)
			}
			for !w.Take() {
			}
			if used := w.used.Load(); used > 1 {
				t.Fatalf("%d places of 1 in use", used)
			}
		}
		close(stop)
		<-done
	}
}

// BAS-03: exclusive consumers.
func TestExclusive(t *testing.T) {
	exclusive := func(k *Consumer) { k.Exclusive = true }
	b := newBench(t, defaults())
	try := func(edit func(*Consumer)) bool {
		k := &Consumer{Sink: &fakeSink{host: b.fakeHost}}
		if edit != nil {
			edit(k)
		}
		return b.Subscribe(k)
	}
	k, _ := b.consumer(exclusive)
	if try(nil) || try(exclusive) {
		t.Error("a second consumer beside an exclusive one")
	}
	b.publish(1)
	b.Unsubscribe(k, b.now)
	k, _ = b.consumer(nil)
	if try(exclusive) {
		t.Error("an exclusive consumer beside another")
	}
	if !try(nil) {
		t.Error("no second consumer without exclusivity")
	}
	b.Unsubscribe(k, b.now)
	b.end()
}

// QUE-09: the last consumer of an auto-delete queue takes it along; the first
// must have come before.
func TestAutoDelete(t *testing.T) {
	for _, c := range []struct {
		name      string
		auto      bool
		consumers int
		leave     int
		unused    int
	}{
		{"never a consumer", true, 0, 0, 0},
		{"the last one goes", true, 2, 2, 1},
		{"one is left", true, 2, 1, 0},
		{"not auto-delete", false, 1, 1, 0},
	} {
		s := defaults()
		s.AutoDelete = c.auto
		b := newBench(t, s)
		var all []*Consumer
		for range c.consumers {
			k, _ := b.consumer(nil)
			all = append(all, k)
		}
		b.publish(1)
		if g, ok := b.take(false, b.now); ok { // basic.get does not count
			b.Ack(g.Seq, nil)
		}
		for _, k := range all[:c.leave] {
			b.Unsubscribe(k, b.now)
			b.Unsubscribe(k, b.now) // once is enough
		}
		if b.unused != c.unused || b.Consumers() != c.consumers-c.leave {
			t.Errorf("%s: unused %d times, %d consumers", c.name, b.unused, b.Consumers())
		}
		b.end()
	}
}

// BAS-05: what a cancelled consumer holds stays held, and may be settled.
func TestUnsubscribeKeepsHeld(t *testing.T) {
	b := newBench(t, defaults())
	k, sink := b.consumer(func(k *Consumer) { k.Prefetch = 2 })
	b.publish(4)
	b.settle()
	b.Unsubscribe(k, b.now)
	b.settle()
	b.want(2, 2)
	b.Ack(sink.got[0].seq, k)
	b.Ack(sink.got[0].seq, k) // settled already
	b.want(2, 1)
	b.Requeue(sink.got[1].seq, k, false)
	b.settle()
	b.want(3, 0)
	if len(sink.got) != 2 {
		t.Error("a delivery after the end of the consumer")
	}
	b.end()
}

// A full connection parks its consumers until it drained.
func TestFullConnection(t *testing.T) {
	b := newBench(t, defaults())
	k, sink := b.consumer(nil)
	sink.onDeliver = func(uint64, *core.Message, DeliverFlags) { sink.full = len(sink.got) == 2 }
	b.publish(5)
	b.settle()
	same(t, "until full", sink.ids(), []uint64{1, 2})
	b.publish(1)
	b.settle()
	same(t, "while full", sink.ids(), []uint64{})
	sink.full = false
	dirty := b.dirty
	b.Resume(k)
	if b.dirty == dirty {
		t.Error("Resume does not ask for a Settle")
	}
	b.settle()
	same(t, "after it drained", sink.ids(), []uint64{3, 4})
	b.Resume(k)
	b.Resume(k) // twice is as good as once
	sink.full = false
	b.Resume(k)
	b.settle()
	same(t, "again", sink.ids(), []uint64{5, 6})
	b.end()
}

// BAS-09: one message, and how many are left.
func TestGet(t *testing.T) {
	b := newBench(t, defaults())
	if _, ok := b.take(false, b.now); ok {
		t.Error("a message in an empty queue")
	}
	b.publish(3)
	g, ok := b.take(false, b.now)
	if !ok || idOf(g.Message) != 1 || g.Redelivered || g.Remaining != 2 {
		t.Errorf("%v %+v", ok, g)
	}
	b.want(2, 1)
	b.Requeue(g.Seq, nil, false)
	g, _ = b.take(true, b.now)
	if idOf(g.Message) != 1 || !g.Redelivered || g.Remaining != 2 {
		t.Errorf("%+v", g)
	}
	b.want(2, 0)
	g.Message.Release(b.arena) // without acknowledgement it is ours
	k, sink := b.consumer(func(k *Consumer) { k.Exclusive = true })
	sink.full = true
	if g, ok = b.take(false, b.now); !ok || idOf(g.Message) != 2 {
		t.Error("an exclusive consumer keeps others from getting")
	}
	b.Discard(g.Seq, nil)
	same(t, "rejected", b.deaths(), died(core.DiedRejected, 2))
	b.Unsubscribe(k, b.now)
	b.end()
}

// A turn's deliveries of one queue are bounded, and the rest is asked for.
func TestSettleBudget(t *testing.T) {
	b := newBench(t, defaults())
	_, sink := b.consumer(nil)
	b.publish(10)
	for _, want := range [][]uint64{upTo(1, 4), upTo(5, 8), upTo(9, 10)} {
		more := b.Settle(b.now, 4)
		if left := want[len(want)-1] != 10; more != left {
			t.Errorf("more is %v after %v", more, want)
		}
		same(t, "part", sink.ids(), want)
	}
	b.end()
}

// Consumers that come and go at random leave the rings whole.
func TestConsumersComeAndGo(t *testing.T) {
	b := newBench(t, defaults())
	var here []*Consumer
	for i := range 2000 {
		if i%3 < 2 || len(here) == 0 {
			k, _ := b.consumer(func(k *Consumer) { k.Priority, k.NoAck = int32(i*7%5-2), true })
			here = append(here, k)
		} else {
			at := i * 31 % len(here)
			b.Unsubscribe(here[at], b.now)
			here = slices.Delete(here, at, at+1)
		}
		b.publish(2)
		b.settle()
		b.want(0, 0)
		for _, l := range b.levels {
			if l.consumers == 0 {
				t.Fatal("a level without consumers")
			}
		}
	}
	if b.Consumers() != len(here) || len(b.levels) != 5 {
		t.Errorf("%d consumers on %d levels, want %d on 5", b.Consumers(), len(b.levels), len(here))
	}
	b.end()
}
