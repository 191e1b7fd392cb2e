package core

import (
	"bytes"
	"strings"
	"testing"
)

func TestMessageLayout(t *testing.T) {
	long := strings.Repeat("n", NameBytesMax)
	for _, c := range []struct {
		name, exchange, key, head, body string
		parts                           int // in which the body arrives
	}{
		{"all empty", "", "", "", "", 0},
		{"default exchange", "", "queue", "head", "body", 1},
		{"empty key", "amq.fanout", "", "h", "b", 1},
		{"no body", "x", "k", "head", "", 0},
		{"no head", "x", "k", "", "body", 1},
		{"longest names", long, long, "head", "body", 1},
		{"body in parts", "x", "k", strings.Repeat("h", 700), strings.Repeat("0123456789", 1000), 7},
		{"odd sizes", "abc", "defgh", "i", "jklmnopqrstu", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newHeapArena(t, FromToken)
			exchange, key, head := []byte(c.exchange), []byte(c.key), []byte(c.head)
			m := NewMessage(a, exchange, key, head, len(c.body))
			clear(exchange) // the message must have copied them
			clear(key)
			clear(head)
			body := []byte(c.body)
			for i := range c.parts {
				size := len(c.body)/c.parts + 1
				part := body[:min(size, len(body))]
				body = body[len(part):]
				if missing := m.Missing(); missing < len(part) {
					t.Fatalf("missing %d bytes before a part of %d", missing, len(part))
				}
				if complete := m.AppendBody(part); complete != (len(body) == 0) {
					t.Fatalf("part %d: complete is %v with %d bytes to come", i, complete, len(body))
				}
			}
			if m.Missing() != 0 {
				t.Errorf("%d bytes missing at the end", m.Missing())
			}
			route := string([]byte{byte(len(c.exchange))}) + c.exchange + string([]byte{byte(len(c.key))}) + c.key
			for _, f := range []struct{ what, got, want string }{
				{"exchange", string(m.Exchange()), c.exchange},
				{"key", string(m.Key()), c.key},
				{"route", string(m.Route()), route},
				{"head", string(m.Head()), c.head},
				{"body", string(m.Body()), c.body},
			} {
				if f.got != f.want {
					t.Errorf("%s is %q, want %q", f.what, f.got, f.want)
				}
			}
			if want := 56 + len(route) + len(c.head) + len(c.body); m.Size() != want || m.BodyLen() != len(c.body) {
				t.Errorf("size %d, body %d, want %d and %d", m.Size(), m.BodyLen(), want, len(c.body))
			}
			if FromToken(m.Token()) != m {
				t.Error("the token names another message")
			}
			m.Release(a)
			a.check(0)
		})
	}
}

// A fresh block holds what its last user left there: nothing of it may show.
func TestMessageStartsClean(t *testing.T) {
	a := newHeapArena(t, FromToken)
	m := NewMessage(a, []byte("x"), []byte("k"), []byte("h"), 3)
	if m.Flags != 0 || m.Priority != 0 || m.TTL != 0 || m.Encoding != Encoding091 || m.Missing() != 3 || m.Persistent() {
		t.Errorf("flags %d, priority %d, TTL %d, encoding %d, missing %d", m.Flags, m.Priority, m.TTL, m.Encoding, m.Missing())
	}
	m.Flags |= FlagPersistent
	if !m.Persistent() {
		t.Error("delivery mode 2 is forgotten")
	}
	m.Release(a) // half filled: its channel ended
	a.check(0)
}

func TestMessageWithoutMemory(t *testing.T) {
	a := newHeapArena(t, FromToken)
	a.refuse = true
	if m := NewMessage(a, nil, []byte("k"), nil, 1<<30); m != nil {
		t.Error("a message without memory")
	}
}

func TestMessageReferences(t *testing.T) {
	for _, c := range []struct {
		name string
		add  []int32
		want int32
	}{
		{"one owner", nil, 1},
		{"one queue", []int32{0}, 1},
		{"fan-out", []int32{9}, 10},
		{"fan-out and deliveries", []int32{4, 1, 1}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newHeapArena(t, FromToken)
			m := NewMessage(a, []byte("x"), []byte("k"), []byte("h"), 4)
			m.AppendBody([]byte("body"))
			for _, n := range c.add {
				m.AddRef(n)
			}
			if m.Refs() != c.want {
				t.Fatalf("%d references, want %d", m.Refs(), c.want)
			}
			for left := c.want; left > 0; left-- {
				a.check(1)
				if !bytes.Equal(m.Body(), []byte("body")) {
					t.Fatalf("the body is gone with %d references left", left)
				}
				m.Release(a)
			}
			a.check(0)
		})
	}
}

// Every loop releases with its own arena, at the same time as others.
func TestMessageReleasedByManyLoops(t *testing.T) {
	for range 200 {
		a := newHeapArena(t, FromToken)
		m := NewMessage(a, []byte("x"), []byte("k"), []byte("h"), 0)
		const loops, each = 4, 25
		m.AddRef(loops*each - 1)
		done := make(chan struct{})
		for range loops {
			go func() {
				for range each {
					m.Release(a) // the arena sees one Free only, of whoever is last
				}
				done <- struct{}{}
			}()
		}
		for range loops {
			<-done
		}
		a.check(0)
	}
}

func TestMessageReleasedTooOften(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a reference too many goes unseen")
		}
	}()
	a := newHeapArena(t, FromToken)
	m := NewMessage(a, nil, nil, nil, 0)
	m.AddRef(-1) // as after a release elsewhere, whose block is not reused yet
	m.Release(a)
}

func TestAllocsMessage(t *testing.T) {
	pool := newFixedArena(FromToken)
	exchange, key, head, body := []byte("amq.topic"), []byte("a.b.c"), make([]byte, 14), make([]byte, 16)
	if n := testing.AllocsPerRun(100, func() {
		m := NewMessage(pool, exchange, key, head, len(body))
		m.AppendBody(body)
		m.AddRef(1)
		m.Release(pool)
		m.Release(pool)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMessage(b *testing.B) {
	pool := newFixedArena(FromToken)
	exchange, key, head, body := []byte("amq.topic"), []byte("a.b.c"), make([]byte, 14), make([]byte, 16)
	b.ReportAllocs()
	for b.Loop() {
		m := NewMessage(pool, exchange, key, head, len(body))
		m.AppendBody(body)
		m.Release(pool)
	}
}

// fixedArena has one block, again and again.
type fixedArena[P any] struct{ block P }

func newFixedArena[P comparable](_ func(P) *Message) *fixedArena[P] {
	h := newHeapArena[P](nil, nil)
	return &fixedArena[P]{block: h.Alloc(4096)}
}

// Alloc implements Arena.
func (f *fixedArena[P]) Alloc(int) P { return f.block }

// Free implements Arena.
func (f *fixedArena[P]) Free(P) {}
