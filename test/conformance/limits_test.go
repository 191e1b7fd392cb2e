package conformance

import (
	"strings"
	"testing"

	"ringmq/test/harness"
)

// bounded declares a queue with a limit and returns its name.
func (c *client) bounded(ch uint16, limit int, more tbl) string {
	c.t.Helper()
	q := unique("q")
	c.queue(ch, q, flags{}, table("x-max-length", limit)+more)
	return q
}

// headersOf reads the headers of a message that has no property before them.
func headersOf(t *testing.T, msg message) map[string]val {
	t.Helper()
	d := &dec{t, msg.properties}
	if flags := d.u16(); flags&(1<<13) == 0 || flags>>14 != 0 {
		t.Fatalf("property flags %x", flags)
	}
	return tableValues(t, tbl(d.ls()))
}

// TestLEN_02_DropHead: the oldest goes, to the dead letters with reason maxlen; nothing stays in a queue of length 0.
func TestLEN_02_DropHead(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		dead := c.newQueue(1)
		dlx := table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead)
		q, none := c.bounded(1, 2, dlx), c.bounded(1, 0, "")
		c.publishAll(1, q, "1", "2", "3", "4")
		c.publishAll(1, none, "x")
		c.awaitReady(1, dead, 2)
		if got := strings.Join(c.drain(1, q), " "); got != "3 4" {
			t.Errorf("the queue holds %s", got)
		}
		for _, want := range []string{"1", "2"} {
			msg := c.mustGet(1, dead, true)
			if reason := headersOf(t, msg)["x-first-death-reason"].str(); msg.body != want || reason != "maxlen" {
				t.Errorf("dead letter %q for %q, want %q", msg.body, reason, want)
			}
		}
		if ready, _ := c.depth(1, none); ready != 0 {
			t.Errorf("%d messages in a queue of length 0", ready)
		}
		c.consume(1, none, "t", true)
		c.publish(1, "", none, "z")
		if msg := c.deliver(1); msg.body != "z" { // a consumer that is ready takes it
			t.Errorf("got %+v", msg)
		}
	})
}

// TestLEN_05_MandatoryRefused: a queue that turns a mandatory message away nacks it; there is no return.
func TestLEN_05_MandatoryRefused(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := c.bounded(1, 1, table("x-overflow", "reject-publish"))
		c.confirm(1)
		for _, body := range []string{"taken", "refused"} {
			c.publishWith(1, publishArgs("", q, true, false), props{}, []byte(body))
		}
		// confirmed fails on anything that is no confirm.
		if nacked := c.confirmed(1, 2); len(nacked) != 1 || nacked[0] != 2 {
			t.Errorf("nacked %v, want 2", nacked)
		}
	})
}

// TestTX_04_Refused: a commit that some queue refuses fails, and what others took stays. Field case 35.
func TestTX_04_Refused(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2)
		q, free := c.bounded(1, 1, table("x-overflow", "reject-publish")), c.newQueue(1)
		c.txSelect(2)
		c.publish(2, "", q, "1")
		c.txCommit(2)
		c.publish(2, "", free, "accepted")
		c.publish(2, "", q, "2")
		c.method(2, 90, 20, nil)
		checkFault(t, c.channelFault(2), 406, "partial tx completion", m(90, 20))
		for name, want := range map[string]string{q: "1", free: "accepted"} {
			if got := strings.Join(c.drain(1, name), " "); got != want {
				t.Errorf("a queue holds %q, want %q", got, want)
			}
		}
	})
}

// TestDLX_03b_ForeignDeath: an x-death that a client made up, of any shape, does not lose the message.
func TestDLX_03b_ForeignDeath(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "3.10 drops the message")
		for name, death := range map[string]val{
			"text": vS("x"), "number": vI(5), "empty array": vA(), "array of texts": vA(vS("a"), vS("b")),
			"array of odd tables": vA(value(table("a", 1)), value(table("count", "many", "queue", 7))), "mixed": vA(value(table("a", 1)), vS("x")),
			"void": vV(), "table": value(table("queue", "q")),
		} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1)
				dead, q := c.newQueue(1), unique("q")
				c.queue(1, q, flags{}, table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead))
				c.publishWith(1, publishArgs("", q, false, false), props{headers: table("x-death", death, "own", "kept")}, []byte("m"))
				c.reject(1, c.mustGet(1, q, false).tag, false)
				c.awaitReady(1, dead, 1)
				headers := headersOf(t, c.mustGet(1, dead, true))
				if death := headers["x-death"]; len(death) < 6 || death[0] != 'A' || death[5] != 'F' {
					t.Errorf("x-death %q", death)
				}
				if headers["own"].str() != "kept" {
					t.Errorf("headers %q", headers)
				}
			})
		}
	})
}

// TestDLX_04_FirstAndLast: x-first-death names the first death for good, x-last-death the last one.
func TestDLX_04_FirstAndLast(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		b.SkipRabbitMQ(t, "no x-last-death before 3.13")
		c := connect(t, b).open(1)
		end, second, first := c.newQueue(1), unique("q"), unique("q")
		c.queue(1, second, flags{}, table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", end, "x-message-ttl", 0))
		c.queue(1, first, flags{}, table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", second))
		x := c.newExchange(1, "fanout")
		c.bind(1, first, x, "", "")
		c.publish(1, x, "k", "m")
		c.reject(1, c.mustGet(1, first, false).tag, false)
		c.awaitReady(1, end, 1)
		headers := headersOf(t, c.mustGet(1, end, true))
		for name, want := range map[string]string{
			"x-first-death-reason": "rejected", "x-first-death-queue": first, "x-first-death-exchange": x,
			"x-last-death-reason": "expired", "x-last-death-queue": second, "x-last-death-exchange": "",
		} {
			if got := headers[name].str(); got != want || headers[name] == "" {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	})
}

// TestGEN_04_NoAck: a delivery without acknowledgement is settled when it was written.
func TestGEN_04_NoAck(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connect(t, b).open(1), connect(t, b).open(1)
		q := c.newQueue(1)
		c.publishAll(1, q, "1", "2")
		if msg := c.mustGet(1, q, true); msg.body != "1" {
			t.Errorf("got %+v", msg)
		}
		c.consume(1, q, "t", true)
		c.deliverBodies(1, "2")
		c.cut()
		other.awaitReady(1, q, 0)
		eventually(t, "the end of the consumer", func() bool { _, n := other.depth(1, q); return n == 0 })
		if _, ok := other.get(1, q, true); ok {
			t.Error("a message that was handed out came back")
		}
	})
}
