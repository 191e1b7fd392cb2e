package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

var build struct {
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
		build.path, build.err = buildBinary()
	})
	return build.path, build.err
}

func buildBinary() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "ringmq-test-")
	if err != nil {
		return "", err
	}
	build.dir = dir
	path := filepath.Join(dir, "ringmq")
	args := []string{"build", "-o", path}
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

// RemoveBinary removes the binary that Binary built. Main calls it; programs that do not use Main call it themselves.
func RemoveBinary() {
	if build.dir != "" {
		_ = os.RemoveAll(build.dir)
	}
}
