package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLockGone: a data folder that is deleted, or replaced, is noticed.
func TestLockGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	l, err := lockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	if l.gone(dir) {
		t.Error("gone, and it is there")
	}
	moved := dir + ".moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if !l.gone(dir) {
		t.Error("it was moved")
	}
	again, err := lockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.release()
	if !l.gone(dir) || again.gone(dir) || l.gone(moved) {
		t.Error("it was replaced")
	}
}

// TestLockToRead: looking makes nothing, and does not disturb a broker.
func TestLockToRead(t *testing.T) {
	dir := t.TempDir()
	if l, err := lockToRead(dir); l != nil || err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%d files were made (%v)", len(entries), err)
	}
	l, err := lockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockToRead(dir); err == nil || !strings.Contains(err.Error(), "is locked by process") {
		t.Errorf("beside a broker: %v", err)
	}
	l.release()
	first, err := lockToRead(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.release()
	if _, err := lockToRead(dir); err != nil {
		t.Errorf("two readers: %v", err)
	}
	if _, err := lockData(dir); err == nil {
		t.Error("a broker starts while somebody reads")
	}
}

// TestCheckDefinitions: a message log without definitions is not started on.
func TestCheckDefinitions(t *testing.T) {
	dir := t.TempDir()
	b := &broker{dataPath: dir}
	if err := b.checkDefinitions(); err != nil {
		t.Errorf("a new folder: %v", err)
	}
	loop := filepath.Join(dir, logFolder, "000")
	if err := os.MkdirAll(loop, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := b.checkDefinitions(); err != nil {
		t.Errorf("an empty log: %v", err)
	}
	if err := os.WriteFile(filepath.Join(loop, "00000001.wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.checkDefinitions(); err == nil || !strings.Contains(err.Error(), definitionsFile+" is missing") {
		t.Errorf("a log without definitions: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, definitionsFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.checkDefinitions(); err != nil {
		t.Errorf("with definitions, good or bad: %v", err)
	}
}
