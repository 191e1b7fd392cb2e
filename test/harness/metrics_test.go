package harness

import "testing"

func TestParseMetrics(t *testing.T) {
	text := "# HELP a_total Things.\n# TYPE a_total counter\na_total{loop=\"0\"} 3\na_total{loop=\"1\",x=\"}\"} 4\nb 1.5e3\n\nc{} 7 1700000000\n"
	m, err := ParseMetrics([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Metrics{"a_total": 7, "b": 1500, "c": 7}
	if len(m) != len(want) {
		t.Fatalf("got %v, want %v", m, want)
	}
	for name, v := range want {
		if m[name] != v {
			t.Errorf("%s = %v, want %v", name, m[name], v)
		}
	}
	for _, bad := range []string{"a", "a{x=\"1\" 3", "a{} ", "a x"} {
		if _, err := ParseMetrics([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
