package harness

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// Ctl runs "ringmq ctl" with the arguments on the broker's data folder and returns what it printed. Anything but
// exit status 0 ends the test.
func (b *Broker) Ctl(t testing.TB, args ...string) string {
	t.Helper()
	code, stdout, stderr := b.TryCtl(t, args...)
	if code != 0 {
		t.Fatalf("ctl %q: exit %d: %s", args, code, stderr)
	}
	return stdout
}

// TryCtl is Ctl for what may fail: it returns the exit status too.
func (b *Broker) TryCtl(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if b.External() {
		t.Skip("an external broker has no control socket")
	}
	path, err := b.opts.Binary, error(nil)
	if path == "" {
		path, err = Binary()
	}
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, append([]string{"ctl"}, args...)...)
	cmd.Env = append(os.Environ(), "RINGMQ_DATA="+b.opts.Data)
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}
