package amqp091

import (
	"bytes"
	"testing"
)

// head makes the payload of a content header frame.
func headOf(props []byte) []byte {
	return append([]byte{0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2}, props...)
}

// checkHeadWith sets a header and compares everything else.
func checkHeadWith(t *testing.T, head []byte, name string, v int64) {
	t.Helper()
	var before, after Properties
	if before.Decode(head[contentFixed:]) != nil {
		return // not well-formed
	}
	prefix := []byte("before")
	out := AppendHeadWith(prefix, head, name, v)
	if !bytes.HasPrefix(out, prefix) || !bytes.Equal(out[len(prefix):len(prefix)+contentFixed], head[:contentFixed]) {
		t.Fatalf("%X became %X", head, out)
	}
	if err := after.Decode(out[len(prefix)+contentFixed:]); err != nil {
		t.Fatalf("%X became %X: %v", head, out, err)
	}
	got, ok := after.Headers.Lookup(name)
	n, _ := got.Int()
	if !ok || got.Tag != 'l' || n != v {
		t.Fatalf("%s is %v in %X", name, got, out)
	}
	var want []byte
	for key, value := range before.Headers.All() {
		if string(key) != name {
			want = AppendRaw(want, string(key), value)
		}
	}
	if want = AppendInt64(want, name, v); !bytes.Equal(after.Headers, want) {
		t.Fatalf("headers %X, want %X", after.Headers, want)
	}
	before.Headers, after.Headers = nil, nil
	before.Flags |= FlagHeaders
	if !bytes.Equal(before.Append(nil), after.Append(nil)) {
		t.Fatalf("%+v became %+v", before, after)
	}
}

// headWithCases are property lists; the corpus of the fuzz target.
func headWithCases() [][]byte {
	p := fullProperties()
	twice := Properties{Flags: FlagHeaders, Headers: AppendInt64(AppendString(AppendInt32(nil, "n", 1), "x", "y"), "n", 2)}
	return [][]byte{
		{0, 0},
		smallProps, headerProps, p.Append(nil), twice.Append(nil),
		(&Properties{Flags: FlagHeaders}).Append(nil),
		(&Properties{Flags: FlagContentEncoding | FlagClusterID, ContentEncoding: []byte("gzip"), ClusterID: []byte("c")}).Append(nil),
		(&Properties{Flags: FlagContentType | FlagContentEncoding | FlagHeaders, Headers: AppendString(nil, "n", "text")}).Append(nil),
	}
}

// FLD-03: what the server adds is of type l; all else stays as it was (BAS-21).
func TestAppendHeadWith(t *testing.T) {
	for _, props := range headWithCases() {
		for _, name := range []string{"n", "x-delivery-count"} {
			checkHeadWith(t, headOf(props), name, 1<<40+7)
			checkHeadWith(t, headOf(props), name, -1)
		}
	}
}

func TestAppendHeadWithAllocs(t *testing.T) {
	buf := make([]byte, 0, 1024)
	for _, props := range headWithCases() {
		head := headOf(props)
		if n := testing.AllocsPerRun(100, func() { sinkBytes = AppendHeadWith(buf, head, "n", 5) }); n != 0 {
			t.Errorf("%X: %v allocations", head, n)
		}
	}
}

func FuzzHeadWith(f *testing.F) {
	for _, props := range headWithCases() {
		f.Add(props, "n", int64(1))
	}
	f.Fuzz(func(t *testing.T, props []byte, name string, v int64) {
		checkHeadWith(t, headOf(props), name[:min(len(name), shortMax)], v)
	})
}
