package harness

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Diagnose is what an operator would look at first when a broker seems stuck: its status, its queues, its goroutines
// and what it printed. The process goes on.
func (b *Broker) Diagnose() string {
	if b.cmd == nil {
		return "an external broker"
	}
	var text strings.Builder
	for _, ask := range [][]string{{"ctl", "status"}, {"ctl", "queue", "list"}} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		out, err := exec.CommandContext(ctx, b.cmd.Args[len(b.opts.Prefix)], append(ask, "--data", b.opts.Data)...).CombinedOutput()
		cancel()
		fmt.Fprintf(&text, "--- %s (%v)\n%s", strings.Join(ask, " "), err, out)
	}
	_ = b.cmd.Process.Signal(syscall.SIGUSR1)
	select { // nothing tells that the dump is complete
	case <-b.exited:
	case <-time.After(time.Second):
	}
	text.WriteString(b.Output())
	return text.String()
}
