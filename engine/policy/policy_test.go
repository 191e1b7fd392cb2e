package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// definition reads a JSON object as the engine does.
func definition(t *testing.T, text string) (d map[string]any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

func must(t *testing.T, s Spec, text string) *Policy {
	t.Helper()
	s.Definition = definition(t, text)
	if s.Name == "" {
		s.Name = "p"
	}
	p, err := Parse(s)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// POL-03: what a definition must not be, with the texts that operators know.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		operator bool
		text     string
		want     string
	}{
		{false, `{}`, `no policy provided`},
		{false, `{"nope":1}`, `[{<<"nope">>,1}] are not recognised policy settings`},
		{false, `{"nope":1,"never":[true,{"a":"b"}],"max-length":5}`,
			`[{<<"never">>,[true,[{<<"a">>,<<"b">>}]]},{<<"nope">>,1}] are not recognised policy settings`},
		{false, `{"nope":1,"max-length":"x"}`, `<<"x">> is not a valid maximum length`},
		{false, `{"max-length":-1}`, `-1 is not a valid maximum length`},
		{false, `{"max-length":1.5}`, `1.5 is not a valid maximum length`},
		{false, `{"max-length":99999999999999999999}`, `99999999999999999999 is not a valid maximum length`},
		{false, `{"max-length-bytes":null}`, `null is not a valid maximum length in bytes`},
		{false, `{"message-ttl":-1}`, `-1 is not a valid message TTL`},
		{false, `{"message-ttl":315360000001}`, `315360000001 is not a valid message TTL`},
		{false, `{"expires":0}`, `0 is not a valid queue expiry`},
		{false, `{"overflow":"drop-tail"}`, `<<"drop-tail">> is not a valid overflow value`},
		{false, `{"overflow":1}`, `1 is not a valid overflow value`},
		{false, `{"dead-letter-exchange":1}`, `1 is not a valid dead letter exchange name`},
		{false, `{"dead-letter-routing-key":true}`, `true is not a valid dead letter routing key`},
		{false, `{"dead-letter-strategy":"x"}`, `<<"x">> is not a valid dead letter strategy`},
		{false, `{"delivery-limit":"x"}`, `<<"x">> is not a valid delivery limit`},
		{false, `{"queue-mode":"x"}`, `<<"x">> is not a valid queue-mode value`},
		{false, `{"queue-version":3}`, `3 is not a valid queue version`},
		{false, `{"consumer-timeout":-1}`, `-1 is not a valid consumer timeout`},
		{false, `{"max-age":"7x"}`, `<<"7x">> is not a valid max age`},
		{false, `{"alternate-exchange":1}`, `1 is not a valid alternate exchange name`},
		{false, `{"stream-max-segment-size-bytes":-1}`, `-1 is not a valid segment size`},
		{true, `{"overflow":"drop-head"}`, `[{<<"overflow">>,<<"drop-head">>}] are not recognised policy settings`},
		{true, `{"alternate-exchange":"x"}`, `[{<<"alternate-exchange">>,<<"x">>}] are not recognised policy settings`},
	} {
		_, err := Parse(Spec{Name: "p", Pattern: ".*", Definition: definition(t, c.text), Operator: c.operator})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestRefusesNameAndPattern(t *testing.T) {
	good := definition(t, `{"max-length":1}`)
	for _, c := range []struct {
		s    Spec
		want string
	}{
		{Spec{Pattern: ".*"}, "name must not be empty"},
		{Spec{Name: "p", Pattern: "("}, "pattern should be regular expression but is invalid: missing closing"},
		{Spec{Name: "p", Pattern: "a(?=b)"}, "pattern should be regular expression but is invalid"},
		{Spec{Name: "p", ApplyTo: "nothing"},
			`apply-to should be one of [<<"all">>,<<"queues">>,<<"exchanges">>,<<"classic_queues">>,<<"quorum_queues">>,<<"streams">>], actually was nothing`},
	} {
		c.s.Definition = good
		if _, err := Parse(c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.s, err, c.want)
		}
	}
}

// POL-02: every key is accepted, with its effect or without.
func TestKeys(t *testing.T) {
	values := map[string]string{
		"overflow": `"reject-publish"`, "dead-letter-strategy": `"at-least-once"`, "max-age": `"7D"`,
		"dead-letter-exchange": `"x"`, "dead-letter-routing-key": `"k"`, "alternate-exchange": `"x"`,
		"queue-mode": `"lazy"`, "queue-master-locator": `"min-masters"`, "queue-leader-locator": `"balanced"`,
		"stream-filter-size-bytes": `16`, "ha-mode": `"all"`, "ha-params": `["a"]`, "ha-sync-mode": `"automatic"`,
		"federation-upstream": `"u"`, "federation-upstream-set": `"all"`,
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		v := values[name]
		if v == "" {
			v = "2"
		}
		must(t, Spec{Pattern: ""}, `{"`+name+`":`+v+`}`)
	}
	s := must(t, Spec{}, `{"max-age":"2h","consumer-timeout":0,"delivery-limit":-1,"overflow":"reject-publish"}`).Settings
	if s.MaxAge != 2*3600e3 || s.ConsumerTimeout != 0 || s.DeliveryLimit != -1 || *s.Overflow != "reject-publish" || s.TTL != Absent {
		t.Errorf("read as %+v", s)
	}
}

// POL-01: which objects a policy applies to. The pattern is found anywhere.
func TestAppliesTo(t *testing.T) {
	all := []Object{ClassicQueue, QuorumQueue, StreamQueue, Exchange}
	for _, c := range []struct {
		applyTo  string
		operator bool
		want     []Object
	}{
		{"", false, all},
		{ApplyAll, false, all},
		{ApplyQueues, false, all[:3]},
		{ApplyClassic, false, all[:1]},
		{ApplyQuorum, false, all[1:2]},
		{ApplyStreams, false, all[2:3]},
		{ApplyExchanges, false, all[3:]},
		{"", true, all[:3]},
		{ApplyAll, true, all[:3]},
		{ApplyQuorum, true, all[1:2]},
	} {
		p := must(t, Spec{Pattern: "b+c", ApplyTo: c.applyTo, Operator: c.operator}, `{"max-length":1}`)
		for _, kind := range all {
			if got := p.AppliesTo(kind, "abbcd"); got != slices.Contains(c.want, kind) {
				t.Errorf("%q operator %v applies to %d: %v", c.applyTo, c.operator, kind, got)
			}
			if p.AppliesTo(kind, "abd") {
				t.Errorf("%q applies to a name that it does not match", c.applyTo)
			}
		}
	}
}

// POL-01: one policy applies: the highest priority, then the first name.
func TestOneApplies(t *testing.T) {
	var s Set
	for _, p := range []Spec{
		{Name: "b", Pattern: "^q", Priority: 1},
		{Name: "a", Pattern: "^q", Priority: 1},
		{Name: "high", Pattern: "^q1$", Priority: 7},
		{Name: "low", Pattern: "", Priority: -1},
	} {
		s = s.With(must(t, p, `{"max-length":1}`))
	}
	before := s
	check := func(when, object, want string) {
		t.Helper()
		got := ""
		if p := s.Of(ClassicQueue, object); p != nil {
			got = p.Name
		}
		if got != want {
			t.Errorf("%s: %s follows %q, want %q", when, object, got, want)
		}
	}
	check("at first", "q1", "high")
	check("at first", "q2", "a")
	check("at first", "x", "low")
	s = s.With(must(t, Spec{Name: "high", Pattern: "^q2$", Priority: 0}, `{"max-length":1}`))
	check("replaced", "q1", "a")
	s = s.Without("a")
	check("without a", "q2", "b")
	s = s.Without("b").Without("low")
	check("without all", "q1", "")
	check("the last", "q2", "high")
	if len(before.All()) != 4 || before.Find("a") == nil || s.Find("a") != nil {
		t.Error("a set changed")
	}
}

// TYP-06, POL-01: an operator's numbers only tighten.
func TestJoin(t *testing.T) {
	for _, c := range []struct {
		user, operator, effective string
		check                     func(s Settings) bool
	}{
		{`{"max-length":5}`, `{"max-length":3}`, `{"max-length":3}`, func(s Settings) bool { return s.MaxLength == 3 }},
		{`{"max-length":3}`, `{"max-length":5}`, `{"max-length":3}`, func(s Settings) bool { return s.MaxLength == 3 }},
		{`{"overflow":"reject-publish"}`, `{"expires":5,"message-ttl":0}`,
			`{"expires":5,"message-ttl":0,"overflow":"reject-publish"}`,
			func(s Settings) bool {
				return s.Expires == 5 && s.TTL == 0 && *s.Overflow == "reject-publish" && s.MaxBytes == Absent
			}},
		{`{"delivery-limit":-1}`, `{"delivery-limit":4}`, `{"delivery-limit":4}`, func(s Settings) bool { return s.DeliveryLimit == 4 }},
		{`{"delivery-limit":4}`, `{"delivery-limit":-1}`, `{"delivery-limit":4}`, func(s Settings) bool { return s.DeliveryLimit == 4 }},
		{`{"delivery-limit":4}`, `{"delivery-limit":2}`, `{"delivery-limit":2}`, func(s Settings) bool { return s.DeliveryLimit == 2 }},
		{`{"max-length-bytes":4}`, ``, `{"max-length-bytes":4}`, func(s Settings) bool { return s.MaxBytes == 4 }},
		{``, `{"max-length-bytes":4}`, `{"max-length-bytes":4}`, func(s Settings) bool { return s.MaxBytes == 4 }},
		{``, ``, `{}`, func(s Settings) bool { return s == None() }},
	} {
		var user, operator *Policy
		if c.user != "" {
			user = must(t, Spec{}, c.user)
		}
		if c.operator != "" {
			operator = must(t, Spec{Operator: true}, c.operator)
		}
		if s := Join(user, operator); !c.check(s) {
			t.Errorf("%s with %s: %+v", c.user, c.operator, s)
		}
		text, err := json.Marshal(Effective(user, operator))
		if err != nil || string(text) != c.effective {
			t.Errorf("%s with %s is listed as %s, %v", c.user, c.operator, text, err)
		}
	}
}
