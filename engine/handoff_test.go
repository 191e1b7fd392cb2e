package engine

import (
	"testing"

	"ringmq/engine/core"
	"ringmq/ring"
)

// pair makes two shards of a broker on loops that never run.
func pair() (from, to *Shard) {
	b := NewBroker(2, nil)
	peers := []*ring.Loop{{}, {}}
	for _, s := range b.Shards {
		s.env.peers = peers
	}
	return b.Shards[0], b.Shards[1]
}

// TestCongestedOrder: commands keep their order through a mailbox that is full all the time, and what was taken out
// does not pile up while the way never clears.
func TestCongestedOrder(t *testing.T) {
	from, to := pair()
	next, sent := 0, 0
	give := func(n int) {
		for range n {
			i := sent
			sent++
			from.send(to.Index, &Command{op: opCall, fn: func(*Shard) {
				if i != next {
					t.Fatalf("command %d runs, want %d", i, next)
				}
				next++
			}})
		}
	}
	give(3 * core.MailboxSlots)
	for range 200 {
		from.Begin(0)
		give(core.MailboxSlots)
		from.End()
		to.Begin(0)
	}
	if !from.Congested() {
		t.Error("the way is not congested: the test proves nothing")
	}
	if n := cap(from.out[to.Index].pending); n > 16*core.MailboxSlots {
		t.Errorf("room for %d commands, %d wait", n, sent-next-core.MailboxSlots)
	}
	for from.Congested() || next < sent {
		from.Begin(0)
		from.End()
		to.Begin(0)
	}
}

// TestFullMailboxAsksForWaking: whoever waits for room says so, and is told once.
func TestFullMailboxAsksForWaking(t *testing.T) {
	from, to := pair()
	o := &from.out[to.Index]
	nothing := &Command{op: opCall, fn: func(*Shard) {}}
	for range core.MailboxSlots + 1 {
		from.send(to.Index, nothing) // in the middle of a turn, behind Begin
	}
	from.End()
	if !o.full.Load() {
		t.Fatal("nobody will wake the sender")
	}
	to.Begin(0)
	if o.full.Load() {
		t.Error("the request was not taken")
	}
	from.Begin(0)
	if from.Congested() {
		t.Error("one command still waits although there is room")
	}
	if o.full.Load() {
		t.Error("asks to be woken with nothing to send")
	}
}
