package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// define reads a definition as a command line gives it.
func define(tb testing.TB, text string) map[string]any {
	tb.Helper()
	d, err := readDefinition([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// policy sets a policy that must be accepted.
func (h *house) policy(p Policy, definition string) {
	h.Helper()
	if p.VHost == "" {
		p.VHost = "/"
	}
	p.Definition = define(h, definition)
	if err := h.Broker.SetPolicy(p); err != nil {
		h.Fatal(err)
	}
}

func (h *house) clearPolicy(name string, operator bool) {
	h.Helper()
	if err := h.Broker.ClearPolicy("/", name, operator); err != nil {
		h.Fatal(err)
	}
}

// POL-04: a policy takes effect on what a queue holds, and its removal undoes it.
func TestPolicyOnQueuedMessages(t *testing.T) {
	h := newHouse(t)
	q := h.queue("q", nil)
	dead := h.queue("dead", nil)
	for range 10 {
		h.publish("", "q", "")
	}
	h.rest()
	h.policy(Policy{Name: "p", Pattern: "^q$"},
		`{"max-length":4,"dead-letter-exchange":"","dead-letter-routing-key":"dead","consumer-timeout":7000}`)
	h.rest()
	if q.Ready() != 4 || dead.Ready() != 6 || q.ConsumerTimeout() != 7000 {
		t.Errorf("ready %d, dead %d, consumer timeout %d", q.Ready(), dead.Ready(), q.ConsumerTimeout())
	}
	h.policy(Policy{Name: "p", Pattern: "^q$"}, `{"max-length":4,"overflow":"reject-publish"}`)
	m := h.message("", "q", "")
	if got := h.Publish(q, m, nil, 0); got != Refused {
		t.Errorf("a publish to the full queue: outcome %d", got)
	}
	h.clearPolicy("p", false)
	if q.Rules != queue.NoRules() {
		t.Errorf("without a policy: %+v", q.Rules)
	}
	h.publish("", "q", "")
	h.rest()
	if q.Ready() != 5 {
		t.Errorf("%d messages without a limit", q.Ready())
	}
	h.policy(Policy{Name: "p", ApplyTo: "queues"}, `{"message-ttl":0}`)
	h.rest()
	if q.Ready() != 0 || dead.Ready() != 0 {
		t.Errorf("ready %d and %d with no time to live", q.Ready(), dead.Ready())
	}
	h.end()
}

// TYP-06: arguments, policies and operator policies together.
func TestEffectiveRules(t *testing.T) {
	for _, c := range []struct {
		name           string
		args           core.Args
		user, operator string
		want           func(r *queue.Rules)
	}{
		{"no policy", core.Args{"x-max-length": number(5)}, "", "", func(r *queue.Rules) { r.MaxLength = 5 }},
		{"argument lower", core.Args{"x-max-length": number(5), "x-message-ttl": number(1), "x-expires": number(3)},
			`{"max-length":6,"message-ttl":2,"expires":4}`, "",
			func(r *queue.Rules) { r.MaxLength, r.TTL, r.Expires = 5, 1, 3 }},
		{"policy lower", core.Args{"x-max-length": number(5), "x-message-ttl": number(3), "x-expires": number(5), "x-max-length-bytes": number(9)},
			`{"max-length":0,"message-ttl":0,"expires":4,"max-length-bytes":8}`, "",
			func(r *queue.Rules) { r.MaxLength, r.TTL, r.Expires, r.MaxBytes = 0, 0, 4, 8 }},
		{"operator lowest", core.Args{"x-max-length": number(5)}, `{"max-length":4}`, `{"max-length":3}`,
			func(r *queue.Rules) { r.MaxLength = 3 }},
		{"operator higher", core.Args{"x-max-length": number(5)}, `{"max-length":7}`, `{"max-length":9}`,
			func(r *queue.Rules) { r.MaxLength = 5 }},
		{"operator alone", nil, "", `{"expires":9}`, func(r *queue.Rules) { r.Expires = 9 }},
		{"argument wins", core.Args{"x-overflow": text("drop-head"), "x-dead-letter-exchange": text("a"), "x-dead-letter-routing-key": text("k")},
			`{"overflow":"reject-publish","dead-letter-exchange":"b","dead-letter-routing-key":"l"}`, "",
			func(r *queue.Rules) {
				r.DeadLetter, r.DeadExchange, r.DeadKeySet, r.DeadKey = true, "a", true, "k"
			}},
		{"policy where no argument", core.Args{"x-dead-letter-exchange": text("a")},
			`{"overflow":"reject-publish-dlx","dead-letter-exchange":"b","dead-letter-routing-key":"l","consumer-timeout":0}`, "",
			func(r *queue.Rules) {
				r.Overflow, r.ConsumerTimeout = queue.RejectPublishDLX, 0
				r.DeadLetter, r.DeadExchange, r.DeadKeySet, r.DeadKey = true, "a", true, "l"
			}},
		{"not of classic queues", nil, `{"delivery-limit":3,"max-age":"1h","dead-letter-strategy":"at-least-once","queue-mode":"lazy"}`, "",
			func(*queue.Rules) {}},
	} {
		h := newHouse(t)
		before := h.queue("before", c.args)
		if c.user != "" {
			h.policy(Policy{Name: "p", Pattern: ""}, c.user)
		}
		if c.operator != "" {
			h.policy(Policy{Name: "o", Pattern: "", Operator: true}, c.operator)
		}
		after := h.queue("after", c.args)
		want := queue.NoRules()
		c.want(&want)
		if before.Rules != want || after.Rules != want {
			t.Errorf("%s:\nbefore %+v\nafter  %+v\nwant   %+v", c.name, before.Rules, after.Rules, want)
		}
	}
}

// The rules of queue types that know more keys.
func TestEffectiveRulesOfTypes(t *testing.T) {
	set := func(s queue.Settings, user string) queue.Rules {
		h := newHouse(t)
		h.policy(Policy{Name: "p", Pattern: ""}, user)
		q := queue.New("q", 1, 0, s)
		q.Space = h.v
		return h.v.rulesOf(q)
	}
	quorum := queue.Settings{Type: queue.Quorum, Durable: true, Rules: queue.NoRules()}
	quorum.DeliveryLimit = 20 // the default
	if r := set(quorum, `{"delivery-limit":50}`); r.DeliveryLimit != 50 {
		t.Errorf("a policy in the place of the default: %d", r.DeliveryLimit)
	}
	quorum.Args = core.Args{"x-delivery-limit": number(20)}
	if r := set(quorum, `{"delivery-limit":50}`); r.DeliveryLimit != 20 {
		t.Errorf("the argument is lower: %d", r.DeliveryLimit)
	}
	if r := set(quorum, `{"delivery-limit":5}`); r.DeliveryLimit != 5 {
		t.Errorf("the policy is lower: %d", r.DeliveryLimit)
	}
	r := set(quorum, `{"dead-letter-strategy":"at-least-once","overflow":"reject-publish","dead-letter-exchange":"x"}`)
	if !r.AtLeastOnce {
		t.Errorf("at least once by policy: %+v", r)
	}
	if r := set(quorum, `{"dead-letter-strategy":"at-least-once","dead-letter-exchange":"x"}`); r.AtLeastOnce {
		t.Errorf("at least once, though publishes are not refused: %+v", r)
	}
	stream := queue.Settings{Type: queue.Stream, Durable: true, Rules: queue.NoRules()}
	if r := set(stream, `{"max-age":"2m"}`); r.MaxAge != 120_000 {
		t.Errorf("max-age by policy: %d", r.MaxAge)
	}
	stream.MaxAge = 60_000
	if r := set(stream, `{"max-age":"2m"}`); r.MaxAge != 60_000 {
		t.Errorf("max-age by argument: %d", r.MaxAge)
	}
}

// ALT-01: an alternate exchange by policy; the argument wins.
func TestPolicyAlternateExchange(t *testing.T) {
	h := newHouse(t)
	h.exchange("ae", "fanout", nil)
	h.exchange("arg", "direct", func(s *ExchangeSettings) { s.Args = core.Args{"alternate-exchange": text("other")} })
	h.exchange("other", "fanout", nil)
	h.exchange("x", "direct", nil)
	h.bind(h.v.Exchange([]byte("ae")), h.queue("q", nil), "", nil)
	h.bind(h.v.Exchange([]byte("other")), h.queue("o", nil), "", nil)
	same(t, "before", h.route("x", "k", ""), nil)
	h.policy(Policy{Name: "p", Pattern: "^(x|arg|late|amq)", ApplyTo: "exchanges"}, `{"alternate-exchange":"ae"}`)
	h.exchange("late", "direct", nil)
	for x, want := range map[string]string{"x": "q", "arg": "o", "late": "q", "amq.direct": "q"} {
		same(t, x, h.route(x, "k", ""), words(want))
	}
	if name := h.Broker.PolicyOfExchange(h.v, h.v.Exchange([]byte("x"))); name != "p" {
		t.Errorf("the policy of the exchange is %q", name)
	}
	h.clearPolicy("p", false)
	same(t, "after", h.route("x", "k", ""), nil)
	same(t, "after", h.route("arg", "k", ""), words("o"))
}

// A policy that is replaced, ranked, listed, and named of a queue.
func TestPoliciesAreListed(t *testing.T) {
	h := newHouse(t)
	if err := h.Broker.AddVHost("w", VHostSettings{}); err != nil {
		t.Fatal(err)
	}
	q := h.queue("q", nil)
	h.policy(Policy{Name: "b", Pattern: "q"}, `{"max-length":9,"queue-mode":"lazy"}`)
	h.policy(Policy{Name: "a", Pattern: "q", Priority: 3, ApplyTo: "queues"}, `{"max-length":8}`)
	h.policy(Policy{Name: "c", VHost: "w", Pattern: "q"}, `{"max-length":7}`)
	h.policy(Policy{Name: "o", Pattern: "q", Operator: true}, `{"max-length":6}`)
	h.policy(Policy{Name: "b", Pattern: "q", Priority: 4}, `{"max-length":5,"queue-mode":"lazy"}`)
	list := func(operator bool) (lines []string) {
		for _, p := range h.Broker.Policies(operator) {
			d, _ := json.Marshal(p.Definition)
			lines = append(lines, fmt.Sprintf("%s %s %s %s %d %s", p.VHost, p.Name, p.Pattern, p.ApplyTo, p.Priority, d))
		}
		return lines
	}
	same(t, "policies", list(false), []string{
		`/ a q queues 3 {"max-length":8}`,
		`/ b q all 4 {"max-length":5,"queue-mode":"lazy"}`,
		`w c q all 0 {"max-length":7}`,
	})
	same(t, "operator policies", list(true), []string{`/ o q queues 0 {"max-length":6}`})
	user, operator, effective := h.Broker.PolicyOf(q)
	text, _ := json.Marshal(effective)
	if user != "b" || operator != "o" || string(text) != `{"max-length":5,"queue-mode":"lazy"}` || q.Rules.MaxLength != 5 {
		t.Errorf("the queue follows %q and %q: %s, %+v", user, operator, text, q.Rules)
	}
	h.clearPolicy("b", false)
	if user, _, _ := h.Broker.PolicyOf(q); user != "a" || q.Rules.MaxLength != 6 {
		t.Errorf("then it follows %q: %+v", user, q.Rules)
	}
}

func TestPolicyRefused(t *testing.T) {
	h := newHouse(t)
	q := h.queue("q", nil)
	for want, err := range map[string]error{
		"not recognised policy settings": h.Broker.SetPolicy(Policy{VHost: "/", Name: "p", Definition: define(t, `{"nope":1}`)}),
		"no policy provided":             h.Broker.SetPolicy(Policy{VHost: "/", Name: "p"}),
		"no such virtual host":           h.Broker.SetPolicy(Policy{VHost: "none", Name: "p", Definition: define(t, `{"max-length":1}`)}),
		"not found":                      h.Broker.ClearPolicy("/", "p", false),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if len(h.Broker.Policies(false)) != 0 || q.Rules != queue.NoRules() {
		t.Error("a refused policy is in force")
	}
}

// POL-05: parameters of components and of the whole broker.
func TestParameters(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	b := h.Broker
	for _, err := range []error{
		b.SetParameter("shovel", "/", "s", json.RawMessage(`{ "a": [1, 2] }`)),
		b.SetParameter("federation-upstream", "/", "f", json.RawMessage(`{}`)),
		b.SetGlobalParameter("cluster_name", json.RawMessage(`"here"`)),
		b.SetGlobalParameter("gone", json.RawMessage(`1`)),
		b.ClearGlobalParameter("gone"),
		b.SetParameter("vhost-limits", "/", "limits", json.RawMessage(`{"max-queues":3}`)),
		b.SetParameter("operator_policy", "/", "o", json.RawMessage(`{"pattern":"q","apply-to":"queues","priority":2,"definition":{"max-length":4}}`)),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for want, err := range map[string]error{
		"component nope not found":                  b.SetParameter("nope", "/", "s", json.RawMessage(`1`)),
		"policies may not be set using this method": b.SetParameter("policy", "/", "s", json.RawMessage(`1`)),
		"is not JSON":                b.SetParameter("shovel", "/", "s", json.RawMessage(`{`)),
		"no such virtual host":       b.SetParameter("shovel", "none", "s", json.RawMessage(`1`)),
		"'f2': not found":            b.ClearParameter("federation-upstream", "/", "f2"),
		`unrecognised limit "max-x"`: b.SetParameter("vhost-limits", "/", "limits", json.RawMessage(`{"max-x":3}`)),
		"should be a number":         b.SetParameter("vhost-limits", "/", "limits", json.RawMessage(`{"max-queues":"3"}`)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	check := func(b *Broker) {
		t.Helper()
		var lines []string
		for _, p := range slices.Concat(b.Parameters(), b.GlobalParameters()) {
			lines = append(lines, fmt.Sprintf("%s %s %s %s", p.Component, p.VHost, p.Name, p.Value))
		}
		same(t, "parameters", lines, []string{`federation-upstream / f {}`, `shovel / s {"a":[1,2]}`, `  cluster_name "here"`})
		if p := b.Policies(true); len(p) != 1 || p[0].Priority != 2 || b.VHostLimits("/").MaxQueues != 3 {
			t.Errorf("operator policies %v, limits %v", p, b.VHostLimits("/"))
		}
	}
	check(b)
	check(restart(t, d, 2))
}
