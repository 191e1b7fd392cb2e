package bench

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// deliveries builds a stream of deliveries with everything that may come in
// between, and what a scanner must make of it.
func deliveries(bodies ...int) (stream []byte, want scanner) {
	want = scanner{frameMax: 4096, wantStamps: true}
	for i, size := range bodies {
		tag := uint64(i + 1)
		args := be.AppendUint64(appendShortstr(nil, "ctag"), tag)
		args = appendShortstr(appendShortstr(append(args, 0), ""), "key")
		stream = appendMethod(stream, 1, basicDeliver, args)
		body := bytes.Repeat([]byte{byte(i)}, size)
		if size >= 8 {
			want.stamps = append(want.stamps, be.Uint64(body))
		}
		content := appendPublish(nil, 1, publish{body: body}, 4096)
		content = content[frameHeadSize+int(be.Uint32(content[3:]))+1:] // without basic.publish
		stream = append(stream, content...)
		if i%3 == 2 {
			stream = append(stream, frameHeartbeat, 0, 0, 0, 0, 0, 0, frameEnd)
		}
		want.messages++
		want.bytes += int64(size)
		want.tag = tag
	}
	stream = appendAck(stream, 1, 77, true)
	stream = appendMethod(stream, 1, basicNack, append(be.AppendUint64(nil, 78), 0))
	want.confirms = []confirm{{77, true, false}, {78, false, true}}
	stream = appendMethod(stream, 1, basicReturn, []byte{1, 56, 0, 0, 0})
	content := appendPublish(nil, 1, publish{body: make([]byte, 20)}, 4096)
	stream = append(stream, content[frameHeadSize+int(be.Uint32(content[3:]))+1:]...)
	want.returns = 1
	stream = appendMethod(stream, 1, basicConsumeOk, appendShortstr(nil, "ctag"))
	want.otherCount = 1
	return stream, want
}

// feed gives the stream to a scanner in pieces, keeping leftovers in front.
func feed(s *scanner, pieces ...[]byte) error {
	var buf []byte
	for _, p := range pieces {
		buf = append(buf, p...)
		n, err := s.scan(buf)
		if err != nil {
			return err
		}
		buf = append([]byte(nil), buf[n:]...)
	}
	if len(buf) > 0 {
		return errors.New("octets left over")
	}
	return nil
}

func sameScan(t *testing.T, got, want *scanner, how string) {
	t.Helper()
	if got.messages != want.messages || got.bytes != want.bytes || got.tag != want.tag || got.returns != want.returns ||
		got.otherCount != want.otherCount || !reflect.DeepEqual(got.stamps, want.stamps) || !reflect.DeepEqual(got.confirms, want.confirms) {
		t.Fatalf("%s:\n got %+v\nwant %+v", how, got, want)
	}
}

func TestScanSplitAtAnyByte(t *testing.T) {
	t.Run("mixed", func(t *testing.T) { splitAnywhere(t, 16, 0, 7, 8, 5000) })
	t.Run("alike", func(t *testing.T) { splitAnywhere(t, 16, 16, 16, 16, 0, 0, 16, 16, 1, 1, 16, 4088, 4088) })
	t.Run("long", func(t *testing.T) { splitAnywhere(t, 4089, 4089, 16, 16, 4089) })
}

func splitAnywhere(t *testing.T, sizes ...int) {
	stream, want := deliveries(sizes...)
	for cut := 0; cut <= len(stream); cut++ {
		s := &scanner{frameMax: 4096, wantStamps: true}
		if err := feed(s, stream[:cut], stream[cut:]); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		sameScan(t, s, &want, "two pieces")
	}
	s := &scanner{frameMax: 4096, wantStamps: true}
	var single [][]byte
	for i := range stream {
		single = append(single, stream[i:i+1])
	}
	if err := feed(s, single...); err != nil {
		t.Fatal(err)
	}
	sameScan(t, s, &want, "octet by octet")
}

func TestScanRandomPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	for range 200 {
		var sizes []int
		for range 20 {
			sizes = append(sizes, rng.IntN(4)*50)
		}
		stream, want := deliveries(sizes...)
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(400))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		s := &scanner{frameMax: 4096, wantStamps: true}
		if err := feed(s, pieces...); err != nil {
			t.Fatal(err)
		}
		sameScan(t, s, &want, "random pieces")
	}
}

func TestScanErrors(t *testing.T) {
	good := appendAck(nil, 1, 1, false)
	badEnd := append([]byte(nil), good...)
	badEnd[len(badEnd)-1] = 0
	cases := []struct {
		name   string
		stream []byte
		want   error
	}{
		{"end octet", badEnd, errFrameEnd},
		{"too large", []byte{frameBody, 0, 1, 0, 0, 0x20, 0, 0}, errFrameSize},
		{"unknown type", []byte{9, 0, 0, 0, 0, 0, 0, frameEnd}, errFrameType},
		{"no method id", []byte{frameMethod, 0, 1, 0, 0, 0, 0, frameEnd}, errFrameArgs},
		{"short ack", appendMethod(nil, 1, basicAck, []byte{0, 0}), errFrameArgs},
		{"short deliver", appendMethod(nil, 1, basicDeliver, append([]byte{200}, make([]byte, 9)...)), errFrameArgs},
		{"short header", []byte{frameHeader, 0, 1, 0, 0, 0, 2, 0, 60, frameEnd}, errFrameArgs},
	}
	for _, c := range cases {
		s := &scanner{frameMax: 4096}
		if _, err := s.scan(c.stream); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// TestScanFastPathChecks damages a repeated delivery at every octet: the fast
// path must see what the slow one sees.
func TestScanFastPathChecks(t *testing.T) {
	args := be.AppendUint64(appendShortstr(nil, "c0"), 1)
	args = appendShortstr(appendShortstr(append(args, 0), ""), "key")
	one := appendMethod(nil, 1, basicDeliver, args)
	content := appendPublish(nil, 1, publish{body: make([]byte, 16)}, 4096)
	one = append(one, content[frameHeadSize+int(be.Uint32(content[3:]))+1:]...)
	for i := range one {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			second := append([]byte(nil), one...)
			second[i] ^= flip
			fast, slow := &scanner{frameMax: 4096}, &scanner{frameMax: 4096}
			n1, err1 := fast.scan(append(append([]byte(nil), one...), second...))
			_, _ = slow.scan(one)
			slow.shape = shape{}
			n2, err2 := slow.scan(second)
			if n1 != n2+len(one) || !errors.Is(err1, err2) || fast.messages != slow.messages || fast.tag != slow.tag || fast.bytes != slow.bytes {
				t.Fatalf("octet %d ^ %#x: fast path took %d, %v, slow path %d, %v", i, flip, n1-len(one), err1, n2, err2)
			}
		}
	}
}

// scanInput is a read buffer full of 16 octet deliveries.
func scanInput() (stream []byte, count int) {
	args := be.AppendUint64(appendShortstr(nil, "c0"), 1)
	args = appendShortstr(appendShortstr(append(args, 0), ""), "bench-throughput")
	content := appendPublish(nil, 1, publish{body: make([]byte, 16)}, 4096)
	content = content[frameHeadSize+int(be.Uint32(content[3:]))+1:]
	for len(stream) < readBufferSize-200 {
		stream = append(appendMethod(stream, 1, basicDeliver, args), content...)
		count++
	}
	return stream, count
}

func TestScanAllocatesNothing(t *testing.T) {
	stream, _ := scanInput()
	s := &scanner{frameMax: 4096}
	if n := testing.AllocsPerRun(10, func() {
		if _, err := s.scan(stream); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per scan", n)
	}
}

func BenchmarkScan(b *testing.B) {
	stream, count := scanInput()
	s := &scanner{frameMax: 4096}
	b.ReportAllocs()
	messages := 0
	for b.Loop() {
		if _, err := s.scan(stream); err != nil {
			b.Fatal(err)
		}
		messages += count
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/msg")
}
