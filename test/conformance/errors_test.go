package conformance

import (
	"strings"
	"testing"

	"ringmq/test/harness"
)

// refusal is one row of a table of commands that the broker must refuse: what is sent, and the close that follows.
type refusal struct {
	id    string                            // line of the specification file
	name  string                            // what is special about the case
	setup func(c *client) map[string]string // runs first on channel 1; the names it made replace {name} in text
	send  func(c *client, n map[string]string)
	code  uint16
	text  string // whole reply text after "NAME - "; a trailing "..." allows any ending
	// failed is the class<<16|method that the close names; 0 is a close that names none.
	failed uint32
	conn   bool   // connection.close instead of channel.close
	ours   string // why RabbitMQ 3.10 differs; "" when it does not
}

var replyNames = map[uint16]string{
	311: "CONTENT_TOO_LARGE", 312: "NO_ROUTE", 313: "NO_CONSUMERS", 320: "CONNECTION_FORCED", 402: "INVALID_PATH",
	403: "ACCESS_REFUSED", 404: "NOT_FOUND", 405: "RESOURCE_LOCKED", 406: "PRECONDITION_FAILED", 501: "FRAME_ERROR",
	502: "SYNTAX_ERROR", 503: "COMMAND_INVALID", 504: "CHANNEL_ERROR", 505: "UNEXPECTED_FRAME", 506: "RESOURCE_ERROR",
	530: "NOT_ALLOWED", 540: "NOT_IMPLEMENTED", 541: "INTERNAL_ERROR",
}

// runRefusals runs each row on a connection of its own.
func runRefusals(t *testing.T, rows []refusal) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, row := range rows {
			t.Run(row.id+"/"+strings.ReplaceAll(row.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				if row.ours != "" {
					b.SkipRabbitMQ(t, row.ours)
				}
				row.run(t, b)
			})
		}
	})
}

func (r refusal) run(t *testing.T, b *harness.Broker) {
	c := connect(t, b).open(1, 2)
	var names map[string]string
	if r.setup != nil {
		names = r.setup(c)
	}
	r.send(c, names)
	want := r.text
	for name, v := range names {
		want = strings.ReplaceAll(want, "{"+name+"}", v)
	}
	if r.conn {
		checkFault(t, c.connectionFault(), r.code, want, r.failed)
		return
	}
	checkFault(t, c.channelFault(1), r.code, want, r.failed)
	// The rest of the connection lives on, and so does the number of the closed channel.
	c.sync(2)
	c.open(1)
	c.sync(1)
}

// checkFault compares a close with what the specification says.
func checkFault(t testing.TB, got fault, code uint16, text string, failed uint32) {
	t.Helper()
	if got.code != code {
		t.Errorf("code %d (%q), want %d", got.code, got.text, code)
	}
	want, open := strings.CutSuffix(replyNames[code]+" - "+text, "...")
	if got.text != want && !(open && strings.HasPrefix(got.text, want)) {
		t.Errorf("text %q, want %q", got.text, want)
	}
	if got.failed != failed {
		t.Errorf("names method %d.%d, want %d.%d", got.failed>>16, got.failed&0xffff, failed>>16, failed&0xffff)
	}
}

// newNames makes the names of a refusal row.
func newNames(kv ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}

// withQueue is a set-up that declares a plain queue as {q}.
func withQueue(c *client) map[string]string { return newNames("q", c.newQueue(1)) }

// withExchange is a set-up that declares a direct exchange as {x} and a queue as {q}.
func withExchange(c *client) map[string]string {
	return newNames("q", c.newQueue(1), "x", c.newExchange(1, "direct"))
}

// freshName is a set-up that only makes a name, as {q} and {x}.
func freshName(*client) map[string]string {
	name := unique("n")
	return newNames("q", name, "x", name)
}
