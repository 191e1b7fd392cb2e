package crash

import (
	"slices"
	"strings"
	"testing"
)

// The queues of the planted histories.
const (
	plain  = iota // with a dead-letter target
	other         // without
	target        // of plain
)

const (
	toPlain = iota
	toBoth
)

// script is a small broker and its clients, all honest, that write a history. The planted faults are in what the tests do to
// it afterwards, or in calls that an honest broker would not have answered so.
type script struct {
	h      *History
	last   uint64
	client uint32
}

func newScript() *script {
	s := &script{h: NewHistory(7)}
	s.h.AddQueue("plain", target)
	s.h.AddQueue("other", -1)
	s.h.AddQueue("target", -1)
	s.h.AddRoute(plain)
	s.h.AddRoute(plain, other)
	s.last = s.h.NewPublisher()
	s.client = s.h.NewClient()
	return s
}

// publish writes down a persistent message and its confirm.
func (s *script) publish(route int) uint64 {
	id := s.unconfirmed(route, true)
	s.h.Add(Event{Kind: Confirmed, ID: id})
	return id
}

func (s *script) unconfirmed(route int, persistent bool) uint64 {
	s.last++
	s.h.Add(Event{Kind: Published, ID: s.last, Queue: uint16(route), Persistent: persistent, Hash: s.hash(s.last)})
	return s.last
}

func (s *script) hash(id uint64) uint64 { return s.h.Fingerprint(s.h.Body(id, int(id%300)), "") }

func (s *script) deliver(queue int, id uint64, redelivered bool) {
	s.h.Add(Event{Kind: Delivered, ID: id, Queue: uint16(queue), Client: s.client, Redelivered: redelivered, Hash: s.hash(id)})
}

func (s *script) event(kind Kind, queue int, id uint64) {
	s.h.Add(Event{Kind: kind, ID: id, Queue: uint16(queue), Client: s.client})
}

// consume delivers and acknowledges.
func (s *script) consume(queue int, redelivered bool, ids ...uint64) {
	for _, id := range ids {
		s.deliver(queue, id, redelivered)
		s.event(Acked, queue, id)
	}
}

// restart ends the run and gives the clients new numbers.
func (s *script) restart(how Kind) {
	s.event(how, 0, 0)
	s.client = s.h.NewClient()
}

// healthy is a history with everything that is allowed.
func healthy() *script {
	s := newScript()
	a, b, c := s.publish(toPlain), s.publish(toBoth), s.publish(toPlain)
	s.event(Attached, plain, 0)
	s.consume(plain, false, a, b)
	s.event(Settled, 0, 0)
	s.deliver(plain, c, false)
	s.event(Requeued, plain, c)
	s.deliver(plain, c, true)
	s.event(Rejected, plain, c)
	s.event(Gone, plain, 0)
	s.client = s.h.NewClient()
	s.consume(target, false, c)
	s.event(Settled, 0, 0)
	d := s.publish(toPlain)
	transient := s.unconfirmed(toPlain, false)
	s.event(Confirmed, 0, transient)
	s.unconfirmed(toPlain, true) // its fate is unknown
	s.restart(Killed)
	// The crash undid the acknowledgement of a and the rejection of c, and cost the transient message.
	s.consume(plain, true, a, c, d)
	s.event(Settled, 0, 0)
	s.consume(target, true, c)
	s.event(Committed, 0, 0)
	e := s.publish(toBoth)
	s.restart(Stopped)
	f := s.publish(toPlain)
	s.event(Draining, 0, 0)
	s.consume(plain, false, e, f)
	s.consume(other, true, b)
	s.consume(other, false, e)
	return s
}

func TestHealthyHistory(t *testing.T) {
	s := healthy()
	r := s.h.Check()
	if text := s.h.Error(r); text != "" {
		t.Fatal(text)
	}
	want := Counts{Published: 8, Confirmed: 7, Unanswered: 1, Delivered: 13, Redelivered: 6, Acked: 11, Rejected: 1, Requeued: 1,
		Drained: 4, Reborn: 3, DeadLettered: 2, Vanished: 1, Kills: 1, Stops: 1}
	if r.Counts != want {
		t.Errorf("counts %+v,\n  want %+v", r.Counts, want)
	}
}

// plantedFaults are honest histories but for one fault each. a and b are confirmed and in plain only.
var plantedFaults = []struct {
	name  string
	rule  Rule
	plant func(s *script, a, b uint64) (guilty uint64)
}{
	{"a confirmed message is missing", RuleLost, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a)
		return b
	}},
	{"missing from one of two queues", RuleLost, func(s *script, a, b uint64) uint64 {
		c := s.publish(toBoth)
		s.consume(plain, false, a, b, c)
		return c
	}},
	{"missing after a crash, though held once", RuleLost, func(s *script, a, b uint64) uint64 {
		s.deliver(plain, a, false)
		s.restart(Killed)
		s.consume(plain, true, b)
		return a
	}},
	{"missing, though it came back once after its acknowledgement was undone", RuleLost, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.restart(Killed)
		s.deliver(plain, a, true)
		return a
	}},
	{"missing after it was requeued", RuleLost, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a)
		s.deliver(plain, b, false)
		s.event(Requeued, plain, b)
		return b
	}},
	{"rejected, and not in the dead-letter target", RuleLost, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a)
		s.deliver(plain, b, false)
		s.event(Rejected, plain, b)
		return b
	}},
	{"a transient message is missing without a restart", RuleLost, func(s *script, a, b uint64) uint64 {
		c := s.unconfirmed(toPlain, false)
		s.event(Confirmed, 0, c)
		s.consume(plain, false, a, b)
		return c
	}},
	{"delivered twice without redelivered", RuleTwice, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a)
		s.deliver(plain, b, false)
		s.restart(Killed)
		s.consume(plain, false, b)
		return b
	}},
	{"twice from a dead-letter target after one rejection", RuleTwice, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a)
		s.deliver(plain, b, false)
		s.event(Rejected, plain, b)
		s.deliver(target, b, false)
		s.restart(Killed)
		s.consume(target, false, b)
		return b
	}},
	{"a body flipped by a bit", RuleInvented, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		body := s.h.Body(b, int(b%300))
		body[len(body)-1] ^= 4
		s.h.Add(Event{Kind: Delivered, ID: b, Queue: plain, Redelivered: true, Hash: s.h.Fingerprint(body, "")})
		return b
	}},
	{"a property changed", RuleInvented, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.h.Add(Event{Kind: Delivered, ID: b, Queue: plain, Redelivered: true, Hash: s.h.Fingerprint(s.h.Body(b, int(b%300)), "x")})
		return b
	}},
	{"an invented id", RuleInvented, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b, b+1)
		return b + 1
	}},
	{"an unreadable id", RuleInvented, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b, ParseID("none of ours"))
		return 0
	}},
	{"of a transaction that was rolled back", RuleInvented, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		c := s.unconfirmed(toPlain, true)
		s.event(Undone, 0, c)
		s.deliver(plain, c, false)
		return c
	}},
	{"from a queue that it was not sent to", RuleInvented, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.deliver(other, b, false)
		return b
	}},
	{"in the dead-letter target without a rejection", RuleInvented, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.deliver(target, b, false)
		return b
	}},
	{"an order swap", RuleOrder, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, b, a)
		return a
	}},
	{"an order swap in the drain after a crash", RuleOrder, func(s *script, a, b uint64) uint64 {
		s.restart(Killed)
		s.event(Draining, 0, 0)
		s.consume(plain, true, b, a)
		return a
	}},
	{"back after a clean restart although acknowledged", RuleBack, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.event(Settled, 0, 0)
		s.restart(Stopped)
		s.consume(plain, true, b)
		return b
	}},
	{"back after a clean restart and a crash", RuleBack, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.event(Settled, 0, 0)
		s.restart(Stopped)
		s.restart(Killed)
		s.consume(plain, true, b)
		return b
	}},
	{"back in the same run", RuleBack, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.event(Settled, 0, 0)
		s.event(Left, plain, 0)
		s.client = s.h.NewClient()
		s.consume(plain, true, b)
		return b
	}},
	{"back after a crash although a transaction acknowledged it", RuleBack, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a, b)
		s.event(Committed, 0, 0)
		s.restart(Killed)
		s.consume(plain, true, b)
		return b
	}},
	{"given to two", RuleOwners, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a)
		s.deliver(plain, b, false)
		s.client = s.h.NewClient()
		s.consume(plain, true, b)
		return b
	}},
	{"flagged for no reason", RuleFlagged, func(s *script, a, b uint64) uint64 {
		s.consume(plain, false, a)
		s.restart(Stopped)
		s.consume(plain, true, b)
		return b
	}},
}

// TestPlantedFaults: the check finds each kind of fault, at the message it was planted at, and nothing else.
func TestPlantedFaults(t *testing.T) {
	for _, c := range plantedFaults {
		t.Run(c.name, func(t *testing.T) {
			s := newScript()
			guilty := c.plant(s, s.publish(toPlain), s.publish(toPlain))
			r := s.h.Check()
			if len(r.Faults) != 1 || r.Faults[0].Rule != c.rule || r.Faults[0].ID != guilty {
				t.Errorf("want one fault %q at %x, got %s", c.rule, guilty, s.h.Error(r))
			}
		})
	}
}

// TestPlantedInEvents damages a healthy history of some size at random places: each kind of damage must be found wherever
// it strikes.
func TestPlantedInEvents(t *testing.T) {
	build := func() *script {
		s := newScript()
		var ids []uint64
		for range 300 {
			ids = append(ids, s.publish(toPlain))
		}
		s.event(Draining, 0, 0)
		s.consume(plain, false, ids...)
		return s
	}
	if r := build().h.Check(); len(r.Faults) > 0 {
		t.Fatal(build().h.Error(r))
	}
	// In build's order the drain is 300 pairs of a delivery and an acknowledgement.
	const first, pairs = 601, 300
	for n := 0; n < pairs; n += 7 {
		at := first + 2*n
		next := first + 2*((n+1)%pairs)
		for name, plant := range map[Rule]func(h *History){
			RuleLost:     func(h *History) { h.Events = slices.Delete(h.Events, at, at+2) },
			RuleTwice:    func(h *History) { h.Events = slices.Insert(h.Events, at+2, h.Events[at], h.Events[at+1]) },
			RuleInvented: func(h *History) { h.Events[at].Hash, h.Events[next].Hash = h.Events[next].Hash, h.Events[at].Hash },
			RuleOrder: func(h *History) {
				for i := range 2 {
					h.Events[at+i], h.Events[next+i] = h.Events[next+i], h.Events[at+i]
				}
			},
		} {
			s := build()
			plant(s.h)
			r := s.h.Check()
			if !slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Rule == name }) {
				t.Errorf("planted %q at event %d: found %s", name, at, s.h.Error(r))
			}
		}
	}
}

// TestSwappedBodies: the report of two swapped bodies says whose they are.
func TestSwappedBodies(t *testing.T) {
	s := newScript()
	a, b := s.publish(toPlain), s.publish(toPlain)
	s.h.Add(Event{Kind: Delivered, ID: a, Queue: plain, Client: s.client, Hash: s.hash(b)})
	s.h.Add(Event{Kind: Delivered, ID: b, Queue: plain, Client: s.client, Hash: s.hash(a)})
	r := s.h.Check()
	text := s.h.Error(r)
	for _, want := range []string{"invented:2", "it is " + MessageID(a), "it is " + MessageID(b), "published to plain, persistent"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestBody(t *testing.T) {
	h := NewHistory(3)
	seen := map[uint64]bool{}
	for size := range 100 {
		body := h.Body(5, size)
		if len(body) != size || string(body) != string(h.Body(5, size)) {
			t.Fatalf("size %d: %d bytes, or not twice the same", size, len(body))
		}
		if size >= 8 && string(body) == string(h.Body(6, size)) {
			t.Errorf("size %d: two ids, one body", size)
		}
		if sum := h.Fingerprint(body, ""); seen[sum] {
			t.Errorf("size %d: two sizes, one fingerprint", size)
		} else {
			seen[sum] = true
		}
	}
	for _, id := range []uint64{1, 255, 1 << 40} {
		if got := ParseID(MessageID(id)); got != id {
			t.Errorf("%x reads as %x", id, got)
		}
	}
}
