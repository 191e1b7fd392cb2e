package definitions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ringmq/engine"
	"ringmq/engine/core"
)

// jsonCodec stands in for a protocol: arguments are numbers, texts and booleans, and all else
// is kept as JSON.
type jsonCodec struct{}

func (jsonCodec) Args(object map[string]any) (core.Args, error) {
	args := core.Args{}
	for name, v := range object {
		switch v := v.(type) {
		case json.Number:
			n, err := v.Int64()
			if err != nil {
				return nil, err
			}
			args[name] = core.Value{Kind: core.KindInt, Int: n, Type: "long"}
		case string:
			args[name] = core.Value{Kind: core.KindString, Str: v, Type: "longstr"}
		case bool:
			args[name] = core.Value{Kind: core.KindBool, Type: "bool"}
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			args[name] = core.Value{Kind: core.KindOther, Str: string(raw), Type: "table"}
		}
	}
	return args, nil
}

func (jsonCodec) JSON(args core.Args) map[string]any {
	out := map[string]any{}
	for name, v := range args {
		switch v.Kind {
		case core.KindInt:
			out[name] = v.Int
		case core.KindBool:
			out[name] = v.Int != 0
		case core.KindOther:
			out[name] = json.RawMessage(v.Str)
		default:
			out[name] = v.Str
		}
	}
	return out
}

func load(b *engine.Broker, target, text string) error {
	f, err := Parse([]byte(text), target, jsonCodec{})
	if err != nil {
		return err
	}
	return f.Import(b)
}

func exported(t *testing.T, b *engine.Broker, vhost string) string {
	t.Helper()
	out, err := Export(b, vhost, jsonCodec{}, About{"p", "1", "2"})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// everything uses each sort of entry.
const everything = `{"rabbit_version":"3.13.1","a key of the future":[1],
"users":[{"name":"guest","password_hash":"x","tags":["administrator"],"limits":{"max-channels":7}},{"name":"u","limits":[]}],
"vhosts":[{"name":"/"},{"name":"w","metadata":{"description":"d","tags":"a, b","default_queue_type":"quorum"},"limits":[]},
  {"name":"l","default_queue_type":"undefined","limits":{"max-queues":0}}],
"permissions":[{"user":"guest","vhost":"/"}],
"parameters":[{"component":"operator_policy","vhost":"/","name":"op","value":{"pattern":".","definition":{"max-length":100},"apply-to":"queues","priority":1}},
  {"component":"vhost-limits","vhost":"w","name":"limits","value":{"max-queues":2}},
  {"component":"shovel","vhost":"w","name":"s","value":{"n":12345678901234567890}}],
"global_parameters":[{"name":"cluster_name","value":"c"}],
"policies":[{"vhost":"w","name":"p","pattern":"^q","definition":{"message-ttl":60000},"priority":-3}],
"queues":[{"name":"q1","vhost":"/","durable":true,"auto_delete":false,"arguments":{"x-max-length":5,"x-foo":{"a":[1]}}},
  {"name":"q2","vhost":"w","durable":true,"type":"quorum"},{"name":"q3","vhost":"w"}],
"exchanges":[{"name":"x","vhost":"/","type":"topic","durable":true,"arguments":{}},{"name":"amq.topic","vhost":"/","type":"topic"},
  {"name":"","vhost":"/","type":"direct"},{"name":"t","vhost":"w","type":"fanout","durable":false,"auto_delete":true,"internal":true}],
"bindings":[{"source":"x","vhost":"/","destination":"q1","destination_type":"queue","routing_key":"a.#","arguments":{"z":1}},
  {"source":"","vhost":"/","destination":"q1","destination_type":"queue","routing_key":"q1"},
  {"source":"amq.topic","vhost":"/","destination":"x","destination_type":"exchange","routing_key":"#"},
  {"source":"t","vhost":"w","destination":"q2"}]}`

// DEF-01, DEF-02, DEF-03: what is exported is what was imported, importing is idempotent, and
// an export makes an equal broker of an empty one.
func TestRoundTrip(t *testing.T) {
	b := engine.NewBroker(2, nil)
	if err := load(b, "", everything); err != nil {
		t.Fatal(err)
	}
	first := exported(t, b, "")
	for _, want := range []string{
		`"max-channels": 7`, `"description": "d"`, `"default_queue_type": "quorum"`, `"operator_policy"`, `"vhost-limits"`,
		`12345678901234567890`, `"cluster_name"`, `"priority": -3`, `"x-max-length": 5`, `"x-foo"`, `"a.#"`, `"internal": true`,
		`"max-queues": 0`, `"max-queues": 2`,
	} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
	for _, not := range []string{`"name": "amq.`, `"name": ""`, `"source": ""`, "password"} {
		if strings.Contains(first, not) {
			t.Errorf("%s is exported", not)
		}
	}
	for _, again := range []string{everything, first} {
		// The limit of w is reached and refuses nothing that is there.
		if err := load(b, "", again); err != nil {
			t.Fatal(err)
		}
		if got := exported(t, b, ""); got != first {
			t.Errorf("after a second import:\n%s", got)
		}
	}
	fresh := engine.NewBroker(1, nil)
	if err := load(fresh, "", first); err != nil {
		t.Fatal(err)
	}
	if got := exported(t, fresh, ""); got != first {
		t.Errorf("of a fresh broker:\n%s\nwant\n%s", got, first)
	}
	f, err := Parse([]byte(everything), "", jsonCodec{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(f.Counts()), "3 virtual hosts, 2 policies, 2 parameters, 3 limits, 4 exchanges, 3 queues, 4 bindings"; got != want ||
		fmt.Sprint(f.Counts().Unsupported) != "[users permissions]" {
		t.Errorf("%s, %v", got, f.Counts().Unsupported)
	}
}

// DEF-03: what exists stays, policies are replaced.
func TestAdditive(t *testing.T) {
	b := engine.NewBroker(1, nil)
	for _, text := range []string{
		`{"queues":[{"name":"q","arguments":{"x-max-length":5}}],"exchanges":[{"name":"x","type":"topic"}],
		  "policies":[{"name":"p","pattern":".","definition":{"max-length":9}}]}`,
		`{"queues":[{"name":"q","durable":false,"arguments":{"x-max-length":6}},{"name":"r"}],"exchanges":[{"name":"x","type":"fanout"}],
		  "policies":[{"name":"p","pattern":".","definition":{"max-length":8}}]}`,
	} {
		if err := load(b, "", text); err != nil {
			t.Fatal(err)
		}
	}
	got := exported(t, b, "")
	for _, want := range []string{`"x-max-length": 5`, `"type": "topic"`, `"max-length": 8`, `"name": "r"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// A file of one virtual host has no names of it in its entries, and goes into any.
func TestOfOneVHost(t *testing.T) {
	b := engine.NewBroker(1, nil)
	if err := load(b, "", everything); err != nil {
		t.Fatal(err)
	}
	one := exported(t, b, "w")
	for _, not := range []string{`"vhost"`, `"vhosts"`, `"users"`, `"global_parameters"`, `"q1"`} {
		if strings.Contains(one, not) {
			t.Errorf("%s is in the export of w:\n%s", not, one)
		}
	}
	for _, target := range []string{"", "/", "new"} {
		b := engine.NewBroker(1, nil)
		if target == "new" {
			if err := b.AddVHost("new", engine.VHostSettings{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := load(b, target, one); err != nil {
			t.Fatal(err)
		}
		into := target
		if into == "" {
			into = "/"
		}
		if got := exported(t, b, into); got != one {
			t.Errorf("into %q:\n%s\nwant\n%s", target, got, one)
		}
	}
	// The target counts, whatever the entries say.
	if err := b.AddVHost("other", engine.VHostSettings{}); err != nil {
		t.Fatal(err)
	}
	if err := load(b, "other", everything); err != nil || b.VHost("other").Queue([]byte("q1")) == nil {
		t.Error("not in the target", err)
	}
	if _, err := Export(b, "none", jsonCodec{}, About{}); !IsUnknown(err) {
		t.Error(err)
	}
}

// Field case 91: whatever is wrong is one line with the place of it, and nothing is imported.
func TestRefused(t *testing.T) {
	good := `"vhosts":[{"name":"n"}],"policies":[{"name":"p","pattern":".","definition":{"max-length":1}}],
		"global_parameters":[{"name":"g","value":1}],"exchanges":[{"name":"x","type":"fanout"}],`
	for _, c := range []struct{ text, want string }{
		{``, "not JSON: the file is empty"},
		{"{\n \"queues\": [,]}", "not JSON: line 2, column 13: invalid character ','"},
		{"{\n \"queues\": [", "not JSON: line 2, column 12: the file ends in the middle"},
		{`{} x`, "not JSON: line 1"},
		{`{}{}`, "not JSON: line 1, column 2: something follows the JSON object"},
		{`[]`, "a JSON object is expected, not an array"},
		{"{\"a\":\"\xff\"}", "not UTF-8"},
		{`{"queues":5}`, "queues: an array is expected, not the number 5"},
		{`{"queues":{"name":"q"}}`, "queues: an array is expected, not an object"},
		{`{"queues":["q"]}`, `queues[0]: an object is expected, not the text "q"`},
		{`{"queues":[{"name":"q"},{"name":7}]}`, "queues[1].name: a text is expected, not the number 7"},
		{`{"queues":[{}]}`, "queues[0].name: it is missing"},
		{`{"queues":[{"name":""}]}`, "queues[0].name: it is empty"},
		{`{"queues":[{"name":"` + strings.Repeat("q", 256) + `"}]}`, "queues[0].name: a name has at most 255 bytes, this one has 256"},
		{`{"queues":[{"name":"q","durable":"yes"}]}`, `queues[0].durable: true or false is expected, not the text "yes"`},
		{`{"queues":[{"name":"q","arguments":[1]}]}`, "queues[0].arguments: an object is expected, not an array"},
		{`{"queues":[{"name":"q","vhost":"none"}]}`, "queues[0].vhost: there is no virtual host 'none', neither here nor in the file"},
		{`{` + good + `"queues":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"q","arguments":{"x-max-length":"five","x-expires":5}}]}`,
			"queues[3].arguments.x-max-length: invalid arg 'x-max-length'"},
		{`{` + good + `"queues":[{"name":"q","type":"odd"}]}`, "queues[0].arguments.x-queue-type: "},
		{`{"vhosts":[{"name":"n","default_queue_type":"quorum"}],"queues":[{"name":"q","vhost":"n","durable":false}]}`, "queues[0]: "},
		{`{"exchanges":[{"name":"x"}]}`, "exchanges[0].type: it is missing"},
		{`{"exchanges":[{"name":"x","type":"odd"}]}`, "exchanges[0].type: "},
		{`{"exchanges":[{"name":"amq.mine","type":"direct"}]}`, "exchanges[0].name: exchange name 'amq.mine' contains reserved prefix"},
		{`{"exchanges":[{"name":"x","type":"fanout","arguments":{"alternate-exchange":1}}]}`, "exchanges[0].arguments.alternate-exchange: "},
		{`{"exchanges":[{"name":"x","type":"fanout","vhost":"none"}]}`, "exchanges[0].vhost: "},
		{`{` + good + `"bindings":[{"source":"x","destination":"q"}]}`, "bindings[0].destination: no queue 'q' in vhost '/'"},
		{`{` + good + `"bindings":[{"source":"x","destination":"y","destination_type":"exchange"}]}`, "bindings[0].destination: no exchange 'y'"},
		{`{"queues":[{"name":"q"}],"bindings":[{"source":"y","destination":"q"}]}`, "bindings[0].source: no exchange 'y'"},
		{`{"queues":[{"name":"q"}],"bindings":[{"source":"","destination":"q","routing_key":"k"}]}`, "bindings[0].source: the default exchange"},
		{`{` + good + `"bindings":[{"source":"x","destination":"q","destination_type":"topic"}]}`, "bindings[0].destination_type: queue or exchange"},
		{`{"queues":[{"name":"q"}],"bindings":[{"source":"amq.headers","destination":"q","arguments":{"x-match":"some"}}]}`, "bindings[0].arguments.x-match: "},
		{`{"queues":[{"name":"q"}],"bindings":[{"source":"amq.topic","destination":"q","vhost":"none"}]}`, "bindings[0].vhost: "},
		{`{"policies":[{"name":"p","definition":{}}]}`, "policies[0].pattern: it is missing"},
		{`{"policies":[{"name":"p","pattern":".","definition":{"odd":1}}]}`, `policies[0]: policy 'p': [{<<"odd">>,1}] are not recognised policy settings`},
		{`{"policies":[{"name":"p","pattern":".","priority":1.5,"definition":{"max-length":1}}]}`, "policies[0].priority: a whole number is expected, not the number 1.5"},
		{`{"policies":[{"name":"p","pattern":".","vhost":"none","definition":{"max-length":1}}]}`, "policies[0].vhost: "},
		{`{"parameters":[{"component":"odd","name":"n","value":1}]}`, "parameters[0].component: component odd not found"},
		{`{"parameters":[{"component":"shovel","name":"n"}]}`, "parameters[0].value: it is missing"},
		{`{"parameters":[{"component":"shovel","name":"n","vhost":"none","value":1}]}`, "parameters[0].vhost: "},
		{`{"parameters":[{"component":"operator_policy","name":"n","value":{"pattern":"(","definition":{"max-length":1}}}]}`, "parameters[0]: policy 'n': pattern should be"},
		{`{"parameters":[{"component":"vhost-limits","name":"limits","value":{"max-cats":1}}]}`, `parameters[0].value: unrecognised limit "max-cats"`},
		{`{"vhosts":[{"name":"n","tags":5}]}`, "vhosts[0].tags: a list of texts is expected"},
		{`{"vhosts":[{"name":"n","default_queue_type":"odd"}]}`, "vhosts[0].default_queue_type: classic, quorum or stream is expected"},
		{`{"vhosts":[{"name":"n","limits":{"max-queues":"x"}}]}`, "vhosts[0].limits: max-queues should be a number"},
		{`{"vhosts":[{"name":""}]}`, "vhosts[0].name: it is empty"},
		{`{"parameters":[{"component":"shovel","name":"","value":""}]}`, "parameters[0].name: it is empty"},
		{`{"global_parameters":[{"name":"","value":1}]}`, "global_parameters[0].name: it is empty"},
		{`{"users":[{"name":"","limits":{"max-channels":1}}]}`, "users[0].name: it is empty"},
		{`{"users":[{"name":"u","limits":{"max-queues":1}}]}`, "users[0].limits: unrecognised limit"},
	} {
		b := engine.NewBroker(1, nil)
		before := exported(t, b, "")
		err := load(b, "", c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
		if got := exported(t, b, ""); got != before {
			t.Errorf("%s: something was imported:\n%s", c.text, got)
		}
	}
}

// A limit that is in force already refuses a file with too much as a whole; one of the file
// itself counts from then on only.
func TestOverLimit(t *testing.T) {
	b := engine.NewBroker(1, nil)
	if err := b.SetVHostLimits("/", engine.Limits{MaxConnections: -1, MaxQueues: 1}); err != nil {
		t.Fatal(err)
	}
	err := load(b, "", `{"global_parameters":[{"name":"g","value":1}],"queues":[{"name":"a"},{"name":"b"}]}`)
	if err == nil || !strings.Contains(err.Error(), "over its limit of 1") || len(b.GlobalParameters()) != 0 {
		t.Error(err)
	}
	if err := load(b, "", `{"queues":[{"name":"a"}]}`); err != nil {
		t.Error(err)
	}
}

// FuzzParse: no file brings the reader down, and what it takes it can be asked about.
func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(`{"queues":[{"name":"q","arguments":{"a":[{}]}}]}`))
	b := engine.NewBroker(1, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data, "", jsonCodec{})
		if err != nil {
			return
		}
		// What the check lets through is imported without an error.
		if file.Check(b) == nil {
			if err := file.Import(engine.NewBroker(1, nil)); err != nil {
				t.Errorf("%s: %v", data, err)
			}
		}
	})
}
