package conformance

import (
	"strings"
	"testing"

	"ringmq/test/harness"
)

// items are the values of an array.
func items(t *testing.T, v val) []val {
	t.Helper()
	if len(v) < 5 || v[0] != 'A' {
		t.Fatalf("%q is no array", v)
	}
	var out []val
	for rest := v[5:]; len(rest) > 0; {
		one := firstValue(t, rest)
		out = append(out, one)
		rest = rest[len(one):]
	}
	return out
}

// firstValue cuts the first value off.
func firstValue(t *testing.T, v val) val {
	t.Helper()
	d := &dec{t, []byte(v)}
	switch tag := d.u8(); tag {
	case 'V':
	case 't', 'b', 'B':
		d.take(1)
	case 's', 'u':
		d.take(2)
	case 'I', 'i', 'f':
		d.take(4)
	case 'D':
		d.take(5)
	case 'l', 'L', 'd', 'T':
		d.take(8)
	case 'S', 'x', 'A', 'F':
		d.ls()
	default:
		t.Fatalf("value of unknown tag %q", tag)
	}
	return v[:len(v)-len(d.b)]
}

// tableOf is the entries of a nested table.
func tableOf(t *testing.T, v val) map[string]val {
	t.Helper()
	if len(v) < 5 || v[0] != 'F' {
		t.Fatalf("%q is no table", v)
	}
	return tableValues(t, tbl(v[5:]))
}

// tags are the types of a table's values, in the order of names.
func tags(table map[string]val, names ...string) string {
	var out strings.Builder
	for _, name := range names {
		if v := table[name]; v == "" {
			out.WriteByte('-')
		} else {
			out.WriteByte(v[0])
		}
	}
	return out.String()
}

// TestFLD_03_Types: what the server adds has the types that clients read: numbers l, times T, texts S, flags t.
func TestFLD_03_Types(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		texts := []string{"product", "version", "platform", "copyright", "information", "cluster_name"}
		if got := tags(c.server, texts...); got != "SSSSSS" {
			t.Errorf("server properties have types %s", got)
		}
		for name, v := range tableOf(t, c.server["capabilities"]) {
			if v[0] != 't' {
				t.Errorf("capability %s is %q", name, v)
			}
		}
		dead, q := c.newQueue(1), unique("q")
		c.queue(1, q, flags{}, table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead))
		c.publishWith(1, publishArgs("", q, false, false), props{headers: keysHeader("CC", unique("cc")), expiration: "1"}, []byte("m"))
		c.awaitReady(1, dead, 1)
		headers := headersOf(t, c.mustGet(1, dead, true))
		first := []string{"x-first-death-reason", "x-first-death-queue", "x-first-death-exchange"}
		if got := tags(headers, first...); got != "SSS" {
			t.Errorf("x-first-death-* have types %s", got)
		}
		deaths := items(t, headers["x-death"])
		if len(deaths) != 1 {
			t.Fatalf("x-death %q", headers["x-death"])
		}
		death := tableOf(t, deaths[0])
		names := []string{"count", "reason", "queue", "time", "exchange", "routing-keys", "original-expiration"}
		if got := tags(death, names...); got != "lSSTSAS" || len(death) != len(names) {
			t.Errorf("x-death has types %s for %v, and %d values", got, names, len(death))
		}
		for _, key := range items(t, death["routing-keys"]) {
			if key[0] != 'S' {
				t.Errorf("routing key %q", key)
			}
		}
	})
}

// TestFLD_03_StreamOffset: the offset of a stream's message is an l.
func TestFLD_03_StreamOffset(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := unique("q")
		c.queue(1, q, flags{durable: true}, table("x-queue-type", "stream"))
		c.publish(1, "", q, "m")
		c.qos(1, 10, false)
		c.consumeWith(1, consumeArgs(q, "t", false, false, false, false, table("x-stream-offset", "first")))
		if got := headersOf(t, c.deliver(1))["x-stream-offset"]; got != vl(0) {
			t.Errorf("x-stream-offset is %q", got)
		}
	})
}
