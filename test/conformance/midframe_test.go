package conformance

import (
	"net/http"
	"net/url"
	"testing"

	"ringmq/test/harness"
)

// TestOperatorCloseMidFrame: a connection that is closed by order while a body frame is half received follows the
// stream to the frame's end, and so hears the client's own close.
func TestOperatorCloseMidFrame(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		if b.HTTP == "" {
			t.Skip("no HTTP listener")
		}
		name := unique("victim")
		c := connectAs(t, b, login{props: table("connection_name", name)}).open(1)
		q := c.newQueue(1)
		out := contentFrames(1, publishArgs("", q, false, false), []byte{0, 0}, make([]byte, 50_000), 131072)
		half := len(out) - 30_000
		c.write(out[:half])
		id := connectionID(t, b, name)
		status, body, err := b.Request(http.MethodDelete, "/api/connections/"+url.PathEscape(id), nil)
		if err != nil || status != http.StatusNoContent {
			t.Fatalf("DELETE: status %d, %v: %s", status, err, body)
		}
		if f := readFault(c.expect(0, 10, 50)); f.code != 320 {
			t.Errorf("%+v", f)
		}
		c.write(out[half:])
		c.method(0, 10, 50, args().u16(200).ss("crossing").u16(0).u16(0))
		c.expect(0, 10, 51)
		c.method(0, 10, 51, nil)
		c.closedSocket()
	})
}
