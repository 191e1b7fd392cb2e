package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestLogWriterKeepsOrderAndFlushes(t *testing.T) {
	var out bytes.Buffer
	w := newLogWriter(&out)
	for i := range 1000 {
		if _, err := w.Write([]byte{byte('a' + i%26), '\n'}); err != nil {
			t.Fatal(err)
		}
	}
	w.close()
	if out.Len() != 2000 || !strings.HasPrefix(out.String(), "a\nb\nc\n") {
		t.Fatalf("%d bytes written, beginning with %.10q", out.Len(), out.String())
	}
}

// A reader that does not read must not stop those who log.
func TestLogWriterDropsWhenNobodyReads(t *testing.T) {
	r, pipe := io.Pipe()
	w := newLogWriter(pipe)
	line := bytes.Repeat([]byte("x"), 1023)
	line = append(line, '\n')
	for range 4096 { // 4 MiB into a bound of 1 MiB, without a reader
		w.Write(line)
	}
	got := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		got <- string(all)
	}()
	w.close()
	pipe.Close()
	all := <-got
	if !strings.Contains(all, "lines_dropped=") {
		t.Fatalf("%d bytes written and no word of the lines that were dropped", len(all))
	}
	if len(all) > 3*logBytesMax {
		t.Fatalf("%d bytes waited, want at most about %d", len(all), logBytesMax)
	}
}
