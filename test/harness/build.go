package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

var build, buildFaults struct {
	once sync.Once
	dir  string // temporary folder that holds the binary, removed by Main
	path string
	err  error
}

// Binary returns the path of the broker binary, building it on the first call of the process.
func Binary() (string, error) {
	build.once.Do(func() {
		if build.path = os.Getenv("RINGMQ_TEST_BIN"); build.path != "" {
			return
		}
		build.path, build.err = buildBinary(&build.dir)
	})
	return build.path, build.err
}

// FaultsBinary returns the path of a broker that does what RINGMQ_TEST_FAULT says to its disk calls, building it on
// the first call of the process.
func FaultsBinary() (string, error) {
	buildFaults.once.Do(func() {
		buildFaults.path, buildFaults.err = buildBinary(&buildFaults.dir, "-tags", "faults")
	})
	return buildFaults.path, buildFaults.err
}

// buildBinary builds the broker into a new folder, which it stores in dir.
func buildBinary(dir *string, flags ...string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	*dir, err = os.MkdirTemp("", "ringmq-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(*dir, "ringmq")
	args := append([]string{"build", "-o", path}, flags...)
	if os.Getenv("RINGMQ_TEST_RACE") != "" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/ringmq")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/ringmq: %w\n%s", err, out)
	}
	return path, nil
}

// moduleRoot is the folder of go.mod, found from the working directory (go test sets it to the package's folder).
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("not inside the module: go env GOMOD says %q", mod)
	}
	return filepath.Dir(mod), nil
}

// RemoveBinary removes the binaries that this process built. Main calls it; programs that do not use Main call it themselves.
func RemoveBinary() {
	for _, dir := range []string{build.dir, buildFaults.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
}
