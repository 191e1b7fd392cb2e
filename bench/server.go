package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit     = 30 * time.Second // with an empty folder
	recoveryLimit  = 10 * time.Minute // with a full one
	stopLimit      = 60 * time.Second // a long backlog may still have to be written out
	outputBytesMax = 2000             // of the server's last words that are kept
)

// server is a broker process on a folder of its own: this binary's, or the one
// of --server-bin. It can be stopped, killed and started again on what it left.
type server struct {
	binary string
	args   []string // behind "serve" and the addresses
	data   string

	amqp, http string // HOST:PORT of each, other ports at each start
	cmd        *exec.Cmd
	done       chan error // its exit, one value
	output     *serverOutput
	startedIn  time.Duration // from the start of the process to its ready line
}

// newServer makes the folder; nothing runs yet.
func newServer(o *Options) (*server, error) {
	s := &server{binary: o.Binary, args: o.serverArgs()}
	var err error
	if s.binary == "" {
		if s.binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	s.data, err = os.MkdirTemp(o.DataDir, "ringmq-bench-")
	return s, err
}

// start runs the process and returns when it says that it is ready. After an
// error nothing runs. REQUIRES: it does not run.
func (s *server) start(ctx context.Context, limit time.Duration) error {
	// Other ports each time: those of a killed process stay taken for some
	// milliseconds, which a restart would have to wait for.
	port, err1 := freePort()
	httpPort, err2 := freePort()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s.amqp = "127.0.0.1:" + strconv.Itoa(port)
	s.http = "127.0.0.1:" + strconv.Itoa(httpPort)
	args := append([]string{"serve", "--listen", s.amqp, "--http", s.http, "--data", s.data}, s.args...)
	cmd := exec.Command(s.binary, args...)
	output := newServerOutput()
	cmd.Stdout, cmd.Stderr = output, output
	// A generator that dies must not leave a server behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	s.cmd, s.done, s.output = cmd, done, output

	timer := time.NewTimer(limit)
	defer timer.Stop()
	var err error
	select {
	case at := <-output.ready:
		s.startedIn = at.Sub(began)
		return nil
	case exit := <-done:
		s.cmd = nil
		return fmt.Errorf("the server ended at once: %w\n%s", errors.Join(exit, errors.New("see its output")), output.tail())
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("the server was not ready within %v\n%s", limit, output.tail())
	}
	return errors.Join(err, s.kill())
}

// pid is 0 while nothing runs.
func (s *server) pid() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// stop asks the server to end. One that ends badly is worth an error of its own.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case err = <-s.done:
	case <-time.After(stopLimit):
		_ = s.cmd.Process.Kill()
		<-s.done
		err = fmt.Errorf("the server did not stop within %v of SIGTERM", stopLimit)
	}
	s.cmd = nil
	if err != nil {
		return fmt.Errorf("server: %w; its last words: %s", err, s.output.tail())
	}
	return nil
}

// kill ends the server as a crash would.
func (s *server) kill() error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
	return err
}

// empty removes what the server keeps. REQUIRES: it does not run.
func (s *server) empty() error {
	return errors.Join(os.RemoveAll(s.data), os.Mkdir(s.data, 0o755))
}

// remove ends the server and deletes its folder.
func (s *server) remove() error { return errors.Join(s.stop(), os.RemoveAll(s.data)) }

// readyWord begins the line by which a server says that it serves.
var readyWord = []byte("ready ")

// serverOutput takes what a server prints: it keeps the end of it and sees the
// ready line. The process's copying goroutine writes, any may read.
type serverOutput struct {
	ready chan time.Time // gets one value

	mu   sync.Mutex
	kept []byte
	line []byte // the unfinished last line, up to the length of readyWord
	seen bool
}

func newServerOutput() *serverOutput { return &serverOutput{ready: make(chan time.Time, 1)} }

// Write takes a part of the output; it never fails.
func (w *serverOutput) Write(p []byte) (int, error) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, p...)
	w.kept = w.kept[max(0, len(w.kept)-outputBytesMax):]
	for _, c := range p {
		if c != '\n' {
			if len(w.line) < len(readyWord) {
				w.line = append(w.line, c)
			}
			continue
		}
		if !w.seen && bytes.Equal(w.line, readyWord) {
			w.seen = true
			w.ready <- now
		}
		w.line = w.line[:0]
	}
	return len(p), nil
}

func (w *serverOutput) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.kept)
}
