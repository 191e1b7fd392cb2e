package peers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRabbitMQStartsAndLeavesNothing needs an installed RabbitMQ and some
// seconds; without either it is skipped.
func TestRabbitMQStartsAndLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole broker")
	}
	if _, err := findRabbit(); err != nil {
		t.Skip(err)
	}
	tmp := t.TempDir()
	p, err := StartRabbitMQ(context.Background(), tmp)
	if err != nil {
		t.Fatal(err)
	}
	if !answersAMQP(strings.TrimPrefix(p.URL, "amqp://guest:guest@")) {
		t.Error("it does not answer")
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(p.PID, 0); err != syscall.ESRCH {
		t.Errorf("process %d is still there: %v", p.PID, err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("folders left: %v %v", left, err)
	}
	if len(p.Settings) == 0 {
		t.Error("no settings to report")
	}
}

func TestRabbitEnvironmentIsItsOwn(t *testing.T) {
	t.Setenv("RABBITMQ_NODENAME", "production")
	for _, v := range rabbitEnvironment(t.TempDir(), 1, 2) {
		if strings.Contains(v, "production") {
			t.Errorf("%s leaks in from the surroundings", v)
		}
	}
}

func TestMapperOfNobody(t *testing.T) {
	if pid, err := mapperPID(t.TempDir(), os.Getpid()); err != nil || pid != 0 {
		t.Errorf("found %d, %v", pid, err)
	}
}
