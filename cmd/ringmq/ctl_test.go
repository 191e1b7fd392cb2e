package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ringmq/admin"
	"ringmq/frame/amqp091"
	"ringmq/test/rawamqp"
)

// runCtl runs a verb in this process.
func runCtl(environ []string, args ...string) (code int, stdout, stderr string) {
	var out, log bytes.Buffer
	code = ctl(args, environ, &out, &log)
	return code, out.String(), log.String()
}

func TestCtlStatus(t *testing.T) {
	p := startProcess(t, "--sync", "interval", "--disk-free-limit", "4000000GiB")
	dir := dataOf(p)
	code, stdout, stderr := runCtl(noEnv, "status", "--data", dir)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	for _, want := range []string{
		fmt.Sprintf("ringmq %s, running, process %d, up ", version, p.cmd.Process.Pid),
		"interval: a power cut loses what was confirmed since the last sync, up to --sync-interval",
		"amqp " + p.amqp + ", http " + p.http,
		"disk\n", // the alarm
		"publishers are blocked under 3.8 PiB",
		"0 connections, 0 channels, 0 consumers",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	code, stdout, stderr = runCtl([]string{"RINGMQ_DATA=" + dir}, "status", "--json")
	var s admin.Status
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != exitOK || stderr != "" {
		t.Fatalf("exit %d, %s, %v", code, stderr, err)
	}
	if s.PID != p.cmd.Process.Pid || s.Data != dir || s.Sync != "interval" || s.MemoryUsed <= 0 || s.MemoryLimit <= 0 ||
		s.DiskFree <= 0 || len(s.Alarms) != 1 || s.Alarms[0] != "disk" {
		t.Errorf("%+v", s)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait(t, exitOK)
	if !strings.Contains(p.stderr.String(), "--sync is not always") {
		t.Error("the start does not warn of --sync interval")
	}
	if _, err := os.Lstat(filepath.Join(dir, controlName)); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	code, _, stderr = runCtl(noEnv, "status", "--data", dir)
	if want := "ringmq: no broker runs on the data folder " + dir + "; name the broker's folder with --data\n"; code != exitWorld || stderr != want {
		t.Errorf("of a stopped broker: exit %d\n got %s\nwant %s", code, stderr, want)
	}
}

func TestCtlQueueList(t *testing.T) {
	p := startProcess(t)
	c := rawamqp.New(t, p.amqp, rawamqp.Options{})
	c.OpenChannel(1)
	for _, name := range []string{"b", "a"} {
		rawamqp.Call[amqp091.QueueDeclareOk](c, 1, &amqp091.QueueDeclare{Queue: []byte(name)})
		c.Publish(1, "", name, nil, "x")
		c.Sync(1)
	}
	for _, words := range [][]string{{"list_queues", "name", "messages"}, {"status", "now"}} {
		if code, _, stderr := runCtl(noEnv, append(words, "--data", dataOf(p))...); code != exitUsage || !strings.Contains(stderr, "takes no words") {
			t.Errorf("%v: exit %d, %s", words, code, stderr)
		}
	}
	if code, stdout, _ := runCtl(noEnv, "list_queues", "-q", "-p", "none", "--data", dataOf(p)); code != exitOK || strings.Contains(stdout, "classic") {
		t.Errorf("of another vhost: exit %d, %s", code, stdout)
	}
	for _, verb := range [][]string{{"queue", "list"}, {"list_queues"}, {"list_queues", "-p", "/"}} {
		code, stdout, stderr := runCtl(noEnv, append(verb, "--data", dataOf(p))...)
		want := "vhost  name  messages  ready  unacked  consumers  type     policy  operator policy\n" +
			"/      a     1         1      0        0          classic  -       -\n" +
			"/      b     1         1      0        0          classic  -       -\n"
		if code != exitOK || stdout != want || stderr != "" {
			t.Errorf("%v: exit %d %s\n got %s\nwant %s", verb, code, stderr, stdout, want)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.ExpectConnectionClose(320, "broker forced connection closure with reason 'shutdown'")
	p.wait(t, exitOK)
}

// TestCtlSocket shows that only the broker's user may open the socket, that a dead broker's is
// replaced, and that a long path is no obstacle.
func TestCtlSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	path := filepath.Join(dir, controlName)
	if len(path) <= socketPathMax {
		t.Fatalf("the path has %d bytes only", len(path))
	}
	for range 2 {
		p := startProcess(t, "--data", dir)
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Fatalf("mode %v, %v", info.Mode(), err)
		}
		if code, _, stderr := runCtl(noEnv, "status", "--data", dir); code != exitOK {
			t.Fatalf("exit %d, %s", code, stderr)
		}
		p.cmd.Process.Kill()
		p.cmd.Wait() //nolint:errcheck // it was killed
	}
}

func TestCtlWAL(t *testing.T) {
	p := startProcess(t)
	dir := dataOf(p)
	for _, verb := range []string{"check", "dump", "repair"} {
		code, stdout, stderr := runCtl(noEnv, "wal", verb, "--data", dir)
		want := fmt.Sprintf("ringmq: the broker must be stopped for this: the data folder %s is locked by process %d;", dir, p.cmd.Process.Pid)
		if code != exitWorld || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("wal %s while the broker runs: exit %d %s\n got %s\nwant %s", verb, code, stdout, stderr, want)
		}
	}
	p.cmd.Process.Kill()
	p.cmd.Wait() //nolint:errcheck // it was killed
	for _, verb := range []string{"check", "repair", "dump"} {
		code, stdout, stderr := runCtl(noEnv, "wal", verb, "--data", dir)
		if code != exitOK || stderr != "" || !strings.Contains(stdout, filepath.Join(dir, logFolder, "000")+":\n") {
			t.Errorf("wal %s: exit %d %s\n%s", verb, code, stderr, stdout)
		}
	}
	none := t.TempDir()
	for _, c := range []struct{ dir, want string }{
		{none, "there is no message log in " + filepath.Join(none, logFolder) + ": no such file or directory; name the broker's data folder with --data"},
		{none + "/x", "there is no data folder " + none + "/x: no such file or directory; name the broker's with --data"},
	} {
		if code, _, stderr := runCtl(noEnv, "wal", "check", c.dir); code != exitWorld || stderr != "ringmq: "+c.want+"\n" {
			t.Errorf("exit %d\n got %s\nwant %s", code, stderr, c.want)
		}
	}
}

// TestCtlDamage goes the operator's way from a flipped bit back to a broker that serves what is left.
func TestCtlDamage(t *testing.T) {
	p := startProcess(t)
	dir := dataOf(p)
	c := rawamqp.New(t, p.amqp, rawamqp.Options{})
	c.OpenChannel(1)
	rawamqp.Call[amqp091.QueueDeclareOk](c, 1, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true})
	rawamqp.Call[amqp091.ConfirmSelectOk](c, 1, &amqp091.ConfirmSelect{})
	persistent := &amqp091.Properties{Flags: amqp091.FlagDeliveryMode, DeliveryMode: 2}
	for _, body := range []string{"first message", "second message", "third message"} {
		c.Publish(1, "", "q", persistent, body)
		rawamqp.Expect[amqp091.BasicAck](c, 1)
	}
	p.cmd.Process.Kill()
	p.cmd.Wait() //nolint:errcheck // it was killed

	file, offset := findInLogs(t, dir, "second message")
	flipBit(t, file, offset)
	repair := fmt.Sprintf("\"ringmq ctl wal repair --data %s\"", dir)
	code, stdout, stderr := runCtl(noEnv, "wal", "check", "--data", dir)
	if code != exitWorld || !strings.Contains(stdout, filepath.Base(file)+": damaged from offset") ||
		stderr != "ringmq: damage was found; "+repair+" goes on without what is lost\n" {
		t.Fatalf("check: exit %d, %s\n%s", code, stderr, stdout)
	}
	code, stdout, stderr = runOnce(t, "serve", "--listen", "127.0.0.1:0", "--http", "off", "--data", dir)
	if code != exitWorld || stdout != "" || !strings.Contains(lastLine(stderr), filepath.Base(file)) ||
		!strings.Contains(lastLine(stderr), repair) {
		t.Fatalf("start: exit %d, %s\n%s", code, stdout, stderr)
	}
	if code, stdout, stderr = runCtl(noEnv, "wal", "repair", "--data", dir); code != exitOK || !strings.Contains(stdout, "(accepted by repair)") {
		t.Fatalf("repair: exit %d, %s\n%s", code, stderr, stdout)
	}
	if code, stdout, stderr = runCtl(noEnv, "wal", "check", "--data", dir); code != exitOK || stderr != "" {
		t.Fatalf("check after repair: exit %d, %s\n%s", code, stderr, stdout)
	}
	startProcess(t, "--data", dir)
	if _, stdout, _ = runCtl(noEnv, "queue", "list", "--data", dir); !strings.Contains(stdout, "q     2         2      0") {
		t.Errorf("queues after the repair:\n%s", stdout)
	}
}

// findInLogs finds a text in the message logs of a stopped broker.
func findInLogs(t *testing.T, dir, text string) (file string, offset int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, logFolder, "*", "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(content, []byte(text)); at >= 0 {
			return file, int64(at)
		}
	}
	t.Fatalf("%q is in none of the %d files", text, len(files))
	return "", 0
}

func flipBit(t *testing.T, file string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := []byte{0}
	if _, err := f.ReadAt(b, offset); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, offset); err != nil {
		t.Fatal(err)
	}
}

func TestCtlUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"wal", `unknown verb "wal"; did you mean wal check, wal dump or wal repair?`},
		{"wal chek", `unknown verb "wal chek"; did you mean wal check, wal dump or wal repair?`},
		{"stats", `unknown verb "stats"; did you mean status?`},
		{"queues list", `unknown verb "queues list"; did you mean queue list?`},
		{"frobnicate it", `unknown verb "frobnicate it"; "ringmq ctl --help" lists them`},
		{"--json status", "flags come after the verb: ringmq ctl VERB --json"},
		{"status --jsn", `unknown flag --jsn; "ringmq ctl status --help" lists them`},
		{"wal check --json", `unknown flag --json; "ringmq ctl wal check --help" lists them`},
		{"status --data", "--data: a value is missing"},
		{"status --config /nonexistent", "--config /nonexistent: no such file or directory"},
	} {
		code, stdout, stderr := runCtl(noEnv, strings.Fields(c.args)...)
		if code != exitUsage || stdout != "" || stderr != "ringmq: "+c.want+"\n" {
			t.Errorf("%s: exit %d %s\n got %s\nwant %s", c.args, code, stdout, stderr, c.want)
		}
	}
	for args, want := range map[string]string{
		"": "ringmq ctl list_queues", "--help": "ringmq ctl status", "help": "ringmq ctl status",
		"wal -h": "ringmq ctl wal repair", "wal check --help": "ringmq ctl wal check: read", "status -h": "--json",
	} {
		code, stdout, stderr := runCtl(noEnv, strings.Fields(args)...)
		want = strings.Replace(want, "ringmq ctl list_queues", "queue list, list_queues", 1)
		if code != exitOK || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("%q: exit %d %s\n%s", args, code, stderr, stdout)
		}
	}
}
