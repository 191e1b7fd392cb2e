package conformance

import (
	"maps"
	"slices"
	"testing"

	"ringmq/test/harness"
)

// capability provokes what one key of the server's capabilities promises. The broker's disk alarm is down before and after.
type capability func(t *testing.T, b *harness.Broker, alarm alarmSwitch)

// provocations has every capability that connection.start announces, and no other.
var provocations = map[string]capability{
	"publisher_confirms":           provokeConfirms,
	"exchange_exchange_bindings":   provokeExchangeBindings,
	"basic.nack":                   provokeNack,
	"consumer_cancel_notify":       provokeCancelNotify,
	"connection.blocked":           provokeBlocked,
	"consumer_priorities":          provokeConsumerPriorities,
	"authentication_failure_close": provokeAuthenticationClose,
	"per_consumer_qos":             provokePerConsumerQos,
	"direct_reply_to":              provokeDirectReplyTo,
}

// TestF81_Capabilities (CON-03): what connection.start advertises happens when it is provoked, and what is not done is not
// advertised.
func TestF81_Capabilities(t *testing.T) {
	t.Parallel()
	limit := newAlarmSwitch(t)
	limit.write(t, "0")
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1", Args: []string{"--config", string(limit)}}, func(t *testing.T, b *harness.Broker) {
		limit.set(t, b, "0", 0)
		announced := tableOf(t, connect(t, b).server["capabilities"])
		for _, name := range slices.Sorted(maps.Keys(announced)) {
			t.Run(name, func(t *testing.T) {
				provoke := provocations[name]
				switch {
				case announced[name] != "t\x01":
					t.Errorf("announced as %q: what is not done is left out", announced[name])
				case provoke == nil:
					t.Error("nothing here provokes it")
				default:
					provoke(t, b, limit)
				}
			})
		}
		for name := range provocations {
			if announced[name] == "" {
				t.Errorf("%s is not announced", name)
			}
		}
	})
}

func provokeConfirms(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	c := connect(t, b).open(1)
	q := c.newQueue(1)
	c.confirm(1)
	c.publishAll(1, q, "1", "2", "3")
	if nacked := c.confirmed(1, 3); len(nacked) > 0 {
		t.Errorf("nacked %v", nacked)
	}
}

func provokeExchangeBindings(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	c := connect(t, b).open(1)
	q, from, to := c.newQueue(1), c.newExchange(1, "topic"), c.newExchange(1, "fanout")
	c.bind(1, q, to, "", "")
	c.bindExchange(1, to, from, "a.*", "")
	c.publish(1, from, "a.b", "bound")
	c.publish(1, from, "b.b", "not bound")
	c.unbindExchange(1, to, from, "a.*", "")
	c.publish(1, from, "a.b", "unbound")
	if got := c.drain(1, q); !slices.Equal(got, []string{"bound"}) {
		t.Errorf("got %q", got)
	}
}

// provokeNack has the client and the server send one.
func provokeNack(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	c := connect(t, b).open(1, 2)
	q := c.bounded(1, 2, table("x-overflow", "reject-publish"))
	c.confirm(2)
	c.publishAll(2, q, "1", "2", "3")
	if nacked := c.confirmed(2, 3); !slices.Equal(nacked, []uint64{3}) {
		t.Errorf("nacked %v, want 3", nacked)
	}
	c.mustGet(1, q, false)
	c.nack(1, c.mustGet(1, q, false).tag, true, true)
	for _, want := range []string{"1", "2"} {
		if got := c.mustGet(1, q, true); got.body != want || !got.redelivered {
			t.Errorf("got %+v, want %s again", got, want)
		}
	}
}

// provokeCancelNotify deletes the queue of a consumer that announced the capability and of one that did not.
func provokeCancelNotify(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	told, untold := connect(t, b).open(1), connectAs(t, b, login{props: table("product", "conformance")}).open(1)
	q := told.newQueue(1)
	told.consume(1, q, "told", false)
	untold.consume(1, q, "untold", false)
	connect(t, b).open(1).deleteQueue(1, q, flags{})
	if tag := told.expect(1, 60, 30).ss(); tag != "told" {
		t.Errorf("cancelled %q", tag)
	}
	told.sync(1)
	untold.sync(1)
}

// provokeBlocked raises an alarm under a publisher that announced the capability and one that did not (CON-21).
func provokeBlocked(t *testing.T, b *harness.Broker, alarm alarmSwitch) {
	names := []string{unique("told"), unique("untold")}
	told := connectAs(t, b, login{props: table("connection_name", names[0], "capabilities", table("connection.blocked", true))}).open(1)
	untold, watch := connectAs(t, b, login{props: table("connection_name", names[1])}).open(1), connect(t, b).open(1)
	q := watch.newQueue(1)
	for _, c := range []*client{told, untold} {
		c.publish(1, "", q, "before")
		c.sync(1)
	}
	alarm.set(t, b, diskHuge, 1)
	for _, name := range names { // the alarm has reached their loops
		eventually(t, "blocking", func() bool { return connectionState(t, b, name) == "blocking" })
	}
	told.publish(1, "", q, "during")
	untold.publish(1, "", q, "during")
	if reason := told.expect(0, 10, 60).ss(); reason != "low on disk" {
		t.Errorf("blocked because %q", reason)
	}
	for _, name := range names {
		eventually(t, "blocked", func() bool { return connectionState(t, b, name) == "blocked" })
	}
	if ready, _ := watch.depth(1, q); ready != 2 {
		t.Errorf("%d messages during the alarm, want the 2 from before", ready)
	}
	alarm.set(t, b, "0", 0)
	told.expect(0, 10, 61)
	told.sync(1)
	untold.sync(1) // neither was sent to this one
	watch.awaitReady(1, q, 4)
}

func provokeConsumerPriorities(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	c := connect(t, b).open(1)
	q := c.newQueue(1)
	c.qos(1, 1, false)
	c.consume(1, q, "first", false)
	c.consumeWith(1, consumeArgs(q, "preferred", false, false, false, false, table("x-priority", 5)))
	c.publishAll(1, q, "1", "2")
	for _, want := range []string{"preferred", "first"} {
		if got := c.deliver(1); got.consumerTag != want {
			t.Errorf("message %s went to %s, want %s", got.body, got.consumerTag, want)
		}
	}
}

// provokeAuthenticationClose logs in wrongly with and without the capability.
func provokeAuthenticationClose(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	told, untold := dialTCP(t, b), dialTCP(t, b)
	untold.start(login{response: "\x00guest\x00wrong", props: table("product", "conformance")})
	told.start(login{response: "\x00guest\x00wrong", props: table("capabilities", table("authentication_failure_close", true))})
	if f := told.connectionFault(); f.code != 403 {
		t.Errorf("refused with %+v", f)
	}
	untold.closedSocket()
}

// provokePerConsumerQos gives two consumers of one channel a window each.
func provokePerConsumerQos(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	c := connect(t, b).open(1, 2)
	q := c.newQueue(1)
	c.qos(1, 1, false)
	c.consume(1, q, "one", false)
	c.qos(1, 2, false)
	c.consume(1, q, "two", false)
	c.publishAll(2, q, "1", "2", "3", "4")
	took := map[string]int{}
	for range 3 {
		took[c.deliver(1).consumerTag]++
	}
	c.awaitReady(2, q, 1) // the windows are full
	if took["one"] != 1 || took["two"] != 2 {
		t.Errorf("windows of 1 and 2 took %v", took)
	}
}

func provokeDirectReplyTo(t *testing.T, b *harness.Broker, _ alarmSwitch) {
	c, responder := connect(t, b).open(1), connect(t, b).open(1)
	q := responder.newQueue(1)
	c.consumeReplies(1)
	to := c.request(1, responder, q, "question")
	responder.publish(1, "", to, "answer")
	if got := c.deliver(1); got.body != "answer" {
		t.Errorf("got %+v", got)
	}
}
