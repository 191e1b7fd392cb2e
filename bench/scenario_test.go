package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary stand in for the server that the bench starts
// when it is given no URL.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(serveFake(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// serveFake is the fake broker as a process, with a counters page.
func serveFake(args []string) int {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	if flags["--fail"] != "" {
		fmt.Fprintln(os.Stderr, "refusing to serve")
		return 3
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	web, err := net.Listen("tcp", flags["--http"])
	if err != nil {
		return 1
	}
	go http.Serve(web, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `ringmq_info{version="0.1",io="epoll",sync="always"} 1`)
		fmt.Fprintln(w, `ringmq_loop_enters_total{loop="0"} 10`)
		fmt.Fprintln(w, `ringmq_messages_published_total 7`)
	}))
	l, err := net.Listen("tcp", flags["--listen"])
	if err != nil {
		return 1
	}
	b := newFakeBroker(l)
	<-stop
	b.stop()
	return 0
}

// tiny are the flags that make any scenario short.
var tiny = []string{"--quiet", "-z", "40ms", "--warmup", "10ms", "--settle", "0",
	"--max-lag", "2000", "--batch-bytes", "4096"}

// benchmark runs Main and returns its exit code and outputs.
func benchmark(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(append(args, tiny...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestEveryScenarioRuns(t *testing.T) {
	cases := []struct {
		name string
		args []string
		want []string // in the report
	}{
		{"hello", []string{"hello"}, []string{"FakeMQ 1.2.3", `"hello from ringmq bench" went through`}},
		{"auto-ack", []string{"throughput", "-x", "2", "-y", "2", "-q", "q-{1..2}"}, []string{"2 producers", "16 B", "auto-ack", "delivered msg/s"}},
		{"ack every", []string{"throughput", "-a", "10", "-s", "0,16,300000"}, []string{"ack every 10, prefetch 1000"}},
		{"ack per read", []string{"throughput", "--ack-every", "read", "-P", "50"}, []string{"ack per read, prefetch 50"}},
		{"ack each", []string{"throughput", "--ack-every", "1"}, []string{"ack every 1"}},
		{"confirms only", []string{"throughput", "-c", "10", "-y", "0", "-p", "-s", "1024"}, []string{"confirm p99.9 us", "persistent", "confirmed msg/s"}},
		{"paced", []string{"throughput", "-r", "5000"}, []string{"5,000 msg/s open loop"}},
		{"paced confirms", []string{"latency", "-r", "5000", "-c", "100"}, []string{"confirm p50 us", "latency p99.9 us"}},
		{"latency", []string{"latency", "-x", "2", "-r", "4000", "-s", "1"}, []string{"latency p50 us", "pacing error p99 us", "8 B"}},
		{"fanout", []string{"fanout"}, []string{"10 consumers, 10 queues"}},
		{"topic", []string{"topic", "--bindings", "20"}, []string{"20 bindings"}},
		{"idle", []string{"idle", "-n", "20"}, []string{"20 connections", "memory per connection KiB"}},
		{"churn", []string{"churn", "-n", "2"}, []string{"connection open+close /s", "channel open+close p99 us", "queue declare+delete server CPU us"}},
		{"soak", []string{"soak", "-C", "3001", "-n", "6"}, []string{"lost msg", "3001 messages"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := startFakeBroker(t)
			code, stdout, stderr := benchmark(append(c.args, "--url", b.url())...)
			if code != exitOK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("report lacks %q:\n%s", want, stdout)
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.queues)+len(b.exchanges) != 0 {
				t.Errorf("left behind: %d queues, %d exchanges", len(b.queues), len(b.exchanges))
			}
		})
	}
}

func TestAllScenario(t *testing.T) {
	b := startFakeBroker(t)
	code, stdout, stderr := benchmark("all", "--quick", "-n", "20", "--bindings", "50", "--url", b.url())
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, s := range allSteps(&Options{}) {
		if !strings.Contains(stdout, s.title+": ") {
			t.Errorf("report lacks %q", s.title)
		}
	}
}

func TestPairedRunAlternates(t *testing.T) {
	a, b := startFakeBroker(t), startFakeBroker(t)
	file := filepath.Join(t.TempDir(), "out.json")
	code, stdout, stderr := benchmark("throughput", "--url", a.url(), "--vs", b.url(), "--rounds", "2", "--json", file)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if !strings.Contains(stdout, "ratio A/B") {
		t.Errorf("no ratio in:\n%s", stdout)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Medians) != 2 || len(d.Rounds) != 4 || len(d.Environment.Brokers) != 2 {
		t.Fatalf("%d medians, %d rounds, %d brokers", len(d.Medians), len(d.Rounds), len(d.Environment.Brokers))
	}
	for i, want := range []int{1, 1, 2, 2} {
		if d.Rounds[i].Round != want {
			t.Errorf("result %d is of round %d, want %d: sides must take turns", i, d.Rounds[i].Round, want)
		}
	}
	if d.Rounds[0].find("delivered", "msg/s").Value == nil {
		t.Error("no delivery rate in the JSON")
	}
}

func TestStartsItsOwnServer(t *testing.T) {
	code, stdout, stderr := benchmark("throughput", "--json", "-")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var d document
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatalf("standard output is not JSON alone: %v\n%s", err, stdout)
	}
	r := d.Medians[0]
	if r.Sync != "always" || r.Broker != "ringmq 0.1 epoll" {
		t.Errorf("broker %q, sync mode %q, want both from the counters page", r.Broker, r.Sync)
	}
	if enters := r.find("kernel entries", "/msg"); enters == nil || enters.Value == nil || *enters.Value != 0 {
		t.Errorf("kernel entries: the page is constant, want 0 per message, got %+v", enters)
	}
	if cpu := r.find("server CPU", "us/msg"); cpu == nil || cpu.Value == nil {
		t.Error("no CPU figure for a server that we started")
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	code, _, stderr := benchmark("hello", "--server-arg=--fail", "--server-arg=yes")
	if code != exitFailed || !strings.Contains(stderr, "refusing to serve") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
}

func TestBrokerRefusals(t *testing.T) {
	b := startFakeBroker(t)
	cases := []struct {
		name string
		args []string
		want string
	}{
		{"vhost", []string{"hello", "--url", b.url() + "/nowhere"}, "530: vhost nowhere not found"},
		{"publish", []string{"throughput", "-q", "forbidden", "--url", b.url()}, "403: ACCESS_REFUSED - no"},
		{"confirmed publish", []string{"throughput", "-q", "forbidden", "-c", "5", "--url", b.url()}, "403: ACCESS_REFUSED - no"},
		{"nobody there", []string{"hello", "--url", "amqp://127.0.0.1:1"}, "connection refused"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			args := append(c.args, "-z", "20s")
			var out, errs bytes.Buffer
			code := Main(append(args, "--quiet", "--warmup", "20s"), &out, &errs)
			if code != exitFailed || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d, want %q in: %s", code, c.want, errs.String())
			}
		})
	}
}

func TestIdleCloseIsClean(t *testing.T) {
	b := startFakeBroker(t)
	tg, err := connectTarget(context.Background(), b.url(), 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if tg.pid != os.Getpid() {
		t.Errorf("listening process %d, want this one, %d", tg.pid, os.Getpid())
	}
	conns, err := openMany(context.Background(), tg, 40, 4)
	if err != nil || len(conns) != 40 {
		t.Fatalf("%d connections: %v", len(conns), err)
	}
	closeMany(conns)
	if _, err := conns[0].call(1, channelOpen, []byte{0}, channelOpenOk); err == nil {
		t.Error("a closed connection still answers")
	}
}
