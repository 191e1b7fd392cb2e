package defs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringmq/engine"
)

// A file that is shorter than it says is refused at every length, and never read beyond its end.
func TestShortFile(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.db")
	s, err := Open(whole, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		s.Apply([]engine.Change{{Kind: engine.KindQueue, Key: []byte{byte(i), byte(i >> 8), 'q'}, Value: make([]byte, 100)}})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	const step = 4096
	refused := 0
	for n := 0; n < len(content); n += step {
		short := filepath.Join(t.TempDir(), "short.db")
		if err := os.WriteFile(short, content[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(short, Options{})
		if err == nil {
			// bbolt grows files ahead of need: the end may hold nothing.
			if err := s.Close(); err != nil {
				t.Errorf("%d of %d bytes: %v", n, len(content), err)
			}
			continue
		}
		if refused++; !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%d of %d bytes: %v", n, len(content), err)
		}
	}
	if refused < 4 {
		t.Errorf("%d lengths of %d bytes refused", refused, len(content))
	}
}
