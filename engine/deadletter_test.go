package engine

import (
	"strings"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// dlx are the arguments of a queue with a dead letter exchange; key "-" is none.
func dlx(exchange, key string, more core.Args) core.Args {
	args := core.Args{"x-dead-letter-exchange": text(exchange)}
	if key != "-" {
		args["x-dead-letter-routing-key"] = text(key)
	}
	for k, v := range more {
		args[k] = v
	}
	return args
}

// take gets the first message of a queue.
func (h *house) take(q *queue.Queue) queue.Got {
	h.Helper()
	h.Observe(q)
	g, state := q.Get(false, h.now)
	if state != queue.GotOne {
		h.Fatalf("nothing in %s", q.Name)
	}
	return g
}

// DLX-01, DLX-02: reasons, targets and keys.
func TestDeadLetter(t *testing.T) {
	reject := func(h *house, q *queue.Queue) { h.Discard(q, h.take(q).Seq, nil) }
	pass := func(h *house, _ *queue.Queue) { h.now += 100e6 }
	for _, c := range []struct {
		name string
		args core.Args
		die  func(h *house, q *queue.Queue)
		want string // "exchange key reason" of the dead letter, empty for none
	}{
		{"rejected", dlx("dlx", "-", nil), reject, "dlx q rejected"},
		{"with a key", dlx("dlx", "dead", nil), reject, "dlx dead rejected"},
		{"with an empty key", dlx("dlx", "", nil), reject, "dlx  rejected"},
		{"expired", dlx("dlx", "-", core.Args{"x-message-ttl": number(50)}), pass, "dlx q expired"},
		{"dropped", dlx("dlx", "-", core.Args{"x-max-length": number(0)}), func(*house, *queue.Queue) {}, "dlx q maxlen"},
		{"refused", dlx("dlx", "-", core.Args{"x-max-length": number(0), "x-overflow": text("reject-publish-dlx")}), func(*house, *queue.Queue) {}, "dlx q maxlen"},
		{"refused without", dlx("dlx", "-", core.Args{"x-max-length": number(0), "x-overflow": text("reject-publish")}), func(*house, *queue.Queue) {}, ""},
		{"to a queue", dlx("", "sink", nil), reject, " sink rejected"},
		{"missing exchange", dlx("nope", "-", nil), reject, ""},
		{"no dead letter exchange", nil, reject, ""},
		{"acknowledged", dlx("dlx", "-", nil), func(h *house, q *queue.Queue) { h.Ack(q, h.take(q).Seq, 1, nil) }, ""},
		{"purged", dlx("dlx", "-", nil), func(h *house, q *queue.Queue) { q.Purge(h.now) }, ""},
		{"deleted", dlx("dlx", "-", nil), func(h *house, q *queue.Queue) { h.DeleteQueue(q) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			q, sink := h.queue("q", c.args), h.queue("sink", nil)
			h.bind(h.exchange("dlx", "topic", nil), sink, "#", nil)
			h.publish("", "q", "a=1\n")
			c.die(h, q)
			h.MarkDirty(q)
			h.rest()
			if c.want == "" {
				if sink.Ready() != 0 || h.Stats.DeadLettered != 0 {
					t.Errorf("%d dead letters", sink.Ready())
				}
				h.end()
				return
			}
			m := h.take(sink).Message
			head := string(m.Head())
			why := strings.Fields(head)[2]
			if got := string(m.Exchange()) + " " + string(m.Key()) + " " + why; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if !strings.HasSuffix(head, "a=1\n") || len(m.Body()) != 2 || m.Flags&core.FlagExpires != 0 {
				t.Errorf("head %q, body %q, flags %d", head, m.Body(), m.Flags)
			}
			h.end()
		})
	}
}

// DLX-08: what else the copy keeps, and in which order copies come.
func TestDeadLetterKeeps(t *testing.T) {
	h := newHouse(t)
	q, sink := h.queue("q", dlx("", "sink", core.Args{"x-message-ttl": number(10)})), h.queue("sink", nil)
	var bodies []string
	for i := range 50 {
		m := h.message("", "q", "")
		m.Flags |= core.FlagPersistent | core.FlagExpires
		m.TTL, m.Priority = 1000, uint8(i)
		bodies = append(bodies, string(m.Body()))
		h.Shard.Publish(q, m, nil, 0)
	}
	h.rest()
	h.now += 10e6
	h.MarkDirty(q)
	h.rest()
	for i, body := range bodies {
		m := h.take(sink).Message
		if string(m.Body()) != body || m.Flags != core.FlagPersistent || m.Priority != uint8(i) {
			t.Fatalf("dead letter %d: body %q, flags %d, priority %d", i, m.Body(), m.Flags, m.Priority)
		}
	}
	h.end()
}

// DLX-06: a cycle ends unless somebody rejects in it.
func TestDeadLetterCycles(t *testing.T) {
	timed := core.Args{"x-message-ttl": number(10)}
	for _, c := range []struct {
		name    string
		queues  map[string]core.Args
		first   string
		rounds  int
		reject  string // queue whose messages are rejected rather than expire
		letters uint64 // dead letters that reached a queue
		dropped uint64
	}{
		{"to itself", map[string]core.Args{"a": dlx("", "a", timed)}, "a", 5, "", 0, 1},
		{"there and back", map[string]core.Args{"a": dlx("", "b", timed), "b": dlx("", "a", timed)}, "a", 5, "", 1, 1},
		{"three", map[string]core.Args{"a": dlx("", "b", timed), "b": dlx("", "c", timed), "c": dlx("", "a", timed)}, "a", 9, "", 2, 1},
		{"into a circle", map[string]core.Args{"a": dlx("", "b", timed), "b": dlx("", "c", timed), "c": dlx("", "b", timed)}, "a", 9, "", 2, 1},
		{"rejected goes round", map[string]core.Args{"a": dlx("", "a", nil)}, "a", 5, "a", 5, 0},
		{"retry with a delay", map[string]core.Args{"a": dlx("", "b", nil), "b": dlx("", "a", timed)}, "a", 6, "a", 6, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			queues := map[string]*queue.Queue{}
			for name, args := range c.queues {
				queues[name] = h.queue(name, args)
			}
			h.publish("", c.first, "")
			h.rest()
			for range c.rounds {
				if q := queues[c.reject]; q != nil && q.Ready() > 0 {
					h.Discard(q, h.take(q).Seq, nil)
				} else {
					h.now += 10e6
				}
				for _, q := range queues {
					h.MarkDirty(q)
				}
				h.rest()
			}
			if h.Stats.DeadLettered != c.letters || h.Stats.DeadDropped != c.dropped {
				t.Errorf("%d dead letters, %d dropped, want %d and %d", h.Stats.DeadLettered, h.Stats.DeadDropped, c.letters, c.dropped)
			}
			h.end()
		})
	}
}

// A chain of dead letters takes many turns at most, never the stack, and each
// turn a bounded part.
func TestDeadLetterChain(t *testing.T) {
	h := newHouse(t)
	none := core.Args{"x-max-length": number(0)}
	const length = 30
	for i := range length {
		h.queue("q"+string(rune('A'+i)), dlx("", "q"+string(rune('A'+i+1)), none))
	}
	last := h.queue("q"+string(rune('A'+length)), nil)
	for range 10 {
		h.publish("", "qA", "")
	}
	h.rest()
	if last.Ready() != 10 || h.Stats.DeadLettered != 10*length {
		t.Errorf("%d arrived, %d dead letters", last.Ready(), h.Stats.DeadLettered)
	}
	if deaths := (textCodec{}).Deaths(h.take(last).Message); len(deaths) != length || deaths[0].Queue != "q"+string(rune('A'+length-1)) {
		t.Errorf("history of %d, newest first: %v", len(deaths), deaths)
	}
	const many = deathBatch + 100
	for range many {
		h.publish("", "qA", "")
	}
	h.rest()
	if last.Ready() != 9+many {
		t.Errorf("%d arrived", last.Ready())
	}
	h.end()
}

// A dead letter to several queues, one of which would close a cycle.
func TestDeadLetterFanOut(t *testing.T) {
	h := newHouse(t)
	q := h.queue("q", dlx("dlx", "-", core.Args{"x-message-ttl": number(10)}))
	x := h.exchange("dlx", "fanout", nil)
	one, two := h.queue("one", nil), h.queue("two", nil)
	for _, dest := range []*queue.Queue{q, one, two} {
		h.bind(x, dest, "", nil)
	}
	h.publish("", "q", "")
	h.rest()
	h.now += 10e6
	h.MarkDirty(q)
	h.rest()
	if q.Ready() != 0 || one.Ready() != 1 || two.Ready() != 1 {
		t.Errorf("%d, %d and %d ready", q.Ready(), one.Ready(), two.Ready())
	}
	h.end()
}
