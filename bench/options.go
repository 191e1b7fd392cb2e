package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// seconds is a duration that also takes a bare number, because `-z 10` is what
// fingers know from other tools.
type seconds time.Duration

// UnmarshalText reads "10", "1.5" (seconds) or any Go duration.
func (s *seconds) UnmarshalText(text []byte) error {
	if f, err := strconv.ParseFloat(string(text), 64); err == nil {
		*s = seconds(f * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(string(text))
	*s = seconds(d)
	return err
}

// byteSize is a number of octets that may end in a unit, as the server's own
// sizes do.
type byteSize int64

// byteUnits: the longer ending stands before one that it contains.
var byteUnits = []struct {
	text  string
	bytes int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"", 1},
}

// UnmarshalText reads "1000", "64KiB", "1GB".
func (n *byteSize) UnmarshalText(text []byte) error {
	for _, unit := range byteUnits {
		digits, ok := strings.CutSuffix(string(text), unit.text)
		if !ok {
			continue
		}
		count, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || count < 0 || count > 1<<62/unit.bytes {
			break
		}
		*n = byteSize(count * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q: want something like 256MiB", text)
}

// Options are the flags of `ringmq bench`. Zero values of the load flags mean
// "what the scenario is by default"; see scenarioDefaults.
type Options struct {
	Scenario string `arg:"" enum:"hello,throughput,latency,fanout,topic,idle,churn,soak,confirm,recovery,bigqueue,all" help:"What to run: hello, throughput, latency, fanout, topic, idle, churn, soak, confirm, recovery, bigqueue or all."`

	URL       string   `name:"url" group:"Server" placeholder:"amqp://guest:guest@127.0.0.1:5672" help:"Broker to load. Without it this binary's own server is started on a free port for the run, and stopped."`
	PID       int      `name:"pid" group:"Server" help:"Process of the server, for its CPU and memory. Found from the listening socket on loopback."`
	Counters  string   `name:"counters" group:"Server" help:"Metrics page of the server. Default: port 15672 of the same host."`
	Binary    string   `name:"server-bin" group:"Server" help:"Binary to start instead of this one."`
	ServerArg []string `name:"server-arg" group:"Server" sep:"none" help:"Further argument for the started server; may be repeated."`

	DataDir string `name:"data-dir" group:"Server" help:"Folder in which started servers and the bare disk loops keep their files. Default: where temporary files go. What a disk is measured on must be one."`

	VS         string `name:"vs" group:"Paired run" help:"Second broker: an amqp:// URL, or rabbitmq to start an installed one. Rounds alternate."`
	VSPID      int    `name:"vs-pid" group:"Paired run" help:"Process of the second server."`
	VSCounters string `name:"vs-counters" group:"Paired run" help:"Metrics page of the second server."`
	Rounds     int    `name:"rounds" group:"Paired run" help:"Rounds per side; medians are reported. Default 1, with --vs 3."`

	Producers  int     `name:"producers" short:"x" group:"Load" help:"Publishing connections."`
	Consumers  int     `name:"consumers" short:"y" group:"Load" default:"-1" help:"Consuming connections."`
	Sizes      []int   `name:"size" short:"s" group:"Load" help:"Body size in octets; several, separated by commas, are mixed."`
	Queues     string  `name:"queues" short:"q" group:"Load" aliases:"queue" help:"Queue name, or a pattern such as perf-{1..4}."`
	QueuesU    string  `name:"queue-u" short:"u" hidden:""`
	QueueArgs  string  `name:"queue-args" group:"Load" help:"Queue arguments as JSON, for example {\"x-queue-type\":\"quorum\"}."`
	AutoAck    bool    `name:"auto-ack" group:"Load" help:"Consume without acknowledgements (the default)."`
	AckEvery   string  `name:"ack-every" short:"a" group:"Load" help:"Acknowledge every N deliveries (multiple), or 'read': once per socket read. 0 is auto-ack."`
	Confirm    int     `name:"confirm" short:"c" group:"Load" help:"Publisher confirms with at most this many outstanding per producer."`
	Persistent bool    `name:"persistent" short:"p" group:"Load" help:"Durable queues and persistent messages."`
	Prefetch   int     `name:"prefetch" short:"P" group:"Load" default:"-1" help:"Unacknowledged deliveries per consumer; 0 is no limit. Default: ten times --ack-every, at least 1000."`
	Rate       float64 `name:"rate" short:"r" group:"Load" help:"Messages per second over all producers, open loop."`
	MaxLag     int64   `name:"max-lag" group:"Load" help:"Producers pause while this many messages are published and not delivered. 0: they never wait."`
	BatchBytes int     `name:"batch-bytes" group:"Load" default:"131072" help:"Octets of publishes per write."`
	Mandatory  bool    `name:"mandatory" group:"Load" help:"Set the mandatory bit."`

	Duration seconds `name:"duration" short:"z" group:"Load" default:"6s" help:"Measured time."`
	Warmup   seconds `name:"warmup" group:"Load" default:"2s" help:"Time under load before measuring."`
	Settle   seconds `name:"settle" group:"Load" default:"500ms" help:"Pause between runs."`

	Bindings    int      `name:"bindings" group:"Scenario" default:"1000" help:"topic: bindings of the exchange."`
	Connections int      `name:"connections" short:"n" group:"Scenario" help:"idle: connections to open (1000). soak: connections (16). churn: parallel workers (4)."`
	Messages    int64    `name:"messages" short:"C" group:"Scenario" help:"Messages in total. soak: 1000000. recovery: 5000000, with --acked 10000000."`
	Sources     int      `name:"sources" group:"Scenario" default:"8" help:"idle: loopback source addresses to spread over."`
	SpinMax     seconds  `name:"spin-max" group:"Scenario" default:"20us" help:"latency: longest busy wait before a send; 0 only sleeps."`
	Window      int      `name:"window" group:"Scenario" default:"1" help:"confirm: publishes outstanding in all, over all producers."`
	Acked       bool     `name:"acked" group:"Scenario" help:"recovery: consume and acknowledge the messages before the restart."`
	CleanStop   bool     `name:"clean-stop" group:"Scenario" help:"recovery: stop the server in order instead of killing it."`
	Restarts    int      `name:"restarts" group:"Scenario" default:"3" help:"recovery: restarts for each fill; medians are reported."`
	MemoryLimit byteSize `name:"memory-limit" group:"Scenario" default:"256MiB" help:"bigqueue: what the server is told."`
	Factor      float64  `name:"factor" group:"Scenario" default:"10" help:"bigqueue: bodies to queue, as a multiple of --memory-limit."`
	Transient   bool     `name:"transient" group:"Scenario" help:"bigqueue: transient messages instead of persistent ones."`
	Quick       bool     `name:"quick" group:"Scenario" help:"all: a fast pass over the set (1 s each) to see that it works."`

	JSON  string `name:"json" group:"Output" help:"Write the results to this file as JSON ('-': standard output)."`
	Seed  int64  `name:"seed" group:"Output" default:"1" help:"Seed of bodies, keys and orders."`
	Quiet bool   `name:"quiet" group:"Output" help:"No progress lines."`

	ackEvery  int // 0 auto-ack, ackPerRead, or N
	queueArgs map[string]any
}

// ackPerRead is ackEvery for one multiple ack per socket read.
const ackPerRead = -1

var errHelp = errors.New("help was asked for")

// parseOptions reads args. errHelp means that help was printed to stdout.
func parseOptions(args []string, stdout, stderr io.Writer) (o *Options, err error) {
	o = &Options{}
	helped := false
	parser, err := kong.New(o, kong.Name("ringmq bench"),
		kong.Description("Loads any AMQP 0-9-1 broker and reports rates, latency and what a message costs the server."),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true; panic(errHelp) }))
	if err != nil {
		return nil, err
	}
	defer func() {
		// kong's help flag ends in Exit, which must not end our caller.
		if helped {
			_ = recover()
			o, err = nil, errHelp
		}
	}()
	if _, err := parser.Parse(args); err != nil {
		return nil, err
	}
	return o, o.finish()
}

// finish checks what the tags cannot and fills the derived fields.
func (o *Options) finish() error {
	if o.QueuesU != "" {
		o.Queues = o.QueuesU
	}
	switch o.AckEvery {
	case "", "0":
	case "read":
		o.ackEvery = ackPerRead
	default:
		n, err := strconv.Atoi(o.AckEvery)
		if err != nil || n < 0 {
			return fmt.Errorf("--ack-every %q: want a number or 'read'", o.AckEvery)
		}
		o.ackEvery = n
	}
	if o.AutoAck && o.ackEvery != 0 {
		return errors.New("--auto-ack and --ack-every exclude each other")
	}
	if o.QueueArgs != "" {
		if err := json.Unmarshal([]byte(o.QueueArgs), &o.queueArgs); err != nil {
			return fmt.Errorf("--queue-args: %w", err)
		}
	}
	if o.VS == "" && (o.VSPID != 0 || o.VSCounters != "") {
		return errors.New("--vs-pid and --vs-counters need --vs")
	}
	if o.Rounds == 0 {
		o.Rounds = 1
		if o.VS != "" {
			o.Rounds = 3
		}
	}
	if o.ownsServer() && (o.URL != "" || o.VS != "") {
		return fmt.Errorf("%s restarts or configures the server: it takes neither --url nor --vs", o.Scenario)
	}
	return o.check()
}

// ownsServer reports whether the scenario needs a server that the bench starts.
func (o *Options) ownsServer() bool { return o.Scenario == "recovery" || o.Scenario == "bigqueue" }

// serverArgs are the arguments of a started server, besides addresses and folder.
func (o *Options) serverArgs() []string {
	args := append([]string(nil), o.ServerArg...)
	if o.Scenario == "bigqueue" {
		args = append(args, "--memory-limit", strconv.FormatInt(int64(o.MemoryLimit), 10))
	}
	return args
}

func (o *Options) check() error {
	switch {
	case o.Rounds < 0 || o.Producers < 0 || o.Confirm < 0 || o.Rate < 0 || o.Connections < 0:
		return errors.New("counts and rates cannot be negative")
	case o.Duration <= 0:
		return errors.New("--duration must be positive")
	case o.BatchBytes < 1 || o.BatchBytes > 64<<20:
		return errors.New("--batch-bytes must be between 1 and 64 MiB")
	case o.Prefetch > 65535:
		return errors.New("--prefetch is a 16 bit number")
	case o.Bindings < 1 || o.Messages < 0 || o.Sources < 1 || o.Sources > 250:
		return errors.New("--bindings must be positive, --messages not negative, --sources between 1 and 250")
	case o.Window < 1 || o.Restarts < 1 || o.Factor <= 0 || o.MemoryLimit < 1:
		return errors.New("--window, --restarts, --factor and --memory-limit must be positive")
	case o.Scenario == "confirm" && o.Window < o.confirmProducers():
		return errors.New("--window is shared by all --producers: each needs at least one")
	case len(o.Sizes) > 1 && (o.Scenario == "confirm" || o.ownsServer()):
		return fmt.Errorf("%s takes one --size", o.Scenario)
	}
	for _, size := range o.Sizes {
		if size < 0 || size > 128<<20 {
			return errors.New("--size must be between 0 and 128 MiB")
		}
	}
	_, err := expandNames(o.Queues)
	return err
}

// prefetch is the limit to set for manual acknowledgement.
func (o *Options) prefetch() int {
	if o.Prefetch >= 0 {
		return o.Prefetch
	}
	return min(max(1000, 10*o.ackEvery), 65535)
}

var rangePattern = regexp.MustCompile(`^(.*)\{(\d+)\.\.(\d+)\}(.*)$`)

// expandNames turns perf-{1..3} into its names; one range at most.
func expandNames(pattern string) ([]string, error) {
	m := rangePattern.FindStringSubmatch(pattern)
	if m == nil {
		if strings.ContainsAny(pattern, "{}") {
			return nil, fmt.Errorf("queue pattern %q: want something like perf-{1..4}", pattern)
		}
		return []string{pattern}, nil
	}
	from, _ := strconv.Atoi(m[2])
	to, _ := strconv.Atoi(m[3])
	if to < from || to-from >= 100000 {
		return nil, fmt.Errorf("queue pattern %q: the range must go up, over at most 100000 names", pattern)
	}
	names := make([]string, 0, to-from+1)
	for i := from; i <= to; i++ {
		names = append(names, m[1]+strconv.Itoa(i)+m[4])
	}
	return names, nil
}
