package exchange

import (
	"fmt"
	"math"
	"testing"

	"ringmq/engine/core"
)

// hashBinding binds a queue with a weight.
func hashBinding(q *queue, weight string) Binding {
	return Binding{Dest: q, Key: weight, Name: fmt.Sprint("q", q.id)}
}

// placesOf says where each of n keys goes.
func placesOf(t *testing.T, m Matcher, n int) []int {
	t.Helper()
	places := make([]int, n)
	for i := range places {
		out := m.Match(fmt.Append(nil, "key-", i), nil, nil)
		if len(out) != 1 {
			t.Fatalf("key %d has %d destinations", i, len(out))
		}
		places[i] = out[0].(*queue).id
	}
	return places
}

// TestXT_01_Weights: each destination gets its share of the keys, whether weights
// are equal or not, and one that is bound twice gets both shares.
func TestXT_01_Weights(t *testing.T) {
	const keys = 40_000
	for name, weights := range map[string][]string{
		"equal": {"1", "1", "1", "1"}, "large and equal": {"1000000000", "1000000000"},
		"different": {"1", "2", "5", "12"}, "very different": {"1", "1000"}, "signed": {"+3", "1"}, "zeros": {"003", "1"},
		"twice": {"1", "2", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			m, total := New(ConsistentHash, Options{}), 0.0
			queues, share := makeQueues(len(weights)), make([]float64, len(weights))
			for i, w := range weights {
				at := i
				if name == "twice" && i == 2 {
					at = 0
				}
				m = m.Bind(hashBinding(queues[at], w))
				n, err := parseWeight(w)
				if err != nil {
					t.Fatal(err)
				}
				share[at] += n
				total += n
			}
			got := make([]float64, len(weights))
			for _, at := range placesOf(t, m, keys) {
				got[at]++
			}
			for i := range weights {
				p := share[i] / total
				// Six standard deviations: the keys are always the same, so this
				// passes always or never.
				if slack := 6 * math.Sqrt(keys*p*(1-p)); math.Abs(got[i]-keys*p) > slack+1 {
					t.Errorf("destination %d got %v of %d keys, want %v", i, got[i], keys, keys*p)
				}
			}
		})
	}
}

// TestXT_01_Movement: a newcomer only takes keys, a leaver only gives its own
// away, and whoever comes back finds its keys again; versions stay what they were.
func TestXT_01_Movement(t *testing.T) {
	const keys = 5000
	for name, weight := range map[string]func(i int) string{
		"equal": func(int) string { return "1" }, "different": func(i int) string { return fmt.Sprint(1 + i*i) },
	} {
		t.Run(name, func(t *testing.T) {
			queues := makeQueues(8)
			m := New(ConsistentHash, Options{})
			for i, q := range queues[:7] {
				m = m.Bind(hashBinding(q, weight(i)))
			}
			before := placesOf(t, m, keys)
			more := m.Bind(hashBinding(queues[7], weight(7)))
			moved := 0
			for i, at := range placesOf(t, more, keys) {
				if at != before[i] {
					if moved++; at != 7 {
						t.Fatalf("key %d moved from %d to %d, which is no newcomer", i, before[i], at)
					}
				}
			}
			if moved == 0 {
				t.Error("the newcomer gets nothing")
			}
			less := m.Unbind(hashBinding(queues[3], weight(3)))
			for i, at := range placesOf(t, less, keys) {
				if at != before[i] && before[i] != 3 || at == 3 {
					t.Fatalf("key %d moved from %d to %d", i, before[i], at)
				}
			}
			for i, at := range placesOf(t, less.Bind(hashBinding(queues[3], weight(3))), keys) {
				if at != before[i] {
					t.Fatalf("key %d is at %d after the way back, was at %d", i, at, before[i])
				}
			}
			for i, at := range placesOf(t, m, keys) {
				if at != before[i] {
					t.Fatalf("an older version changed its mind about key %d", i)
				}
			}
		})
	}
}

// propertied is a message's fields with properties.
type propertied struct {
	fields
	props map[string]core.Value
}

func (p propertied) Property(name string) (core.Value, bool) {
	v, ok := p.props[name]
	return v, ok
}

// TestXT_01_Inputs: what is hashed, and that nothing else matters.
func TestXT_01_Inputs(t *testing.T) {
	matcher := func(args core.Args) Matcher {
		m := New(ConsistentHash, Options{Args: args})
		for i, q := range makeQueues(64) {
			m = m.Bind(hashBinding(q, fmt.Sprint(1+i%2)))
		}
		return m
	}
	at := func(m Matcher, key string, f core.Fields) int { return m.Match([]byte(key), f, nil)[0].(*queue).id }
	byHeader := matcher(core.Args{"hash-header": text("h")})
	if a, b := at(byHeader, "k", fields{"h": number(7)}), at(byHeader, "other", fields{"h": float(7), "x": text("y")}); a != b {
		t.Errorf("equal headers go to %d and %d", a, b)
	}
	if a, b := at(byHeader, "k", nil), at(byHeader, "other", fields{"x": text("y")}); a != b {
		t.Errorf("messages without the header go to %d and %d", a, b)
	}
	for name, args := range map[string]core.Args{"header": {"hash-header": text("h")}, "property": {"hash-property": text("message_id")}, "key": nil} {
		m, used := matcher(args), map[int]bool{}
		for i := range 200 {
			v := text(fmt.Sprint(i))
			key := "k"
			if args == nil {
				key = v.Str
			}
			used[at(m, key, propertied{fields{"h": v}, map[string]core.Value{"message_id": v}})] = true
		}
		if len(used) < 40 {
			t.Errorf("by %s: 200 values reach %d of 64 destinations", name, len(used))
		}
		if m.UsesKey() != (args == nil) || m.UsesHeaders() != (args != nil) {
			t.Errorf("by %s: UsesKey %v, UsesHeaders %v", name, m.UsesKey(), m.UsesHeaders())
		}
	}
}

// TestChoicesAfterRestart: where a key leads depends on names, keys and
// arguments alone, not on the order of binds, so that a restart changes nothing.
// The places are written down: they must never change.
func TestChoicesAfterRestart(t *testing.T) {
	for k, want := range map[Kind]string{ConsistentHash: "014838283480612047540740", ModulusHash: "638321431341060603308884"} {
		queues := makeQueues(9)
		forth, back := New(k, Options{}), New(k, Options{})
		for i := range queues {
			forth = forth.Bind(hashBinding(queues[i], "2"))
			back = back.Bind(hashBinding(queues[len(queues)-1-i], "2"))
		}
		got := ""
		for i, at := range placesOf(t, forth, 24) {
			if other := placesOf(t, back, 24)[i]; other != at {
				t.Errorf("%s: key %d is at %d or %d", k, i, at, other)
			}
			got += fmt.Sprint(at)
		}
		if got != want {
			t.Errorf("%s: keys are at %s, were at %s", k, got, want)
		}
	}
}

// TestXT_03_Sets: modulus and random know a destination once, however often it is
// bound, until its last binding goes.
func TestXT_03_Sets(t *testing.T) {
	for _, k := range []Kind{ModulusHash, Random} {
		queues := makeQueues(3)
		m := New(k, Options{Seed: 5})
		if out := m.Match([]byte("k"), nil, nil); len(out) != 0 {
			t.Errorf("%s: a match without bindings: %v", k, out)
		}
		for _, q := range queues {
			m = m.Bind(hashBinding(q, "a")).Bind(hashBinding(q, "b"))
		}
		if m.Unbind(hashBinding(queues[0], "c")) != m || m.Unbind(hashBinding(&queue{9}, "a")) != m {
			t.Errorf("%s: unbinding what is not bound made a new version", k)
		}
		m = m.Unbind(hashBinding(queues[0], "a")).Unbind(hashBinding(queues[1], "a")).Unbind(hashBinding(queues[1], "b"))
		count := map[Dest]int{}
		for i := range 300 {
			out := m.Match(fmt.Append(nil, i), nil, nil)
			if len(out) != 1 {
				t.Fatalf("%s: %d destinations", k, len(out))
			}
			count[out[0]]++
		}
		if len(count) != 2 || count[queues[0]] < 100 || count[queues[2]] < 100 {
			t.Errorf("%s: %v", k, count)
		}
		if out := m.Match([]byte("k"), nil, []Dest{queues[0], queues[2]}); len(out) != 2 {
			t.Errorf("%s: a destination twice: %v", k, out)
		}
	}
}

// TestValidateExchange: XT-01 and BIND-09, to the letter.
func TestValidateExchange(t *testing.T) {
	for _, c := range []struct {
		args core.Args
		want string
	}{
		{nil, ""}, {core.Args{"hash-header": text("h")}, ""}, {core.Args{"hash-property": text("timestamp")}, ""},
		{core.Args{"hash-property": text("zz")}, "Unsupported property: zz"},
		{core.Args{"hash-property": number(5)}, "Unsupported property: 5"},
		{core.Args{"hash-property": text("zz"), "hash-header": text("h")}, "hash-header and hash-property are mutually exclusive"},
	} {
		if got := fmt.Sprint(ValidateExchange(ConsistentHash, c.args)); got != c.want && !(c.want == "" && got == "<nil>") {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
		if err := ValidateExchange(Direct, c.args); err != nil {
			t.Errorf("direct, %v: %v", c.args, err)
		}
	}
	const no, small = "The binding key must be an integer: ", "The binding key must be greater than 0"
	for key, want := range map[string]string{
		"1": "", "+7": "", "007": "", "99999999999999999999999": "", "0": small, "-0": small, "-5": small, "-99999999999999999999999": small,
		"": no + "<<>>", "abc": no + `<<"abc">>`, "1.5": no + `<<"1.5">>`, " 1": no + `<<" 1">>`, "+-1": no + `<<"+-1">>`, "1a1": no + `<<"1a1">>`,
		"-": no + `<<"-">>`, "é": no + "<<195,169>>",
	} {
		if got := fmt.Sprint(ValidateBinding(ConsistentHash, key, nil)); got != want && !(want == "" && got == "<nil>") {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
		if err := ValidateBinding(ModulusHash, key, nil); err != nil {
			t.Errorf("modulus, %q: %v", key, err)
		}
	}
}
