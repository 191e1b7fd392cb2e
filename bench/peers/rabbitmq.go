package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RabbitMQName is the --vs word that starts an installed RabbitMQ.
const RabbitMQName = "rabbitmq"

const (
	readyLimit = 90 * time.Second
	stopLimit  = 60 * time.Second
)

// Peer is a running broker. Stop ends it by process id and removes its folder.
type Peer struct {
	URL      string
	PID      int // the broker's own process, for CPU and memory
	Settings []string
	Stop     func() error
}

// The places where packages put the server script. The one in bin does not
// change users, which the one in /usr/sbin does.
var rabbitScripts = []string{
	"/usr/lib/rabbitmq/bin/rabbitmq-server",
	"/opt/rabbitmq/sbin/rabbitmq-server",
	"/usr/local/sbin/rabbitmq-server",
	"/opt/homebrew/sbin/rabbitmq-server",
}

// findRabbit returns the server script.
func findRabbit() (string, error) {
	for _, path := range rabbitScripts {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("rabbitmq-server"); err == nil {
		return path, nil
	}
	return "", errors.New("no rabbitmq-server found (Debian: apt-get install rabbitmq-server)")
}

// rabbitConf is rabbitmq.conf: loopback only, no delay on small writes, the
// newer classic queue storage, alarms out of the way, quiet log.
const rabbitConf = `listeners.tcp.default = 127.0.0.1:%d
tcp_listen_options.nodelay = true
tcp_listen_options.backlog = 4096
tcp_listen_options.sndbuf = 196608
tcp_listen_options.recbuf = 196608
classic_queue.default_version = 2
vm_memory_high_watermark.relative = 0.8
disk_free_limit.absolute = 50MB
channel_max = 2047
log.console = false
log.file.level = error
`

// rabbitAdvanced turns off per-object statistics, which cost a message more
// than its routing does when a management plugin is absent anyway.
const rabbitAdvanced = `[{rabbit, [{collect_statistics, none}]}].
`

// rabbitSettings says in words what rabbitConf and the environment set.
var rabbitSettings = []string{
	"nodelay", "sndbuf/recbuf 192 KiB", "classic queues v2", "statistics off", "no plugins",
	"memory watermark 0.8", "no scheduler busy wait (package default)",
}

// StartRabbitMQ starts the installed server on free ports with a folder of its
// own in parent (empty: where temporary files go) and returns once AMQP
// connections are answered.
func StartRabbitMQ(ctx context.Context, parent string) (*Peer, error) {
	script, err := findRabbit()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "bench-rabbitmq-")
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		p, err := startRabbitIn(ctx, script, dir)
		if err == nil {
			return p, nil
		}
		// A port that was free may be somebody else's by the time the server binds it, and
		// its several parts say so in several ways.
		if try == startTries || ctx.Err() != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
}

// startTries is how often a start is tried.
const startTries = 3

func startRabbitIn(ctx context.Context, script, dir string) (*Peer, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := writeRabbitFiles(dir, ports[0]); err != nil {
		return nil, err
	}
	cmd := exec.Command(script)
	cmd.Dir = dir
	cmd.Env = rabbitEnvironment(dir, ports[1], ports[2])
	// A file, not a pipe: helper processes of the runtime inherit it, and
	// waiting for a pipe's end would wait for them.
	logFile, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	stop := func() error {
		err := stopRabbit(cmd, done, dir, ports[2])
		return errors.Join(err, os.RemoveAll(dir))
	}
	addr := "127.0.0.1:" + strconv.Itoa(ports[0])
	if err := awaitAMQP(ctx, addr, done); err != nil {
		output, _ := os.ReadFile(logFile.Name())
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, stop()), output)
	}
	return &Peer{URL: "amqp://guest:guest@" + addr, PID: cmd.Process.Pid, Settings: rabbitSettings, Stop: stop}, nil
}

func writeRabbitFiles(dir string, port int) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "rabbitmq.conf"), fmt.Appendf(nil, rabbitConf, port), 0o644),
		os.WriteFile(filepath.Join(dir, "advanced.config"), []byte(rabbitAdvanced), 0o644),
		os.WriteFile(filepath.Join(dir, "enabled_plugins"), []byte("[].\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "env.conf"), nil, 0o644),
	)
}

// rabbitEnvironment points everything that the server writes into dir and
// keeps the machine's own RabbitMQ settings out.
func rabbitEnvironment(dir string, distPort, mapperPort int) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"HOME=" + dir,
		"RABBITMQ_HOME_DIR=" + dir,
		"RABBITMQ_NODENAME=bench-" + strconv.Itoa(distPort) + "@localhost",
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "env.conf"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + filepath.Join(dir, "advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "enabled_plugins"),
		"RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"),
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(distPort),
		"ERL_EPMD_PORT=" + strconv.Itoa(mapperPort),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		// Makes the script replace itself by the server, so that the process
		// id we hold is the server's.
		"RUNNING_UNDER_SYSTEMD=true",
	}
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// All stay open until the last is chosen, so that they differ.
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// awaitAMQP waits until addr answers a protocol header with connection.start.
func awaitAMQP(ctx context.Context, addr string, done chan error) error {
	deadline := time.Now().Add(readyLimit)
	for !answersAMQP(addr) {
		select {
		case err := <-done:
			done <- err
			return fmt.Errorf("rabbitmq ended while starting: %w", errors.Join(err, errors.New("see its output")))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("rabbitmq did not answer within %v", readyLimit)
		}
	}
	return nil
}

func answersAMQP(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(5*time.Second)) != nil {
		return false
	}
	if _, err := c.Write([]byte{'A', 'M', 'Q', 'P', 0, 0, 9, 1}); err != nil {
		return false
	}
	head := make([]byte, 11)
	for at := 0; at < len(head); {
		n, err := c.Read(head[at:])
		if err != nil {
			return false
		}
		at += n
	}
	return bytes.Equal(head[7:], []byte{0, 10, 0, 10})
}

// stopRabbit ends the server and then the port mapper that it started, each
// by its process id.
func stopRabbit(cmd *exec.Cmd, done chan error, dir string, mapperPort int) error {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case <-done: // its exit code on SIGTERM says nothing
	case <-time.After(stopLimit):
		_ = cmd.Process.Kill()
		<-done
		err = fmt.Errorf("rabbitmq did not stop within %v of SIGTERM", stopLimit)
	}
	pid, mapperErr := mapperPID(dir, mapperPort)
	if mapperErr != nil || pid == 0 {
		return errors.Join(err, mapperErr)
	}
	if killErr := syscall.Kill(pid, syscall.SIGTERM); killErr != nil && killErr != syscall.ESRCH {
		err = errors.Join(err, fmt.Errorf("stopping epmd: %w", killErr))
	}
	return err
}

// mapperPID finds the epmd of this run: the one whose environment names our
// port and whose home is our folder. 0: none runs.
func mapperPID(dir string, port int) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		name, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(name)) != "epmd" {
			continue
		}
		env, err := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if err != nil {
			continue
		}
		vars := "\x00" + string(env)
		if strings.Contains(vars, "\x00ERL_EPMD_PORT="+strconv.Itoa(port)+"\x00") && strings.Contains(vars, "\x00HOME="+dir+"\x00") {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, nil
}
