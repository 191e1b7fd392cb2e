package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// logBytesMax bounds the lines that wait for a slow reader of the log.
const logBytesMax = 1 << 20

// logCloseMax is how long the end of the process waits for the log to be written.
const logCloseMax = 2 * time.Second

// logWriter takes log lines without ever waiting: event loops log, and whoever reads standard error
// may be slow or stopped. A goroutine of its own writes them out in order. Lines beyond the bound are
// dropped and counted in one line that says so.
type logWriter struct {
	out io.Writer

	mu      sync.Mutex
	wake    sync.Cond // lines arrived, or closed
	pending []byte
	dropped int
	closed  bool

	done chan struct{}
}

func newLogWriter(out io.Writer) *logWriter {
	w := &logWriter{out: out, done: make(chan struct{})}
	w.wake.L = &w.mu
	go w.run()
	return w
}

// Write takes one or more whole lines. It never fails.
func (w *logWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.pending)+len(p) > logBytesMax {
		w.dropped++
		return len(p), nil
	}
	w.pending = append(w.pending, p...)
	w.wake.Signal()
	return len(p), nil
}

// close writes what is pending and ends the goroutine. It may be called again.
func (w *logWriter) close() {
	w.mu.Lock()
	w.closed = true
	w.wake.Signal()
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(logCloseMax): // nobody reads it: that must not keep us
	}
}

func (w *logWriter) run() {
	defer close(w.done)
	var batch []byte
	for {
		w.mu.Lock()
		for len(w.pending) == 0 && !w.closed {
			w.wake.Wait()
		}
		batch, w.pending = w.pending, batch[:0]
		dropped, closed := w.dropped, w.closed
		w.dropped = 0
		w.mu.Unlock()
		if dropped > 0 {
			batch = fmt.Appendf(batch, "level=WARN msg=\"the log is read too slowly\" lines_dropped=%d\n", dropped)
		}
		// There is nowhere to tell that the log cannot be written.
		_, _ = w.out.Write(batch)
		if closed && len(batch) == 0 {
			return
		}
	}
}
