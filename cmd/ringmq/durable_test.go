package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringmq/wal"
)

// TestStorageFailed shows the one line that the operator reads, written out before the process ends,
// however many logs fail at once.
func TestStorageFailed(t *testing.T) {
	failure := fmt.Errorf("loop 1: %w", &wal.IOError{Op: "write", File: "000a.wal", Offset: 4096, Err: syscall.EIO})
	for _, c := range []struct{ sync, want string }{
		{"always", "no message that was confirmed is lost; restart after the disk is repaired"},
		{"off", "messages that were confirmed may be lost with --sync off; restart after the disk is repaired"},
	} {
		var log bytes.Buffer
		type ending struct {
			code int
			log  string
		}
		ended := make(chan ending, 2)
		flushed := ""
		b := &broker{o: &serveOptions{Sync: c.sync}, log: slog.New(slog.NewTextHandler(&log, nil)),
			flushLog: func() { flushed = log.String() },
		}
		b.exit = func(code int) { ended <- ending{code, flushed} }
		for range 2 {
			go b.storageFailed(failure) // it never returns
		}
		e := <-ended
		if e.code != exitWorld || strings.Count(e.log, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", c.sync, e.code, e.log)
		}
		for _, want := range []string{"level=ERROR", c.want, "operation=write", "file=000a.wal", "offset=4096", "errno=5", "input/output error"} {
			if !strings.Contains(e.log, want) {
				t.Errorf("%s: no %q in %s", c.sync, want, e.log)
			}
		}
	}
}

func TestStorageOpenError(t *testing.T) {
	b := &broker{dataPath: "/d"}
	damage := &wal.CorruptionError{File: "000a.wal", From: 8192, To: 8200, Cause: "checksum"}
	for _, c := range []struct {
		err  error
		want []string
	}{
		{fmt.Errorf("loop 0: %w", damage), []string{"000a.wal", "8192", "nothing was changed",
			"ringmq ctl wal check --data /d", "ringmq ctl wal repair --data /d"}},
		{wal.ErrDamaged, []string{"ringmq ctl wal check --data /d"}},
		{errors.New("no such device"), []string{"the message log in /d/wal cannot be opened: no such device"}},
	} {
		got := b.storageOpenError(c.err).Error()
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	}
}

// TestRecoveryProgress shows what log and supervisor read while logs are read.
func TestRecoveryProgress(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "n")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	r := newRecovery(&broker{log: log, notify: notifier{socket, log}})
	r.end() // the test is the clock
	for _, c := range []struct {
		done0, done1 int64
		want         []string
		notice       string
	}{
		{100e6, 0, []string{"loop=0 done_mb=100 total_mb=500 mb_per_s=100", "loop=1 done_mb=0 total_mb=300 mb_per_s=0"}, "100 of 800 MB"},
		{500e6, 200e6, []string{"loop=0 done_mb=500 total_mb=500 mb_per_s=400", "loop=1 done_mb=200 total_mb=300 mb_per_s=200"}, "700 of 800 MB"},
		{500e6, 250e6, []string{"loop=1 done_mb=250 total_mb=300 mb_per_s=50"}, "750 of 800 MB"},
	} {
		r.progress(0, c.done0, 500e6)
		r.progress(1, c.done1, 300e6)
		text.Reset()
		r.tell()
		if got := strings.Count(text.String(), "msg=recovering"); got != len(c.want) {
			t.Errorf("%d lines, want %d:\n%s", got, len(c.want), &text)
		}
		for _, want := range c.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, &text)
			}
		}
		buf := make([]byte, 256)
		n, err := l.Read(buf)
		if want := "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=recovering, " + c.notice; err != nil || string(buf[:n]) != want {
			t.Errorf("the supervisor read %q, %v; want %q", buf[:n], err, want)
		}
	}
}
