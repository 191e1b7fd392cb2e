package engine

import (
	"strings"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// A.5 and C.1: the refusals of queue.declare, word for word, and what the
// arguments come to mean.
func TestQueueArguments(t *testing.T) {
	const tenYears = core.TTLMillisMax
	invalid := func(key, detail string) string {
		return "PRECONDITION_FAILED - invalid arg '" + key + "' for queue 'q' in vhost '/': " + detail
	}
	integer := func(key string) string { return invalid(key, `"expected integer, got longstr"`) }
	one := func(key string, v core.Value) core.Args { return core.Args{key: v} }
	for _, c := range []struct {
		args core.Args
		want string
		ok   func(s *queue.Settings) bool
	}{
		{nil, "", func(s *queue.Settings) bool {
			return s.TTL == -1 && s.MaxLength == -1 && s.MaxBytes == -1 && s.Expires == 0 && !s.DeadLetter && s.Overflow == queue.DropHead
		}},
		{one("x-message-ttl", number(0)), "", func(s *queue.Settings) bool { return s.TTL == 0 }},
		{one("x-message-ttl", long(tenYears)), "", func(s *queue.Settings) bool { return s.TTL == tenYears }},
		{one("x-message-ttl", long(tenYears+1)), invalid("x-message-ttl", "{value_too_large,315360000001}"), nil},
		{one("x-message-ttl", number(-1)), invalid("x-message-ttl", "{value_negative,-1}"), nil},
		{one("x-message-ttl", text("5")), integer("x-message-ttl"), nil},
		{one("x-message-ttl", float(5)), invalid("x-message-ttl", `"expected integer, got double"`), nil},
		{one("x-expires", number(1)), "", func(s *queue.Settings) bool { return s.Expires == 1 }},
		{one("x-expires", number(0)), invalid("x-expires", "{value_zero,0}"), nil},
		{one("x-expires", number(-5)), invalid("x-expires", "{value_negative,-5}"), nil},
		{one("x-expires", text("5")), integer("x-expires"), nil},
		{one("x-max-length", number(0)), "", func(s *queue.Settings) bool { return s.MaxLength == 0 }},
		{one("x-max-length", unsigned(7)), "", func(s *queue.Settings) bool { return s.MaxLength == 7 }},
		{one("x-max-length", unsigned(-1)), invalid("x-max-length", "{value_too_large,18446744073709551615}"), nil},
		{one("x-max-length", number(-1)), invalid("x-max-length", "{value_negative,-1}"), nil},
		{one("x-max-length-bytes", long(1<<40)), "", func(s *queue.Settings) bool { return s.MaxBytes == 1<<40 }},
		{one("x-max-length-bytes", truth(1)), invalid("x-max-length-bytes", `"expected integer, got bool"`), nil},
		{one("x-overflow", text("drop-head")), "", func(s *queue.Settings) bool { return s.Overflow == queue.DropHead }},
		{one("x-overflow", text("reject-publish")), "", func(s *queue.Settings) bool { return s.Overflow == queue.RejectPublish }},
		{one("x-overflow", text("reject-publish-dlx")), "", func(s *queue.Settings) bool { return s.Overflow == queue.RejectPublishDLX }},
		{one("x-overflow", text("burst")), invalid("x-overflow", "invalid_overflow"), nil},
		{one("x-overflow", number(1)), invalid("x-overflow", "{unacceptable_type,signedint}"), nil},
		{one("x-dead-letter-exchange", text("")), "", func(s *queue.Settings) bool { return s.DeadLetter && s.DeadExchange == "" && !s.DeadKeySet }},
		{one("x-dead-letter-exchange", number(1)), invalid("x-dead-letter-exchange", "{unacceptable_type,signedint}"), nil},
		{core.Args{"x-dead-letter-exchange": text("dlx"), "x-dead-letter-routing-key": text("k")}, "",
			func(s *queue.Settings) bool { return s.DeadExchange == "dlx" && s.DeadKeySet && s.DeadKey == "k" }},
		{one("x-dead-letter-routing-key", text("k")), invalid("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined"), nil},
		{one("x-queue-type", text("classic")), "", nil},
		{one("x-queue-type", text("nope")), invalid("x-queue-type", `"unsupported queue type 'nope'"`), nil},
		{one("x-queue-type", number(1)), invalid("x-queue-type", "{unacceptable_type,signedint}"), nil},
		{one("x-queue-mode", text("lazy")), "", nil},
		{one("x-queue-mode", text("busy")), invalid("x-queue-mode", `"unsupported queue mode 'busy'"`), nil},
		{one("x-queue-version", number(2)), "", nil},
		{one("x-queue-version", number(3)), invalid("x-queue-version", "{value_too_large,3}"), nil},
		{one("x-foo", text("nobody knows")), "", nil},
	} {
		h := newHouse(t)
		q, err := h.v.DeclareQueue("q", queue.Settings{Args: c.args}, nil, h.Shard, false)
		if got := textOf(err); got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
		if (q == nil) != (c.want != "") || (h.v.Queue([]byte("q")) == nil) != (c.want != "") {
			t.Errorf("%v: declared %v", c.args, q != nil)
		}
		if q != nil && c.ok != nil && !c.ok(&q.Settings) {
			t.Errorf("%v: %+v", c.args, q.Settings)
		}
	}
}

// The matrix of C.1: which type knows which argument, and what it says of the others.
func TestArgumentsOfTypes(t *testing.T) {
	good := map[string]core.Value{
		"x-message-ttl": number(1000), "x-expires": number(1000), "x-max-length": number(5), "x-max-length-bytes": number(5),
		"x-overflow": text("reject-publish"), "x-dead-letter-exchange": text("dlx"), "x-dead-letter-strategy": text("at-least-once"),
		"x-max-priority": number(5), "x-queue-mode": text("lazy"), "x-queue-version": number(2), "x-single-active-consumer": truth(1),
		"x-queue-master-locator": text("min-masters"), "x-queue-leader-locator": text("balanced"), "x-delivery-limit": number(3),
		"x-quorum-initial-group-size": number(3), "x-initial-cluster-size": number(3), "x-max-in-memory-length": number(1),
		"x-max-in-memory-bytes": number(1), "x-max-age": text("7D"), "x-stream-max-segment-size-bytes": number(1000),
		"x-stream-filter-size-bytes": number(16), "x-consumer-timeout": number(1000),
	}
	known := map[string]string{ // by each type: c, q, s
		"x-message-ttl": "cq", "x-expires": "cq", "x-max-length": "cq", "x-max-length-bytes": "cqs", "x-overflow": "cq",
		"x-dead-letter-exchange": "cq", "x-dead-letter-strategy": "q", "x-max-priority": "c", "x-queue-mode": "c",
		"x-queue-version": "c", "x-single-active-consumer": "cq", "x-queue-master-locator": "c", "x-queue-leader-locator": "qs",
		"x-delivery-limit": "q", "x-quorum-initial-group-size": "q", "x-initial-cluster-size": "s", "x-max-in-memory-length": "q",
		"x-max-in-memory-bytes": "q", "x-max-age": "s", "x-stream-max-segment-size-bytes": "s", "x-stream-filter-size-bytes": "s",
		"x-consumer-timeout": "cq",
	}
	for name, value := range good {
		for _, kind := range []string{"classic", "quorum", "stream"} {
			h := newHouse(t)
			want := ""
			if !strings.Contains(known[name], kind[:1]) {
				want = "PRECONDITION_FAILED - invalid arg '" + name + "' for queue 'q' in vhost '/' of queue type rabbit_" + kind + "_queue"
			}
			args := core.Args{name: value, "x-queue-type": text(kind)}
			_, err := h.v.DeclareQueue("q", queue.Settings{Durable: true, Args: args}, nil, h.Shard, false)
			if got := textOf(err); got != want {
				t.Errorf("%s on %s: %q, want %q", name, kind, got, want)
			}
		}
	}
}

// TYP-01, TYP-02: what a queue of a type cannot be, and how its arguments are checked.
func TestTypes(t *testing.T) {
	type settings = queue.Settings
	kind := func(k string, more ...any) core.Args {
		a := core.Args{"x-queue-type": text(k)}
		for i := 0; i < len(more); i += 2 {
			a[more[i].(string)] = more[i+1].(core.Value)
		}
		return a
	}
	invalid := func(arg, detail string) string {
		return "PRECONDITION_FAILED - invalid arg '" + arg + "' for queue 'q' in vhost '/': " + detail
	}
	property := func(p string) string {
		return "PRECONDITION_FAILED - invalid property '" + p + "' for queue 'q' in vhost '/'"
	}
	for _, c := range []struct {
		name      string
		s         settings
		generated bool
		want      string
		ok        func(*settings) bool
	}{
		{"quorum", settings{Durable: true, Args: kind("quorum")}, false, "", func(s *settings) bool { return s.Type == queue.Quorum && s.DeliveryLimit == 20 }},
		{"no limit", settings{Durable: true, Args: kind("quorum", "x-delivery-limit", number(-1))}, false, "", func(s *settings) bool { return s.DeliveryLimit == -1 }},
		{"limit 0", settings{Durable: true, Args: kind("quorum", "x-delivery-limit", number(0))}, false, "", func(s *settings) bool { return s.DeliveryLimit == 0 }},
		{"limit -2", settings{Durable: true, Args: kind("quorum", "x-delivery-limit", number(-2))}, false, invalid("x-delivery-limit", "{value_negative,-2}"), nil},
		{"classic has no limit", settings{}, false, "", func(s *settings) bool { return s.Type == queue.Classic && s.DeliveryLimit == -1 }},
		{"transient quorum", settings{Args: kind("quorum")}, false, property("non-durable"), nil},
		{"exclusive quorum", settings{Durable: true, Exclusive: true, Args: kind("quorum")}, false, property("exclusive-owner"), nil},
		{"auto-delete quorum", settings{Durable: true, AutoDelete: true, Args: kind("quorum")}, false, property("auto-delete"), nil},
		{"transient stream", settings{Args: kind("stream")}, false, property("non-durable"), nil},
		{"server-named", settings{Durable: true, Exclusive: true, Args: kind("quorum")}, true,
			"PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_quorum_queue", nil},
		{"strategy", settings{Durable: true, Args: kind("quorum", "x-dead-letter-strategy", text("maybe"))}, false, invalid("x-dead-letter-strategy", "invalid_dlx_strategy"), nil},
		{"at least once", settings{Durable: true, Args: kind("quorum", "x-dead-letter-strategy", text("at-least-once"),
			"x-dead-letter-exchange", text(""), "x-overflow", text("reject-publish"))}, false, "", func(s *settings) bool { return s.AtLeastOnce }},
		{"at least once needs a bound", settings{Durable: true, Args: kind("quorum", "x-dead-letter-strategy", text("at-least-once"),
			"x-dead-letter-exchange", text(""))}, false, "", func(s *settings) bool { return !s.AtLeastOnce }},
		{"quorum knows two overflows", settings{Durable: true, Args: kind("quorum", "x-overflow", text("reject-publish-dlx"))}, false, "",
			func(s *settings) bool { return s.Overflow == queue.DropHead }},
		{"max age", settings{Durable: true, Args: kind("stream", "x-max-age", text("2h"))}, false, "", func(s *settings) bool { return s.MaxAge == 7200e3 }},
		{"max age of what", settings{Durable: true, Args: kind("stream", "x-max-age", text("2x"))}, false, invalid("x-max-age", "invalid_max_age"), nil},
		{"segment", settings{Durable: true, Args: kind("stream", "x-stream-max-segment-size-bytes", long(3_000_000_001))}, false,
			invalid("x-stream-max-segment-size-bytes", "{value_too_large,3000000001}"), nil},
		{"filter", settings{Durable: true, Args: kind("stream", "x-stream-filter-size-bytes", number(15))}, false,
			invalid("x-stream-filter-size-bytes", "{value_too_small,15}"), nil},
		{"group size", settings{Durable: true, Args: kind("quorum", "x-quorum-initial-group-size", number(0))}, false,
			invalid("x-quorum-initial-group-size", "{value_zero,0}"), nil},
	} {
		h := newHouse(t)
		q, err := h.v.DeclareQueue("q", c.s, &owner{}, h.Shard, c.generated)
		if got := textOf(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		} else if c.ok != nil && !c.ok(&q.Settings) {
			t.Errorf("%s: %+v", c.name, q.Settings)
		}
	}
}

// TYP-01: the type is compared on redeclare.
func TestRedeclareType(t *testing.T) {
	h := newHouse(t)
	kind := func(k string) queue.Settings {
		return queue.Settings{Durable: true, Args: core.Args{"x-queue-type": text(k)}}
	}
	for name, s := range map[string]queue.Settings{"c": {Durable: true}, "q": kind("quorum")} {
		if _, err := h.v.DeclareQueue(name, s, nil, h.Shard, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		s    queue.Settings
		want string
	}{
		{"c", kind("classic"), ""},
		{"q", kind("quorum"), ""},
		{"c", kind("quorum"), "received the value 'quorum' of type 'longstr' but current is none"},
		{"q", kind("classic"), "received 'classic' but current is 'quorum'"},
		{"q", queue.Settings{Durable: true}, "received none but current is the value 'quorum' of type 'longstr'"},
	} {
		want := c.want
		if want != "" {
			want = "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue '" + c.name + "' in vhost '/': " + want
		}
		if _, err := h.v.DeclareQueue(c.name, c.s, nil, h.Shard, false); textOf(err) != want {
			t.Errorf("%s again as %v: %q, want %q", c.name, c.s.Args, textOf(err), want)
		}
	}
}

// QUE-02 to QUE-07: declaring again, and who may.
func TestRedeclareQueue(t *testing.T) {
	me, other := &owner{"me"}, &owner{"other"}
	ttl := func(v core.Value) core.Args { return core.Args{"x-message-ttl": v} }
	inequivalent := func(arg, detail string) string {
		return "PRECONDITION_FAILED - inequivalent arg '" + arg + "' for queue 'q' in vhost '/': " + detail
	}
	const locked = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. " +
		"It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."
	type settings = queue.Settings
	for _, c := range []struct {
		name  string
		first settings
		again settings
		who   *owner
		want  string
	}{
		{"equal", settings{Durable: true, AutoDelete: true}, settings{Durable: true, AutoDelete: true}, other, ""},
		{"durable", settings{}, settings{Durable: true}, me, inequivalent("durable", "received 'true' but current is 'false'")},
		{"auto-delete", settings{AutoDelete: true}, settings{}, me, inequivalent("auto_delete", "received 'false' but current is 'true'")},
		{"argument added", settings{}, settings{Args: ttl(number(10))}, me,
			inequivalent("x-message-ttl", "received the value '10' of type 'signedint' but current is none")},
		{"argument left out", settings{Args: ttl(long(10))}, settings{}, me,
			inequivalent("x-message-ttl", "received none but current is the value '10' of type 'long'")},
		{"argument changed", settings{Args: ttl(number(60000))}, settings{Args: ttl(number(5))}, me,
			inequivalent("x-message-ttl", "received '5' but current is '60000'")},
		{"widths do not matter", settings{Args: ttl(number(60000))}, settings{Args: ttl(long(60000))}, me, ""},
		{"unknown arguments are ignored", settings{}, settings{Args: core.Args{"x-foo": number(1)}}, me, ""},
		{"classic is the default type", settings{}, settings{Args: core.Args{"x-queue-type": text("classic")}}, me, ""},
		{"the default type is classic", settings{Args: core.Args{"x-queue-type": text("classic")}}, settings{}, me, ""},
		{"exclusive, mine", settings{Exclusive: true}, settings{Exclusive: true}, me, ""},
		{"exclusive, durable is ignored", settings{Exclusive: true}, settings{Exclusive: true, Durable: true}, me, ""},
		{"exclusive, another's", settings{Exclusive: true}, settings{Exclusive: true}, other, locked},
		{"exclusive, asked for as shared", settings{Exclusive: true}, settings{}, me, locked},
		{"exclusive, asked for as shared by another", settings{Exclusive: true}, settings{}, other, locked},
		{"shared, asked for as exclusive", settings{}, settings{Exclusive: true}, me, locked},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			first, err := h.v.DeclareQueue("q", c.first, me, h.Shard, false)
			if err != nil {
				t.Fatal(err)
			}
			if c.first.Exclusive && (first.Owner != any(me) || first.Settings.Durable) {
				t.Errorf("owner %v, durable %v", first.Owner, first.Settings.Durable)
			}
			epoch := h.v.Epoch()
			q, err := h.v.DeclareQueue("q", c.again, c.who, h.Shard, false)
			if got := textOf(err); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.want == "" && q != first || h.v.Queue([]byte("q")) != first || h.v.Epoch() != epoch {
				t.Error("the second declare changed something")
			}
		})
	}
}

// QUE-02, QUE-05, QUE-07: names that may not be used, and queues that may not be
// seen.
func TestFindQueue(t *testing.T) {
	me, other := &owner{"me"}, &owner{"other"}
	h := newHouse(t)
	if _, err := h.v.DeclareQueue("amq.x", queue.Settings{}, me, h.Shard, false); textOf(err) !=
		"ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'" {
		t.Errorf("%v", err)
	}
	made, err := h.v.DeclareQueue("amq.gen-x", queue.Settings{}, me, h.Shard, true)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.v.DeclareQueue("amq.gen-x", queue.Settings{}, other, h.Shard, false); again != made || err != nil {
		t.Errorf("an existing reserved name, equal: %v", err)
	}
	mine, _ := h.v.DeclareQueue("mine", queue.Settings{Exclusive: true}, me, h.Shard, false)
	for _, c := range []struct {
		name  string
		who   *owner
		found *queue.Queue
		want  core.Refusal
	}{
		{"mine", me, mine, 0},
		{"mine", other, nil, core.ResourceLocked},
		{"amq.gen-x", other, made, 0},
		{"nope", me, nil, core.NotFound},
		{"", me, nil, core.NotFound},
	} {
		q, err := h.v.FindQueue([]byte(c.name), c.who)
		if q != c.found || q == nil && err.Refusal != c.want {
			t.Errorf("%q for %s: %v, %v", c.name, c.who.name, q, err)
		}
	}
	if _, err := h.v.FindQueue(nil, me); textOf(err) != "NOT_FOUND - no queue '' in vhost '/'" {
		t.Errorf("%v", err)
	}
	if h.DeleteQueue(mine); h.v.Queue([]byte("mine")) != nil || !mine.Deleted() {
		t.Error("the deleted queue is still there")
	}
	if h.DeleteQueue(mine) != 0 {
		t.Error("deleted twice")
	}
	again, err := h.v.DeclareQueue("mine", queue.Settings{}, other, h.Shard, false)
	if err != nil || again == mine || again.ID == mine.ID {
		t.Errorf("declared anew: %v, %v", again, err)
	}
	h.end()
}

// A new queue prefers its connection's shard until that one has too many.
func TestPlacement(t *testing.T) {
	b := NewBroker(3, textCodec{})
	v := b.VHost("/")
	counts := make([]int, 3)
	var queues []*queue.Queue
	for i := range 90 {
		q, err := v.DeclareQueue(string(rune('a'+i)), queue.Settings{}, nil, b.Shards[1], false)
		if err != nil {
			t.Fatal(err)
		}
		queues = append(queues, q)
		if counts[q.Shard]++; i < placementSlack && q.Shard != 1 {
			t.Errorf("queue %d is on shard %d", i, q.Shard)
		}
	}
	for i, n := range counts {
		if n < 20 || n > 50 {
			t.Errorf("shard %d has %d of 90 queues", i, n)
		}
	}
	for _, q := range queues {
		if !v.removeQueue(q) {
			t.Error("a queue is gone already")
		}
	}
	for i := range b.queuesOn {
		if n := b.queuesOn[i].Load(); n != 0 {
			t.Errorf("shard %d is believed to have %d queues", i, n)
		}
	}
}
