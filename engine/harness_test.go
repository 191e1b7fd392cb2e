package engine

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
	"ringmq/ring"
)

// textCodec keeps headers and history as lines of text: "name=value", and
// "death queue reason", newest first.
type textCodec struct{}

type textFields map[string]string

func (f textFields) Lookup(name string) (core.Value, bool) {
	s, ok := f[name]
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && name == exchange.DelayHeader {
		return number(n), ok
	}
	return text(s), ok
}

func (textCodec) Headers(m *core.Message) core.Fields {
	f := textFields{}
	for line := range strings.Lines(string(m.Head())) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			f[name] = value
		}
	}
	return f
}

// MoreKeys are the words behind "CC=".
func (textCodec) MoreKeys(m *core.Message) (keys [][]byte) {
	for line := range strings.Lines(string(m.Head())) {
		if list, ok := strings.CutPrefix(strings.TrimSpace(line), "CC="); ok {
			keys = append(keys, bytes.Fields([]byte(list))...)
		}
	}
	return keys
}

func (textCodec) Deaths(m *core.Message) (deaths []core.Death) {
	for line := range strings.Lines(string(m.Head())) {
		if w := strings.Fields(line); len(w) == 3 && w[0] == "death" {
			deaths = append(deaths, core.Death{Queue: w[1], Reason: w[2]})
		}
	}
	return deaths
}

// AppendDeath puts the newest event first and keeps one for each queue and
// reason, as x-death does (DLX-03).
func (textCodec) AppendDeath(dst []byte, m *core.Message, queueName string, why core.DeathReason, rekeyed bool, _ int64) []byte {
	event := "death " + queueName + " " + why.String() + "\n"
	dst = append(dst, event...)
	for line := range bytes.Lines(m.Head()) {
		if string(line) != event && !(rekeyed && bytes.HasPrefix(line, []byte("CC="))) {
			dst = append(dst, line...)
		}
	}
	return dst
}

// Delay is the number behind "x-delay=".
func (c textCodec) Delay(m *core.Message) int64 {
	n, _ := strconv.ParseInt(c.Headers(m).(textFields)["x-delay"], 10, 64)
	return max(n, 0)
}

// Release turns the sign of "x-delay=", and takes "expires=" for a time to live.
func (c textCodec) Release(dst []byte, m *core.Message, _ int64) (r ReleasedMessage) {
	for line := range bytes.Lines(m.Head()) {
		if n, ok := bytes.CutPrefix(line, []byte("x-delay=")); ok {
			dst = append(append(dst, "x-delay=-"...), n...)
			continue
		}
		dst = append(dst, line...)
	}
	if s, ok := c.Headers(m).(textFields)["expires"]; ok {
		r.Expires = true
		r.TTL, _ = strconv.ParseInt(s, 10, 64)
	}
	r.Head, r.Keys = dst, c.MoreKeys(m)
	return r
}

func text(s string) core.Value   { return core.Value{Kind: core.KindString, Str: s, Type: "longstr"} }
func number(n int64) core.Value  { return core.Value{Kind: core.KindInt, Int: n, Type: "signedint"} }
func long(n int64) core.Value    { return core.Value{Kind: core.KindInt, Int: n, Type: "long"} }
func float(f float64) core.Value { return core.Value{Kind: core.KindFloat, Float: f, Type: "double"} }
func truth(n int64) core.Value   { return core.Value{Kind: core.KindBool, Int: n, Type: "bool"} }
func unsigned(n int64) core.Value {
	return core.Value{Kind: core.KindUint, Int: n, Type: "unsignedint"}
}

// house is a broker of one shard without a loop.
type house struct {
	testing.TB
	*Shard
	v     *VHost
	slabs []*ring.Slab
	next  int
}

func newHouse(tb testing.TB) *house {
	b := NewBroker(1, textCodec{})
	h := &house{TB: tb, Shard: b.Shards[0], v: b.VHost("/"), slabs: ring.NewSlabs(1)}
	h.arena = h.slabs[0]
	h.now = 1e12
	return h
}

// owner stands for a connection.
type owner struct{ name string }

// queue declares a queue that must be accepted.
func (h *house) queue(name string, args core.Args) *queue.Queue {
	h.Helper()
	q, err := h.v.DeclareQueue(name, queue.Settings{Args: args}, nil, h.Shard, false)
	if err != nil {
		h.Fatal(err)
	}
	return q
}

// exchange declares an exchange that must be accepted.
func (h *house) exchange(name, kind string, edit func(*ExchangeSettings)) *Exchange {
	h.Helper()
	var s ExchangeSettings
	if edit != nil {
		edit(&s)
	}
	if err := h.v.DeclareExchange(name, kind, s); err != nil {
		h.Fatal(err)
	}
	return h.v.Exchange([]byte(name))
}

func (h *house) bind(source *Exchange, dest exchange.Dest, key string, args core.Args) {
	h.Helper()
	if err := h.v.Bind(source, dest, key, args); err != nil {
		h.Fatal(err)
	}
}

// message makes a message; head is lines of text.
func (h *house) message(exchange, key, head string) *core.Message {
	h.next++
	body := []byte{byte(h.next >> 8), byte(h.next)}
	m := core.NewMessage(h.arena, []byte(exchange), []byte(key), []byte(head), len(body))
	m.AppendBody(body)
	return m
}

// route names the queues that a message reaches, sorted.
func (h *house) route(exchange, key, head string) []string {
	h.Helper()
	x := h.v.Exchange([]byte(exchange))
	if x == nil {
		h.Fatalf("no exchange %q", exchange)
	}
	m := h.message(exchange, key, head)
	queues, _ := h.Route(h.v, x, []byte(key), textCodec{}.Headers(m))
	m.Release(h.arena)
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	slices.Sort(names)
	return names
}

// publish routes and enqueues as a session does.
func (h *house) publish(exchange, key, head string) {
	m := h.message(exchange, key, head)
	queues, _ := h.Route(h.v, h.v.Exchange([]byte(exchange)), m.Key(), textCodec{}.Headers(m))
	for _, q := range queues {
		m.AddRef(1)
		h.Publish(q, m, nil, 0)
	}
	m.Release(h.arena)
}

// rest settles until nothing is left to do.
func (h *house) rest() {
	h.Helper()
	for range 1000 {
		if !h.Settle() {
			return
		}
	}
	h.Fatal("the shard does not come to rest")
}

// end deletes all queues and checks that no message is left.
func (h *house) end() {
	h.Helper()
	h.v.Queues(func(q *queue.Queue) { h.DeleteQueue(q) })
	h.rest()
	if n := h.slabs[0].Stats().LiveBlocks; n != 0 {
		h.Errorf("%d blocks are left", n)
	}
	h.v.mu.Lock()
	defer h.v.mu.Unlock()
	for dest, in := range h.v.incoming {
		if _, isQueue := dest.(*queue.Queue); isQueue {
			h.Errorf("%d bindings to a queue that is gone", len(in))
		}
	}
}

func same(tb testing.TB, what string, got, want []string) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s: %v, want %v", what, got, want)
	}
}

// textOf is a refusal as the client sees it, empty for none.
func textOf(err *core.Error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// words are the names in a list.
func words(list string) []string { return strings.Fields(list) }
