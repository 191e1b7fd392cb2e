package main

import (
	"os"
	"path/filepath"
	"testing"
)

// fakeRoot makes a folder with the given files.
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMemoryTotal(t *testing.T) {
	const info = "MemTotal:        1000 kB\nMemFree: 1 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64 // KiB, 0 for an error
	}{
		{"machine", map[string]string{"proc/meminfo": info}, 1000},
		{"no figure", map[string]string{"proc/meminfo": "MemFree: 1 kB\n"}, 0},
		{"nothing", nil, 0},
		{"version 2", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "512000\n"}, 500},
		{"version 2, no limit", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n"}, 1000},
		{"version 2, a group above", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "512000\n", "sys/fs/cgroup/a/memory.max": "256000\n"}, 250},
		{"version 2, in a container", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/outside/path\n",
			"sys/fs/cgroup/memory.max": "102400"}, 100},
		{"version 1", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "9:pids:/x\n4:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "204800\n"}, 200},
		{"version 1, several controllers", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "4:cpu,memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "204800\n"}, 200},
		{"version 1, no limit", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 1000},
	} {
		got, err := memoryTotal(fakeRoot(t, c.files))
		if (err != nil) != (c.want == 0) || err == nil && got != c.want<<10 {
			t.Errorf("%s: %d KiB, %v; want %d KiB", c.name, got>>10, err, c.want)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		limit memoryLimit
		text  string
		bytes int64 // of a machine with 10 GiB
	}{
		{-60, "60%", 10 << 30 / 100 * 60},
		{-100, "100%", 10 << 30 / 100 * 100},
		{64 << 20, "64MiB", 64 << 20},
		{100e9 + 1, "100000000001", 100e9 + 1},
	} {
		if c.limit.String() != c.text || c.limit.bytes(10<<30) != c.bytes {
			t.Errorf("%d: %s, %d bytes", c.limit, c.limit, c.limit.bytes(10<<30))
		}
		if got, err := parseMemoryLimit(c.text); err != nil || got != c.limit {
			t.Errorf("%s: %d, %v", c.text, got, err)
		}
	}
	if got := memoryLimit(-60).bytes(90 << 20); got != memoryLimitMin {
		t.Errorf("the default on a tiny machine is %d bytes, want the least that works", got)
	}
}

func TestByteText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB",
		1<<20 - 1: "1 MiB", 5 << 20: "5 MiB", 3<<30 + 1<<29: "3.5 GiB", 1 << 62: "4 EiB"} {
		if got := byteText(n); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}
