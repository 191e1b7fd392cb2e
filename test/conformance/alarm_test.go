package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// diskHuge is more room than any disk has: as disk-free-limit it raises the alarm.
const diskHuge = "4000000GiB"

// alarmSwitch is the configuration file of a broker, whose disk-free-limit is re-read on SIGHUP.
type alarmSwitch string

func newAlarmSwitch(t *testing.T) alarmSwitch {
	return alarmSwitch(filepath.Join(t.TempDir(), "ringmq.toml"))
}

func (s alarmSwitch) write(t *testing.T, limit string) {
	t.Helper()
	if err := os.WriteFile(string(s), fmt.Appendf(nil, "disk-free-limit = %q\n", limit), 0o600); err != nil {
		t.Fatal(err)
	}
}

// set changes the limit of a running broker and waits until it holds.
func (s alarmSwitch) set(t *testing.T, b *harness.Broker, limit string, up float64) {
	t.Helper()
	s.write(t, limit)
	if err := syscall.Kill(b.PID, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the alarm changes", func() bool {
		m, err := b.Metrics()
		return err == nil && m["ringmq_alarm"] == up
	})
}

// connectionState is the state in the listing of the only connection of that name.
func connectionState(t *testing.T, b *harness.Broker, name string) string {
	t.Helper()
	_, body, err := b.Get("/api/connections")
	var list []struct {
		Name  string `json:"user_provided_name"`
		State string `json:"state"`
	}
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Name == name {
			return c.State
		}
	}
	return ""
}

func dialNamed(t *testing.T, b *harness.Broker, name string) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	conn, err := amqp.DialConfig(b.URL(), amqp.Config{Properties: amqp.Table{"connection_name": name}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, must[*amqp.Channel](t)(conn.Channel())
}

// TestAlarmBlocksPublishers: while an alarm is up a publisher is told and stopped, a consumer goes on to get and
// acknowledge; when it clears, what the publisher sent arrives once and is confirmed (CON-21, spec/amqp091.md C.8).
func TestAlarmBlocksPublishers(t *testing.T) {
	limit := newAlarmSwitch(t)
	limit.write(t, "0")
	harness.ForEachBackendAlone(t, harness.Options{Args: []string{"--config", string(limit)}}, func(t *testing.T, b *harness.Broker) {
		limit.set(t, b, "0", 0)
		pubConn, pub := dialNamed(t, b, "publisher")
		_, con := dialNamed(t, b, "consumer")
		blockings := pubConn.NotifyBlocked(make(chan amqp.Blocking, 4))
		q := must[amqp.Queue](t)(con.QueueDeclare(unique("q"), false, false, false, false, nil))
		if err := pub.Confirm(false); err != nil {
			t.Fatal(err)
		}
		publish := func(body string) *amqp.DeferredConfirmation {
			return must[*amqp.DeferredConfirmation](t)(pub.PublishWithDeferredConfirmWithContext(t.Context(), "", q.Name, false, false, amqp.Publishing{Body: []byte(body)}))
		}
		for _, body := range []string{"1", "2"} {
			if ok, err := publish(body).WaitContext(t.Context()); !ok || err != nil {
				t.Fatalf("confirm %v, %v", ok, err)
			}
		}

		limit.set(t, b, diskHuge, 1)
		if got := await(t, "blocked", blockings); !got.Active || got.Reason != "low on disk" {
			t.Errorf("notice %+v", got)
		}
		if got := connectionState(t, b, "publisher"); got != "blocking" {
			t.Errorf("the publisher is %q", got)
		}
		blocked := publish("3")
		eventually(t, "the publisher is blocked", func() bool { return connectionState(t, b, "publisher") == "blocked" })
		in := must[<-chan amqp.Delivery](t)(con.Consume(q.Name, "", false, false, false, false, nil))
		for _, want := range []string{"1", "2"} {
			d := await(t, "delivery", in)
			if string(d.Body) != want {
				t.Errorf("got %q, want %q", d.Body, want)
			}
			if err := d.Ack(false); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the acks count", func() bool {
			m, err := b.Metrics()
			return err == nil && m["ringmq_messages_unacknowledged"] == 0 && m["ringmq_messages_acknowledged_total"] == 2
		})
		if got := connectionState(t, b, "consumer"); got != "running" {
			t.Errorf("the consumer is %q", got)
		}

		limit.set(t, b, "0", 0)
		if got := await(t, "unblocked", blockings); got.Active {
			t.Errorf("notice %+v", got)
		}
		if ok, err := blocked.WaitContext(t.Context()); !ok || err != nil {
			t.Errorf("confirm %v, %v", ok, err)
		}
		if d := await(t, "delivery", in); string(d.Body) != "3" || d.Redelivered {
			t.Errorf("got %+v", d)
		}
	})
}

// TestAlarmFromTheStart: a broker that starts with an alarm up is ready, says so, and blocks the first publish;
// whoever does not publish is served; a drain is not held up.
func TestAlarmFromTheStart(t *testing.T) {
	harness.ForEachBackendAlone(t, harness.Options{Args: []string{"--disk-free-limit", diskHuge}}, func(t *testing.T, b *harness.Broker) {
		if status, body, err := b.Get("/health"); err != nil || status != 200 {
			t.Errorf("health %d, %v: %s", status, err, body)
		}
		conn, ch := dialNamed(t, b, "early")
		blockings := conn.NotifyBlocked(make(chan amqp.Blocking, 4))
		q := must[amqp.Queue](t)(ch.QueueDeclare(unique("q"), false, false, false, false, nil))
		if err := ch.PublishWithContext(t.Context(), "", q.Name, false, false, amqp.Publishing{Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if got := await(t, "blocked", blockings); !got.Active || got.Reason != "low on disk" {
			t.Errorf("notice %+v", got)
		}
		_, other := dialNamed(t, b, "other")
		if got := must[amqp.Queue](t)(other.QueueDeclarePassive(q.Name, false, false, false, false, nil)); got.Messages != 0 {
			t.Errorf("%d messages came through", got.Messages)
		}
		closed := conn.NotifyClose(make(chan *amqp.Error, 1))
		if err := b.Stop(); err != nil {
			t.Fatalf("stop: %v\n%s", err, b.Output())
		}
		if e := await(t, "close", closed); e.Code != amqp.ConnectionForced {
			t.Errorf("closed by %v", e)
		}
	})
}
