package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	readyMax = 30 * time.Second // from exec to the ready line, on a loaded two-core machine
	stopMax  = 15 * time.Second // from SIGTERM to exit, then SIGKILL
	startTry = 3                // a free port may be taken by someone else before the broker binds it
)

// Options of one broker process.
type Options struct {
	Backend string   // "uring" or "epoll", for --io
	Cores   string   // for --cores; "" leaves the flag out
	Data    string   // data folder; "" makes a temporary one that goes with the test
	Args    []string // further flags
	Listen  string   // host:port for AMQP; "" picks a free port of 127.0.0.1
	HTTP    string   // host:port for HTTP; "" picks a free port of 127.0.0.1
	Prefix  []string // command to run the broker under, such as "ip netns exec NAME"
	Binary  string   // path of the program; "" is Binary()
	Env     []string // NAME=value, beside those of the test
}

// Broker is one running broker process, or the one that RINGMQ_TEST_ADDR names.
type Broker struct {
	Addr    string // host:port of the AMQP listener
	HTTP    string // host:port of the HTTP listener, "" when there is none
	Backend string // "uring", "epoll" or "external"
	PID     int    // 0 when external

	cmd    *exec.Cmd
	opts   Options
	ready  chan struct{}
	exited chan struct{} // closed when the process has been waited for
	output logTail

	stateErr error // exit state; read only after exited is closed
	stopping sync.Once
	stopErr  error
	ended    atomic.Bool // Stop or Kill was called
}

// Start runs a broker of the test's own and stops it when the test ends.
func Start(t testing.TB, opts Options) *Broker {
	t.Helper()
	if os.Getenv("RINGMQ_TEST_ADDR") != "" {
		t.Skip("needs a broker process of its own, RINGMQ_TEST_ADDR is set")
	}
	if opts.Data == "" {
		opts.Data = t.TempDir()
	}
	b, err := Launch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("stopping the broker: %v\n%s", err, b.Output())
		}
	})
	return b
}

// Launch runs a broker and returns when it has printed its ready line. The caller stops it.
func Launch(opts Options) (*Broker, error) {
	path, err := opts.Binary, error(nil)
	if path == "" {
		path, err = Binary()
	}
	if err != nil {
		return nil, err
	}
	for range startTry {
		b, lerr := launch(path, opts)
		if lerr == nil {
			return b, nil
		}
		err = lerr
		if opts.Listen != "" || !strings.Contains(lerr.Error(), "in use") {
			break
		}
	}
	return nil, err
}

func launch(path string, opts Options) (*Broker, error) {
	b := &Broker{Addr: opts.Listen, HTTP: opts.HTTP, Backend: opts.Backend, opts: opts,
		ready: make(chan struct{}), exited: make(chan struct{})}
	if b.Addr == "" {
		b.Addr = freeAddr()
	}
	if b.HTTP == "" {
		b.HTTP = freeAddr()
	}
	args := append([]string{}, opts.Prefix...)
	args = append(args, path, "serve", "--listen", b.Addr, "--http", b.HTTP, "--data", opts.Data)
	if opts.Backend != "" {
		args = append(args, "--io", opts.Backend)
	}
	if opts.Cores != "" {
		args = append(args, "--cores", opts.Cores)
	}
	if !slices.Contains(opts.Args, "--wal-segment-size") {
		// The default would have each of hundreds of brokers write half a gigabyte.
		args = append(args, "--wal-segment-size", "4MiB")
	}
	args = append(args, opts.Args...)
	b.cmd = exec.Command(args[0], args[1:]...)
	if len(opts.Env) > 0 {
		b.cmd.Env = append(os.Environ(), opts.Env...)
	}
	// A broker must not outlive a test process that is killed.
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b.cmd.Stdout, b.cmd.Stderr = writer, writer
	if err := startOnDaemonThread(b.cmd); err != nil {
		_, _ = reader.Close(), writer.Close()
		return nil, err
	}
	_ = writer.Close()
	b.PID = b.cmd.Process.Pid
	go b.readOutput(reader)
	return b, b.awaitReady()
}

// awaitReady returns when the ready line was seen; a process that ends or stays silent first is an error.
func (b *Broker) awaitReady() error {
	select {
	case <-b.ready:
		return nil
	case <-b.exited:
		return fmt.Errorf("the broker ended before its ready line: %v\n%s", b.stateErr, b.Output())
	case <-time.After(readyMax):
		_ = b.Kill()
		return fmt.Errorf("no ready line within %v\n%s", readyMax, b.Output())
	}
}

// readOutput copies the output into the tail, announces the ready line, and waits for the process at the end.
func (b *Broker) readOutput(r io.ReadCloser) {
	seen := false
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), 1<<20)
	for lines.Scan() {
		line := lines.Text()
		b.output.add(line)
		if !seen && strings.HasPrefix(line, "ready") {
			seen = true
			close(b.ready)
		}
	}
	_ = r.Close()
	b.stateErr = b.cmd.Wait()
	close(b.exited)
}

// Stop asks the process to end by SIGTERM and reports anything but exit status 0. Repeated calls return the first result.
func (b *Broker) Stop() error {
	b.stopping.Do(func() {
		if b.cmd == nil {
			return
		}
		b.ended.Store(true)
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-b.exited:
			b.stopErr = b.stateErr
		case <-time.After(stopMax):
			_ = b.cmd.Process.Kill()
			<-b.exited
			b.stopErr = fmt.Errorf("still running %v after SIGTERM", stopMax)
		}
	})
	return b.stopErr
}

// Kill ends the process with SIGKILL and waits for it.
func (b *Broker) Kill() error {
	var err error
	b.stopping.Do(func() {
		if b.cmd == nil {
			return
		}
		b.ended.Store(true)
		err = b.cmd.Process.Kill()
		<-b.exited
	})
	return err
}

// Exited is closed when the process has ended, by itself or not.
func (b *Broker) Exited() <-chan struct{} { return b.exited }

// ExitCode is the exit status of a process that has ended, -1 of one that was killed by a signal.
func (b *Broker) ExitCode() int { return b.cmd.ProcessState.ExitCode() }

// Dead says whether the process has ended by itself.
func (b *Broker) Dead() bool {
	select {
	case <-b.exited:
		return b.cmd != nil
	default:
		return false
	}
}

// Output is the tail of what the broker printed.
func (b *Broker) Output() string { return b.output.String() }

// URL is the AMQP address with the default account.
func (b *Broker) URL() string { return "amqp://guest:guest@" + b.Addr + "/" }

// External says whether the broker is the one of RINGMQ_TEST_ADDR, of which this process knows no process id.
func (b *Broker) External() bool { return b.cmd == nil }

// Descriptors counts the open file descriptors of the process, without those of the log's files: a log opens and
// closes them as it grows and as it becomes free, and keeps a bounded number.
func (b *Broker) Descriptors() (int, error) {
	if b.PID == 0 {
		return 0, errors.New("external broker: no process id")
	}
	dir := fmt.Sprintf("/proc/%d/fd", b.PID)
	entries, err := os.ReadDir(dir)
	n := 0
	for _, e := range entries {
		// A descriptor that is gone by now cannot be read: not open any more.
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && !strings.Contains(target, ".wal") {
			n++
		}
	}
	return n, err
}

// Get reads one path of the HTTP listener as the default account.
func (b *Broker) Get(path string) (int, []byte, error) { return b.Request(http.MethodGet, path, nil) }

// Request sends one request to the HTTP listener as the default account and returns status and body.
func (b *Broker) Request(method, path string, header http.Header) (int, []byte, error) {
	if b.HTTP == "" {
		return 0, nil, errors.New("the broker has no HTTP listener (RINGMQ_TEST_HTTP)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+b.HTTP+path, nil)
	if err != nil {
		return 0, nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.SetBasicAuth("guest", "guest")
	req.Close = true // no kept connection: the leak suite counts the broker's descriptors
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// freeAddr is a loopback address that was free a moment ago.
func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer l.Close()
	return l.Addr().String()
}

// logTail keeps the last lines of a process.
type logTail struct {
	mu    sync.Mutex
	lines []string
}

const logTailLines = 200

func (l *logTail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == logTailLines {
		l.lines = append(l.lines[:0], l.lines[1:]...)
	}
	l.lines = append(l.lines, line)
}

func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "--- broker output\n" + strings.Join(l.lines, "\n") + "\n---"
}
