package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// The records of the catalog are JSON objects. "v" is the version of the
// record's form: a version that this broker does not know, or a field that it
// does not know, is an error rather than a guess.
//
// A text is a JSON string, or {"base64": ...} when its bytes are not UTF-8.
// Arguments are a list in the order of their names. A value has
//
//	kind   "void", "bool", "int", "uint", "float", "string", "bytes", "time", "other"
//	type   the protocol's name of its type
//	int    bool (0 or 1), int, and time in seconds
//	uint   uint
//	float  float, as text with all its digits: JSON has no infinity
//	text   string, bytes, and the encoded form of other (tables, arrays, decimals)
//
// Keys are quoted texts, and in a key only identity counts: whatever two things
// have in common that makes them one thing (BIND-01), and nothing else.
const recordVersion = 1

type vhostRecord struct {
	V           int        `json:"v"`
	Name        jsonText   `json:"name"`
	Description jsonText   `json:"description,omitempty"`
	Tags        []jsonText `json:"tags,omitempty"`
	DefaultType string     `json:"default_queue_type,omitempty"`
	Tracing     bool       `json:"tracing,omitempty"`
}

type exchangeRecord struct {
	V          int         `json:"v"`
	VHost      jsonText    `json:"vhost"`
	Name       jsonText    `json:"name"`
	Kind       string      `json:"type"`
	AutoDelete bool        `json:"auto_delete,omitempty"`
	Internal   bool        `json:"internal,omitempty"`
	Args       []argRecord `json:"arguments,omitempty"`
}

type queueRecord struct {
	V          int         `json:"v"`
	VHost      jsonText    `json:"vhost"`
	Name       jsonText    `json:"name"`
	ID         uint64      `json:"id"`
	Shard      int         `json:"loop"` // whose log has its messages
	AutoDelete bool        `json:"auto_delete,omitempty"`
	Args       []argRecord `json:"arguments,omitempty"`
	// Holds: it is no queue of that name, but what the exchange of that name holds.
	Holds bool `json:"holds,omitempty"`
}

type bindingRecord struct {
	V        int         `json:"v"`
	VHost    jsonText    `json:"vhost"`
	Source   jsonText    `json:"source"`
	DestKind string      `json:"destination_type"` // "queue" or "exchange"
	Dest     jsonText    `json:"destination"`
	Key      jsonText    `json:"routing_key"`
	Args     []argRecord `json:"arguments,omitempty"`
}

type argRecord struct {
	Name  jsonText `json:"name"`
	Kind  string   `json:"kind"`
	Type  string   `json:"type,omitempty"`
	Int   int64    `json:"int,omitempty"`
	Uint  uint64   `json:"uint,omitempty"`
	Float string   `json:"float,omitempty"`
	Text  jsonText `json:"text,omitempty"`
}

const (
	destQueue    = "queue"
	destExchange = "exchange"
)

// jsonText is a string of any bytes.
type jsonText string

type base64Text struct {
	Base64 string `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t jsonText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(base64Text{base64.StdEncoding.EncodeToString([]byte(t))})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *jsonText) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return json.Unmarshal(b, (*string)(t))
	}
	var coded base64Text
	if err := strictJSON(b, &coded); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(coded.Base64)
	*t = jsonText(raw)
	return err
}

// strictJSON reads one JSON value and nothing besides what out has fields for.
func strictJSON(b []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows the record")
	}
	return nil
}

// readRecord reads a record of a known version.
func readRecord(b []byte, out any) error {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.V != recordVersion {
		return fmt.Errorf("the record has version %d, this broker knows version %d", head.V, recordVersion)
	}
	return strictJSON(b, out)
}

// writeRecord never fails: the records are made of what JSON can say.
func writeRecord(r any) []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("engine: a record of the catalog cannot be written: " + err.Error())
	}
	return b
}

var kindNames = [...]string{
	core.KindVoid: "void", core.KindBool: "bool", core.KindInt: "int", core.KindUint: "uint",
	core.KindFloat: "float", core.KindString: "string", core.KindBytes: "bytes", core.KindTime: "time",
	core.KindOther: "other",
}

func argRecords(args core.Args) []argRecord {
	list := make([]argRecord, 0, len(args))
	for name, v := range args {
		r := argRecord{Name: jsonText(name), Kind: kindNames[v.Kind], Type: v.Type}
		switch v.Kind {
		case core.KindBool, core.KindInt, core.KindTime:
			r.Int = v.Int
		case core.KindUint:
			r.Uint = uint64(v.Int)
		case core.KindFloat:
			r.Float = floatText(v.Float)
		default:
			r.Text = jsonText(v.Str)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b argRecord) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return list
}

// floatText is a number with all its bits. A NaN has more than one form and no
// text for them: it is written as bits.
func floatText(f float64) string {
	if math.IsNaN(f) {
		return "0x" + strconv.FormatUint(math.Float64bits(f), 16)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func parseFloat(s string) (float64, error) {
	if bits, ok := strings.CutPrefix(s, "0x"); ok {
		n, err := strconv.ParseUint(bits, 16, 64)
		return math.Float64frombits(n), err
	}
	return strconv.ParseFloat(s, 64)
}

func readArgs(list []argRecord) (core.Args, error) {
	if len(list) == 0 {
		return nil, nil
	}
	args := make(core.Args, len(list))
	for _, r := range list {
		kind := slices.Index(kindNames[:], r.Kind)
		if kind < 0 {
			return nil, fmt.Errorf("argument %q is of the unknown kind %q", string(r.Name), r.Kind)
		}
		v := core.Value{Kind: core.Kind(kind), Int: r.Int, Str: string(r.Text), Type: r.Type}
		switch v.Kind {
		case core.KindUint:
			v.Int = int64(r.Uint)
		case core.KindFloat:
			var err error
			if v.Float, err = parseFloat(r.Float); err != nil {
				return nil, fmt.Errorf("argument %q: %w", string(r.Name), err)
			}
		}
		args[string(r.Name)] = v
	}
	return args, nil
}

// recordKey joins quoted names: readable, and different for different lists.
func recordKey(names ...string) []byte {
	var key []byte
	for i, name := range names {
		if i > 0 {
			key = append(key, ' ')
		}
		key = strconv.AppendQuote(key, name)
	}
	return key
}

// bindingKey has a digest of the arguments, which may be longer than a key may
// be.
func bindingKey(vhost, source, destKind, dest, key, canonical string) []byte {
	k := recordKey(vhost, source, destKind, dest, key)
	if canonical != "" {
		sum := sha256.Sum256([]byte(canonical))
		k = append(k, ' ')
		k = hex.AppendEncode(k, sum[:])
	}
	return k
}

// The functions below note the change that puts or takes away a definition, if
// it is one that survives a restart. The vhost's lock is held.

func (v *VHost) noteVHost() {
	if !v.broker.catalog.records() {
		return
	}
	s := v.settings.Load()
	rec := vhostRecord{
		V: recordVersion, Name: jsonText(v.Name), Description: jsonText(s.Description),
		DefaultType: s.DefaultQueueType, Tracing: s.Tracing,
	}
	for _, tag := range s.Tags {
		rec.Tags = append(rec.Tags, jsonText(tag))
	}
	v.note(Change{Kind: KindVHost, Key: recordKey(v.Name), Value: writeRecord(rec)})
}

func (v *VHost) noteExchange(x *Exchange) {
	if !x.Durable || !v.broker.catalog.records() {
		return
	}
	v.note(Change{Kind: KindExchange, Key: recordKey(v.Name, x.Name), Value: writeRecord(exchangeRecord{
		V: recordVersion, VHost: jsonText(v.Name), Name: jsonText(x.Name), Kind: x.Kind.String(),
		AutoDelete: x.AutoDelete, Internal: x.Internal, Args: argRecords(x.Args),
	})})
}

func (v *VHost) noteExchangeGone(x *Exchange) {
	if x.Durable && v.broker.catalog.records() {
		v.note(Change{Kind: KindExchange, Delete: true, Key: recordKey(v.Name, x.Name)})
	}
}

func (v *VHost) noteQueue(q *queue.Queue) {
	if !q.Settings.Durable || !v.broker.catalog.records() {
		return
	}
	v.note(Change{Kind: KindQueue, Key: v.queueKey(q), Value: writeRecord(queueRecord{
		V: recordVersion, VHost: jsonText(v.Name), Name: jsonText(q.Name), ID: q.ID, Shard: q.Shard,
		AutoDelete: q.Settings.AutoDelete, Args: argRecords(q.Settings.Args), Holds: holds(q),
	})})
}

func (v *VHost) noteQueueGone(q *queue.Queue) {
	if q.Settings.Durable && v.broker.catalog.records() {
		v.note(Change{Kind: KindQueue, Delete: true, Key: v.queueKey(q)})
	}
}

func (v *VHost) noteBinding(b *Binding) {
	kind, dest, durable := destination(b.Dest)
	if !durable || !b.Source.Durable || !v.broker.catalog.records() {
		return
	}
	v.note(Change{Kind: KindBinding, Key: bindingKey(v.Name, b.Source.Name, kind, dest, b.Key, b.Args.Canonical()),
		Value: writeRecord(bindingRecord{
			V: recordVersion, VHost: jsonText(v.Name), Source: jsonText(b.Source.Name), DestKind: kind,
			Dest: jsonText(dest), Key: jsonText(b.Key), Args: argRecords(b.Args),
		})})
}

func (v *VHost) noteBindingGone(b *Binding) {
	kind, dest, durable := destination(b.Dest)
	if durable && b.Source.Durable && v.broker.catalog.records() {
		v.note(Change{Kind: KindBinding, Delete: true,
			Key: bindingKey(v.Name, b.Source.Name, kind, dest, b.Key, b.Args.Canonical())})
	}
}

// destination says what a binding leads to.
func destination(d exchange.Dest) (kind, name string, durable bool) {
	switch d := d.(type) {
	case *queue.Queue:
		return destQueue, d.Name, d.Settings.Durable
	case *Exchange:
		return destExchange, d.Name, d.Durable
	}
	return "", "", false
}
