package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDiskFileWritesWhatItClaims(t *testing.T) {
	dir := t.TempDir()
	f, err := newDiskFile(dir, 5000)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.chunk) != 2*diskBlock || f.size < diskFileSize || f.size%int64(len(f.chunk)) != 0 {
		t.Errorf("chunks of %d in a file of %d", len(f.chunk), f.size)
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Size() != f.size {
		t.Fatalf("the file has %d octets before the first run, want %d: %v", info.Size(), f.size, err)
	}
	for _, m := range diskModes {
		if !f.has(m) {
			continue // refused by this file system
		}
		before, h := f.at, newHistogram()
		if err := f.run(context.Background(), m, 0, h); err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		raw, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if h.count() != 1 || f.at != before+int64(len(f.chunk)) || !bytes.Equal(raw[before:f.at], f.chunk) {
			t.Errorf("%v: %d commits up to %d", m, h.count(), f.at)
		}
	}
	f.at = f.size
	if err := f.commit(writeSync); err != nil || f.at != int64(len(f.chunk)) {
		t.Errorf("behind the end it goes on at %d, %v, want at the start", f.at, err)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestDiskFileErrors(t *testing.T) {
	if _, err := newDiskFile(filepath.Join(t.TempDir(), "none"), 1); err == nil {
		t.Error("a folder that is not there was taken")
	}
	f, err := newDiskFile(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.run(ctx, writeSync, time.Hour, newHistogram()); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	good := f.fds[writeSync]
	f.fds[writeSync] = -1
	if err := f.run(context.Background(), writeSync, time.Hour, newHistogram()); err == nil || !strings.Contains(err.Error(), "pwrite+fdatasync") {
		t.Errorf("a write that failed: %v", err)
	}
	f.fds[writeSync] = good
}

func TestReadFilesCountsAndSkipsZeros(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data := make([]byte, readChunk+3*diskBlock)
	data[readChunk-1], data[readChunk+2*diskBlock] = 1, 1 // two blocks in use
	write("wal/000/1", data)
	write("wal/001/1", make([]byte, 2*diskBlock))
	write("definitions", []byte("short"))
	for _, readers := range []int{1, 2, 5} {
		files, err := filesBelow(dir)
		if err != nil {
			t.Fatal(err)
		}
		p, err := readFiles(context.Background(), files, readers)
		if err != nil || p.read != int64(len(data))+2*diskBlock+5 || p.used != 2*diskBlock+5 || p.took <= 0 {
			t.Errorf("%d readers: read %d, used %d, %v", readers, p.read, p.used, err)
		}
	}
	if err := dropCache(dir); err != nil {
		t.Error(err)
	}
	if p, err := readFastest(context.Background(), dir); err != nil || p.perSecond() <= 0 {
		t.Errorf("fastest: %+v, %v", p, err)
	}
	if _, err := readFiles(context.Background(), []string{filepath.Join(dir, "gone")}, 2); err == nil {
		t.Error("a missing file was read")
	}
	if _, err := readFastest(context.Background(), t.TempDir()); err == nil {
		t.Error("a server that left nothing cannot have kept anything")
	}
}

func TestNeedSpace(t *testing.T) {
	dir := t.TempDir()
	if err := needSpace(dir, 1); err != nil {
		t.Error(err)
	}
	if err := needSpace(dir, 1<<62); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a disk of 4 EiB: %v", err)
	}
	if fileSystem(filepath.Join(dir, "none")) != "an unknown file system" || strings.Contains(fileSystem(dir), "unknown") {
		t.Errorf("file system %q", fileSystem(dir))
	}
}
