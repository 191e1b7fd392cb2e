package amqp091

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
)

// knownError reports whether err is one a decoder may return.
func knownError(err error) bool {
	return errors.Is(err, ErrTruncated) || errors.Is(err, ErrTrailing) ||
		errors.Is(err, ErrTable) || errors.Is(err, ErrContinuation)
}

// FuzzMethod decodes any payload as the method that its first four octets name.
// What decodes must come back unchanged through a frame of its own, and again
// octet by octet; only reserved fields and unused bits may differ from the input.
func FuzzMethod(f *testing.F) {
	for _, c := range goldenMethods {
		frame := unhex(c.frame)
		f.Add(frame[FrameHeaderSize : len(frame)-1])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) < 4 {
			return
		}
		id := MethodID(binary.BigEndian.Uint32(payload))
		m := New(id)
		if (m != nil) != id.Known() {
			t.Fatalf("%s: known %v", id, id.Known())
		}
		if m == nil {
			return
		}
		args := bytes.Clone(payload[4:])
		if err := m.Decode(args); err != nil {
			if !knownError(err) {
				t.Fatalf("%s: %v", id, err)
			}
			return
		}
		if !bytes.Equal(args, payload[4:]) {
			t.Fatalf("%s: decoding wrote into its input", id)
		}
		frame := m.Append(nil, 5)
		head := ParseFrameHead(frame)
		if head != (FrameHead{FrameMethod, 5, uint32(len(frame) - FrameOverhead)}) || frame[len(frame)-1] != FrameEnd {
			t.Fatalf("%s: bad frame %X", id, frame)
		}
		if len(frame)-FrameOverhead > len(payload) {
			t.Fatalf("%s: grew from %d to %d octets", id, len(payload), len(frame)-FrameOverhead)
		}
		back := New(id)
		if err := back.Decode(frame[11 : len(frame)-1]); err != nil {
			t.Fatalf("%s: own frame: %v", id, err)
		}
		if !reflect.DeepEqual(m, back) {
			t.Fatalf("%s: %+v became %+v", id, m, back)
		}
		if again := back.Append(nil, 5); !bytes.Equal(again, frame) {
			t.Fatalf("%s: second frame differs", id)
		}
	})
}

// FuzzTable compares the validator with the recursive one, and reads the table
// by every accessor whether it is valid or not.
func FuzzTable(f *testing.F) {
	f.Add([]byte(everyTagTable()))
	f.Add([]byte(nest(5, true)))
	f.Add([]byte(nest(TableDepthMax, false)))
	f.Fuzz(func(t *testing.T, data []byte) {
		table := Table(data[:len(data):len(data)])
		err := table.Validate()
		if want := referenceTable(table, 1); (err == nil) != want {
			t.Fatalf("Validate says %v, the reference %v", err, want)
		}
		count := 0
		var again []byte
		for key, v := range table.All() {
			count++
			readValue(t, v, 0)
			again = AppendRaw(again, string(key), v)
			if _, ok := table.Lookup(string(key)); !ok {
				t.Fatalf("%q is there and not found", key)
			}
		}
		if count != table.Len() {
			t.Fatalf("All gave %d entries, Len %d", count, table.Len())
		}
		if !bytes.HasPrefix(table, again) || (err == nil && len(again) != len(table)) {
			t.Fatalf("%X became %X", data, again)
		}
	})
}

// readValue calls every accessor; the depth bound is the test's own.
func readValue(t *testing.T, v Value, depth int) {
	_, isInt := v.Int()
	_, isBool := v.Bool()
	_, isStr := v.Str()
	_, isFloat := v.Float()
	_, isTime := v.Time()
	inner, isTable := v.Table()
	kinds := 0
	for _, is := range []bool{isInt, isBool, isStr, isFloat, isTime, isTable} {
		if is {
			kinds++
		}
	}
	if kinds > 1 || v.TypeName() == "unknown" {
		t.Fatalf("%c is %d kinds, %s", v.Tag, kinds, v.TypeName())
	}
	if depth > TableDepthMax {
		return
	}
	for _, v := range inner.All() {
		readValue(t, v, depth+1)
	}
	for v := range v.Array() {
		readValue(t, v, depth+1)
	}
}

// FuzzProperties: what decodes is appended again octet by octet.
func FuzzProperties(f *testing.F) {
	f.Add(smallProps)
	f.Add(headerProps)
	f.Add(allProps)
	f.Fuzz(func(t *testing.T, data []byte) {
		p := fullProperties() // stale values must not shine through
		if err := p.Decode(data); err != nil {
			if !knownError(err) {
				t.Fatal(err)
			}
			return
		}
		if got := p.Append(nil); !bytes.Equal(got, data) {
			t.Fatalf("%X became %X", data, got)
		}
	})
}

// FuzzFrameHead: heads go round, and content heads are views of their payload.
func FuzzFrameHead(f *testing.F) {
	f.Add(AppendHeartbeat(nil))
	f.Add(AppendContentHeader(nil, 1, 5, smallProps))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < FrameHeaderSize {
			return
		}
		head := ParseFrameHead(data)
		again := AppendFrameHead(nil, head.Type, head.Channel, head.Size)
		if !bytes.Equal(again, data[:FrameHeaderSize]) {
			t.Fatalf("%X became %X", data[:FrameHeaderSize], again)
		}
		put := make([]byte, FrameHeaderSize)
		PutFrameHead(put, head.Type, head.Channel, head.Size)
		if !bytes.Equal(put, again) {
			t.Fatalf("put %X, append %X", put, again)
		}
		payload := data[FrameHeaderSize:]
		content, ok := ParseContentHead(payload)
		if ok != (len(payload) >= 14) {
			t.Fatalf("%d octets: %v", len(payload), ok)
		}
		if !ok || content.Class != 60 || content.Weight != 0 {
			return
		}
		frame := AppendContentHeader(nil, head.Channel, content.BodySize, content.Props)
		if !bytes.Equal(frame[FrameHeaderSize:len(frame)-1], payload) {
			t.Fatalf("%X became %X", payload, frame)
		}
	})
}
