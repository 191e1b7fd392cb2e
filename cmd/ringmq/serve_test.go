package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringmq/test/rawamqp"
)

// runAsMain makes the test binary behave as ringmq, so that these tests drive a real process
// without building one.
const runAsMain = "TEST_RUN_AS_RINGMQ"

func TestMain(m *testing.M) {
	if os.Getenv(runAsMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a running "ringmq serve".
type process struct {
	cmd    *exec.Cmd
	ready  string // the ready line
	amqp   string
	http   string
	stdout *bufio.Reader
	stderr *bytes.Buffer // read it only after wait
	dumped chan struct{} // closed when the goroutine dump shows up on stderr
}

// stderrWatch keeps the log and tells when a mark has passed.
type stderrWatch struct {
	buf    *bytes.Buffer
	mark   string
	passed chan struct{}
	done   bool
}

func (w *stderrWatch) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.mark) {
		w.done = true
		close(w.passed)
	}
	return len(p), nil
}

// startProcess starts a broker on free ports and waits for its ready line.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	all := append([]string{"serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", t.TempDir(),
		"--wal-segment-size", "1MiB"}, args...) // small segments: they are filled with zeros
	p := &process{cmd: exec.Command(os.Args[0], all...), stderr: &bytes.Buffer{}, dumped: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), runAsMain+"=1")
	p.cmd.Stderr = &stderrWatch{buf: p.stderr, mark: "goroutine 1 [", passed: p.dumped}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("log:\n%s", p.stderr)
		}
	})
	p.stdout = bufio.NewReader(out)
	p.ready, err = p.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("no ready line: %v", err)
	}
	m := regexp.MustCompile(`^ready amqp=(\S+) http=(\S+) data="[^"]+" io=(?:io_uring|epoll) loops=\d+ sync=(?:always|interval|off) user=guest\n$`).
		FindStringSubmatch(p.ready)
	if m == nil {
		t.Fatalf("ready line %q", p.ready)
	}
	p.amqp, p.http = m[1], m[2]
	return p
}

// wait waits for the end of the process and checks that nothing followed the ready line.
func (p *process) wait(t *testing.T, code int) {
	t.Helper()
	rest, err := io.ReadAll(p.stdout)
	if err != nil || len(rest) != 0 {
		t.Errorf("after the ready line: %q, %v", rest, err)
	}
	p.cmd.Wait() //nolint:errcheck // the exit code is what is checked
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("exit code %d, want %d", got, code)
	}
}

func TestServeAndDrain(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := startProcess(t)
		resp, err := http.Get("http://" + p.http + "/health")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("health %d", resp.StatusCode)
		}
		metrics := get(t, "http://"+p.http+"/metrics")
		for _, want := range []string{`ringmq_loop_turns_total{loop="0"} `, "\ngo_goroutines ",
			"\nprocess_open_fds ", "\nprocess_resident_memory_bytes ", `ringmq_info{version="` + version} {
			if !strings.Contains(metrics, want) {
				t.Errorf("no %q in the metrics:\n%s", want, metrics)
			}
		}
		c, err := net.Dial("tcp", p.amqp)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.wait(t, exitOK)
		for _, want := range []string{"draining", "stopped"} {
			if !strings.Contains(p.stderr.String(), want) {
				t.Errorf("the log does not say %q", want)
			}
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestDump shows that SIGUSR1 prints the goroutines and that SIGHUP does not end the broker.
func TestDump(t *testing.T) {
	p := startProcess(t, "--http", "off")
	if p.http != "off" {
		t.Fatalf("http=%s", p.http)
	}
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGUSR1} {
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-p.dumped:
	case <-time.After(30 * time.Second):
		t.Fatal("no goroutine dump")
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait(t, exitOK)
	if !strings.Contains(p.stderr.String(), "settings re-read") {
		t.Error("SIGHUP left no line in the log")
	}
}

// runOnce runs a command that is expected to end by itself.
func runOnce(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), runAsMain+"=1")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.Run() //nolint:errcheck // the exit code is what is checked
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}

// lastLine is the line that the operator reads: log lines may stand before it.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestRefusals(t *testing.T) {
	p := startProcess(t)
	dir := dataOf(p)
	fresh := func() string { return t.TempDir() }
	file := writeConfig(t, "")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown flag", []string{"--fsync", "off"}, exitUsage, `ringmq: unknown flag --fsync; did you mean --sync?`},
		{"bad value", []string{"--spin", "x"}, exitUsage, `ringmq: --spin: bad value "x": want a duration such as 50us`},
		{"processor not there", []string{"--cores", "1023"}, exitUsage, `ringmq: --cores: bad value "1023": processor 1023 is not among`},
		{"locked folder", []string{"--data", dir, "--listen", "127.0.0.1:0", "--http", "off"}, exitWorld,
			fmt.Sprintf("ringmq: the data folder %s is locked by process %d; stop it or choose another folder with --data", dir, p.cmd.Process.Pid)},
		{"folder that is a file", []string{"--data", file}, exitWorld,
			fmt.Sprintf("ringmq: cannot create the data folder %s: not a directory; choose another with --data", file)},
		{"busy port", []string{"--data", fresh(), "--listen", p.amqp, "--http", "off"}, exitWorld,
			fmt.Sprintf("ringmq: cannot listen on %s: the address is in use; stop the program that holds it or choose another with --listen", p.amqp)},
		{"busy HTTP port", []string{"--data", fresh(), "--listen", "127.0.0.1:0", "--http", p.http}, exitWorld,
			fmt.Sprintf("ringmq: cannot listen on %s: the address is in use; stop the program that holds it or choose another with --http", p.http)},
		{"address of another machine", []string{"--data", fresh(), "--listen", "192.0.2.1:5672", "--http", "off"}, exitWorld,
			"ringmq: cannot listen on 192.0.2.1:5672: this machine has no such address; choose another with --listen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := runOnce(t, append([]string{"serve"}, c.args...)...)
			if code != c.code || stdout != "" || !strings.HasPrefix(lastLine(stderr), c.want) {
				t.Fatalf("exit %d (want %d)\nstdout %q\nstderr %s\nwant   %s", code, c.code, stdout, stderr, c.want)
			}
			if c.code == exitUsage && strings.Count(stderr, "\n") != 1 {
				t.Fatalf("more than one line:\n%s", stderr)
			}
		})
	}
}

func dataOf(p *process) string {
	_, rest, _ := strings.Cut(p.ready, `data="`)
	dir, _, _ := strings.Cut(rest, `"`)
	return dir
}

// TestLockEndsWithProcess shows that a killed broker leaves nothing that stops the next one.
func TestLockEndsWithProcess(t *testing.T) {
	p := startProcess(t)
	p.cmd.Process.Kill()
	p.cmd.Wait() //nolint:errcheck // it was killed
	next := startProcess(t, "--data", dataOf(p), "--listen", p.amqp)
	if err := next.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	next.wait(t, exitOK)
}

func TestCommands(t *testing.T) {
	code, stdout, stderr := runOnce(t, "version")
	if code != exitOK || !strings.HasPrefix(stdout, "ringmq "+version+" ") || stderr != "" {
		t.Errorf("version: %d %q %q", code, stdout, stderr)
	}
	code, stdout, stderr = runOnce(t, "help")
	if code != exitOK || stdout != usage || stderr != "" {
		t.Errorf("help: %d %q %q", code, stdout, stderr)
	}
	code, stdout, stderr = runOnce(t, "serve", "--help")
	if code != exitOK || !strings.Contains(stdout, "--message-size-max SIZE") || stderr != "" {
		t.Errorf("serve --help: %d %q %q", code, stdout, stderr)
	}
	code, stdout, stderr = runOnce(t)
	if code != exitUsage || stdout != "" || stderr != usage {
		t.Errorf("no command: %d %q %q", code, stdout, stderr)
	}
	code, _, stderr = runOnce(t, "frobnicate")
	if code != exitUsage || stderr != "ringmq: unknown command \"frobnicate\"; commands are serve, ctl, bench, version\n" {
		t.Errorf("unknown command: %d %q", code, stderr)
	}
}

// TestDrainTellsClients shows that a client is told by connection.close 320 and that its answer
// ends the drain (spec/amqp091.md CON-19).
func TestDrainTellsClients(t *testing.T) {
	p := startProcess(t)
	c := rawamqp.New(t, p.amqp, rawamqp.Options{})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.ExpectConnectionClose(320, "broker forced connection closure with reason 'shutdown'")
	p.wait(t, exitOK)
}

// TestCloseByName shows the way of client suites that force reconnects: list, find, delete.
func TestCloseByName(t *testing.T) {
	p := startProcess(t)
	c := rawamqp.New(t, p.amqp, rawamqp.Options{})
	var list []struct {
		Name     string
		User     string
		VHost    string
		State    string
		Protocol string
	}
	body := api(t, p, "GET", "/api/connections/", "", 200)
	if err := json.Unmarshal(body, &list); err != nil || len(list) != 1 {
		t.Fatalf("%s, %v", body, err)
	}
	if l := list[0]; l.User != "guest" || l.VHost != "/" || l.State != "running" || l.Protocol != "AMQP 0-9-1" {
		t.Errorf("%+v", l)
	}
	path := "/api/connections/" + url.PathEscape(list[0].Name)
	api(t, p, "DELETE", path, "moving house", 204)
	c.ExpectConnectionClose(320, "moving house")
	c.EOF()
	api(t, p, "DELETE", path, "", 404)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait(t, exitOK)
}

// api sends one request as guest and returns the body of an answer with that status.
func api(t *testing.T, p *process, method, path, reason string, status int) []byte {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+p.http+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("guest", "guest")
	r.Header.Set("X-Reason", reason)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s: %d %s, %v; want %d", method, path, resp.StatusCode, body, err, status)
	}
	return body
}

// TestSecondSignal shows that while a silent client holds up the drain, /health says 503, and
// that a further signal ends the broker at once.
func TestSecondSignal(t *testing.T) {
	p := startProcess(t)
	rawamqp.New(t, p.amqp, rawamqp.Options{}) // answers nothing: the test reads nothing
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for code := 200; code != 503; {
		resp, err := http.Get("http://" + p.http + "/health")
		if err != nil {
			t.Fatalf("no answer while draining: %v", err)
		}
		resp.Body.Close()
		code = resp.StatusCode
	}
	ended := make(chan struct{})
	go func() { // a signal that follows at once counts as the first one, so keep on
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
			}
		}
	}()
	p.wait(t, exitWorld)
	close(ended)
	if !strings.Contains(p.stderr.String(), "ended by a second signal") {
		t.Error("the log does not say so")
	}
}
