package amqp091

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func fullProperties() Properties {
	return Properties{
		Flags:       0xFFFC,
		ContentType: []byte("text/plain"), ContentEncoding: []byte("gzip"),
		Headers: AppendString(nil, "h", "v"), DeliveryMode: 2, Priority: 9,
		CorrelationID: []byte("c"), ReplyTo: []byte("r"), Expiration: []byte("1000"), MessageID: []byte("m"),
		Timestamp: 1 << 63, Type: []byte("t"), UserID: []byte("guest"), AppID: []byte("a"), ClusterID: []byte("z"),
	}
}

func TestPropertiesGolden(t *testing.T) {
	p := fullProperties()
	want := unhex("FFFC 0A 746578742F706C61696E 04 677A6970 00000008 01 68 53 00000001 76 02 09" +
		"01 63 01 72 04 31303030 01 6D 8000000000000000 01 74 05 6775657374 01 61 01 7A")
	got := p.Append(nil)
	if !bytes.Equal(got, want) {
		t.Fatalf("got %X\nwant %X", got, want)
	}
	back := Properties{Priority: 7, AppID: []byte("stale")}
	if err := back.Decode(want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, p) {
		t.Fatalf("got %+v\nwant %+v", back, p)
	}
	for n := range want {
		if err := back.Decode(want[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("%d octets: %v", n, err)
		}
	}
}

// Each property alone: its flag, its place, and nothing left over from before.
func TestPropertiesEachAlone(t *testing.T) {
	full := fullProperties()
	reused := fullProperties()
	for bit := 2; bit < 16; bit++ {
		one := full
		one.Flags = 1 << bit
		b := one.Append(nil)
		if err := reused.Decode(b); err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		set := 0
		v, all := reflect.ValueOf(reused), reflect.ValueOf(full)
		for i := 1; i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				continue
			}
			set++
			if want := v.NumField() - 1 - (bit - 2); i != want {
				t.Errorf("bit %d set field %d, want %d", bit, i, want)
			}
			if !reflect.DeepEqual(v.Field(i).Interface(), all.Field(i).Interface()) {
				t.Errorf("bit %d: value %v", bit, v.Field(i))
			}
		}
		if set != 1 {
			t.Errorf("bit %d: %d fields set", bit, set)
		}
		if err := reused.Decode(append(b, 0)); !errors.Is(err, ErrTrailing) {
			t.Errorf("bit %d, one octet more: %v", bit, err)
		}
		for n := range b {
			if err := reused.Decode(b[:n]); !errors.Is(err, ErrTruncated) {
				t.Errorf("bit %d, %d octets: %v", bit, n, err)
			}
		}
	}
}

func TestPropertiesMalformed(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"nothing":              {"", ErrTruncated},
		"half a flag word":     {"80", ErrTruncated},
		"none":                 {"0000", nil},
		"bit 1 is ignored":     {"0002", nil},
		"continuation":         {"0001 0000", ErrContinuation},
		"trailing":             {"0000 00", ErrTrailing},
		"headers overrun":      {"2000 00000005 01", ErrTruncated},
		"headers near 2^32":    {"2000 FFFFFFFF 00", ErrTruncated},
		"headers unknown tag":  {"2000 00000003 01 6B 7A", ErrTable},
		"headers inner length": {"2000 00000007 01 6B 53 FFFFFFFF", ErrTable},
	} {
		t.Run(name, func(t *testing.T) {
			var p Properties
			err := p.Decode(unhex(c.in))
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && !bytes.Equal(p.Append(nil), unhex(c.in)) {
				t.Errorf("appended as %X", p.Append(nil))
			}
		})
	}
	p := Properties{Flags: flagContinuation}
	if got := p.Append(nil); !bytes.Equal(got, []byte{0, 0}) {
		t.Errorf("continuation was written: %X", got)
	}
}
