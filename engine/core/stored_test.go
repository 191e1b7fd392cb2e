package core

import (
	"bytes"
	"testing"
)

// A message comes back from its stored form as it was.
func TestStored(t *testing.T) {
	for _, body := range []string{"", "x", string(make([]byte, 5000))} {
		a := newHeapArena(t, FromToken)
		m := NewMessage(a, []byte("exchange"), []byte("key"), []byte("header"), len(body))
		m.AppendBody([]byte(body))
		m.Flags, m.Priority, m.TTL = FlagPersistent|FlagExpires, 7, 12345
		var head [StoredHeadBytes]byte
		m.Arrival = 1700000000123
		m.PutStoredHead(head[:])
		h, err := ParseStoredHead(head[:])
		if err != nil || h.Arrival != 1700000000123 || h.TTL != 12345 || int(h.BodyLen) != len(body) {
			t.Fatalf("%+v, %v", h, err)
		}
		n, err := NewStored(a, h, m.Stored())
		if err != nil {
			t.Fatal(err)
		}
		if string(n.Exchange()) != "exchange" || string(n.Key()) != "key" || string(n.Head()) != "header" ||
			!bytes.Equal(n.Body(), m.Body()) || n.Flags != m.Flags || n.Priority != 7 || n.TTL != 12345 ||
			n.Missing() != 0 || n.Refs() != 1 || n.Size() != m.Size() {
			t.Errorf("%+v is not %+v", n, m)
		}
		if _, err := NewStored(a, h, append(m.Stored(), 1)); err == nil {
			t.Error("a stored message of the wrong size is accepted")
		}
		n.Release(a)
		m.Release(a)
	}
}

func TestStoredHeadRefusals(t *testing.T) {
	var good [StoredHeadBytes]byte
	a := newHeapArena(t, FromToken)
	m := NewMessage(a, []byte("x"), nil, nil, 0)
	m.PutStoredHead(good[:])
	m.Release(a)
	for name, b := range map[string][]byte{
		"short":   good[:StoredHeadBytes-1],
		"version": append([]byte{9}, good[1:]...),
		"route":   append(append(append([]byte{}, good[:6]...), 0, 0), good[8:]...),
	} {
		if _, err := ParseStoredHead(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
