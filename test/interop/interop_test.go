//go:build interop

package interop

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"testing"

	"ringmq/test/harness"
)

// parallelDefault is how many languages run at once unless -parallel says otherwise: installing and compiling fill
// the cores, scenarios mostly wait.
const parallelDefault = "3"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallelDefault); err != nil {
		panic(err)
	}
	harness.Main(m)
}

func TestPython(t *testing.T) {
	t.Parallel()
	dir := pythonDir(t, "python")
	t.Run("pika", func(t *testing.T) { runScenarios(t, python(t, dir, "python/pika_run.py")) })
	t.Run("py-amqp", func(t *testing.T) { runScenarios(t, python(t, dir, "python/pyamqp_run.py")) })
	t.Run("Symfony", func(t *testing.T) { runApplication(t, python(t, dir, "python/symfony_run.py")) })
}

func TestNode(t *testing.T) {
	t.Parallel()
	dir := nodeDir(t)
	t.Run("amqplib", func(t *testing.T) { runScenarios(t, program{dir, []string{"node", "run.js"}}) })
	t.Run("MassTransit", func(t *testing.T) { runApplication(t, program{dir, []string{"node", "masstransit.js"}}) })
}

func TestJava(t *testing.T) {
	t.Parallel()
	runScenarios(t, java(t, "java", "Scenarios"))
}

func TestRust(t *testing.T) {
	t.Parallel()
	runScenarios(t, rust(t))
}

func TestCelery(t *testing.T) {
	t.Parallel()
	worker := python(t, pythonDir(t, "celery"), "celery/run.py")
	t.Run("classic", func(t *testing.T) { runApplication(t, worker.with("classic")) })
	t.Run("quorum", func(t *testing.T) { runApplication(t, worker.with("quorum")) })
}

func TestSpring(t *testing.T) {
	t.Parallel()
	runApplication(t, java(t, "spring", "Application"))
}

// runScenarios has a client go through the scenarios on each I/O backend.
func runScenarios(t *testing.T, p program) {
	t.Helper()
	forEachBroker(t, func(t *testing.T, b *harness.Broker, answer func(string) error) {
		names := asked(!b.External())
		out, err := p.run(scriptMax, answer, append(address(t, b), names...)...)
		checkResults(t, names, out)
		if err != nil {
			t.Errorf("%v: %v", p.argv, err)
		}
		if t.Failed() {
			t.Logf("%s", out)
		}
	})
}

// runApplication runs a program that says by its exit status whether an application works, on each I/O backend. It
// is told which scenarios are asked of clients, and leaves out what it would need the others' features for.
func runApplication(t *testing.T, p program) {
	t.Helper()
	forEachBroker(t, func(t *testing.T, b *harness.Broker, _ func(string) error) {
		if out, err := p.run(appMax, nil, append(address(t, b), asked(false)...)...); err != nil {
			t.Errorf("%v: %v\n%s", p.argv, err, out)
		}
	})
}

// forEachBroker calls fn with a broker of each I/O backend, or with the one that RINGMQ_TEST_ADDR names. answer
// does what a scenario asks for.
func forEachBroker(t *testing.T, fn func(t *testing.T, b *harness.Broker, answer func(string) error)) {
	t.Helper()
	if addr := os.Getenv("RINGMQ_TEST_ADDR"); addr != "" {
		harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) { fn(t, b, nil) })
		return
	}
	limit := alarm(filepath.Join(t.TempDir(), "ringmq.toml"))
	if err := limit.write(limitNone); err != nil {
		t.Fatal(err)
	}
	opts := harness.Options{Args: []string{"--config", string(limit)}}
	harness.ForEachBackendAlone(t, opts, func(t *testing.T, b *harness.Broker) {
		if err := limit.set(b, limitNone, 0); err != nil {
			t.Fatal(err)
		}
		fn(t, b, limit.answer(b))
	})
}

func address(t *testing.T, b *harness.Broker) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return []string{host, port}
}
