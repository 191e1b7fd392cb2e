package conformance

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// enc builds method arguments, properties and table entries.
type enc struct{ b []byte }

func args() *enc { return &enc{} }

func (e *enc) u8(v byte) *enc     { e.b = append(e.b, v); return e }
func (e *enc) u16(v uint16) *enc  { e.b = binary.BigEndian.AppendUint16(e.b, v); return e }
func (e *enc) u32(v uint32) *enc  { e.b = binary.BigEndian.AppendUint32(e.b, v); return e }
func (e *enc) u64(v uint64) *enc  { e.b = binary.BigEndian.AppendUint64(e.b, v); return e }
func (e *enc) ss(s string) *enc   { e.b = append(append(e.b, byte(len(s))), s...); return e }
func (e *enc) ls(s string) *enc   { e.u32(uint32(len(s))); e.b = append(e.b, s...); return e }
func (e *enc) table(t tbl) *enc   { return e.ls(string(t)) }
func (e *enc) raw(b ...byte) *enc { e.b = append(e.b, b...); return e }

// bits packs up to eight flags into one octet, the first in the lowest bit.
func (e *enc) bits(flags ...bool) *enc {
	var v byte
	for i, f := range flags {
		if f {
			v |= 1 << i
		}
	}
	return e.u8(v)
}

// tbl is the encoded entries of a field table, without the length.
type tbl string

// val is one encoded table value: its tag and its bytes.
type val string

func table(kv ...any) tbl {
	var e enc
	for i := 0; i < len(kv); i += 2 {
		e.ss(kv[i].(string)).raw([]byte(value(kv[i+1]))...)
	}
	return tbl(e.b)
}

// value gives a Go value the tag that a client would use for it.
func value(v any) val {
	switch v := v.(type) {
	case val:
		return v
	case string:
		return vS(v)
	case bool:
		return val(args().u8('t').bits(v).b)
	case int:
		return vI(int32(v))
	case int64:
		return vl(v)
	case tbl:
		return val(args().u8('F').table(v).b)
	}
	panic("no tag for this Go type")
}

func vS(s string) val         { return val(args().u8('S').ls(s).b) }
func vI(v int32) val          { return val(args().u8('I').u32(uint32(v)).b) }
func vl(v int64) val          { return val(args().u8('l').u64(uint64(v)).b) }
func vL(v int64) val          { return val(args().u8('L').u64(uint64(v)).b) }
func vb(v int8) val           { return val(args().u8('b').u8(byte(v)).b) }
func vB(v byte) val           { return val(args().u8('B').u8(v).b) }
func vs(v int16) val          { return val(args().u8('s').u16(uint16(v)).b) }
func vu(v uint16) val         { return val(args().u8('u').u16(v).b) }
func vi(v uint32) val         { return val(args().u8('i').u32(v).b) }
func vf(v float32) val        { return val(args().u8('f').u32(math.Float32bits(v)).b) }
func vd(v float64) val        { return val(args().u8('d').u64(math.Float64bits(v)).b) }
func vT(v uint64) val         { return val(args().u8('T').u64(v).b) }
func vx(s string) val         { return val(args().u8('x').ls(s).b) }
func vD(s byte, v uint32) val { return val(args().u8('D').u8(s).u32(v).b) }
func vV() val                 { return "V" }
func vA(items ...val) val {
	var all strings.Builder
	for _, item := range items {
		all.WriteString(string(item))
	}
	return val(args().u8('A').ls(all.String()).b)
}

// dec reads method arguments; running out of bytes fails the test.
type dec struct {
	t testing.TB
	b []byte
}

func (d *dec) take(n int) []byte {
	d.t.Helper()
	if n < 0 || n > len(d.b) {
		d.t.Fatalf("the broker's frame is too short: want %d bytes, have % x", n, d.b)
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *dec) u8() byte    { d.t.Helper(); return d.take(1)[0] }
func (d *dec) u16() uint16 { d.t.Helper(); return binary.BigEndian.Uint16(d.take(2)) }
func (d *dec) u32() uint32 { d.t.Helper(); return binary.BigEndian.Uint32(d.take(4)) }
func (d *dec) u64() uint64 { d.t.Helper(); return binary.BigEndian.Uint64(d.take(8)) }
func (d *dec) ss() string  { d.t.Helper(); return string(d.take(int(d.u8()))) }
func (d *dec) ls() string  { d.t.Helper(); return string(d.take(int(d.u32()))) }

// end fails the test when bytes are left over.
func (d *dec) end() {
	d.t.Helper()
	if len(d.b) != 0 {
		d.t.Fatalf("the broker's frame has %d bytes too many: % x", len(d.b), d.b)
	}
}

// tableValues reads a table's entries into name -> encoded value; it knows the sizes of all tags.
func tableValues(t testing.TB, in tbl) map[string]val {
	t.Helper()
	out := map[string]val{}
	d := &dec{t, []byte(in)}
	for len(d.b) > 0 {
		name := d.ss()
		start := d.b
		tag := d.u8()
		switch tag {
		case 't', 'b', 'B':
			d.take(1)
		case 's', 'u':
			d.take(2)
		case 'I', 'i', 'f':
			d.take(4)
		case 'D':
			d.take(5)
		case 'l', 'L', 'd', 'T':
			d.take(8)
		case 'S', 'x', 'A', 'F':
			d.ls()
		case 'V':
		default:
			t.Fatalf("table value %q with unknown tag %q", name, tag)
		}
		out[name] = val(start[:len(start)-len(d.b)])
	}
	return out
}

// str is the text of an S value, "" for anything else.
func (v val) str() string {
	if len(v) >= 5 && v[0] == 'S' {
		return string(v[5:])
	}
	return ""
}

// props are the basic properties a test sets; zero fields are absent.
type props struct {
	contentType, contentEncoding string
	headers                      tbl
	hasHeaders                   bool // an empty header table is sent when true
	deliveryMode, priority       byte
	correlationID, replyTo       string
	expiration                   string
	hasExpiration                bool // an empty expiration is sent when true
	messageID                    string
	timestamp                    uint64
	typ, userID, appID           string
	clusterID                    string
}

// encode is the property flags and list of a content header.
func (p props) encode() []byte {
	var list enc
	var flags uint16
	put := func(bit int, present bool, write func()) {
		if present {
			flags |= 1 << bit
			write()
		}
	}
	text := func(bit int, s string) { put(bit, s != "", func() { list.ss(s) }) }
	text(15, p.contentType)
	text(14, p.contentEncoding)
	put(13, p.headers != "" || p.hasHeaders, func() { list.table(p.headers) })
	put(12, p.deliveryMode != 0, func() { list.u8(p.deliveryMode) })
	put(11, p.priority != 0, func() { list.u8(p.priority) })
	text(10, p.correlationID)
	text(9, p.replyTo)
	put(8, p.expiration != "" || p.hasExpiration, func() { list.ss(p.expiration) })
	text(7, p.messageID)
	put(6, p.timestamp != 0, func() { list.u64(p.timestamp) })
	text(5, p.typ)
	text(4, p.userID)
	text(3, p.appID)
	text(2, p.clusterID)
	return append(args().u16(flags).b, list.b...)
}
