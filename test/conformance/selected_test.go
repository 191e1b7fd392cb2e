package conformance

import (
	"slices"
	"testing"

	"ringmq/test/harness"
)

// keysHeader is a headers table with keys under a name.
func keysHeader(name string, keys ...string) tbl {
	var items []val
	for _, k := range keys {
		items = append(items, vS(k))
	}
	return table(name, vA(items...))
}

var selectedRefusals = []refusal{
	{id: "SSD-01", name: "CC that is no array", setup: withQueue, code: 406, failed: m(60, 40),
		text: `invalid message: {unacceptable_type_in_header,"CC",longstr}`, send: publishProps(props{headers: table("CC", "k")})},
	{id: "SSD-01", name: "BCC that is no array", setup: withQueue, code: 406, failed: m(60, 40),
		text: `invalid message: {unacceptable_type_in_header,"BCC",signedint}`, send: publishProps(props{headers: table("BCC", 5)})},
	{id: "SSD-01", name: "BCC that is no array, in a transaction", code: 406, failed: m(60, 40),
		text:  `invalid message: {unacceptable_type_in_header,"BCC",bool}`,
		setup: func(c *client) map[string]string { c.txSelect(1); return withQueue(c) }, send: publishProps(props{headers: table("BCC", true)})},
}

// TestSelectedRefusals: SSD-01.
func TestSelectedRefusals(t *testing.T) { runRefusals(t, selectedRefusals) }

// selectedCase publishes with key "k" and headers to an exchange; queues are bound by the keys in bound.
type selectedCase struct {
	name    string
	kind    string
	bound   []string
	headers tbl
	want    []string // keys of the queues that get it
	left    []string // names of the headers that are delivered
}

var selectedCases = []selectedCase{
	{"CC", "direct", []string{"k", "a", "b", "c"}, table("CC", vA(vS("a"), vS("b")), "x", 1), []string{"k", "a", "b"}, []string{"CC", "x"}},
	{"BCC", "direct", []string{"k", "a", "b"}, table("x", 1, "BCC", vA(vS("a")), "y", 2), []string{"k", "a"}, []string{"x", "y"}},
	{"both", "direct", []string{"k", "a", "b"}, table("CC", vA(vS("a")), "BCC", vA(vS("b"))), []string{"k", "a", "b"}, []string{"CC"}},
	{"BCC alone", "direct", []string{"k", "a"}, keysHeader("BCC", "a"), []string{"k", "a"}, nil},
	{"the key again", "direct", []string{"k"}, keysHeader("CC", "k", "k"), []string{"k"}, []string{"CC"}},
	{"items that are no texts", "direct", []string{"k", "a"}, table("CC", vA(vI(5), vS("a"), vV())), []string{"k", "a"}, []string{"CC"}},
	{"empty", "direct", []string{"k", ""}, table("CC", vA(), "BCC", vA()), []string{"k"}, []string{"CC"}},
	{"topic", "topic", []string{"k.#", "a.*", "#.z", "b"}, keysHeader("CC", "a.z", "q.z"), []string{"k.#", "a.*", "#.z"}, []string{"CC"}},
	{"fanout", "fanout", []string{"k", "a"}, keysHeader("CC", "a"), []string{"k", "a"}, []string{"CC"}},
}

func (s selectedCase) run(t *testing.T, b *harness.Broker, tx bool) {
	c := connect(t, b).open(1)
	x, queues := c.newExchange(1, s.kind), map[string]string{}
	for _, key := range s.bound {
		queues[key] = c.newQueue(1)
		c.bind(1, queues[key], x, key, "")
	}
	if tx {
		c.txSelect(1)
	}
	for range 2 { // the second time from what the channel remembers
		c.publishWith(1, publishArgs(x, "k", true, false), props{headers: s.headers, messageID: "7"}, []byte("body"))
	}
	// What a channel remembers of keys is not for the messages after.
	c.publish(1, x, "k", "plain")
	if tx {
		c.txCommit(1)
	}
	for key, q := range queues {
		want := uint32(0)
		if slices.Contains(s.want, key) {
			want = 2
		}
		if s.kind == "fanout" || key == "k" || key == "k.#" {
			want++
		}
		if ready, _ := c.depth(1, q); ready != want {
			t.Errorf("queue of %q has %d messages, want %d", key, ready, want)
		}
		if want < 2 {
			continue
		}
		got := c.mustGet(1, q, true)
		if got.key != "k" || got.exchange != x || got.body != "body" {
			t.Errorf("queue of %q: %+v", key, got)
		}
		d := &dec{t, got.properties}
		d.u16() // flags: headers and message id
		headers := tableValues(t, tbl(d.ls()))
		if id := d.ss(); id != "7" {
			t.Errorf("message id %q", id)
		}
		if len(headers) != len(s.left) {
			t.Errorf("queue of %q: headers %v, want %v", key, headers, s.left)
		}
		for _, name := range s.left {
			if headers[name] == "" {
				t.Errorf("queue of %q: no header %s", key, name)
			}
		}
	}
}

// TestSSD_01_Keys: CC and BCC are further keys; BCC is not delivered.
func TestSSD_01_Keys(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, s := range selectedCases {
			t.Run(s.name, func(t *testing.T) { s.run(t, b, false) })
			t.Run(s.name+", tx", func(t *testing.T) { s.run(t, b, true) })
		}
	})
}

// TestSSD_01_Return: what nobody gets comes back without its BCC; one hit by any key is enough.
func TestSSD_01_Return(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		c.confirm(1)
		q := c.newQueue(1)
		h := table("CC", vA(vS("nobody")), "BCC", vA(vS("no one")))
		c.publishWith(1, publishArgs("amq.direct", unique("k"), true, false), props{headers: h}, []byte("x"))
		back := c.returned(1)
		if want := (props{headers: keysHeader("CC", "nobody")}).encode(); string(back.properties) != string(want) {
			t.Errorf("returned with %q, want %q", back.properties, want)
		}
		c.confirmed(1, 1)
		c.publishWith(1, publishArgs("", unique("k"), true, false), props{headers: keysHeader("BCC", q)}, []byte("y"))
		c.expect(1, 60, 80) // no return
		if got := c.mustGet(1, q, true); got.body != "y" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestSSD_02_Alternate: the further keys count in alternate exchanges and behind exchange bindings as well.
func TestSSD_02_Alternate(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		alternate, behind, x := c.newExchange(1, "direct"), c.newExchange(1, "topic"), unique("x")
		c.exchange(1, x, "direct", flags{}, table("alternate-exchange", alternate))
		c.bindExchange(1, behind, alternate, "e", "")
		var queues []string
		for _, key := range []string{"a", "b", "z"} {
			q := c.newQueue(1)
			queues = append(queues, q)
			c.bind(1, q, alternate, key, "")
		}
		last := c.newQueue(1)
		c.bind(1, last, behind, "*", "")
		c.publishWith(1, publishArgs(x, "a", true, false), props{headers: table("CC", vA(vS("b")), "BCC", vA(vS("e")))}, []byte("m"))
		for q, want := range map[string]uint32{queues[0]: 1, queues[1]: 1, queues[2]: 0, last: 1} {
			if ready, _ := c.depth(1, q); ready != want {
				t.Errorf("%d messages, want %d", ready, want)
			}
		}
	})
}

// TestDLX_02_KeysOfSender: without a dead letter key all keys of the sender count, but for those of BCC; with one, CC
// goes (DLX-05).
func TestDLX_02_KeysOfSender(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, rekeyed := range []bool{false, true} {
			c := connect(t, b).open(1)
			dlx, q := c.newExchange(1, "direct"), unique("q")
			a := table("x-dead-letter-exchange", dlx)
			if rekeyed {
				a += table("x-dead-letter-routing-key", "other")
			}
			c.queue(1, q, flags{}, a)
			dead := map[string]string{}
			for _, key := range []string{q, "cc", "bcc", "other"} {
				dead[key] = c.newQueue(1)
				c.bind(1, dead[key], dlx, key, "")
			}
			h := table("CC", vA(vS("cc")), "BCC", vA(vS("bcc")))
			c.publishWith(1, publishArgs("", q, false, false), props{headers: h}, []byte("m"))
			c.reject(1, c.mustGet(1, q, false).tag, false)
			want := map[string]uint32{q: 1, "cc": 1}
			if rekeyed {
				want = map[string]uint32{"other": 1}
			}
			for key, name := range dead {
				c.awaitReady(1, name, want[key])
				if want[key] == 0 {
					continue
				}
				d := &dec{t, c.mustGet(1, name, true).properties}
				d.u16()
				headers := tableValues(t, tbl(d.ls()))
				if headers["BCC"] != "" || (headers["CC"] == "") != rekeyed || headers["x-death"] == "" {
					t.Errorf("rekeyed %v: headers %q", rekeyed, headers)
				}
			}
		}
	})
}
