package conformance

import (
	"fmt"
	"testing"

	"ringmq/test/harness"
)

var choiceRefusals = []refusal{
	{id: "XT-01", name: "both arguments", setup: freshName, code: 406, failed: m(40, 10),
		text: "hash-header and hash-property are mutually exclusive", send: declareHash("hash-header", "h", "hash-property", "message_id")},
	{id: "XT-01", name: "unknown property", setup: freshName, code: 406, failed: m(40, 10),
		text: "Unsupported property: zz", send: declareHash("hash-property", "zz")},
	// Field case 7: a weight that is no positive number.
	{id: "BIND-09", name: "letters", setup: withHash, code: 406, failed: m(50, 20),
		text: `The binding key must be an integer: <<"abc">>`, send: bindHash("abc")},
	{id: "BIND-09", name: "empty", setup: withHash, code: 406, failed: m(50, 20),
		text: `The binding key must be an integer: <<>>`, send: bindHash("")},
	{id: "BIND-09", name: "fraction", setup: withHash, code: 406, failed: m(50, 20),
		text: `The binding key must be an integer: <<"1.5">>`, send: bindHash("1.5")},
	{id: "BIND-09", name: "zero", setup: withHash, code: 406, failed: m(50, 20),
		text: "The binding key must be greater than 0", send: bindHash("0")},
	{id: "BIND-09", name: "negative", setup: withHash, code: 406, failed: m(50, 20),
		text: "The binding key must be greater than 0", send: bindHash("-1")},
	{id: "BIND-09", name: "exchange to exchange", setup: withHash, code: 406, failed: m(40, 30),
		text: "The binding key must be greater than 0", send: func(c *client, n map[string]string) {
			c.method(1, 40, 30, bindArgs("amq.fanout", n["x"], "0", ""))
		}},
	{id: "XT-03", name: "recent history is not there", setup: freshName, code: 406, failed: m(40, 10),
		text: "unknown exchange type 'x-recent-history'", ours: "a plug-in", send: func(c *client, n map[string]string) {
			c.method(1, 40, 10, exchangeArgs(n["x"], "x-recent-history", flags{}, ""))
		}},
}

func declareHash(kv ...any) func(*client, map[string]string) {
	return func(c *client, n map[string]string) {
		c.method(1, 40, 10, exchangeArgs(n["x"], "x-consistent-hash", flags{}, table(kv...)))
	}
}

func withHash(c *client) map[string]string {
	return newNames("q", c.newQueue(1), "x", c.newExchange(1, "x-consistent-hash"))
}

func bindHash(key string) func(*client, map[string]string) {
	return func(c *client, n map[string]string) { c.method(1, 50, 20, bindArgs(n["q"], n["x"], key, "")) }
}

// needsPlugins skips a broker that may lack the exchange types.
func needsPlugins(t *testing.T, b *harness.Broker) {
	t.Helper()
	b.SkipRabbitMQ(t, "its plug-ins may not be enabled")
}

// TestChoiceRefusals: XT-01, BIND-09, XT-03. Field case 7.
func TestChoiceRefusals(t *testing.T) {
	t.Run("refusals", func(t *testing.T) { runRefusals(t, choiceRefusals) })
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		needsPlugins(t, b)
		c := connect(t, b).open(1)
		n := withHash(c)
		bindHash("10")(c, n)
		c.expect(1, 50, 21)
		c.publishWith(1, publishArgs(n["x"], "any", true, false), props{}, []byte("m"))
		c.awaitReady(1, n["q"], 1)
	})
}

// placesOf publishes once for each of count values and returns which queue each went to.
func placesOf(t *testing.T, c *client, queues []string, count int, publish func(n int)) map[string]string {
	t.Helper()
	for n := range count {
		publish(n)
	}
	c.sync(1)
	at := map[string]string{}
	for _, q := range queues {
		for _, body := range c.drain(1, q) {
			if at[body] != "" {
				t.Fatalf("%s is in two queues", body)
			}
			at[body] = q
		}
	}
	if len(at) != count {
		t.Fatalf("%d of %d messages arrived", len(at), count)
	}
	return at
}

// TestXT_01_Hash: each message goes to one queue, and to the same for the same key, header or property.
func TestXT_01_Hash(t *testing.T) {
	const count = 60
	inputs := map[string]struct {
		args    tbl
		publish func(c *client, x string, n, salt int)
	}{
		"key": {"", func(c *client, x string, n, _ int) { c.publish(1, x, fmt.Sprint("k", n), fmt.Sprint(n)) }},
		"header": {table("hash-header", "h"), func(c *client, x string, n, salt int) {
			c.publishWith(1, publishArgs(x, fmt.Sprint(salt, n), false, false), props{headers: table("h", fmt.Sprint(n))}, fmt.Append(nil, n))
		}},
		"message id": {table("hash-property", "message_id"), func(c *client, x string, n, salt int) {
			c.publishWith(1, publishArgs(x, fmt.Sprint(salt, n), false, false), props{messageID: fmt.Sprint(n)}, fmt.Append(nil, n))
		}},
		"correlation id": {table("hash-property", "correlation_id"), func(c *client, x string, n, salt int) {
			c.publishWith(1, publishArgs(x, fmt.Sprint(salt, n), false, false), props{correlationID: fmt.Sprint(n)}, fmt.Append(nil, n))
		}},
		"timestamp": {table("hash-property", "timestamp"), func(c *client, x string, n, salt int) {
			c.publishWith(1, publishArgs(x, fmt.Sprint(salt, n), false, false), props{timestamp: uint64(n + 1)}, fmt.Append(nil, n))
		}},
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		needsPlugins(t, b)
		for name, in := range inputs {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b).open(1)
				x := unique("x")
				c.exchange(1, x, "x-consistent-hash", flags{}, in.args)
				var queues []string
				for range 4 {
					q := c.newQueue(1)
					queues = append(queues, q)
					c.bind(1, q, x, "1", "")
				}
				first := placesOf(t, c, queues, count, func(n int) { in.publish(c, x, n, 1) })
				used := map[string]bool{}
				for body, q := range placesOf(t, c, queues, count, func(n int) { in.publish(c, x, n, 2) }) {
					used[q] = true
					if first[body] != q {
						t.Errorf("%s went to %s, then to %s", body, first[body], q)
					}
				}
				if len(used) != len(queues) {
					t.Errorf("%d of %d queues used", len(used), len(queues))
				}
				// A queue that leaves moves its own messages only.
				c.unbind(1, queues[0], x, "1", "")
				for body, q := range placesOf(t, c, queues, count, func(n int) { in.publish(c, x, n, 3) }) {
					if first[body] != queues[0] && first[body] != q {
						t.Errorf("%s moved from %s to %s", body, first[body], q)
					}
				}
			})
		}
	})
}

// TestXT_01_CC: further keys do not make it more than one queue.
func TestXT_01_CC(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		needsPlugins(t, b)
		for _, kind := range []string{"x-consistent-hash", "x-modulus-hash", "x-random"} {
			c := connect(t, b).open(1)
			x := c.newExchange(1, kind)
			var queues []string
			for range 5 {
				q := c.newQueue(1)
				queues = append(queues, q)
				c.bind(1, q, x, "1", "")
			}
			placesOf(t, c, queues, 20, func(n int) {
				c.publishWith(1, publishArgs(x, "k", false, false), props{headers: keysHeader("CC", "a", "b", "c", "d")}, fmt.Append(nil, n))
			})
		}
	})
}

// TestXT_03_ModulusAndRandom: modulus-hash goes by the key, random by nothing.
func TestXT_03_ModulusAndRandom(t *testing.T) {
	const count = 80
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		needsPlugins(t, b)
		for _, kind := range []string{"x-modulus-hash", "x-random"} {
			c := connect(t, b).open(1)
			x := c.newExchange(1, kind)
			var queues []string
			for range 3 {
				q := c.newQueue(1)
				queues = append(queues, q)
				c.bind(1, q, x, "anything", "")
			}
			same := placesOf(t, c, queues, count, func(n int) { c.publish(1, x, "one key", fmt.Sprint(n)) })
			used := map[string]bool{}
			for _, q := range same {
				used[q] = true
			}
			if want := map[string]int{"x-modulus-hash": 1, "x-random": 3}[kind]; len(used) != want {
				t.Errorf("%s: one key went to %d queues, want %d", kind, len(used), want)
			}
		}
	})
}
