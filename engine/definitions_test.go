package engine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// memory is a catalog that keeps records in a map and makes changes durable when
// the test says so.
type memory struct {
	records  [KindParameter + 1]map[string][]byte
	sets     [][]Change // of each Apply
	durable  uint64
	manual   bool // durable is moved by the test alone
	waiting  []func(error)
	waitedOn []uint64
	loadErr  error
}

func newMemory() *memory {
	d := &memory{}
	for i := range d.records {
		d.records[i] = map[string][]byte{}
	}
	return d
}

func (d *memory) Apply(changes []Change) uint64 {
	d.sets = append(d.sets, slices.Clone(changes))
	for _, c := range changes {
		if c.Delete {
			delete(d.records[c.Kind], string(c.Key))
		} else {
			d.records[c.Kind][string(c.Key)] = c.Value
		}
	}
	n := uint64(len(d.sets))
	if !d.manual {
		d.durable = n
	}
	return n
}

func (d *memory) Durable() uint64 { return d.durable }

func (d *memory) Notify(n uint64, f func(error)) {
	d.waitedOn = append(d.waitedOn, n)
	d.waiting = append(d.waiting, f)
}

func (d *memory) Load(f func(kind ChangeKind, key, value []byte) error) error {
	for kind, records := range d.records {
		for _, key := range slices.Sorted(maps.Keys(records)) {
			value := bytes.Clone(records[key])
			if err := f(ChangeKind(kind), []byte(key), value); err != nil {
				return err
			}
			clear(value) // it is not the caller's to keep
		}
	}
	return d.loadErr
}

// reborn is the next life of the process: the sets so far are forgotten, the
// records stay.
func (d *memory) reborn() *memory {
	d.sets, d.durable = nil, 0
	return d
}

// restart is a new broker on the same catalog.
func restart(t *testing.T, d *memory, shards int) *Broker {
	t.Helper()
	b := NewBroker(shards, textCodec{})
	if err := b.Restore(d.reborn()); err != nil {
		t.Fatal(err)
	}
	return b
}

// recorded is a house whose changes go to d.
func recorded(t *testing.T, d *memory) *house {
	h := newHouse(t)
	if err := h.Broker.Restore(d); err != nil {
		t.Fatal(err)
	}
	return h
}

// describe lists what a vhost has, one line each, predeclared exchanges left out.
func describe(v *VHost) (lines []string) {
	v.Exchanges(func(x *Exchange) {
		if x.Name != "" && !strings.HasPrefix(x.Name, "amq.") {
			lines = append(lines, fmt.Sprintf("exchange %q %s durable=%v auto=%v internal=%v alternate=%q %s",
				x.Name, x.Kind, x.Durable, x.AutoDelete, x.Internal, x.Alternate, x.Args.Canonical()))
		}
		for _, b := range x.bindings {
			kind, name, _ := destination(b.Dest)
			lines = append(lines, fmt.Sprintf("binding %q to %s %q %q %s", x.Name, kind, name, b.Key, b.Args.Canonical()))
		}
	})
	v.Queues(func(q *queue.Queue) {
		s := q.Settings
		args := s.Args.Canonical()
		s.Args = nil
		lines = append(lines, fmt.Sprintf("queue %q %d on %d %+v %s", q.Name, q.ID, q.Shard, s, args))
	})
	slices.Sort(lines)
	return lines
}

func (h *house) durableQueue(name string, s queue.Settings) *queue.Queue {
	h.Helper()
	s.Durable = true
	q, err := h.v.DeclareQueue(name, s, nil, h.Shard, false)
	if err != nil {
		h.Fatal(err)
	}
	return q
}

func durable(s *ExchangeSettings)       { s.Durable = true }
func durableUnused(s *ExchangeSettings) { s.Durable, s.AutoDelete = true, true }
func durableWithArg(s *ExchangeSettings) {
	s.Durable, s.Args = true, core.Args{"alternate-exchange": text("ae")}
}

// EXC-15, QUE-14: after a restart exactly the durable part is there, and it can
// be declared again as it was.
func TestRestore(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	x := h.exchange("x", "topic", durable)
	odd := h.exchange("o \"\x00'<é", "headers", durableWithArg)
	h.exchange("hidden", "fanout", func(s *ExchangeSettings) { s.Durable, s.Internal = true, true })
	auto := h.exchange("auto", "direct", durableUnused)
	gone := h.exchange("gone", "direct", durable)
	weak := h.exchange("weak", "direct", nil)
	q := h.durableQueue("q", queue.Settings{Args: core.Args{"x-message-ttl": long(5), "x-max-length": number(7)}})
	late := h.durableQueue("late", queue.Settings{AutoDelete: true, Args: core.Args{"x-expires": number(1000)}})
	dead := h.durableQueue("dead", queue.Settings{})
	h.queue("transient", nil)
	if _, err := h.v.DeclareQueue("mine", queue.Settings{Durable: true, Exclusive: true}, &owner{}, h.Shard, false); err != nil {
		t.Fatal(err)
	}
	h.bind(x, q, "a.#", nil)
	h.bind(x, q, "a.#", core.Args{"n": number(1)})
	h.bind(x, q, "b", core.Args{"n": number(2)})
	h.bind(odd, x, "", core.Args{"x-match": text("any"), "f": float(math.Inf(-1))})
	h.bind(auto, q, "k", nil)
	h.bind(gone, q, "k", nil)
	h.bind(x, gone, "k", nil)
	h.bind(x, dead, "k", nil)
	h.bind(h.v.Exchange([]byte("amq.fanout")), late, "", nil)
	h.bind(x, weak, "k", nil)
	h.bind(weak, q, "k", nil)
	h.bind(x, h.v.Queue([]byte("transient")), "k", nil)
	h.v.Unbind(x, q, "b", core.Args{"n": unsigned(2)}) // the same binding: widths do not matter
	h.v.Unbind(x, q, "never", nil)
	if err := h.v.DeleteExchange("gone", false); err != nil {
		t.Fatal(err)
	}
	h.DeleteQueue(dead)

	var want []string
	for _, line := range describe(h.v) {
		if !strings.Contains(line, "transient") && !strings.Contains(line, "weak") && !strings.Contains(line, `queue "mine"`) {
			want = append(want, line)
		}
	}
	b := restart(t, d, 1)
	v := b.VHost("/")
	same(t, "after a restart", describe(v), want)
	if len(d.sets) != 0 {
		t.Errorf("a restart changed the catalog: %v", d.sets)
	}
	if n := b.queuesOn[0].Load(); n != 2 {
		t.Errorf("the shard is believed to have %d queues", n)
	}
	again, err := v.DeclareQueue("q", queue.Settings{Durable: true, Args: q.Settings.Args}, nil, b.Shards[0], false)
	if err != nil || again.ID != q.ID || again.Space != any(v) || again.WasShard != -1 {
		t.Errorf("declared again: %+v, %v", again, err)
	}
	if err := v.DeclareExchange(odd.Name, "headers", ExchangeSettings{Durable: true, Args: odd.Args}); err != nil {
		t.Error(err)
	}
	// What is restored can be undone.
	v.Unbind(v.Exchange([]byte("x")), again, "a.#", nil)
	b.Shards[0].DeleteQueue(again)
	lines := describe(restart(t, d, 1).VHost("/"))
	if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, `"q"`) || strings.Contains(l, `"auto"`) }) {
		t.Errorf("deleted things came back: %q", lines)
	}
}

// QUE-04: an argument is after a restart what it was, to the last bit.
func TestArgumentsRoundTrip(t *testing.T) {
	args := core.Args{
		"": text("no name"), "bytes \xff\x00": text("text that is \xff\xfe not UTF-8"), "empty": text(""),
		"<&>\u2028": text("<&>\u2028\ufffd\x00\""), "{": text(`{"base64":"x"}`),
		"min": long(math.MinInt64), "max": long(math.MaxInt64), "zero": number(0), "small": {Kind: core.KindInt, Int: -1, Type: "byte"},
		"uint max": unsigned(-1), "uint": unsigned(3),
		"float": float(0.1), "tiny": float(math.SmallestNonzeroFloat64), "huge": float(math.MaxFloat64), "minus zero": float(math.Copysign(0, -1)),
		"inf": float(math.Inf(1)), "single": {Kind: core.KindFloat, Float: float64(float32(0.1)), Type: "float"},
		"true": truth(1), "false": truth(0), "void": {Kind: core.KindVoid, Type: "void"},
		"time":  {Kind: core.KindTime, Int: 1 << 40, Type: "timestamp"},
		"bin":   {Kind: core.KindBytes, Str: "\x00\xff", Type: "binary"},
		"table": {Kind: core.KindOther, Str: "\x01aI\x00\x00\x00\x05", Type: "table"},
		"array": {Kind: core.KindOther, Str: "F\x00\x00\x00\x00", Type: "array"},
	}
	d := newMemory()
	h := recorded(t, d)
	h.durableQueue("q", queue.Settings{Args: args})
	x := h.exchange("x", "direct", func(s *ExchangeSettings) { s.Durable, s.Args = true, args })
	h.bind(x, h.v.Queue([]byte("q")), "", args)
	v := restart(t, d, 1).VHost("/")
	x = v.Exchange([]byte("x"))
	for what, got := range map[string]core.Args{"queue": v.Queue([]byte("q")).Settings.Args, "exchange": x.Args} {
		if !maps.Equal(got, args) {
			t.Errorf("%s: %#v", what, got)
		}
	}
	if !v.HasBinding(x, v.Queue([]byte("q")), "", args) {
		t.Error("the binding is another")
	}
	// NaN equals nothing, itself included: compare its bits.
	nan := math.Float64frombits(0x7ff8000000000123)
	got, err := readArgs(argRecords(core.Args{"nan": float(nan)}))
	if err != nil || math.Float64bits(got["nan"].Float) != math.Float64bits(nan) {
		t.Errorf("NaN: %v, %v", got, err)
	}
}

// The log names queues by id: one that was used again would give a new queue the
// messages of a dead one.
func TestQueueIDsAreNeverReused(t *testing.T) {
	d := newMemory()
	seen := map[uint64]string{}
	for life := range 4 {
		h := newHouse(t)
		if err := h.Broker.Restore(d.reborn()); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			name := fmt.Sprintf("q%d", i)
			q := h.durableQueue(name, queue.Settings{})
			if was, used := seen[q.ID]; used || q.ID == 0 || q.ID >= transientID {
				t.Errorf("life %d: id %d of %s, used before: %q", life, q.ID, name, was)
			}
			seen[q.ID] = name
			if q.DefSeq != uint64(len(d.sets)) {
				t.Errorf("%s has change %d of %d", name, q.DefSeq, len(d.sets))
			}
			n := len(d.sets)
			weak := h.queue(fmt.Sprintf("weak%d", i), nil)
			if weak.ID < transientID || weak.DefSeq != 0 || len(d.sets) != n {
				t.Errorf("a transient queue has id %x and change %d", weak.ID, weak.DefSeq)
			}
			h.DeleteQueue(q)
		}
		if n := len(d.records[KindQueue]); n != 0 {
			t.Errorf("%d queues are left in the catalog", n)
		}
	}
}

// What goes with something goes in the same change, or a crash would leave half.
func TestCascadesAreOneChange(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	sets := func() int { return len(d.sets) }
	kinds := func() (list []string) {
		for _, c := range d.sets[len(d.sets)-1] {
			list = append(list, fmt.Sprintf("%d%v", c.Kind, c.Delete))
		}
		slices.Sort(list)
		return list
	}
	a, b := h.exchange("a", "direct", durableUnused), h.exchange("b", "direct", durableUnused)
	q := h.durableQueue("q", queue.Settings{})
	if got := kinds(); !slices.Equal(got, []string{"2false", "4false"}) {
		t.Errorf("declare: %v", got)
	}
	h.bind(a, b, "", nil)
	h.bind(b, q, "", nil)
	h.bind(h.v.Exchange([]byte("amq.direct")), q, "", nil)
	n := sets()
	h.bind(b, q, "", nil) // changes nothing
	if sets() != n {
		t.Error("a binding was recorded twice")
	}
	h.DeleteQueue(q)
	if got := kinds(); sets() != n+1 || !slices.Equal(got, []string{"1true", "1true", "2true", "3true", "3true", "3true"}) {
		t.Errorf("%d changes: %v", sets()-n, got)
	}
	for kind, records := range d.records[:KindMeta] {
		if kind != int(KindVHost) && len(records) != 0 {
			t.Errorf("kind %d: %d records are left", kind, len(records))
		}
	}
	// The same by unbind, and by the deletion of an exchange.
	a, b = h.exchange("a", "direct", durableUnused), h.exchange("b", "direct", durable)
	h.bind(a, b, "", nil)
	n = sets()
	h.v.Unbind(a, b, "", nil)
	if got := kinds(); sets() != n+1 || !slices.Equal(got, []string{"1true", "3true"}) {
		t.Errorf("unbind: %d changes: %v", sets()-n, got)
	}
	a = h.exchange("a", "direct", durableUnused)
	h.bind(a, b, "", nil)
	n = sets()
	if err := h.v.DeleteExchange("b", false); err != nil {
		t.Fatal(err)
	}
	if got := kinds(); sets() != n+1 || !slices.Equal(got, []string{"1true", "1true", "3true"}) {
		t.Errorf("delete: %d changes: %v", sets()-n, got)
	}
	// Nothing of what is not durable, on either side.
	n = sets()
	weak := h.exchange("weak", "direct", nil)
	h.bind(weak, h.queue("w", nil), "", nil)
	h.bind(h.v.Exchange([]byte("amq.direct")), weak, "", nil)
	h.DeleteQueue(h.v.Queue([]byte("w")))
	if err := h.v.DeleteExchange("weak", false); err != nil || sets() != n {
		t.Errorf("%d changes, %v", sets()-n, err)
	}
}

// With fewer loops than before a queue goes to another, and says where its
// messages are.
func TestFewerLoops(t *testing.T) {
	d := newMemory()
	b := NewBroker(3, textCodec{})
	if err := b.Restore(d); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if _, err := b.VHost("/").DeclareQueue(fmt.Sprint(i), queue.Settings{Durable: true}, nil, b.Shards[i%3], false); err != nil {
			t.Fatal(err)
		}
	}
	b = restart(t, d, 2)
	b.VHost("/").Queues(func(q *queue.Queue) {
		was := int(q.Name[0]-'0') % 3
		if was < 2 && (q.Shard != was || q.WasShard != -1) || was == 2 && (q.Shard != int(q.ID%2) || q.WasShard != 2) {
			t.Errorf("queue %s with id %d: shard %d, was %d", q.Name, q.ID, q.Shard, q.WasShard)
		}
		b.Reassigned(q)
	})
	if got := b.queuesOn[0].Load() + b.queuesOn[1].Load(); got != 6 {
		t.Errorf("%d queues are counted", got)
	}
	restart(t, d, 3).VHost("/").Queues(func(q *queue.Queue) {
		if q.Shard > 1 || q.WasShard != -1 {
			t.Errorf("queue %s is on %d, was on %d", q.Name, q.Shard, q.WasShard)
		}
	})
}

// A definition that cannot be what it was is an error that names it, not a guess.
func TestRestoreRefuses(t *testing.T) {
	const q = `{"v":1,"vhost":"/","name":"q","id":1,"loop":0`
	for _, c := range []struct {
		kind       ChangeKind
		key, value string
		want       string
	}{
		{KindQueue, `"/" "q"`, q + `}`, ""},
		{KindQueue, `"/" "q"`, q + `,"arguments":[{"name":"x-max-age","kind":"int","int":5}]}`,
			`definition "/" "q" cannot be restored: PRECONDITION_FAILED - invalid arg 'x-max-age' for queue 'q' in vhost '/'`},
		{KindQueue, "k", strings.Replace(q, `"v":1`, `"v":2`, 1) + `}`, "the record has version 2, this broker knows version 1"},
		{KindQueue, "k", q + `,"colour":"red"}`, `unknown field "colour"`},
		{KindQueue, "k", q + `}{}`, "invalid character"},
		{KindQueue, "k", q, "unexpected end"},
		{KindQueue, "k", strings.Replace(q, `"id":1`, `"id":0`, 1) + `}`, "queue 'q' in vhost '/' has id 0"},
		{KindQueue, "k", strings.Replace(q, `"id":1`, `"id":9223372036854775808`, 1) + `}`, "has id 9223372036854775808"},
		{KindQueue, "k", strings.Replace(q, `"/"`, `"other"`, 1) + `}`, "there is no vhost 'other'"},
		{KindQueue, "k", q + `,"arguments":[{"name":"a","kind":"complex"}]}`, `argument "a" is of the unknown kind "complex"`},
		{KindQueue, "k", q + `,"arguments":[{"name":"a","kind":"float","float":"one"}]}`, `argument "a"`},
		{KindQueue, "k", q + `,"arguments":[{"name":{"base64":"!"},"kind":"int"}]}`, "illegal base64"},
		{KindExchange, "k", `{"v":1,"vhost":"/","name":"x","type":"direct"}`, ""},
		{KindExchange, "k", `{"v":1,"vhost":"/","name":"x","type":"x-nosuch"}`, "unknown exchange type 'x-nosuch'"},
		{KindExchange, "k", `{"v":1,"vhost":"/","name":"amq.direct","type":"direct"}`, "is there already"},
		{KindBinding, "k", `{"v":1,"vhost":"/","source":"amq.topic","destination_type":"exchange","destination":"amq.direct","routing_key":"k"}`, ""},
		{KindBinding, "k", `{"v":1,"vhost":"/","source":"amq.topic","destination_type":"queue","destination":"q","routing_key":"k"}`,
			"the binding of exchange 'amq.topic' to queue 'q' with key 'k' in vhost '/' cannot be restored: NOT_FOUND - no queue 'q' in vhost '/'"},
		{KindBinding, "k", `{"v":1,"vhost":"/","source":"x","destination_type":"exchange","destination":"y","routing_key":"k"}`, "no exchange 'x'"},
		{KindBinding, "k", `{"v":1,"vhost":"/","source":"amq.topic","destination_type":"exchange","destination":"y","routing_key":"k"}`, "no exchange 'y'"},
		{KindBinding, "k", `{"v":1,"vhost":"/","source":"amq.topic","destination_type":"link","destination":"y","routing_key":"k"}`, "it leads to a 'link'"},
		{KindVHost, "k", `{"v":1,"name":"other"}`, ""},
		{KindVHost, "k", `[]`, "cannot unmarshal"},
		{KindMeta, "last-queue-id", "12", ""},
		{KindMeta, "last-queue-id", "-1", "invalid syntax"},
		{KindMeta, "colour", "red", "not known to this version"},
	} {
		d := newMemory()
		d.records[c.kind][c.key] = []byte(c.value)
		err := NewBroker(1, textCodec{}).Restore(d)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.value, err, c.want)
		}
	}
	d := newMemory()
	d.records[KindVHost][`"other"`] = []byte(`{"v":1,"name":"other"}`)
	if b := restart(t, d, 1); b.VHost("other") == nil || len(d.records[KindVHost]) != 2 {
		t.Errorf("vhosts: %q", d.records[KindVHost])
	}
	d.loadErr = errors.New("unreadable")
	if err := NewBroker(1, textCodec{}).Restore(d); err != d.loadErr {
		t.Errorf("%v", err)
	}
}

// Two bindings have one key exactly when they are one binding (BIND-01).
func TestBindingKeys(t *testing.T) {
	a, b := core.Args{"n": number(1)}, core.Args{"n": long(1)}
	long := core.Args{"n": text(strings.Repeat("x", 100_000))}
	list := []string{
		string(bindingKey("/", "s", destQueue, "d", "k", "")),
		string(bindingKey("/", "s", destExchange, "d", "k", "")),
		string(bindingKey("/", "s", destQueue, "d", "k", a.Canonical())),
		string(bindingKey("/", "s", destQueue, "d", "k", long.Canonical())),
		string(bindingKey("/", "s\" \"d", destQueue, "", "k", "")),
		string(bindingKey("/", "s", destQueue, "d\x00k", "", "")),
	}
	for i, key := range list {
		if slices.Contains(list[:i], key) || len(key) > 1000 {
			t.Errorf("key %q", key)
		}
	}
	if string(bindingKey("/", "s", destQueue, "d", "k", b.Canonical())) != list[2] {
		t.Error("widths make another key")
	}
}

// Nobody waits while nothing is pending; else everybody waits for all there is.
func TestWhenDefined(t *testing.T) {
	h := newHouse(t)
	told := []error{}
	ask := func() { h.WhenDefined(func(err error) { told = append(told, err) }) }
	if ask(); len(told) != 1 || told[0] != nil {
		t.Errorf("without a catalog: %v", told)
	}
	d := newMemory()
	d.manual = true
	h = recorded(t, d)
	d.durable = uint64(len(d.sets)) // the vhost
	if ask(); len(told) != 2 || told[1] != nil || len(d.waiting) != 0 {
		t.Errorf("with nothing pending: %v", told)
	}
	q := h.durableQueue("q", queue.Settings{})
	if ask(); len(told) != 2 || !slices.Equal(d.waitedOn, []uint64{q.DefSeq}) {
		t.Errorf("with a change pending: %v, waits for %d", told, d.waitedOn)
	}
	full := errors.New("no room")
	if d.waiting[0](full); len(told) != 3 || told[2] != full {
		t.Errorf("not written: %v", told)
	}
	d.durable = q.DefSeq
	if ask(); len(told) != 4 || told[3] != nil {
		t.Errorf("written: %v", told)
	}
}
