package session091

import (
	"fmt"
	"testing"

	"ringmq/engine/core"
)

// BAS-18: what an expiration may be. From 10^12 on it is a point in time.
func TestExpiration(t *testing.T) {
	const now = 1_700_000_000_000
	for text, want := range map[string]string{
		"0": "0", "1": "1", "+5": "5", "007": "7", "-0": "0", "315360000000": "315360000000",
		"315360000001": "{value_too_large,315360000001}", "999999999999": "{value_too_large,999999999999}",
		"1000000000000": "0", "1699999999999": "0", "1700000000000": "0", "1700000060000": "60000",
		fmt.Sprint(int64(now + core.TTLMillisMax)):     fmt.Sprint(int64(core.TTLMillisMax)),
		fmt.Sprint(int64(now + core.TTLMillisMax + 1)): "{value_too_large,2015360000001}",
		"-1": "{value_negative,-1}", "-1700000060000": "{value_negative,-1700000060000}",
		"": "no_integer", "abc": "no_integer", "-": "no_integer", "1.5": `{leftover_string,".5"}`, "1700000060000 ": `{leftover_string," "}`,
	} {
		ms, problem := parseExpiration(text)
		if ms >= expirationAbsoluteMin {
			ms, problem = untilMillis(ms, now)
		}
		got := problem
		if problem == "" {
			got = fmt.Sprint(ms)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
