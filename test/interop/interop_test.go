//go:build interop

package interop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ringmq/test/harness"
)

const (
	installMax = 4 * time.Minute // a registry that hangs must not hold up the run
	scriptMax  = 2 * time.Minute // each scenario has a limit of its own; this is for a hung runtime
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestPython(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, "python3", "-m", "venv", dir)
	install(t, dir, filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		"-r", abs(t, "python/requirements.txt"))
	runScript(t, dir, filepath.Join(dir, "bin", "python"), abs(t, "python/scenarios.py"))
}

func TestNode(t *testing.T) {
	dir := t.TempDir()
	// The script must stand beside node_modules for its require to be found.
	for _, name := range []string{"package.json", "scenarios.js"} {
		text, err := os.ReadFile(filepath.Join("node", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install(t, dir, "npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock")
	runScript(t, dir, "node", "scenarios.js")
}

func TestJava(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, "mvn", "--quiet", "--batch-mode", "-f", abs(t, "java/pom.xml"),
		"dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(dir, "lib"))
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skipf("not run: %v", err)
	}
	classes, path := filepath.Join(dir, "classes"), filepath.Join(dir, "lib", "*")
	if out, err := command(scriptMax, dir, "javac", "-d", classes, "-cp", path, abs(t, "java/Scenarios.java")); err != nil {
		t.Fatalf("javac: %v\n%s", err, out) // our own source: not a reason to skip
	}
	runScript(t, dir, "java", "-cp", classes+string(os.PathListSeparator)+path, "Scenarios")
}

// install runs one step of installing a client and skips the test when it fails.
func install(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	out, err := command(installMax, dir, name, args...)
	if err != nil {
		t.Skipf("not run: the client cannot be installed: %s: %v\n%s", name, err, tail(out))
	}
}

// runScript runs the client's scenarios on each I/O backend against a broker of its own, or
// against the broker that RINGMQ_TEST_ADDR names.
func runScript(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	run := func(t *testing.T, addr string) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		all := append(append([]string{}, args...), host, port)
		out, err := command(scriptMax, dir, name, all...)
		t.Logf("%s", out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if addr := os.Getenv("RINGMQ_TEST_ADDR"); addr != "" {
		run(t, addr)
		return
	}
	harness.ForEachBackendAlone(t, harness.Options{}, func(t *testing.T, b *harness.Broker) { run(t, b.Addr) })
}

// command runs a program in dir for at most limit and returns what it printed.
func command(limit time.Duration, dir, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second // a grandchild may hold the output pipe open
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Writer(&out), io.Writer(&out)
	err := cmd.Run()
	if ctx.Err() != nil {
		err = errors.New("not done within " + limit.String())
	}
	return out.Bytes(), err
}

// tail keeps the end of a long output.
func tail(out []byte) []byte {
	const most = 2000
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return out
}

func abs(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
