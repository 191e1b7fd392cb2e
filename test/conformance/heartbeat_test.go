package conformance

import (
	"encoding/json"
	"fmt"
	"testing"

	"ringmq/test/harness"
)

// TestCON_12_ClientDecides: the heartbeat is what the client answers, under, at and above the offer of 60 seconds; 0
// turns it off.
func TestCON_12_ClientDecides(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		if b.HTTP == "" {
			t.Skip("no HTTP listener")
		}
		for _, seconds := range []uint16{0, 1, 59, 60, 61, 3600, 65535} {
			t.Run(fmt.Sprint(seconds), func(t *testing.T) {
				t.Parallel()
				name := unique("beats")
				c := connectAs(t, b, login{heartbeat: seconds, props: table("connection_name", name)}).open(1)
				eventually(t, "the connection is listed", func() bool { return connectionID(t, b, name) != "" })
				if got := heartbeatListed(t, b, name); got != int(seconds) {
					t.Errorf("the broker goes by %d seconds", got)
				}
				if seconds == 1 {
					if f, err := c.readAny(waitMax); err != nil || f.typ != 8 {
						t.Errorf("got %v, %v, want a heartbeat", f, err)
					}
				}
				c.method(1, 40, 10, exchangeArgs("amq.direct", "", flags{passive: true}, ""))
				c.expect(1, 40, 11)
			})
		}
	})
}

// heartbeatListed is the heartbeat in seconds by which the HTTP API lists a connection.
func heartbeatListed(t *testing.T, b *harness.Broker, provided string) int {
	t.Helper()
	_, body, err := b.Get("/api/connections")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Provided string `json:"user_provided_name"`
		Timeout  int    `json:"timeout"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, item := range list {
		if item.Provided == provided {
			return item.Timeout
		}
	}
	t.Fatalf("no connection %q in %s", provided, body)
	return 0
}
