package bench

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestPublishBytes(t *testing.T) {
	got := appendPublish(nil, 1, publish{exchange: "x", key: "key", body: []byte("abc"), persistent: true, mandatory: true}, 131072)
	want := []byte("\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x28\x00\x00\x01x\x03key\x01\xce" +
		"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x10\x00\x02\xce" +
		"\x03\x00\x01\x00\x00\x00\x03abc\xce")
	if !bytes.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestPublishSplitsBodies(t *testing.T) {
	const frameMax = 4096
	for _, size := range []int{0, 1, frameMax - 8, frameMax - 7, 3 * (frameMax - 8), 10001} {
		body := bytes.Repeat([]byte{7}, size)
		raw := appendPublish(nil, 1, publish{body: body}, frameMax)
		r := bytes.NewReader(raw)
		var total, frames int
		for r.Len() > 0 {
			frame, err := readTestFrame(r)
			if err != nil {
				t.Fatalf("size %d: %v", size, err)
			}
			if len(frame) > frameMax {
				t.Errorf("size %d: a frame of %d octets is over frame-max", size, len(frame))
			}
			if frame[0] == frameBody {
				total += len(frame) - frameOverhead
				frames++
			}
		}
		if wantFrames := (size + frameMax - 9) / (frameMax - 8); total != size || frames != wantFrames {
			t.Errorf("size %d: %d octets in %d body frames, want %d frames", size, total, frames, wantFrames)
		}
	}
}

func TestTableBytes(t *testing.T) {
	got, err := appendTable(nil, map[string]any{"b": true, "a": "s", "n": float64(5), "t": map[string]any{"i": int64(-1)}})
	if err != nil {
		t.Fatal(err)
	}
	want := "\x00\x00\x00\x29" + "\x01aS\x00\x00\x00\x01s" + "\x01bt\x01" + "\x01nl\x00\x00\x00\x00\x00\x00\x00\x05" +
		"\x01tF\x00\x00\x00\x0b\x01il\xff\xff\xff\xff\xff\xff\xff\xff"
	if string(got) != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	for _, bad := range []any{1.5, []any{1}, nil} {
		if _, err := appendTable(nil, map[string]any{"k": bad}); err == nil {
			t.Errorf("%v was encoded", bad)
		}
	}
}

func TestBatchIsEvenAndSliceable(t *testing.T) {
	keys := []string{"a", "bb", "ccc"}
	b := newBatch(publish{exchange: "x", persistent: true}, keys, []int{8, 300}, 5000, 200, rand.New(rand.NewPCG(1, 0)))
	if b.count()%6 != 0 || len(b.buf) < 5000 {
		t.Fatalf("%d messages in %d octets", b.count(), len(b.buf))
	}
	for i := range b.count() {
		b.stamp(i, uint64(i)+1)
	}
	var joined []byte
	for at := 0; at < b.count(); {
		part, n := b.slice(at, 4)
		joined = append(joined, part...)
		at += n
	}
	if !bytes.Equal(joined, b.buf) {
		t.Fatal("slices do not add up to the batch")
	}
	perKey := map[string]int{}
	sizes := map[int]int{}
	stamps := uint64(0)
	r := bytes.NewReader(b.buf)
	first := false
	for r.Len() > 0 {
		frame, err := readTestFrame(r)
		if err != nil {
			t.Fatal(err)
		}
		payload := frame[frameHeadSize : len(frame)-1]
		switch frame[0] {
		case frameMethod:
			a := testArgs(payload[6:])
			a.str()
			perKey[a.str()]++
			first = true
		case frameHeader:
			sizes[int(be.Uint64(payload[4:]))]++
		case frameBody:
			if first {
				if stamps++; be.Uint64(payload) != stamps {
					t.Fatalf("message %d carries stamp %d", stamps-1, be.Uint64(payload))
				}
			}
			first = false
		}
	}
	each := b.count() / 3
	if !reflect.DeepEqual(perKey, map[string]int{"a": each, "bb": each, "ccc": each}) || sizes[8] != sizes[300] {
		t.Errorf("uneven batch: keys %v, sizes %v", perKey, sizes)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	make1 := func(seed uint64) []byte {
		return newBatch(publish{}, []string{"a", "b", "c", "d"}, []int{16}, 2000, 4096, rand.New(rand.NewPCG(seed, 0))).buf
	}
	if !bytes.Equal(make1(1), make1(1)) || bytes.Equal(make1(1), make1(2)) {
		t.Error("the seed does not decide the bytes")
	}
}
