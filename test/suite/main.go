package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ringmq/test/harness"
)

type options struct {
	backend string
	run     string
	verbose bool
	timeout time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.backend, "io", "", "broker's I/O backend: uring or epoll; both, one after the other, when empty")
	flag.StringVar(&o.run, "run", "", "only the tests that match, as in go test -run")
	flag.BoolVar(&o.verbose, "v", false, "print all output of the tests")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "limit of one run of the suite")
	flag.Parse()
	if flag.NArg() > 0 || (o.backend != "" && o.backend != "uring" && o.backend != "epoll") {
		fmt.Fprintln(os.Stderr, "usage: suite [-io uring|epoll] [-run PATTERN] [-v] [-timeout 5m]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := suite(ctx, o)
	harness.RemoveBinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// suite runs everything and cleans up.
func suite(ctx context.Context, o options) (ok bool, err error) {
	n, err := newNamespace()
	if err != nil {
		return false, err
	}
	defer n.remove()
	dir, err := os.MkdirTemp("", "ringmq-suite-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	version, err := copyModule(dir)
	if err != nil {
		return false, err
	}
	backends := []string{o.backend}
	if o.backend == "" {
		backends = harness.Backends()
	}
	ok = true
	for _, backend := range backends {
		if why := harness.Refused(backend); why != "" && o.backend == "" {
			fmt.Printf("%s: skipped: %s\n", backend, why)
			continue
		}
		one, err := suiteOn(ctx, n, dir, version, backend, o)
		if err != nil {
			return false, fmt.Errorf("%s: %w", backend, err)
		}
		ok = ok && one
	}
	return ok, nil
}

// suiteOn runs the suite against one broker process.
func suiteOn(ctx context.Context, n namespace, dir, version, backend string, o options) (ok bool, err error) {
	data, err := os.MkdirTemp("", "ringmq-suite-data-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(data)
	b, err := harness.Launch(harness.Options{Backend: backend, Data: data, Prefix: n.prefix(),
		Listen: "127.0.0.1:5672", HTTP: "127.0.0.1:15672"})
	if err != nil {
		return false, err
	}
	t, err := runSuite(ctx, n, dir, o)
	if t != nil {
		ok = t.report(fmt.Sprintf("%s %s on %s", clientModule, version, backend))
	}
	if b.Dead() {
		err = errors.Join(err, errors.New("the broker died"))
	}
	if serr := b.Stop(); serr != nil {
		err = errors.Join(err, fmt.Errorf("stopping the broker: %w", serr))
	}
	if err != nil || !ok {
		fmt.Fprintln(os.Stderr, b.Output())
	}
	return ok, err
}
