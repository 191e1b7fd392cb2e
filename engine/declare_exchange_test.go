package engine

import (
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
)

// EXC-01: what every vhost has from the start.
func TestPredeclaredExchanges(t *testing.T) {
	h := newHouse(t)
	want := map[string]struct {
		kind     exchange.Kind
		internal bool
	}{
		"": {exchange.Direct, false}, "amq.direct": {exchange.Direct, false}, "amq.fanout": {exchange.Fanout, false},
		"amq.topic": {exchange.Topic, false}, "amq.headers": {exchange.Headers, false}, "amq.match": {exchange.Headers, false},
		"amq.rabbitmq.trace": {exchange.Topic, true},
	}
	n := 0
	h.v.Exchanges(func(x *Exchange) {
		n++
		w, ok := want[x.Name]
		if !ok || x.Kind != w.kind || x.Internal != w.internal || !x.Durable || x.AutoDelete {
			t.Errorf("%+v", x)
		}
	})
	if n != len(want) {
		t.Errorf("%d exchanges, want %d", n, len(want))
	}
	if h.Broker.VHost("/") != h.v || h.Broker.VHost("other") != nil {
		t.Error("vhosts are not what they should be")
	}
}

// EXC-03 to EXC-09: the refusals of exchange.declare, word for word.
func TestDeclareExchange(t *testing.T) {
	const x = "exchange 'x' in vhost '/'"
	inequivalent := func(arg, detail string) string {
		return "PRECONDITION_FAILED - inequivalent arg '" + arg + "' for " + x + ": " + detail
	}
	ae := func(v core.Value) core.Args { return core.Args{"alternate-exchange": v} }
	for _, c := range []struct {
		name        string
		first       *ExchangeSettings // declared as topic "x" before, if set
		exchange    string
		kind        string
		s           ExchangeSettings
		want        string
		notDeclared bool
	}{
		{"new", nil, "x", "topic", ExchangeSettings{Durable: true}, "", false},
		{"longest name", nil, string(make([]byte, 255)), "fanout", ExchangeSettings{}, "", false},
		{"unknown type", nil, "x", "x-nope", ExchangeSettings{}, "PRECONDITION_FAILED - unknown exchange type 'x-nope'", true},
		{"empty type", nil, "x", "", ExchangeSettings{}, "PRECONDITION_FAILED - invalid exchange type ''", true},
		{"unknown type of an existing one", &ExchangeSettings{}, "x", "no", ExchangeSettings{}, "PRECONDITION_FAILED - unknown exchange type 'no'", false},
		{"reserved", nil, "amq.x", "topic", ExchangeSettings{}, "ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'", true},
		{"predeclared, equal", nil, "amq.topic", "topic", ExchangeSettings{Durable: true}, "", false},
		{"predeclared, other", nil, "amq.topic", "topic", ExchangeSettings{},
			"PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'amq.topic' in vhost '/': received 'false' but current is 'true'", false},
		{"default exchange", nil, "", "direct", ExchangeSettings{Durable: true}, "ACCESS_REFUSED - operation not permitted on the default exchange", false},
		{"the same again", &ExchangeSettings{AutoDelete: true}, "x", "topic", ExchangeSettings{AutoDelete: true}, "", false},
		{"other type", &ExchangeSettings{}, "x", "fanout", ExchangeSettings{}, inequivalent("type", "received 'fanout' but current is 'topic'"), false},
		{"durable", &ExchangeSettings{}, "x", "topic", ExchangeSettings{Durable: true}, inequivalent("durable", "received 'true' but current is 'false'"), false},
		{"auto-delete", &ExchangeSettings{AutoDelete: true}, "x", "topic", ExchangeSettings{}, inequivalent("auto_delete", "received 'false' but current is 'true'"), false},
		{"internal", &ExchangeSettings{}, "x", "topic", ExchangeSettings{Internal: true}, inequivalent("internal", "received 'true' but current is 'false'"), false},
		{"other arguments are ignored", &ExchangeSettings{Args: core.Args{"x-foo": number(1)}}, "x", "topic", ExchangeSettings{Args: core.Args{"x-bar": text("a")}}, "", false},
		{"alternate, equal", &ExchangeSettings{Args: ae(text("a"))}, "x", "topic", ExchangeSettings{Args: ae(text("a"))}, "", false},
		{"alternate, other", &ExchangeSettings{Args: ae(text("a"))}, "x", "topic", ExchangeSettings{Args: ae(text("b"))},
			inequivalent("alternate-exchange", "received 'b' but current is 'a'"), false},
		{"alternate, none before", &ExchangeSettings{}, "x", "topic", ExchangeSettings{Args: ae(text("b"))},
			inequivalent("alternate-exchange", "received the value 'b' of type 'longstr' but current is none"), false},
		{"alternate, none now", &ExchangeSettings{Args: ae(text("a"))}, "x", "topic", ExchangeSettings{},
			inequivalent("alternate-exchange", "received none but current is the value 'a' of type 'longstr'"), false},
		{"alternate of the wrong type", nil, "x", "topic", ExchangeSettings{Args: ae(number(5))},
			"PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			if c.first != nil {
				h.exchange("x", "topic", func(s *ExchangeSettings) { *s = *c.first })
			}
			before := h.v.Exchange([]byte(c.exchange))
			epoch := h.v.Epoch()
			if got := textOf(h.v.DeclareExchange(c.exchange, c.kind, c.s)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			after := h.v.Exchange([]byte(c.exchange))
			if (after == nil) != c.notDeclared || before != nil && after != before {
				t.Errorf("before %v, after %v", before, after)
			}
			if changed := h.v.Epoch() != epoch; changed != (before == nil && after != nil) {
				t.Errorf("the epoch changed: %v", changed)
			}
		})
	}
}

// EXC-05, EXC-08, EXC-12, EXC-13 and BIND-02: the other commands that name an
// exchange.
func TestNamedExchange(t *testing.T) {
	const onDefault = "ACCESS_REFUSED - operation not permitted on the default exchange"
	const missing = "NOT_FOUND - no exchange 'nope' in vhost '/'"
	h := newHouse(t)
	x := h.exchange("x", "fanout", nil)
	dest := h.exchange("dest", "fanout", nil)
	h.bind(x, dest, "", nil)
	find := func(f func(name []byte) (*Exchange, *core.Error)) func(string) *core.Error {
		return func(name string) *core.Error {
			_, err := f([]byte(name))
			return err
		}
	}
	remove := func(ifUnused bool) func(string) *core.Error {
		return func(name string) *core.Error { return h.v.DeleteExchange(name, ifUnused) }
	}
	for _, c := range []struct {
		name, exchange string
		do             func(string) *core.Error
		want           string
	}{
		{"passive", "x", h.v.PassiveExchange, ""},
		{"passive, missing", "nope", h.v.PassiveExchange, missing},
		{"passive, default", "", h.v.PassiveExchange, onDefault},
		{"bindable", "amq.topic", find(h.v.FindBindable), ""},
		{"bindable, missing", "nope", find(h.v.FindBindable), missing},
		{"bindable, default", "", find(h.v.FindBindable), onDefault},
		{"publishable, default", "", find(h.v.FindExchange), ""},
		{"publishable, missing", "nope", find(h.v.FindExchange), missing},
		{"delete, missing", "nope", remove(false), ""},
		{"delete, default", "", remove(false), onDefault},
		{"delete, predeclared", "amq.topic", remove(false), "ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed"},
		{"delete, reserved and missing", "amq.x", remove(false), "ACCESS_REFUSED - deletion of system exchange 'amq.x' in vhost '/' not allowed"},
		{"delete if unused, a source", "x", remove(true), "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"},
		{"delete if unused, a destination only", "dest", remove(true), ""},
		{"delete", "x", remove(false), ""},
		{"delete again", "x", remove(false), ""},
	} {
		if got := textOf(c.do(c.exchange)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if h.v.Exchange([]byte("x")) != nil || len(x.bindings) != 0 || len(h.v.incoming) != 0 {
		t.Error("something of the deleted exchanges is left")
	}
}
