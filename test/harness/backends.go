package harness

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// shared holds one broker per backend for the whole test process.
var shared struct {
	mu      sync.Mutex
	brokers map[string]*Broker
	folders []string
	stopped bool
}

// parallelDefault is how many tests run at once unless -parallel says otherwise: most of them wait for a timer
// of the broker (refusal delays, heartbeats), not for a core.
const parallelDefault = "24"

// Main runs the tests of a package, stops the shared brokers and removes what was built. Call it from TestMain.
func Main(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", parallelDefault)
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = 1
	}
	RemoveBinary()
	os.Exit(code)
}

func stopShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.stopped = true
	var first error
	for _, b := range shared.brokers {
		if err := b.Stop(); err != nil && first == nil {
			first = fmt.Errorf("stopping the %s broker: %w\n%s", b.Backend, err, b.Output())
		}
	}
	for _, dir := range shared.folders {
		_ = os.RemoveAll(dir)
	}
	return first
}

// ForEachBackend runs fn once per I/O backend, in parallel with other tests, against a broker that the whole test
// process shares: fn must use names of its own. The broker has two loops.
func ForEachBackend(t *testing.T, fn func(t *testing.T, b *Broker)) {
	t.Helper()
	t.Parallel()
	if addr := os.Getenv("RINGMQ_TEST_ADDR"); addr != "" {
		fn(t, external(addr))
		return
	}
	for _, backend := range Backends() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			skipRefused(t, backend)
			b, err := sharedBroker(backend)
			if err != nil {
				t.Fatal(err)
			}
			// In a clean-up, not a defer: parallel subtests of fn run after fn has returned.
			t.Cleanup(func() { checkAlive(t, b) })
			fn(t, b)
		})
	}
}

// ForEachBackendAlone is ForEachBackend with a broker of the test's own, started with opts.
func ForEachBackendAlone(t *testing.T, opts Options, fn func(t *testing.T, b *Broker)) {
	t.Helper()
	if os.Getenv("RINGMQ_TEST_ADDR") != "" {
		t.Skip("needs a broker process of its own, RINGMQ_TEST_ADDR is set")
	}
	for _, backend := range Backends() {
		t.Run(backend, func(t *testing.T) {
			skipRefused(t, backend)
			own := opts
			own.Backend = backend
			b := Start(t, own)
			t.Cleanup(func() { checkAlive(t, b) })
			fn(t, b)
		})
	}
}

func checkAlive(t *testing.T, b *Broker) {
	if b.Dead() && !b.ended.Load() {
		t.Errorf("the broker died: %v\n%s", b.stateErr, b.Output())
	}
}

func skipRefused(t *testing.T, backend string) {
	t.Helper()
	if why := Refused(backend); why != "" {
		t.Skip(why)
	}
}

// sharedBroker starts the backend's broker on first use and again after it died, so that one crash does not fail
// every later test.
func sharedBroker(backend string) (*Broker, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.stopped {
		return nil, fmt.Errorf("the test process is ending")
	}
	if b := shared.brokers[backend]; b != nil && !b.Dead() {
		return b, nil
	}
	data, err := os.MkdirTemp("", "ringmq-test-data-")
	if err != nil {
		return nil, err
	}
	shared.folders = append(shared.folders, data)
	b, err := Launch(Options{Backend: backend, Cores: "0,1", Data: data})
	if err != nil {
		return nil, err
	}
	if shared.brokers == nil {
		shared.brokers = map[string]*Broker{}
	}
	shared.brokers[backend] = b
	return b, nil
}

func external(addr string) *Broker {
	return &Broker{Addr: addr, HTTP: os.Getenv("RINGMQ_TEST_HTTP"), Backend: "external", exited: make(chan struct{})}
}

// IsRabbitMQ says whether the external broker is RabbitMQ: its connection.start names the Erlang platform.
func (b *Broker) IsRabbitMQ() bool {
	if !b.External() {
		return false
	}
	return externalIsErlang(b.Addr)
}

var erlangByAddr sync.Map

func externalIsErlang(addr string) bool {
	if known, ok := erlangByAddr.Load(addr); ok {
		return known.(bool)
	}
	nc, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return false
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := nc.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return false
	}
	buf := make([]byte, 4096)
	n, _ := nc.Read(buf)
	is := bytes.Contains(buf[:n], []byte("Erlang/OTP"))
	erlangByAddr.Store(addr, is)
	return is
}

// SkipRabbitMQ skips a test of behaviour in which ringmq deliberately differs from RabbitMQ 3.10; why names it.
func (b *Broker) SkipRabbitMQ(t *testing.T, why string) {
	t.Helper()
	if b.IsRabbitMQ() {
		t.Skip("RabbitMQ 3.10 differs: " + why)
	}
}
