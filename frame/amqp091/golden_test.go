package amqp091

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

// unhex reads hexadecimal with spaces; it panics on a typing error in a test.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// goldenMethods were written by hand from the field lists of the specification.
var goldenMethods = []struct {
	channel uint16
	method  Method
	frame   string
}{
	{0, &ConnectionStart{VersionMinor: 9, ServerProperties: AppendString(nil, "product", "x"),
		Mechanisms: []byte("PLAIN"), Locales: []byte("en_US")},
		"01 0000 0000002A 000A 000A 00 09 0000000E 07 70726F64756374 53 00000001 78" +
			" 00000005 504C41494E 00000005 656E5F5553 CE"},
	{0, &ConnectionStartOk{ClientProperties: Table{}, Mechanism: []byte("PLAIN"),
		Response: []byte("\x00a\x00b"), Locale: []byte("en_US")},
		"01 0000 0000001C 000A 000B 00000000 05 504C41494E 00000004 00610062 05 656E5F5553 CE"},
	{0, &ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072, Heartbeat: 60},
		"01 0000 0000000C 000A 001F 07FF 00020000 003C CE"},
	{0, &ConnectionOpen{VirtualHost: []byte("/")},
		"01 0000 00000008 000A 0028 01 2F 00 00 CE"},
	{0, &ConnectionOpenOk{},
		"01 0000 00000005 000A 0029 00 CE"},
	{0, &ConnectionClose{ReplyCode: NotAllowed, ReplyText: []byte("NO"), FailedClass: 10, FailedMethod: 40},
		"01 0000 0000000D 000A 0032 0212 02 4E4F 000A 0028 CE"},
	{0, &ConnectionBlocked{Reason: []byte("mem")},
		"01 0000 00000008 000A 003C 03 6D656D CE"},
	{0, &ConnectionUpdateSecret{NewSecret: []byte("s"), Reason: []byte("r")},
		"01 0000 0000000B 000A 0046 00000001 73 01 72 CE"},
	{1, &ChannelOpen{},
		"01 0001 00000005 0014 000A 00 CE"},
	{1, &ChannelOpenOk{},
		"01 0001 00000008 0014 000B 00000000 CE"},
	{1, &ChannelFlow{Active: true},
		"01 0001 00000005 0014 0014 01 CE"},
	{1, &AccessRequest{Realm: []byte("/data"), Passive: true, Read: true},
		"01 0001 0000000B 001E 000A 05 2F64617461 12 CE"},
	{1, &AccessRequestOk{},
		"01 0001 00000006 001E 000B 0001 CE"},
	{0x0201, &ExchangeDeclare{Exchange: []byte("e"), Type: []byte("topic"), Durable: true, Internal: true, Arguments: Table{}},
		"01 0201 00000013 0028 000A 0000 01 65 05 746F706963 0A 00000000 CE"},
	{2, &ExchangeUnbindOk{},
		"01 0002 00000004 0028 0033 CE"},
	{1, &QueueDeclare{Queue: []byte("q"), Durable: true, NoWait: true, Arguments: AppendInt32(nil, "x", 5)},
		"01 0001 00000014 0032 000A 0000 01 71 12 00000007 01 78 49 00000005 CE"},
	{1, &QueueDeclareOk{Queue: []byte("q"), MessageCount: 3, ConsumerCount: 1},
		"01 0001 0000000E 0032 000B 01 71 00000003 00000001 CE"},
	{1, &QueueUnbind{Queue: []byte("q"), Exchange: []byte("e"), RoutingKey: []byte{}, Arguments: Table{}},
		"01 0001 0000000F 0032 0032 0000 01 71 01 65 00 00000000 CE"},
	{1, &BasicQos{PrefetchCount: 10, Global: true},
		"01 0001 0000000B 003C 000A 00000000 000A 01 CE"},
	{1, &BasicConsume{Queue: []byte("q"), ConsumerTag: []byte{}, NoAck: true, Exclusive: true, Arguments: Table{}},
		"01 0001 0000000E 003C 0014 0000 01 71 00 06 00000000 CE"},
	{1, &BasicPublish{Exchange: []byte("amq.direct"), RoutingKey: []byte("k"), Mandatory: true},
		"01 0001 00000014 003C 0028 0000 0A 616D712E646972656374 01 6B 01 CE"},
	{1, &BasicReturn{ReplyCode: NoRoute, ReplyText: []byte("NO_ROUTE"), Exchange: []byte{}, RoutingKey: []byte("k")},
		"01 0001 00000012 003C 0032 0138 08 4E4F5F524F555445 00 01 6B CE"},
	{1, &BasicDeliver{ConsumerTag: []byte("c"), DeliveryTag: 0x0102030405060708, Redelivered: true,
		Exchange: []byte{}, RoutingKey: []byte("k")},
		"01 0001 00000012 003C 003C 01 63 0102030405060708 01 00 01 6B CE"},
	{1, &BasicGetOk{DeliveryTag: 1, Exchange: []byte("e"), RoutingKey: []byte("k"), MessageCount: 9},
		"01 0001 00000015 003C 0047 0000000000000001 00 01 65 01 6B 00000009 CE"},
	{1, &BasicGetEmpty{},
		"01 0001 00000005 003C 0048 00 CE"},
	{1, &BasicAck{DeliveryTag: 7, Multiple: true},
		"01 0001 0000000D 003C 0050 0000000000000007 01 CE"},
	{1, &BasicNack{DeliveryTag: 7, Requeue: true},
		"01 0001 0000000D 003C 0078 0000000000000007 02 CE"},
	{1, &ConfirmSelect{NoWait: true},
		"01 0001 00000005 0055 000A 01 CE"},
	{1, &TxCommit{},
		"01 0001 00000004 005A 0014 CE"},
}

func TestMethodGolden(t *testing.T) {
	for _, c := range goldenMethods {
		t.Run(c.method.ID().String(), func(t *testing.T) {
			want := unhex(c.frame)
			got := c.method.Append(nil, c.channel)
			if !bytes.Equal(got, want) {
				t.Fatalf("append\n got %X\nwant %X", got, want)
			}
			head := ParseFrameHead(want)
			if head != (FrameHead{FrameMethod, c.channel, uint32(len(want) - FrameOverhead)}) {
				t.Fatalf("head %+v", head)
			}
			back := New(c.method.ID())
			if err := back.Decode(want[11 : len(want)-1]); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, c.method) {
				t.Fatalf("decode\n got %+v\nwant %+v", back, c.method)
			}
		})
	}
}

// A.1: reserved fields may hold anything and WIR-14: so may the unused bits.
func TestMethodIgnoresReserved(t *testing.T) {
	for _, c := range []struct {
		method Method
		args   string
		want   Method
	}{
		{&QueueDeclare{}, "FFFF 01 71 E2 00000000", &QueueDeclare{Queue: []byte("q"), Durable: true, Arguments: Table{}}},
		{&ConnectionOpen{}, "01 2F 03 414243 FF", &ConnectionOpen{VirtualHost: []byte("/")}},
		{&ChannelOpenOk{}, "00000002 4142", &ChannelOpenOk{}},
		{&AccessRequestOk{}, "1234", &AccessRequestOk{}},
		{&BasicAck{}, "0000000000000001 FE", &BasicAck{DeliveryTag: 1}},
	} {
		if err := c.method.Decode(unhex(c.args)); err != nil {
			t.Errorf("%s: %v", c.method.ID(), err)
			continue
		}
		if !reflect.DeepEqual(c.method, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.want.ID(), c.method, c.want)
		}
	}
}

func TestContentHeaderGolden(t *testing.T) {
	props := unhex("1000 02")
	want := unhex("02 0003 0000000F 003C 0000 0000000100000002 1000 02 CE")
	if got := AppendContentHeader([]byte{}, 3, 1<<32|2, props); !bytes.Equal(got, want) {
		t.Fatalf("append: got %X", got)
	}
	buf := bytes.Repeat([]byte{0xEE}, ContentHeaderSize(props)+2)
	n := PutContentHeader(buf, 3, 1<<32|2, props)
	if n != len(want) || n != ContentHeaderSize(props) || !bytes.Equal(buf[:n], want) {
		t.Fatalf("put: got %X", buf[:n])
	}
	if buf[n] != 0xEE {
		t.Fatal("put wrote beyond its size")
	}
	head, ok := ParseContentHead(want[7 : len(want)-1])
	if !ok || !reflect.DeepEqual(head, ContentHead{60, 0, 1<<32 | 2, props}) {
		t.Fatalf("parse: %+v %v", head, ok)
	}
	for n := range 14 {
		if _, ok := ParseContentHead(want[7 : 7+n]); ok {
			t.Fatalf("parsed %d octets", n)
		}
	}
	if head, ok := ParseContentHead(unhex("0032 0001 0000000000000000 0000")); !ok || head.Class != 50 || head.Weight != 1 {
		t.Fatalf("class and weight are the session's to judge: %+v %v", head, ok)
	}
}

func TestFrameHelpersGolden(t *testing.T) {
	if got := AppendHeartbeat(nil); !bytes.Equal(got, unhex("08 0000 00000000 CE")) {
		t.Errorf("heartbeat %X", got)
	}
	want := unhex("03 ABCD 01020304")
	if got := AppendFrameHead(nil, FrameBody, 0xABCD, 0x01020304); !bytes.Equal(got, want) {
		t.Errorf("append head %X", got)
	}
	var b [7]byte
	PutFrameHead(b[:], FrameBody, 0xABCD, 0x01020304)
	if !bytes.Equal(b[:], want) {
		t.Errorf("put head %X", b)
	}
	if got := ParseFrameHead(want); got != (FrameHead{FrameBody, 0xABCD, 0x01020304}) {
		t.Errorf("parse head %+v", got)
	}
	if string(ProtocolHeader[:]) != "AMQP\x00\x00\x09\x01" {
		t.Errorf("protocol header %q", ProtocolHeader)
	}
}

func TestPutDeliver(t *testing.T) {
	long := bytes.Repeat([]byte("k"), 300)
	for _, c := range []struct {
		tag, exchange, key []byte
		redelivered        bool
	}{
		{nil, nil, nil, false},
		{[]byte("ctag-1"), []byte("amq.topic"), []byte("a.b.c"), true},
		{long[:255], long[:255], long[:255], false},
		{[]byte("c"), nil, long, true},
	} {
		m := BasicDeliver{ConsumerTag: c.tag, DeliveryTag: 1 << 40, Redelivered: c.redelivered, Exchange: c.exchange, RoutingKey: c.key}
		want := m.Append(nil, 9)
		buf := bytes.Repeat([]byte{0xEE}, DeliverSize(c.tag, c.exchange, c.key)+1)
		n := PutDeliver(buf, 9, c.tag, 1<<40, c.redelivered, c.exchange, c.key)
		if n != len(buf)-1 || !bytes.Equal(buf[:n], want) {
			t.Errorf("got %X\nwant %X", buf[:n], want)
		}
		if buf[n] != 0xEE {
			t.Error("wrote beyond its size")
		}
	}
}

// A text too long for a short string is cut between characters.
func TestShortStringIsCut(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{strings.Repeat("a", 255), 255},
		{strings.Repeat("a", 256), 255},
		{strings.Repeat("a", 254) + "é", 254},
		{strings.Repeat("a", 253) + "é" + "b", 255},
		{strings.Repeat("a", 252) + "\U0001F600", 252},
		{strings.Repeat("\x80", 300), 251}, // no character at all: still bounded
	} {
		m := ConnectionBlocked{Reason: []byte(c.text)}
		frame := m.Append(nil, 0)
		var back ConnectionBlocked
		if err := back.Decode(frame[11 : len(frame)-1]); err != nil {
			t.Fatal(err)
		}
		if len(back.Reason) != c.want || !strings.HasPrefix(c.text, string(back.Reason)) {
			t.Errorf("%d octets: cut to %d, want %d", len(c.text), len(back.Reason), c.want)
		}
	}
}
