package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		{"confirm one", []string{"confirm"}, []string{"1 unconfirmed in all", "confirm p50 us", "bare pwrite+fdatasync p50 us", "bare loopback p99 us",
			"confirm p50 / (best bare sync p50 + loopback p50), goal at most 1.30", "4096 octets per sync"}},
		{"confirm many", []string{"confirm", "--window", "100", "-s", "100"}, []string{"100 unconfirmed in all, 4 producers", "confirm window 25",
			"bare pwrite+fdatasync records/s", "confirmed / bare pwrite+fdatasync, goal at least 0.27", "28672 octets per sync"}},
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

func TestRecoveryScenario(t *testing.T) {
	cases := []struct {
		name string
		args []string
		want []string
	}{
		{"killed", nil, []string{"2,001 messages confirmed, then 2 times kill -9", "recovery / bare reader, goal at least 0.70", "messages recovered msg/s"}},
		{"stopped", []string{"--clean-stop"}, []string{"an orderly stop", "files read by a bare reader MB/s"}},
		{"acknowledged", []string{"--acked"}, []string{"2,001 messages acknowledged", "ready after s, goal at most 5.00", "came back msg"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"recovery", "-C", "2001", "-s", "100", "--restarts", "2", "-x", "2", "--data-dir", dir}, c.args...)
			code, stdout, stderr := benchmark(args...)
			if code != exitOK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("report lacks %q:\n%s", want, stdout)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

func TestRecoveryFindsLosses(t *testing.T) {
	code, _, stderr := benchmark("recovery", "-C", "500", "-s", "16", "--server-arg=--forget", "--server-arg=3")
	if code != exitFailed || !strings.Contains(stderr, "500 messages were confirmed, 497 are there after the restart") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
}

func TestBigqueueScenario(t *testing.T) {
	for _, kind := range []string{"persistent", "transient"} {
		t.Run(kind, func(t *testing.T) {
			code, stdout, stderr := benchmark("bigqueue", "--memory-limit", "1MiB", "--factor", "1.5", fmt.Sprintf("--transient=%v", kind == "transient"))
			if code != exitOK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			for _, want := range []string{"1,536 messages into a server of 1 MiB", kind, "fill msg/s", "drain server CPU us/msg",
				"--memory-limit 1048576", "resident at most / limit, goal at most 1.10"} {
				if !strings.Contains(stdout, want) {
					t.Errorf("report lacks %q:\n%s", want, stdout)
				}
			}
		})
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
