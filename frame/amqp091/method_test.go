package amqp091

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// fill sets every field of a method to a value that is not zero, differing by
// position, so that swapped fields are seen.
func fill(m Method) {
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Slice:
			if f.Type() == reflect.TypeFor[Table]() {
				f.SetBytes(AppendTable(AppendInt64(nil, "n", int64(i)), "t", AppendString(nil, "k", "v")))
			} else {
				f.SetBytes(bytes.Repeat([]byte{'a' + byte(i)}, i+1))
			}
		default:
			f.SetUint(uint64(i + 1))
		}
	}
}

// TestMethodRoundTrip takes every method of the table through its frame, whole,
// cut short at every octet, and with one octet too many (WIR-13).
func TestMethodRoundTrip(t *testing.T) {
	for _, id := range Methods() {
		t.Run(id.String(), func(t *testing.T) {
			m := New(id)
			if m.ID() != id {
				t.Fatalf("New gave %v", m.ID())
			}
			fill(m)
			prefix := []byte("before")
			frame := m.Append(prefix, 0x0102)
			if !bytes.Equal(frame[:len(prefix)], prefix) {
				t.Fatal("append touched what was there")
			}
			frame = frame[len(prefix):]
			if head := ParseFrameHead(frame); head != (FrameHead{FrameMethod, 0x0102, uint32(len(frame) - FrameOverhead)}) {
				t.Fatalf("head %+v", head)
			}
			if frame[len(frame)-1] != FrameEnd {
				t.Fatal("no end octet")
			}
			args := frame[11 : len(frame)-1]
			back := New(id)
			if err := back.Decode(args); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, m) {
				t.Fatalf("got %+v\nwant %+v", back, m)
			}
			for n := range args {
				if err := New(id).Decode(args[:n]); !errors.Is(err, ErrTruncated) {
					t.Fatalf("%d of %d octets: %v", n, len(args), err)
				}
			}
			if err := New(id).Decode(append(args[:len(args):len(args)], 0)); !errors.Is(err, ErrTrailing) {
				t.Fatalf("one octet more: %v", err)
			}
		})
	}
}

// Each bit must land in its own place: one at a time, against the others false.
func TestMethodBits(t *testing.T) {
	for _, id := range Methods() {
		typ := reflect.TypeOf(New(id)).Elem()
		for i := range typ.NumField() {
			if typ.Field(i).Type.Kind() != reflect.Bool {
				continue
			}
			m := New(id)
			reflect.ValueOf(m).Elem().Field(i).SetBool(true)
			frame := m.Append(nil, 1)
			back := New(id)
			if err := back.Decode(frame[11 : len(frame)-1]); err != nil {
				t.Fatal(err)
			}
			for j := range typ.NumField() {
				if f := reflect.ValueOf(back).Elem().Field(j); f.Kind() == reflect.Bool && f.Bool() != (i == j) {
					t.Errorf("%s: %s set, %s is %v", id, typ.Field(i).Name, typ.Field(j).Name, f.Bool())
				}
			}
		}
	}
}

// A view must not reach into its neighbour: appending to it copies.
func TestViewsAreCapped(t *testing.T) {
	for _, id := range Methods() {
		m := New(id)
		fill(m)
		frame := m.Append(nil, 1)
		kept := bytes.Clone(frame)
		back := New(id)
		if err := back.Decode(frame[11 : len(frame)-1]); err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(back).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Slice {
				_ = append(f.Bytes(), 0xFF)
			}
		}
		if !bytes.Equal(frame, kept) {
			t.Errorf("%s: appending to a view wrote into the buffer", id)
		}
	}
}

func TestMethodTable(t *testing.T) {
	ids := Methods()
	if len(ids) != 66 {
		t.Fatalf("%d methods", len(ids))
	}
	for i, id := range ids {
		if i > 0 && ids[i-1] >= id {
			t.Errorf("%s is out of order", id)
		}
		if !id.Known() || id != MethodID(id.Class())<<16|MethodID(id.Method()) {
			t.Errorf("%s: %d.%d", id, id.Class(), id.Method())
		}
	}
	for _, id := range []MethodID{0, 60, 60<<16 | 41, 40<<16 | 41, 70<<16 | 10} {
		if id.Known() || id.FromClient() || id.HasContent() || New(id) != nil {
			t.Errorf("%s is known", id)
		}
	}
	if got := MethodID(50<<16 | 99).String(); got != "50.99" {
		t.Errorf("unknown method is called %q", got)
	}
	if MethodExchangeUnbindOk != 40<<16|51 || MethodExchangeUnbindOk.String() != "exchange.unbind-ok" {
		t.Error("the reply of exchange.unbind is 51, not 41")
	}
}

// A-001 rests on this: who may send what, and what carries content.
func TestMethodSenders(t *testing.T) {
	clients := map[MethodID]bool{
		MethodConnectionStartOk: true, MethodConnectionSecureOk: true, MethodConnectionTuneOk: true,
		MethodConnectionOpen: true, MethodConnectionClose: true, MethodConnectionCloseOk: true,
		MethodConnectionUpdateSecret: true,
		MethodChannelOpen:            true, MethodChannelFlow: true, MethodChannelFlowOk: true,
		MethodChannelClose: true, MethodChannelCloseOk: true, MethodAccessRequest: true,
		MethodExchangeDeclare: true, MethodExchangeDelete: true, MethodExchangeBind: true, MethodExchangeUnbind: true,
		MethodQueueDeclare: true, MethodQueueBind: true, MethodQueuePurge: true, MethodQueueDelete: true, MethodQueueUnbind: true,
		MethodBasicQos: true, MethodBasicConsume: true, MethodBasicCancel: true, MethodBasicCancelOk: true,
		MethodBasicPublish: true, MethodBasicGet: true, MethodBasicAck: true, MethodBasicReject: true,
		MethodBasicRecoverAsync: true, MethodBasicRecover: true, MethodBasicNack: true,
		MethodConfirmSelect: true, MethodTxSelect: true, MethodTxCommit: true, MethodTxRollback: true,
	}
	content := map[MethodID]bool{
		MethodBasicPublish: true, MethodBasicReturn: true, MethodBasicDeliver: true, MethodBasicGetOk: true,
	}
	for _, id := range Methods() {
		if id.FromClient() != clients[id] {
			t.Errorf("%s: from client %v", id, id.FromClient())
		}
		if id.HasContent() != content[id] {
			t.Errorf("%s: content %v", id, id.HasContent())
		}
	}
}

func TestMethodTableArgument(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want error
	}{
		"unknown tag":             {"0000 01 71 00 00000003 01 78 55", ErrTable},
		"value overruns table":    {"0000 01 71 00 00000004 01 78 49 00", ErrTable},
		"string overruns table":   {"0000 01 71 00 00000008 01 78 53 00000002 61", ErrTable},
		"nested overruns":         {"0000 01 71 00 00000007 01 78 46 00000001", ErrTable},
		"name without value":      {"0000 01 71 00 00000002 01 78", ErrTable},
		"table overruns method":   {"0000 01 71 00 00000001", ErrTruncated},
		"length near 2^32":        {"0000 01 71 00 FFFFFFFF 00", ErrTruncated},
		"inner length near 2^32":  {"0000 01 71 00 00000007 01 78 53 FFFFFFFF", ErrTable},
		"trailing after table":    {"0000 01 71 00 00000000 00", ErrTrailing},
		"queue name overruns":     {"0000 05 71", ErrTruncated},
		"nothing":                 {"", ErrTruncated},
		"void value is an entry":  {"0000 01 71 00 00000003 01 78 56", nil},
		"empty name is an entry":  {"0000 01 71 00 00000002 00 56", nil},
		"nested empty table":      {"0000 01 71 00 00000007 01 78 46 00000000", nil},
		"array item unknown tag":  {"0000 01 71 00 00000008 01 78 41 00000001 7A", ErrTable},
		"array item out of space": {"0000 01 71 00 00000008 01 78 41 00000001 42", ErrTable},
	} {
		t.Run(name, func(t *testing.T) {
			if err := new(QueueDeclare).Decode(unhex(c.args)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestReplyName(t *testing.T) {
	for code, want := range map[uint16]string{
		200: "REPLY_SUCCESS", 311: "CONTENT_TOO_LARGE", 312: "NO_ROUTE", 313: "NO_CONSUMERS",
		320: "CONNECTION_FORCED", 402: "INVALID_PATH", 403: "ACCESS_REFUSED", 404: "NOT_FOUND",
		405: "RESOURCE_LOCKED", 406: "PRECONDITION_FAILED", 501: "FRAME_ERROR", 502: "SYNTAX_ERROR",
		503: "COMMAND_INVALID", 504: "CHANNEL_ERROR", 505: "UNEXPECTED_FRAME", 506: "RESOURCE_ERROR",
		530: "NOT_ALLOWED", 540: "NOT_IMPLEMENTED", 541: "INTERNAL_ERROR", 0: "UNKNOWN", 999: "UNKNOWN",
	} {
		if got := ReplyName(code); got != want {
			t.Errorf("%d is %q, want %q", code, got, want)
		}
	}
}
