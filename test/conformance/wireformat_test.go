package conformance

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"ringmq/test/harness"
)

// rawFrame is a frame whose size field and end octet may lie.
func rawFrame(typ byte, channel uint16, size uint32, payload []byte, end byte) []byte {
	out := []byte{typ}
	out = binary.BigEndian.AppendUint16(out, channel)
	out = binary.BigEndian.AppendUint32(out, size)
	return append(append(out, payload...), end)
}

func sendRaw(b []byte) func(c *client, _ map[string]string) {
	return func(c *client, _ map[string]string) { c.write(b) }
}

// method80 opens a publish on channel 1 whose content never comes as it should.
func publishThen(frames ...[]byte) func(c *client, _ map[string]string) {
	return func(c *client, _ map[string]string) {
		out := methodFrame(1, 60, 40, publishArgs("", "k", false, false))
		for _, f := range frames {
			out = append(out, f...)
		}
		c.write(out)
	}
}

var passiveDirect = methodFrame(1, 40, 10, exchangeArgs("amq.direct", "direct", flags{passive: true}, ""))

const wantHeader = "expected content header for class 60, got non content header frame instead"

var wireRefusals = []refusal{
	{id: "WIR-03", name: "unknown frame type", conn: true, code: 501, text: "type 5, ...",
		send: sendRaw(rawFrame(5, 1, 4, []byte{1, 2, 3, 4}, 0xCE))},
	{id: "WIR-03", name: "frame type 0", conn: true, code: 501, text: "type 0, ...", send: sendRaw(rawFrame(0, 0, 0, nil, 0xCE))},
	{id: "WIR-03", name: "heartbeat with payload", conn: true, code: 501, text: "type 8, ...",
		send: sendRaw(rawFrame(8, 0, 1, []byte{0}, 0xCE))},
	{id: "WIR-03", name: "method frame of three bytes", conn: true, code: 501, text: "type 1, ...",
		send: sendRaw(rawFrame(1, 1, 3, []byte{0, 50, 0}, 0xCE))},
	{id: "WIR-03", name: "header frame of eleven bytes", conn: true, code: 501, text: "type 2, ...",
		send: publishThen(rawFrame(2, 1, 11, make([]byte, 11), 0xCE))},
	{id: "WIR-05", name: "heartbeat on channel 5", conn: true, code: 505, text: "...", send: sendRaw(rawFrame(8, 5, 0, nil, 0xCE))},
	{id: "WIR-07", name: "method instead of header", conn: true, code: 505, text: wantHeader, failed: m(60, 40),
		send: publishThen(passiveDirect)},
	{id: "WIR-07", name: "body instead of header", conn: true, code: 505, text: wantHeader, failed: m(60, 40),
		send: publishThen(appendFrame(nil, 3, 1, []byte("x")))},
	{id: "WIR-07", name: "method instead of body", conn: true, code: 505, failed: m(60, 40),
		text: "expected content body, got non content body frame instead",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(3, []byte{0, 0})), passiveDirect)},
	{id: "WIR-07", name: "header instead of body", conn: true, code: 505, failed: m(60, 40),
		text: "expected content body, got non content body frame instead",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(3, []byte{0, 0})),
			appendFrame(nil, 2, 1, headerPayload(3, []byte{0, 0})))},
	{id: "WIR-08", name: "header out of place", conn: true, code: 505,
		text: "expected method frame, got non method frame instead",
		send: sendRaw(appendFrame(nil, 2, 1, headerPayload(3, []byte{0, 0})))},
	{id: "WIR-08", name: "body out of place", conn: true, code: 505,
		text: "expected method frame, got non method frame instead", send: sendRaw(appendFrame(nil, 3, 1, []byte("x")))},
	{id: "WIR-09", name: "header of another class", conn: true, code: 505, failed: m(60, 40),
		text: "expected content header for class 60, got one for class 50 instead",
		send: publishThen(appendFrame(nil, 2, 1, args().u16(50).u16(0).u64(3).raw(0, 0).b))},
	{id: "WIR-09", name: "weight", conn: true, code: 505, text: "...", failed: m(60, 40), ours: "INTERNAL_ERROR or 505",
		send: publishThen(appendFrame(nil, 2, 1, args().u16(60).u16(1).u64(3).raw(0, 0).b))},
	{id: "WIR-10", name: "body longer than announced", conn: true, code: 501, failed: m(60, 40), ours: "hangs before 4.3",
		text: "content body frame exceeds remaining content size",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(3, []byte{0, 0})), appendFrame(nil, 3, 1, []byte("four")))},
	{id: "WIR-10", name: "body size over 512 MiB", conn: true, code: 501, failed: m(60, 40), ours: "4.3 only",
		text: "content body size 536870913 exceeds maximum allowed size 536870912",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(536870913, []byte{0, 0})))},
	{id: "WIR-10", name: "body size of all ones", conn: true, code: 501, failed: m(60, 40), ours: "4.3 only",
		text: "content body size 18446744073709551615 exceeds maximum allowed size 536870912",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(math.MaxUint64, []byte{0, 0})))},
	{id: "WIR-11", name: "truncated properties", conn: true, code: 501, text: "...", failed: m(60, 40), ours: "541",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(0, []byte{0x80, 0, 5, 'a'})))},
	{id: "WIR-11", name: "bytes behind the properties", conn: true, code: 501, text: "...", failed: m(60, 40), ours: "541",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(0, []byte{0, 0, 1})))},
	{id: "WIR-11", name: "continuation bit", conn: true, code: 501, text: "...", failed: m(60, 40), ours: "541",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(0, []byte{0, 1, 0, 0})))},
	{id: "WIR-11", name: "header table overruns", conn: true, code: 501, text: "...", failed: m(60, 40), ours: "541",
		send: publishThen(appendFrame(nil, 2, 1, headerPayload(0, args().u16(1<<13).ls("\x01aS\x00\x00\x00\x09x").b)))},
	{id: "WIR-12", name: "unknown class", conn: true, code: 503, text: "...", failed: m(99, 10), ours: "drops the socket",
		send: sendRaw(methodFrame(1, 99, 10, nil))},
	{id: "WIR-12", name: "unknown method", conn: true, code: 503, text: "...", failed: m(50, 99), ours: "drops the socket",
		send: sendRaw(methodFrame(1, 50, 99, nil))},
	{id: "WIR-13", name: "arguments too short", conn: true, code: 501, text: "cannot decode ...", failed: m(50, 10),
		send: sendRaw(methodFrame(1, 50, 10, args().u16(0).raw(5, 'q')))},
	{id: "WIR-13", name: "trailing arguments", conn: true, code: 501, text: "cannot decode ...", failed: m(60, 80),
		send: sendRaw(methodFrame(1, 60, 80, args().u64(1).bits(false).u8(0)))},
	{id: "WIR-13", name: "no arguments at all", conn: true, code: 501, text: "cannot decode ...", failed: m(60, 20),
		send: sendRaw(methodFrame(1, 60, 20, nil))},
	{id: "WIR-13", name: "unknown tag in a table", conn: true, code: 501, text: "...", failed: m(50, 10),
		ours: "drops the socket", send: sendRaw(methodFrame(1, 50, 10, queueArgs("q", flags{}, "\x01aU\x00\x05")))},
	{id: "WIR-13", name: "value overruns its table", conn: true, code: 501, text: "...", failed: m(50, 10),
		ours: "drops the socket", send: sendRaw(methodFrame(1, 50, 10, queueArgs("q", flags{}, "\x01aS\xff\xff\xff\xff")))},
	{id: "WIR-13", name: "nested value overruns", conn: true, code: 501, text: "...", failed: m(50, 10),
		ours: "drops the socket", send: sendRaw(methodFrame(1, 50, 10,
			queueArgs("q", flags{}, tbl("\x01aF\x00\x00\x00\x04\x01bS\x7f")))),
	},
	{id: "WIR-13", name: "table longer than its frame", conn: true, code: 501, text: "...", failed: m(50, 10),
		send: sendRaw(methodFrame(1, 50, 10, args().u16(0).ss("q").bits(false).u32(math.MaxUint32)))},
	{id: "FLD-04", name: "deeply nested table", conn: true, code: 501, text: "...", failed: m(50, 10),
		ours: "takes any depth", send: sendRaw(methodFrame(1, 50, 10, queueArgs("q", flags{}, nested(20_000))))},
}

// nested is a table of tables to this depth that ends inside a value: whatever depth the broker allows, it must refuse.
func nested(depth int) tbl {
	var b []byte
	for i := range depth {
		left := uint32((depth-i-1)*6) + 1
		b = append(b, 0, 'F')
		b = binary.BigEndian.AppendUint32(b, left)
	}
	return tbl(append(b, 0))
}

// TestWireRefusals: WIR-03 to WIR-13 and FLD-04.
func TestWireRefusals(t *testing.T) { runRefusals(t, wireRefusals) }

// TestWIR_02_EndOctet: told at once, then the socket closes without reading on.
func TestWIR_02_EndOctet(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		bad := rawFrame(1, 1, uint32(len(passiveDirect)-8), passiveDirect[7:len(passiveDirect)-1], 0xCD)
		c.write(append(bad, passiveDirect...))
		f := readFault(c.expect(0, 10, 50))
		if f.code != 501 || f.failed != 0 || !strings.HasPrefix(f.text, "FRAME_ERROR - type 1, ") ||
			!strings.Contains(f.text, "{invalid_frame_end_marker,") {
			t.Errorf("got %+v", f)
		}
		c.closedSocket()
	})
}

// TestWIR_04_TooLarge: decided from the seven bytes of the prefix.
func TestWIR_04_TooLarge(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, row := range map[string]struct {
			typ  byte
			size uint32
		}{"method": {1, 131073}, "header": {2, 131073}, "body": {3, 131073}, "all ones": {3, math.MaxUint32},
			"top bit": {1, 1 << 31}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := connect(t, b).open(1)
				if row.typ != 1 {
					c.method(1, 60, 40, publishArgs("", "k", false, false))
				}
				if row.typ == 3 {
					c.frame(2, 1, headerPayload(1<<20, []byte{0, 0}))
				}
				c.write(rawFrame(row.typ, 1, row.size, nil, 0)[:7]) // nothing of the payload
				f := readFault(c.expect(0, 10, 50))
				if f.code != 501 || !strings.Contains(f.text, "frame_too_large") {
					t.Errorf("got %+v", f)
				}
			})
		}
		t.Run("slack of eight", func(t *testing.T) {
			c := connectAs(t, b, login{frameMax: 4096}).open(1)
			q := c.newQueue(1)
			body := strings.Repeat("x", 4096)
			c.method(1, 60, 40, publishArgs("", q, false, false))
			c.frame(2, 1, headerPayload(uint64(len(body)), []byte{0, 0}))
			c.frame(3, 1, []byte(body)) // frame-max counts the eight octets around it; miscounting clients send this
			if got := c.mustGet(1, q, true); got.body != body {
				t.Error("body changed")
			}
		})
	})
}

// TestWIR_05_06_07_Content: heartbeats and other channels' frames between, empty body frames, any split.
func TestWIR_05_06_07_Content(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1, 2, 3)
		q1, q2 := c.newQueue(1), c.newQueue(1)
		beat := rawFrame(8, 0, 0, nil, 0xCE)
		out := methodFrame(1, 60, 40, publishArgs("", q1, false, false))
		out = append(out, beat...)
		out = append(out, methodFrame(2, 60, 40, publishArgs("", q2, false, false))...)
		out = appendFrame(out, 2, 1, headerPayload(6, []byte{0, 0}))
		out = append(out, methodFrame(3, 40, 10, exchangeArgs("amq.direct", "", flags{passive: true}, ""))...)
		out = appendFrame(out, 2, 2, headerPayload(4, []byte{0, 0}))
		out = appendFrame(out, 3, 1, []byte("o"))
		out = append(out, beat...)
		out = appendFrame(out, 3, 2, []byte("tw"))
		out = appendFrame(out, 3, 1, nil)
		out = appendFrame(out, 3, 1, []byte("neone"))
		out = appendFrame(out, 3, 2, nil)
		out = appendFrame(out, 3, 2, []byte("o!"))
		c.write(out)
		c.expect(3, 40, 11)
		c.awaitReady(1, q1, 1)
		c.awaitReady(1, q2, 1)
		if got := c.mustGet(1, q1, true); got.body != "oneone" {
			t.Errorf("first body %q", got.body)
		}
		if got := c.mustGet(1, q2, true); got.body != "two!" {
			t.Errorf("second body %q", got.body)
		}
		// Body size 0: no body frame at all.
		c.method(1, 60, 40, publishArgs("", q1, false, false))
		c.frame(2, 1, headerPayload(0, []byte{0, 0}))
		if got := c.mustGet(1, q1, true); got.body != "" || got.bodyFrames != 0 {
			t.Errorf("empty message came as %+v", got)
		}
	})
}

// TestWIR_06_ReSplit: a body that came in large frames leaves in frames of the consumer's frame-max, and one that came
// in tiny frames arrives whole.
func TestWIR_06_ReSplit(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		large, small := connect(t, b).open(1), connectAs(t, b, login{frameMax: 4096}).open(1)
		q := large.newQueue(1)
		small.consume(1, q, "t", true)
		body := strings.Repeat("0123456789", 30_000)
		large.publish(1, "", q, body)
		if got := small.deliver(1); got.body != body { // readAny refuses frames over 4096
			t.Errorf("body of %d bytes changed", len(body))
		}
		small.cancel(1, "t")
		out := methodFrame(1, 60, 40, publishArgs("", q, false, false))
		tiny := body[:3000]
		out = appendFrame(out, 2, 1, headerPayload(uint64(len(tiny)), []byte{0, 0}))
		for i := 0; i < len(tiny); i += 3 {
			out = appendFrame(out, 3, 1, []byte(tiny[i:i+3]))
		}
		small.write(out)
		if got := small.mustGet(1, q, true); got.body != tiny {
			t.Error("a body of many tiny frames changed")
		}
	})
}

// TestWIR_14_HighBits: unused bits of a flag octet are ignored.
func TestWIR_14_HighBits(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		q := unique("q")
		c.method(1, 50, 10, args().u16(7).ss(q).u8(0xE0).table("")) // and any ticket
		c.expect(1, 50, 11)
		c.queue(1, q, flags{}, "")
	})
}

// TestFLD_01_RoundTrip: every value type in headers comes out unchanged, also through a headers exchange's decoder.
func TestFLD_01_RoundTrip(t *testing.T) {
	values := map[string]val{"t": value(true), "b": vb(-8), "B": vB(200), "s": vs(-300), "u": vu(60000), "I": vI(-70000),
		"i": vi(4_000_000_000), "l": vl(math.MinInt64), "L": vL(math.MaxInt64), "f": vf(1.5), "d": vd(-2.25), "S": vS("text\x00\xff"),
		"x": vx("\x00\x01"), "A": vA(vI(1), vS("two"), vA(), vV()), "T": vT(1 << 40), "V": vV(), "D": vD(2, 12345),
		"F": value(table("deep", table("er", vA(value(table("est", 1))))))}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		x, q := c.newExchange(1, "headers"), c.newQueue(1)
		for tag, v := range values {
			t.Run(tag, func(t *testing.T) {
				p := props{headers: table("first", 1, "value", v, "last", "x")}
				c.bind(1, q, x, "", table("x-match", "all", "last", "x", "value", vV()))
				c.publishWith(1, publishArgs(x, "", false, false), p, []byte(tag))
				if got := c.mustGet(1, q, true); string(got.properties) != string(p.encode()) {
					t.Errorf("% x came out as % x", p.encode(), got.properties)
				}
				// The same type as a binding's and a queue's argument.
				c.bind(1, q, x, "", table("x-match", "any-with-x", "value", v))
				c.unbind(1, q, x, "", table("x-match", "any-with-x", "value", v))
				c.queue(1, unique("q"), flags{exclusive: true}, table("x-own", v))
			})
		}
	})
}

// TestFLD_05_IntegerArguments: any integer tag, never a text, float or bool.
func TestFLD_05_IntegerArguments(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b).open(1)
		for _, v := range []val{vb(5), vB(5), vs(5), vu(5), vI(5), vi(5), vl(5), vL(5)} {
			q := c.newQueue(1)
			c.consumeWith(1, consumeArgs(q, "", false, true, false, false, table("x-priority", v)))
		}
		for _, v := range []val{vS("5"), vd(5), vf(5), value(true)} {
			q := c.newQueue(1)
			c.method(1, 60, 20, consumeArgs(q, "", false, true, false, false, table("x-priority", v)))
			if f := c.channelFault(1); f.code != 406 {
				t.Errorf("x-priority %q: code %d (%q), want 406", v, f.code, f.text)
			}
			c.open(1)
		}
	})
}

// TestHB_01_Sent: an idle connection with H=2 hears a heartbeat at least every second.
func TestHB_01_Sent(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{heartbeat: 2})
		for i := range 3 {
			f, err := c.readAny(waitMax)
			if err != nil || f.typ != 8 || f.channel != 0 || len(f.payload) != 0 {
				t.Fatalf("heartbeat %d: got %v, %v", i, f, err)
			}
		}
	})
}

// TestHB_02_Silence: a peer that sends nothing is dropped without a method; what it held goes back.
func TestHB_02_Silence(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c, other := connectAs(t, b, login{heartbeat: 1}).open(1), connect(t, b).open(1)
		q := other.newQueue(1)
		other.publish(1, "", q, "x")
		c.consume(1, q, "t", false)
		c.deliverBodies(1, "x")
		c.closedSocket()
		other.awaitReady(1, q, 1)
	})
}

// TestHB_02_Traffic: any bytes count as life, also half a frame's; a peer that sends some is kept.
func TestHB_02_Traffic(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, beat := range map[string]func(c *client){
			"heartbeats": func(c *client) { c.write(rawFrame(8, 0, 0, nil, 0xCE)) },
			"methods":    func(c *client) { c.method(1, 40, 10, exchangeArgs("amq.direct", "", flags{passive: true}, "")) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := connectAs(t, b, login{heartbeat: 1}).open(1)
				// The broker's own heartbeats are the clock: eight of them are at least four seconds, over three times H.
				for beats := 0; beats < 8; {
					f, err := c.readAny(waitMax)
					if err != nil {
						t.Fatalf("dropped in spite of traffic: %v", err)
					}
					if f.typ == 8 {
						beats++
						beat(c)
					}
				}
				c.nc.SetReadDeadline(time.Time{})
			})
		}
	})
}

// TestHB_03_Off: with H=0 neither side beats.
func TestHB_03_Off(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{}).open(1)
		if f, err := c.readAny(3 * time.Second); err == nil {
			t.Errorf("got %v", f)
		}
		c.sync(1)
	})
}
