package conformance

import (
	"strings"
	"testing"

	"ringmq/test/harness"
)

// POL-04, POL-01: a policy takes effect at once on what queues hold, and its removal restores what the queue does by itself.
func TestPolicyLive(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		dead := c.newQueue(1)
		var queues []string
		for range 4 { // on both loops
			q := c.newQueue(1)
			queues = append(queues, q)
			c.publishAll(1, q, "1", "2", "3", "4", "5")
			c.awaitReady(1, q, 5)
		}
		plain := unique("plain")
		c.queue(1, plain, flags{}, "")
		c.publishAll(1, plain, "1", "2", "3", "4", "5")

		b.Ctl(t, "set_policy", "--apply-to", "queues", "p", "^("+strings.Join(queues, "|")+")$",
			`{"max-length":2,"dead-letter-exchange":"","dead-letter-routing-key":"`+dead+`"}`)
		for _, q := range queues {
			c.awaitReady(1, q, 2)
		}
		c.awaitReady(1, dead, 12)
		c.awaitReady(1, plain, 5)
		if got := strings.Join(c.drain(1, queues[0]), " "); got != "4 5" {
			t.Errorf("the queue holds %s", got)
		}
		// An operator policy tightens; the higher number does not loosen.
		b.Ctl(t, "set_operator_policy", "o", "^"+queues[1]+"$", `{"max-length":1}`)
		b.Ctl(t, "set_operator_policy", "o2", "^"+queues[2]+"$", `{"max-length":9}`)
		c.awaitReady(1, queues[1], 1)
		c.awaitReady(1, queues[2], 2)
		// One policy applies: the higher priority takes the place of the other.
		b.Ctl(t, "set_policy", "--priority", "3", "first", "^"+queues[3]+"$", `{"message-ttl":0}`)
		c.awaitReady(1, queues[3], 0)
		c.awaitReady(1, dead, 13)

		b.Ctl(t, "clear_policy", "p")
		b.Ctl(t, "clear_policy", "first")
		b.Ctl(t, "clear_operator_policy", "o")
		for _, q := range queues {
			c.publishAll(1, q, "a", "b", "c")
		}
		c.awaitReady(1, queues[0], 3)
		c.awaitReady(1, queues[1], 4)
		c.awaitReady(1, queues[3], 3)
		c.awaitReady(1, dead, 13)
	})
}

// ALT-01: an alternate exchange by policy, live; TYP-06: the argument wins.
func TestPolicyAlternateExchange(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		caught, ae, x, own := c.newQueue(1), c.newExchange(1, "fanout"), c.newExchange(1, "direct"), unique("x")
		c.exchange(1, own, "direct", flags{}, table("alternate-exchange", "nowhere"))
		c.bind(1, caught, ae, "", "")
		b.Ctl(t, "set_policy", "--apply-to", "exchanges", "p", "^("+x+"|"+own+")$", `{"alternate-exchange":"`+ae+`"}`)
		c.publish(1, x, "k", "1")
		c.publish(1, own, "k", "2")
		c.awaitReady(1, caught, 1)
		b.Ctl(t, "clear_policy", "p")
		c.publish(1, x, "k", "3")
		if ready, _ := c.depth(1, caught); ready != 1 {
			t.Errorf("%d messages without the policy", ready)
		}
	})
}

// POL-02, POL-03, POL-05: what is refused and in which words, and that policies and limits survive a crash.
func TestPoliciesKept(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		for definition, want := range map[string]string{
			`{"nope":1}`:         `[{<<"nope">>,1}] are not recognised policy settings`,
			`{"max-length":"x"}`: `<<"x">> is not a valid maximum length`,
			`{}`:                 `no policy provided`,
		} {
			code, _, stderr := b.TryCtl(t, "set_policy", "bad", ".*", definition)
			if code == 0 || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit %d: %s, want %s", definition, code, stderr, want)
			}
		}
		q := unique("q")
		c := connect(t, b).open(1)
		c.queue(1, q, flags{durable: true}, "")
		b.Ctl(t, "set_policy", "p", "^"+q, `{"max-length":2,"ha-mode":"all","queue-mode":"lazy"}`)
		b.Ctl(t, "set_operator_policy", "o", "^"+q, `{"max-length":1}`)
		b.Ctl(t, "set_vhost_limits", `{"max-queues":2}`)
		b.Ctl(t, "set_global_parameter", "cluster_name", `"here"`)
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		b = b.Restart(t, nil)
		c = connect(t, b).open(1)
		c.publishAll(1, q, "1", "2", "3")
		c.awaitReady(1, q, 1)
		c.newQueue(1)
		c.method(1, 50, 10, queueArgs("third", flags{}, ""))
		if f := c.channelFault(1); f.code != 406 || !strings.Contains(f.text, "queue limit in vhost '/' (2) is reached") {
			t.Errorf("the limit after the crash: %+v", f)
		}
		if got := b.Ctl(t, "list_global_parameters"); !strings.Contains(got, "cluster_name") {
			t.Errorf("global parameters: %s", got)
		}
	})
}
