package conformance

import (
	"testing"

	"ringmq/test/harness"
)

// openFault opens a vhost and returns the refusal.
func openFault(t *testing.T, b *harness.Broker, vhost string) fault {
	t.Helper()
	c := dialTCP(t, b)
	c.start(login{})
	c.tuneOk(login{})
	c.openVhost(login{vhost: vhost})
	return c.connectionFault()
}

func sameFault(t *testing.T, got fault, code uint16, text string, failed uint32) {
	t.Helper()
	if want := (fault{code, text, failed}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// CON-14, CHA-02, QUE-15, SEC-07: limits of a vhost and of a user, to the letter, and exact when connections come and go.
func TestLimitsByCtl(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		b.Ctl(t, "add_vhost", "v")
		b.Ctl(t, "set_vhost_limits", "-p", "v", `{"max-connections":2,"max-queues":1}`)
		in := login{vhost: "v"}
		first, second := connectAs(t, b, in).open(1), connectAs(t, b, in)
		for range 5 {
			sameFault(t, openFault(t, b, "v"), 530,
				"NOT_ALLOWED - access to vhost 'v' refused for user 'guest': connection limit (2) is reached", m(10, 40))
			second.shut()
			second = connectAs(t, b, in)
		}
		first.queue(1, "q", flags{}, "")
		first.method(1, 50, 10, queueArgs("r", flags{exclusive: true}, ""))
		sameFault(t, first.channelFault(1), 406,
			"PRECONDITION_FAILED - cannot declare queue 'r': queue limit in vhost 'v' (1) is reached", m(50, 10))
		first.open(1)
		first.queue(1, "q", flags{}, "") // it is there already

		b.Ctl(t, "set_user_limits", "guest", `{"max-connections":2,"max-channels":2}`)
		sameFault(t, openFault(t, b, "/"), 530,
			"NOT_ALLOWED - connection refused for user 'guest': user connection limit (2) is reached", m(10, 40))
		second.open(1)
		second.method(2, 20, 10, args().ss(""))
		sameFault(t, second.connectionFault(), 530,
			"NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum allowed user limit of (2)", 0)
		b.Ctl(t, "clear_user_limits", "guest", "all")
		b.Ctl(t, "clear_vhost_limits", "-p", "v")
		connectAs(t, b, in)
		connectAs(t, b, in)
		first.open(2, 3, 4)
	})
}

// CON-19: deleting a vhost closes its connections, on every loop, and takes all it had.
func TestVHostDeleted(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		b.Ctl(t, "add_vhost", "v", "--default-queue-type", "quorum")
		stays := connect(t, b).open(1)
		var there []*client
		for range 4 {
			c := connectAs(t, b, login{vhost: "v"}).open(1)
			q := unique("q")
			c.queue(1, q, flags{durable: true}, "")
			c.queue(1, unique("q"), flags{exclusive: true}, "")
			c.publishAll(1, q, "1", "2")
			there = append(there, c)
		}
		b.Ctl(t, "delete_vhost", "v")
		for _, c := range there {
			sameFault(t, c.connectionFault(), 320, "CONNECTION_FORCED - vhost 'v' is deleted", 0)
		}
		sameFault(t, openFault(t, b, "v"), 530, "NOT_ALLOWED - vhost v not found", m(10, 40))
		if code, _, _ := b.TryCtl(t, "delete_vhost", "/"); code == 0 {
			t.Error("the vhost / was deleted")
		}
		stays.newQueue(1)
		stays.shut()
		b = b.Restart(t, nil)
		sameFault(t, openFault(t, b, "v"), 530, "NOT_ALLOWED - vhost v not found", m(10, 40))
	})
}
