package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"ringmq/test/harness"
)

// definitionsFile is what another broker of this protocol exports, cut down.
const definitionsFile = `{"rabbit_version":"3.13.1","rabbitmq_version":"3.13.1","product_name":"RabbitMQ",
"users":[{"name":"guest","password_hash":"aGFzaA==","hashing_algorithm":"rabbit_password_hashing_sha256","tags":["administrator"],"limits":{}}],
"vhosts":[{"name":"/","metadata":{"description":"Default virtual host","tags":[]}},{"name":"defs"}],
"permissions":[{"user":"guest","vhost":"/","configure":".*","write":".*","read":".*"}],"topic_permissions":[],
"parameters":[{"vhost":"/","component":"operator_policy","name":"o","value":{"pattern":"^defs","definition":{"max-length":4},"apply-to":"queues","priority":0}},
  {"vhost":"defs","component":"vhost-limits","name":"limits","value":{"max-connections":1}}],
"global_parameters":[{"name":"internal_cluster_id","value":"rabbitmq-cluster-id-x"}],
"policies":[{"vhost":"/","name":"p","pattern":"^defs\\.x$","apply-to":"exchanges","definition":{"alternate-exchange":"defs.ae"},"priority":0}],
"queues":[{"name":"defs.q","vhost":"/","durable":true,"auto_delete":false,"arguments":{"x-max-length":10,"x-overflow":"drop-head"}},
  {"name":"defs.quorum","vhost":"/","durable":true,"auto_delete":false,"arguments":{"x-queue-type":"quorum","x-delivery-limit":3}},
  {"name":"defs.lost","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
"exchanges":[{"name":"defs.x","vhost":"/","type":"headers","durable":true,"auto_delete":false,"internal":false,"arguments":{}},
  {"name":"defs.ae","vhost":"/","type":"fanout","durable":true,"auto_delete":false,"internal":false,"arguments":{}}],
"bindings":[{"source":"defs.x","vhost":"/","destination":"defs.q","destination_type":"queue","routing_key":"","arguments":{"x-match":"all","n":7,"t":"text"}},
  {"source":"defs.ae","vhost":"/","destination":"defs.lost","destination_type":"queue","routing_key":"","arguments":{}}]}`

// DEF-01, DEF-02, DEF-03, DEF-04, CLI-01: a file is in force when the first client comes, means what the same declares
// of a client mean, and its export makes another broker the same.
func TestDefinitionsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "definitions.json")
	if err := os.WriteFile(file, []byte(definitionsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.ForEachBackendAlone(t, harness.Options{Args: []string{"--load-definitions", file}}, func(t *testing.T, b *harness.Broker) {
		useDefinitions(t, b)
		out := filepath.Join(t.TempDir(), "exported.json")
		b.Ctl(t, "export_definitions", out)
		copied := harness.Start(t, harness.Options{Backend: b.Backend})
		if got := copied.Ctl(t, "import_definitions", out); !strings.HasPrefix(got, "imported, or there already: ") {
			t.Error(got)
		}
		useDefinitions(t, copied)
		if first, second := b.Ctl(t, "export_definitions", "-"), copied.Ctl(t, "export_definitions", "-"); first != second {
			t.Errorf("the copy exports\n%s\nwant\n%s", second, first)
		}
	})
}

// useDefinitions shows that what the file says is in force.
func useDefinitions(t *testing.T, b *harness.Broker) {
	t.Helper()
	conn, ch := dialGo(t, b)
	all(t,
		// Equal to what clients declare.
		declare(ch, "defs.q", true, false, false, amqp.Table{"x-max-length": int32(10), "x-overflow": "drop-head"}),
		declare(ch, "defs.quorum", true, false, false, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(3)}),
		ch.ExchangeDeclare("defs.x", "headers", true, false, false, false, nil),
		ch.QueueUnbind("defs.q", "", "defs.x", amqp.Table{"x-match": "all", "n": int32(8), "t": "text"}), // another one
		ch.Confirm(false),
	)
	acks := ch.NotifyPublish(make(chan amqp.Confirmation, 16))
	for range 6 {
		all(t,
			ch.PublishWithContext(t.Context(), "defs.x", "", true, false, amqp.Publishing{Headers: amqp.Table{"n": int16(7), "t": "text"}}),
			ch.PublishWithContext(t.Context(), "defs.x", "", true, false, amqp.Publishing{}),
		)
	}
	for range 12 {
		if c := await(t, "a confirm", acks); !c.Ack {
			t.Error("refused")
		}
	}
	for queue, want := range map[string]int{"defs.q": 4, "defs.lost": 4, "defs.quorum": 0} { // the operator's limit
		q := must[amqp.Queue](t)(ch.QueueDeclarePassive(queue, true, false, false, false, nil))
		if q.Messages != want {
			t.Errorf("%s has %d messages, want %d", queue, q.Messages, want)
		}
		must[int](t)(ch.QueuePurge(queue, false))
	}
	err := each(t, conn, func(ch *amqp.Channel) error { return declare(ch, "defs.q", true, false, false, nil) })
	if !isCode(err, amqp.PreconditionFailed) {
		t.Errorf("declared otherwise than in the file: %v", err)
	}
	first := must[*amqp.Connection](t)(amqp.Dial("amqp://guest:guest@" + b.Addr + "/defs"))
	if second, err := amqp.Dial("amqp://guest:guest@" + b.Addr + "/defs"); err == nil {
		second.Close()
		t.Error("a second connection to a vhost with a limit of 1")
	}
	all(t, first.Close(), conn.Close())
	// The list says which policy governs what.
	var lines []string
	for line := range strings.Lines(b.Ctl(t, "queue", "list")) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{"/ defs.lost 0 0 0 0 classic - o", "/ defs.quorum 0 0 0 0 quorum - o"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q in %q", want, lines)
		}
	}
}
