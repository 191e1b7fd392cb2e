package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const clientModule = "github.com/rabbitmq/amqp091-go"

// copyModule copies the client module, in the version of go.mod, out of the module cache into dir: the cache is read-only and go
// test wants a module of its own. It also fetches what the module's tests need, while there is still a network.
func copyModule(dir string) (version string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", clientModule).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", clientModule, err)
	}
	version, source, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !ok {
		if err := run("go", "mod", "download", clientModule); err != nil {
			return "", err
		}
		return copyModule(dir)
	}
	if err := copyTree(dir, source); err != nil {
		return "", err
	}
	download := exec.Command("go", "mod", "download", "all")
	download.Dir = dir
	if text, err := download.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go mod download in the copy of %s: %w: %s", clientModule, err, text)
	}
	return version, nil
}

func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}
