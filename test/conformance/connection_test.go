package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"ringmq/test/harness"
)

// TestCON_17_Close: close-ok comes after the exclusive queues are gone.
func TestCON_17_Close(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		other := connect(t, b).open(1)
		for range 20 {
			c := connect(t, b).open(1)
			q := unique("q")
			c.queue(1, q, flags{exclusive: true}, "")
			c.shut()
			// The name is free at once: a plain queue of that name can be declared.
			other.queue(1, q, flags{}, "")
			other.deleteQueue(1, q, flags{})
		}
	})
}

// TestCON_18_CloseOkUnasked: close-ok without a close is an error.
func TestCON_18_CloseOkUnasked(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b)
		c.method(0, 10, 51, nil)
		if f := c.connectionFault(); f.code != 504 {
			t.Errorf("code %d (%q), want 504", f.code, f.text)
		}
	})
}

// TestCON_19_OperatorClose: a connection closed over HTTP gets 320 with the operator's reason, others live on.
func TestCON_19_OperatorClose(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		if b.HTTP == "" {
			t.Skip("no HTTP listener")
		}
		name := unique("victim")
		bystander := connect(t, b).open(1)
		c := connectAs(t, b, login{props: table("connection_name", name,
			"capabilities", table("authentication_failure_close", true))})
		var id string
		eventually(t, "the connection is listed", func() bool {
			id = connectionID(t, b, name)
			return id != ""
		})
		status, body, err := b.Request(http.MethodDelete, "/api/connections/"+url.PathEscape(id),
			http.Header{"X-Reason": {"gone fishing"}})
		if err != nil || status != http.StatusNoContent {
			t.Fatalf("DELETE: status %d, %v: %s", status, err, body)
		}
		checkFault(t, c.connectionFault(), 320, "gone fishing", 0)
		eventually(t, "the connection is no longer listed", func() bool { return connectionID(t, b, name) == "" })
		bystander.sync(1)
		if status, _, _ := b.Request(http.MethodDelete, "/api/connections/nobody", nil); status != http.StatusNotFound {
			t.Errorf("DELETE of an unknown connection: status %d, want 404", status)
		}
	})
}

// connectionID is the name by which the HTTP API lists the connection with this client-provided name.
func connectionID(t *testing.T, b *harness.Broker, provided string) string {
	t.Helper()
	status, body, err := b.Get("/api/connections")
	if err != nil || status != http.StatusOK {
		t.Fatalf("GET /api/connections: status %d, %v: %s", status, err, body)
	}
	var list []struct {
		Name     string `json:"name"`
		Provided string `json:"user_provided_name"`
		Client   struct {
			Name string `json:"connection_name"`
		} `json:"client_properties"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("GET /api/connections: %v: %s", err, body)
	}
	for _, item := range list {
		if item.Provided == provided || item.Client.Name == provided {
			return item.Name
		}
	}
	return ""
}

// TestCON_19_Shutdown: SIGTERM tells every connection and ends with status 0.
func TestCON_19_Shutdown(t *testing.T) {
	t.Parallel()
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		var all []*client
		for range 8 {
			c := connect(t, b).open(1)
			q := c.newQueue(1)
			c.consume(1, q, "", false)
			all = append(all, c)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- b.Stop() }()
		for _, c := range all {
			checkFault(t, c.connectionFault(), 320, "broker forced connection closure with reason 'shutdown'", 0)
		}
		if err := <-stopped; err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, b.Output())
		}
	})
}

// TestCON_20_UpdateSecret: any value is accepted for an internal user.
func TestCON_20_UpdateSecret(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b)
		c.method(0, 10, 70, args().ls("new secret").ss("rotation"))
		c.expect(0, 10, 71)
		c.open(1).sync(1)
	})
}

// TestCON_22_LostSocket: a lost socket gives unacked messages back at once, and complete messages that were received
// before the end are processed.
func TestCON_22_LostSocket(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		watcher := connect(t, b).open(1)
		t.Run("unacked go back", func(t *testing.T) {
			q := watcher.newQueue(1)
			watcher.publishAll(1, q, "a", "b", "c")
			c := connect(t, b).open(1)
			c.consume(1, q, "", false)
			c.deliverBodies(1, "a", "b", "c")
			c.cut()
			watcher.consume(1, q, "w", false)
			for _, msg := range watcher.deliverBodies(1, "a", "b", "c") {
				if !msg.redelivered {
					t.Errorf("%q is not marked redelivered", msg.body)
				}
			}
			watcher.cancel(1, "w")
		})
		t.Run("received ones are processed", func(t *testing.T) {
			b.SkipRabbitMQ(t, "publishes in flight may be lost")
			q := watcher.newQueue(1)
			const count = 500
			bodies := make([]string, count)
			for i := range bodies {
				bodies[i] = "x"
			}
			c := connect(t, b).open(1)
			c.publishAll(1, q, bodies...)
			_ = c.nc.Close() // FIN behind the data
			eventually(t, "all messages of the lost connection are there", func() bool {
				ready, _ := watcher.depth(1, q)
				return ready == count
			})
		})
	})
}
