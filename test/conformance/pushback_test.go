package conformance

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"ringmq/test/harness"
)

// TestALM_05_SlowQueue: a queue whose disk is slow pushes back on its publisher: after a bounded amount the socket is not
// read; no alarm is told and no channel.flow is sent, and others are served meanwhile.
func TestALM_05_SlowQueue(t *testing.T) {
	t.Parallel()
	binary, err := harness.FaultsBinary()
	if err != nil {
		t.Fatal(err)
	}
	// Each synced write, a few hundred kilobytes, begins a second late.
	slow := harness.Options{Cores: "0,1", Binary: binary, Env: []string{"RINGMQ_TEST_FAULT=delay:1000"}}
	harness.ForEachBackendAlone(t, slow, func(t *testing.T, b *harness.Broker) {
		const size, most = 64 << 10, 1024
		pub, other := connect(t, b).open(1), connect(t, b).open(1)
		q, aside := unique("q"), other.newQueue(1)
		pub.queue(1, q, flags{durable: true}, "")
		out := contentFrames(1, publishArgs("", q, false, false), props{deliveryMode: 2}.encode(), make([]byte, size), pub.frameMax)
		for sent := 0; pub.tryWrite(out); sent++ {
			if sent == most {
				t.Fatalf("%d MiB were read from a publisher whose queue is slow", most*size>>20)
			}
		}
		for i := range 20 {
			other.publish(1, "", aside, fmt.Sprint(i))
			if got := other.mustGet(1, aside, true); got.body != fmt.Sprint(i) {
				t.Errorf("another queue gives %q", got.body)
			}
		}
		if m, err := b.Metrics(); err != nil || m["ringmq_alarm"] != 0 || m["ringmq_wal_backlog_bytes"] == 0 {
			t.Errorf("alarms %v, backlog %v bytes, %v", m["ringmq_alarm"], m["ringmq_wal_backlog_bytes"], err)
		}
		// What the broker told the publisher so far is there by now: nothing, no blocked and no flow.
		if f, err := pub.readAny(time.Millisecond); err == nil {
			t.Errorf("the publisher was sent %v", f)
		}
		if err := b.Kill(); err != nil { // the rest would take its disk a minute
			t.Fatal(err)
		}
	})
}

// tryWrite reports whether anything was taken within a while.
func (c *client) tryWrite(out []byte) bool {
	c.t.Helper()
	for len(out) > 0 {
		_ = c.nc.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := c.nc.Write(out)
		out = out[n:]
		var ne net.Error
		switch {
		case err == nil:
		case !errors.As(err, &ne) || !ne.Timeout():
			c.t.Fatalf("write: %v", err)
		case n == 0:
			return false
		}
	}
	return true
}

// TestALM_04_Heartbeats: a connection that an alarm blocks goes on to get heartbeats, and is not taken for lost because it
// is silent, which is the broker's doing.
func TestALM_04_Heartbeats(t *testing.T) {
	t.Parallel()
	limit := newAlarmSwitch(t)
	limit.write(t, "0")
	harness.ForEachBackendAlone(t, harness.Options{Args: []string{"--config", string(limit)}}, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{heartbeat: 2}).open(1)
		q := c.newQueue(1)
		c.publish(1, "", q, "before")
		c.sync(1)
		limit.set(t, b, diskHuge, 1)
		c.expect(0, 10, 60)
		c.publish(1, "", q, "blocked")
		// The broker's own heartbeats are the clock: seven of them are at least six seconds, three times the interval.
		for beats := range 7 {
			if f, err := c.readAny(waitMax); err != nil || f.typ != 8 {
				t.Fatalf("after %d heartbeats: %v, %v", beats, f, err)
			}
		}
		limit.set(t, b, "0", 0)
		c.expect(0, 10, 61)
		for _, want := range []string{"before", "blocked"} {
			if got := c.mustGet(1, q, true); got.body != want {
				t.Errorf("got %q, want %q", got.body, want)
			}
		}
	})
}
