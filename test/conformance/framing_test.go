package conformance

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"time"

	"ringmq/test/harness"
)

// TestWIR_01_Octets: frames as the specification spells them, octet by octet, in both directions.
func TestWIR_01_Octets(t *testing.T) {
	steps := []struct{ name, send, want string }{
		{"method", "01 0001 00000005 0014 000A 00 CE", "01 0001 00000008 0014 000B 00000000 CE"},
		{"heartbeat, then a method", "08 0000 00000000 CE" + "01 FFFF 00000005 0014 000A 00 CE", "01 FFFF 00000008 0014 000B 00000000 CE"},
		{"method with a table", "01 0001 0000000D 0032 000A 0000 0177 04 00000000 CE", "01 0001 0000000E 0032 000B 0177 00000000 00000000 CE"},
		{"content: method, header, body", "01 0001 0000000A 003C 0028 0000 00 0177 00 CE" + "02 0001 0000000F 003C 0000 0000000000000003 1000 02 CE" +
			"03 0001 00000003 616263 CE" + "01 0001 00000009 003C 0046 0000 0177 01 CE", "01 0001 00000014 003C 0047 0000000000000001 00 00 0177 00000000 CE" +
			"02 0001 0000000F 003C 0000 0000000000000003 1000 02 CE" + "03 0001 00000003 616263 CE"},
		{"content without a body", "01 0001 0000000A 003C 0028 0000 00 0177 00 CE" + "02 0001 0000000E 003C 0000 0000000000000000 0000 CE" +
			"01 0001 00000009 003C 0046 0000 0177 01 CE", "01 0001 00000014 003C 0047 0000000000000002 00 00 0177 00000000 CE" +
			"02 0001 0000000E 003C 0000 0000000000000000 0000 CE"},
		{"close", "01 0000 0000000B 000A 0032 00C8 00 0000 0000 CE", "01 0000 00000004 000A 0033 CE"},
	}
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0"}, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b)
		for _, step := range steps {
			c.write(octets(t, step.send))
			want := octets(t, step.want)
			got := make([]byte, len(want))
			_ = c.nc.SetReadDeadline(time.Now().Add(waitMax))
			if n, err := io.ReadFull(c.br, got); err != nil {
				t.Fatalf("%s: %v after % X", step.name, err, got[:n])
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s:\n got % X\nwant % X", step.name, got, want)
			}
		}
		if rest := c.readRest(); rest != "" {
			t.Errorf("behind close-ok % X", rest)
		}
	})
}

// octets reads hexadecimal digits with spaces between them.
func octets(t *testing.T, text string) []byte {
	t.Helper()
	return must[[]byte](t)(hex.DecodeString(strings.ReplaceAll(text, " ", "")))
}

// assembly puts contents together that come mixed with frames of other channels. Within one channel anything between
// the frames of a content fails the test.
type assembly struct {
	t    testing.TB
	open map[uint16]*partial
}

// partial is a content that is not complete yet.
type partial struct {
	method uint32
	left   uint64 // octets of the body to come
	header bool   // the header was seen
	body   []byte
}

// take adds a frame. It returns the method that it is or completes, with the body of a content, or 0.
func (a *assembly) take(f frame) (method uint32, body []byte) {
	a.t.Helper()
	p := a.open[f.channel]
	switch {
	case p == nil && f.typ == 1:
		switch f.id() {
		case m(60, 50), m(60, 60), m(60, 71):
			a.open[f.channel] = &partial{method: f.id()}
			return 0, nil
		}
		return f.id(), nil
	case p != nil && !p.header && f.typ == 2:
		p.header, p.left = true, binary.BigEndian.Uint64(f.payload[4:])
	case p != nil && p.header && f.typ == 3 && uint64(len(f.payload)) <= p.left:
		p.body, p.left = append(p.body, f.payload...), p.left-uint64(len(f.payload))
	default:
		a.t.Fatalf("%v while the content on its channel is %+v", f, p)
	}
	if p.left > 0 {
		return 0, nil
	}
	delete(a.open, f.channel)
	return p.method, p.body
}

// TestWIR_15_Contiguous: the frames of a content stay together on their channel, while other channels, and answers and
// returns on the same one, are busy.
func TestWIR_15_Contiguous(t *testing.T) {
	const channels, rounds, size = 8, 40, 20_000
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{frameMax: 4096})
		pub := connect(t, b).open(1)
		pub.confirm(1)
		pool, queues := pub.newQueue(1), make([]string, channels)
		body := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, size+i) }
		for i := range channels * rounds {
			pub.publishWith(1, publishArgs("", pool, false, false), props{}, body(i))
		}
		pub.confirmed(1, channels*rounds)
		for i := range queues {
			queues[i] = pub.newQueue(1)
			c.open(uint16(i + 1))
			c.consume(uint16(i+1), queues[i], "t", true)
		}
		// The consumer's own commands: each channel asks for a message, provokes a return and declares.
		var own []byte
		for i := range channels * rounds {
			ch := uint16(1 + i%channels)
			own = append(own, methodFrame(ch, 60, 70, getArgs(pool, true))...)
			own = append(own, contentFrames(ch, publishArgs("", "no queue has this name", true, false), []byte{0, 0}, body(i), 4096)...)
			own = append(own, methodFrame(ch, 50, 10, queueArgs(queues[ch-1], flags{passive: true}, ""))...)
		}
		go func() { _, _ = c.nc.Write(own) }() // what is missing below tells when it fails
		go func() {
			for i := range channels * rounds {
				_, _ = pub.nc.Write(contentFrames(1, publishArgs("", queues[i%channels], false, false), []byte{0, 0}, body(i), 131072))
			}
		}()
		a, got := &assembly{t, map[uint16]*partial{}}, map[uint32]int{}
		for done := 0; done < 4*channels*rounds; {
			id, content := a.take(c.next())
			if id == 0 {
				continue
			}
			done++
			got[id]++
			if len(content) > 0 && (len(content) < size || !bytes.Equal(content, body(len(content) - size)[:len(content)])) {
				t.Fatalf("the body of %d.%d, %d bytes, is mixed up", id>>16, id&0xffff, len(content))
			}
		}
		for _, id := range []uint32{m(60, 60), m(60, 71), m(60, 50), m(50, 11)} {
			if got[id] != channels*rounds {
				t.Errorf("%d of method %d.%d, want %d", got[id], id>>16, id&0xffff, channels*rounds)
			}
		}
	})
}
