package core

import "testing"

// C.1: x-max-age, STR-02: an interval as x-stream-offset.
func TestParseInterval(t *testing.T) {
	for _, c := range []struct {
		text string
		ms   int64
		ok   bool
	}{
		{"1s", 1000, true}, {"05m", 300e3, true}, {"2h", 7200e3, true}, {"1D", 86400e3, true},
		{"1M", 30 * 86400e3, true}, {"1Y", 365 * 86400e3, true}, {"0s", 0, true},
		{"", 0, false}, {"s", 0, false}, {"5", 0, false}, {"5x", 0, false}, {"-5s", 0, false}, {"+5s", 0, false},
		{"5 s", 0, false}, {"5ms", 0, false}, {"1.5h", 0, false}, {"5S", 0, false},
		{"9223372036854775807s", 0, false}, {"99999999999999999999s", 0, false}, {"292Y", 292 * 365 * 86400e3, true}, {"293Y", 0, false},
	} {
		if ms, ok := ParseInterval(c.text); ms != c.ms || ok != c.ok {
			t.Errorf("%q: %d, %v, want %d, %v", c.text, ms, ok, c.ms, c.ok)
		}
	}
}
