package exchange

import (
	"testing"

	"ringmq/engine/core"
)

// TestHeadersMatch goes through the rules of BIND-07 and BIND-08.
func TestHeadersMatch(t *testing.T) {
	void := core.Value{Kind: core.KindVoid, Type: "void"}
	unsigned := core.Value{Kind: core.KindUint, Int: -1, Type: "unsignedlong"}
	for _, c := range []struct {
		name    string
		args    core.Args
		headers core.Fields
		want    bool
	}{
		{"no arguments, no headers", nil, nil, true},
		{"no arguments, headers", nil, fields{"a": text("1")}, true},
		{"all without criteria", core.Args{"x-match": text("all")}, nil, true},
		{"any without criteria", core.Args{"x-match": text("any")}, fields{"a": text("1")}, false},
		{"any with x- only, headers match", core.Args{"x-match": text("any"), "x-a": text("1")}, fields{"x-a": text("1")}, false},
		{"all with x- only", core.Args{"x-match": text("all"), "x-a": text("1")}, nil, true},
		{"all is the default", core.Args{"a": text("1"), "b": text("2")}, fields{"a": text("1")}, false},
		{"all, both there", core.Args{"a": text("1"), "b": text("2")}, fields{"a": text("1"), "b": text("2"), "c": text("3")}, true},
		{"all, headers missing", core.Args{"a": text("1")}, nil, false},
		{"any, one there", core.Args{"x-match": text("any"), "a": text("1"), "b": text("2")}, fields{"b": text("2")}, true},
		{"any, wrong values", core.Args{"x-match": text("any"), "a": text("1"), "b": text("2")}, fields{"a": text("2"), "b": text("1")}, false},
		{"all-with-x, x- missing", core.Args{"x-match": text("all-with-x"), "x-a": text("1"), "b": text("2")}, fields{"b": text("2")}, false},
		{"all-with-x, x- there", core.Args{"x-match": text("all-with-x"), "x-a": text("1"), "b": text("2")}, fields{"b": text("2"), "x-a": text("1")}, true},
		{"any-with-x by x-", core.Args{"x-match": text("any-with-x"), "x-a": text("1"), "b": text("2")}, fields{"x-a": text("1")}, true},
		{"any-with-x without criteria", core.Args{"x-match": text("any-with-x")}, fields{"x-match": text("any-with-x")}, false},
		{"void means present", core.Args{"a": void}, fields{"a": number(7)}, true},
		{"void means present, also void", core.Args{"a": void}, fields{"a": void}, true},
		{"void means present, absent", core.Args{"a": void}, fields{"b": number(7)}, false},
		{"void header is no value", core.Args{"a": number(0)}, fields{"a": void}, false},
		{"5 = 5.0", core.Args{"a": number(5)}, fields{"a": float(5)}, true},
		{"5.0 = 5", core.Args{"a": float(5)}, fields{"a": number(5)}, true},
		{"5.5 is not 5", core.Args{"a": float(5.5)}, fields{"a": number(5)}, false},
		{"-0.0 = 0", core.Args{"a": float(negativeZero())}, fields{"a": number(0)}, true},
		{"a string is no number", core.Args{"a": text("5")}, fields{"a": number(5)}, false},
		{"a number is no string", core.Args{"a": number(5)}, fields{"a": text("5")}, false},
		{"a bool is no number", core.Args{"a": number(1)}, fields{"a": core.Value{Kind: core.KindBool, Int: 1}}, false},
		{"a time is no number", core.Args{"a": number(1)}, fields{"a": core.Value{Kind: core.KindTime, Int: 1}}, false},
		{"2^64-1 is not -1", core.Args{"a": number(-1)}, fields{"a": unsigned}, false},
		{"2^64-1 = its float", core.Args{"a": unsigned}, fields{"a": float(1 << 64)}, true},
		{"neighbours that round to one float", core.Args{"a": number(1 << 60)}, fields{"a": number(1<<60 + 1)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &queue{1}
			m := New(Headers, Options{}).Bind(Binding{Dest: q, Args: c.args})
			if got := m.Match([]byte("key"), c.headers, nil); (len(got) == 1) != c.want {
				t.Errorf("%d matches, want match %v", len(got), c.want)
			}
		})
	}
}

func negativeZero() float64 {
	zero := 0.0
	return -1 / (1 / zero)
}

// TestFieldCase3 : two queues with different required headers, in each mode, with
// plain names and with names that begin "x-" (BIND-07, BIND-08).
func TestFieldCase3(t *testing.T) {
	for _, mode := range []string{"all", "any", "all-with-x", "any-with-x"} {
		for _, name := range []string{"type", "x-type"} {
			t.Run(mode+" "+name, func(t *testing.T) {
				q1, q2 := &queue{1}, &queue{2}
				m := New(Headers, Options{}).
					Bind(Binding{Dest: q1, Args: core.Args{"x-match": text(mode), name: text("report")}}).
					Bind(Binding{Dest: q2, Args: core.Args{"x-match": text(mode), name: text("invoice")}})
				ignored := name == "x-type" && (mode == "all" || mode == "any")
				for i, value := range []string{"report", "invoice", "other"} {
					got := m.Match(nil, fields{name: text(value)}, nil)
					switch {
					case ignored && mode == "all":
						// No criterion is left: all of none holds for everything.
						if len(got) != 2 {
							t.Errorf("%s: %d queues, want both", value, len(got))
						}
					case ignored || value == "other":
						if len(got) != 0 {
							t.Errorf("%s: %d queues, want none", value, len(got))
						}
					case len(got) != 1 || got[0].(*queue).id != i+1:
						t.Errorf("%s: got %v, want queue %d alone", value, got, i+1)
					}
				}
			})
		}
	}
}

// TestHeadersFiling: a rule is filed where it is rarest, so that bindings which
// share one value and differ in another are not all tried.
func TestHeadersFiling(t *testing.T) {
	m := New(Headers, Options{})
	for i := range 1000 {
		m = m.Bind(Binding{Dest: &queue{i}, Args: core.Args{"format": text("pdf"), "serial": number(int64(i))}})
	}
	most := 0
	for _, file := range m.(*headersMatcher).names.All() {
		for _, rules := range file.texts.All() {
			most = max(most, rules.Len())
		}
		for _, rules := range file.numbers.All() {
			most = max(most, rules.Len())
		}
	}
	if most > 1 {
		t.Errorf("%d rules have to be tried for one value", most)
	}
}

// TestAnyRuleIsTakenOnce: an `any` rule is found under each criterion that holds;
// going through its destinations for each would multiply the work.
func TestAnyRuleIsTakenOnce(t *testing.T) {
	rule := compileHeaders(core.Args{"x-match": text("any"), "a": text("1"), "b": text("2"), "c": text("3")})
	headers := fields{"a": text("0"), "b": text("2"), "c": text("3")}
	for name, want := range map[string]bool{"a": false, "b": true, "c": false} {
		if got := rule.holds(headers, name); got != want {
			t.Errorf("found under %q: taken %v, want %v", name, got, want)
		}
	}
}

// TestValidateBinding has the texts of BIND-07.
func TestValidateBinding(t *testing.T) {
	const expected = "; expected all, any, all-with-x, or any-with-x"
	for _, c := range []struct {
		kind Kind
		args core.Args
		want string
	}{
		{Headers, nil, ""},
		{Headers, core.Args{"a": number(1)}, ""},
		{Headers, core.Args{"x-match": text("all")}, ""},
		{Headers, core.Args{"x-match": text("any")}, ""},
		{Headers, core.Args{"x-match": text("all-with-x")}, ""},
		{Headers, core.Args{"x-match": text("any-with-x")}, ""},
		{Headers, core.Args{"x-match": text("foo")}, `Invalid x-match field value <<"foo">>` + expected},
		{Headers, core.Args{"x-match": text("")}, `Invalid x-match field value <<>>` + expected},
		{Headers, core.Args{"x-match": text(`a"\`)}, `Invalid x-match field value <<"a\"\\">>` + expected},
		{Headers, core.Args{"x-match": text("\x01b")}, `Invalid x-match field value <<1,98>>` + expected},
		{Headers, core.Args{"x-match": number(5)}, "Invalid x-match field type signedint (value 5); expected longstr"},
		{Headers, core.Args{"x-match": float(5)}, "Invalid x-match field type double (value 5.0); expected longstr"},
		{Headers, core.Args{"x-match": {Kind: core.KindBool, Int: 1, Type: "bool"}}, "Invalid x-match field type bool (value true); expected longstr"},
		{Direct, core.Args{"x-match": text("foo")}, ""},
		{Topic, core.Args{"x-match": number(5)}, ""},
		{Fanout, core.Args{"x-match": text("foo")}, ""},
	} {
		got := ""
		if err := ValidateBinding(c.kind, "key", c.args); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %v:\n got %s\nwant %s", c.kind, c.args, got, c.want)
		}
	}
}
