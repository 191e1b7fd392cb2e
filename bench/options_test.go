package bench

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestOptionsRefused(t *testing.T) {
	cases := []struct {
		args []string
		want string
	}{
		{nil, "scenario"},
		{[]string{"dance"}, "dance"},
		{[]string{"hello", "--no-such-flag"}, "no-such-flag"},
		{[]string{"throughput", "--auto-ack", "--ack-every", "3"}, "exclude"},
		{[]string{"throughput", "--ack-every", "often"}, "often"},
		{[]string{"throughput", "-q", "q-{1..x}"}, "queue pattern"},
		{[]string{"throughput", "-q", "q-{9..1}"}, "go up"},
		{[]string{"throughput", "-z", "0"}, "--duration"},
		{[]string{"throughput", "-s", "-1"}, "--size"},
		{[]string{"throughput", "-P", "70000"}, "16 bit"},
		{[]string{"throughput", "--vs-pid", "3"}, "--vs"},
		{[]string{"throughput", "--queue-args", "{"}, "--queue-args"},
		{[]string{"confirm", "--window", "0"}, "--window"},
		{[]string{"confirm", "--window", "3", "-x", "4"}, "each needs at least one"},
		{[]string{"confirm", "-s", "16,1024"}, "one --size"},
		{[]string{"recovery", "--url", "amqp://"}, "neither --url nor --vs"},
		{[]string{"bigqueue", "--vs", "rabbitmq"}, "neither --url nor --vs"},
		{[]string{"bigqueue", "--memory-limit", "much"}, "256MiB"},
		{[]string{"recovery", "--restarts", "0"}, "--restarts"},
		{[]string{"recovery", "-C", "-1"}, "--messages"},
	}
	for _, c := range cases {
		var out, errs bytes.Buffer
		if code := Main(c.args, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: exit code %d, want %q in %q", c.args, code, c.want, errs.String())
		}
	}
}

func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"--help"}, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, want := range []string{"--ack-every", "--vs", "throughput"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help lacks %q", want)
		}
	}
}

func TestOptionsRead(t *testing.T) {
	o, err := parseOptions([]string{"throughput", "-z", "10", "--warmup", "1.5s", "-x", "3", "-y", "0", "-s", "16,1024",
		"-a", "100", "-u", "q-{8..10}", "--queue-args", `{"x-max-length":5}`, "--vs", "amqp://b"}, &bytes.Buffer{}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if time.Duration(o.Duration) != 10*time.Second || time.Duration(o.Warmup) != 1500*time.Millisecond {
		t.Errorf("times %v, %v", time.Duration(o.Duration), time.Duration(o.Warmup))
	}
	if o.Producers != 3 || o.Consumers != 0 || !reflect.DeepEqual(o.Sizes, []int{16, 1024}) || o.ackEvery != 100 || o.Rounds != 3 {
		t.Errorf("%+v", o)
	}
	if got := o.queues("none"); !reflect.DeepEqual(got, []string{"q-8", "q-9", "q-10"}) {
		t.Errorf("queues %v", got)
	}
	if o.prefetch() != 1000 || o.queueArgs["x-max-length"] != 5.0 {
		t.Errorf("prefetch %d, arguments %v", o.prefetch(), o.queueArgs)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "123": 123, "64KiB": 65536, "256MiB": 256 << 20, "2 GiB": 2 << 30, "1kB": 1000, "3GB": 3e9} {
		var n byteSize
		if err := n.UnmarshalText([]byte(text)); err != nil || n != want {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
	}
	for _, bad := range []string{"", "-1", "MiB", "1.5GiB", "9999999999GiB", "7 miles"} {
		var n byteSize
		if err := n.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %d", bad, n)
		}
	}
}

func TestConfirmShares(t *testing.T) {
	for _, c := range []struct{ window, asked, want int }{{1, 0, 1}, {2, 0, 2}, {1000, 0, 4}, {1000, 1, 1}} {
		o := &Options{Window: c.window, Producers: c.asked}
		if got := o.confirmProducers(); got != c.want {
			t.Errorf("window %d, %d producers asked for: %d, want %d", c.window, c.asked, got, c.want)
		}
	}
}

func TestQuotasAddUp(t *testing.T) {
	for _, c := range []struct {
		total int64
		count int
		want  []int64
	}{{10, 4, []int64{3, 3, 2, 2}}, {8, 2, []int64{4, 4}}, {1, 3, []int64{1, 0, 0}}} {
		for i, want := range c.want {
			if got := quota(c.total, i, c.count); got != want {
				t.Errorf("%d over %d: producer %d gets %d, want %d", c.total, c.count, i, got, want)
			}
		}
	}
}

func TestParseURL(t *testing.T) {
	cases := []struct {
		url  string
		want endpoint
	}{
		{"amqp://", endpoint{"127.0.0.1:5672", "guest", "guest", "/"}},
		{"amqp://h:1/%2f", endpoint{"h:1", "guest", "guest", "/"}},
		{"amqp://u:p%40@[::1]:9/v", endpoint{"[::1]:9", "u", "p@", "v"}},
	}
	for _, c := range cases {
		if got, err := parseURL(c.url); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.url, got, err)
		}
	}
	for _, bad := range []string{"amqps://h", "http://h", "amqp://h:port"} {
		if _, err := parseURL(bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestShare(t *testing.T) {
	items := []string{"a", "b", "c", "d", "e"}
	cases := []struct {
		index, count int
		want         []string
	}{{0, 1, items}, {1, 2, []string{"b", "d"}}, {6, 7, []string{"b"}}, {4, 5, []string{"e"}}}
	for _, c := range cases {
		if got := share(items, c.index, c.count); !reflect.DeepEqual(got, c.want) {
			t.Errorf("share %d of %d: %v, want %v", c.index, c.count, got, c.want)
		}
	}
}

func TestSoakBookFindsFaults(t *testing.T) {
	b := newSoakBook(10, 3) // quotas 4, 4, 2
	if b.quota(0) != 4 || b.quota(1) != 4 || b.quota(2) != 2 || b.quota(3) != 0 {
		t.Fatalf("quotas %d %d %d", b.quota(0), b.quota(1), b.quota(2))
	}
	for producer := range 3 {
		stamp := b.stamper(producer)
		for n := range b.quota(producer) {
			b.seen([]uint64{stamp(n)})
		}
	}
	if err := b.verdict(10); err != nil {
		t.Errorf("a perfect run: %v", err)
	}
	b.seen([]uint64{b.stamper(1)(2), b.stamper(2)(2), b.stamper(0)(4), b.stamper(9)(0)})
	if b.twice.Load() != 1 || b.foreign.Load() != 3 {
		t.Errorf("%d twice, %d foreign, want 1 and 3", b.twice.Load(), b.foreign.Load())
	}
	lost := newSoakBook(10, 3)
	lost.seen([]uint64{lost.stamper(0)(0)})
	if lost.missing() != 9 || lost.verdict(10) == nil {
		t.Errorf("%d missing, want 9", lost.missing())
	}
}
