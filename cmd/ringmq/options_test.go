package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write generated parts of the documentation instead of comparing them")

func noEnv(string) (string, bool) { return "", false }

func envOf(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// writeConfig makes a configuration file and returns its path.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ringmq.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	got, err := loadOptions(nil, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	got.sources = nil
	want := &serveOptions{
		Listen: []address{"127.0.0.1:5672"}, HTTP: "127.0.0.1:15672", Data: "./data",
		Pin: true, IO: "auto", Spin: 50 * time.Microsecond,
		ChannelMax: 2047, FrameMax: 131072, Heartbeat: time.Minute, MessageSizeMax: 128 << 20,
		LogLevel: "info", LogFormat: "text",
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
}

// TestPrecedence shows that flags win over the environment, that over the file, that over the
// defaults, and that a list is replaced and not appended to.
func TestPrecedence(t *testing.T) {
	path := writeConfig(t, `
listen = ["127.0.0.1:1", "127.0.0.1:2"]
channel-max = 11
frame-max = 11111
heartbeat = "11s"
pin = false
message-size-max = "1MiB"
cores = "0-2"
`)
	env := envOf(map[string]string{
		"RINGMQ_CONFIG":      path,
		"RINGMQ_CHANNEL_MAX": "22",
		"RINGMQ_FRAME_MAX":   "22222",
		"RINGMQ_LISTEN":      "127.0.0.1:3, [::1]:4",
		"RINGMQ_HTTP_PORT":   "tcp://10.0.0.1:80", // names that no setting has are nobody's
	})
	o, err := loadOptions([]string{"--channel-max", "44", "--channel-max", "33", "-log-level=warn"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if o.ChannelMax != 33 || o.FrameMax != 22222 || o.Heartbeat != 11*time.Second || o.Pin ||
		o.MessageSizeMax != 1<<20 || o.LogLevel != "warn" || o.Spin != 50*time.Microsecond ||
		!reflect.DeepEqual(o.Cores, coreList{0, 1, 2}) ||
		!reflect.DeepEqual(o.Listen, []address{"127.0.0.1:3", "[::1]:4"}) {
		t.Fatalf("%+v", o)
	}
	for name, want := range map[string]string{
		"channel-max": "--channel-max", "frame-max": "RINGMQ_FRAME_MAX",
		"heartbeat": path + ":5: heartbeat", "spin": "default",
	} {
		if o.sources[name] != want {
			t.Errorf("source of %s = %q, want %q", name, o.sources[name], want)
		}
	}
	o, err = loadOptions([]string{"--listen", ":1", "--listen=:2", "--config", path, "--pin"}, noEnv)
	if err != nil || !o.Pin || !reflect.DeepEqual(o.Listen, []address{":1", ":2"}) {
		t.Fatalf("%+v, %v", o, err)
	}
}

func TestBadFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--nothing-like-it", `unknown flag --nothing-like-it; "ringmq serve --help" lists them`},
		{"--lisen :1", "unknown flag --lisen; did you mean listen?"},
		{"--tls-listen :1", `unknown flag --tls-listen; "ringmq serve --help" lists them`},
		{"--sync always", `unknown flag --sync; "ringmq serve --help" lists them`},
		{"extra", `unexpected argument "extra"; settings are given as --name value`},
		{"--pin false", `unexpected argument "false"; settings are given as --name value`},
		{"--listen", "--listen: a value is missing: want HOST:PORT"},
		{"--io", "--io: a value is missing: want auto, uring or epoll"},
		{"--listen localhost", `--listen: bad value "localhost": want HOST:PORT`},
		{"--listen :65536", `--listen: bad value ":65536": want HOST:PORT`},
		{"--http on", `--http: bad value "on": want HOST:PORT or off`},
		{"--pin=maybe", `--pin: bad value "maybe": want true or false`},
		{"--io kqueue", `--io: bad value "kqueue": want auto, uring or epoll`},
		{"--spin 50", `--spin: bad value "50": want a duration such as 50us`},
		{"--spin 1s", `--spin: bad value "1s": want 0s to 10ms`},
		{"--spin -1us", `--spin: bad value "-1us": want 0s to 10ms`},
		{"--heartbeat 60", `--heartbeat: bad value "60": want whole seconds such as 60s`},
		{"--heartbeat 1500ms", `--heartbeat: bad value "1500ms": want whole seconds such as 60s`},
		{"--heartbeat 65536s", `--heartbeat: bad value "65536s": want 0s to 65535s`},
		{"--channel-max 0", `--channel-max: bad value "0": want 1 to 65535`},
		{"--channel-max x", `--channel-max: bad value "x": want a number from 1 to 65535`},
		{"--frame-max 4095", `--frame-max: bad value "4095": want 4096 to 16777216`},
		{"--message-size-max 1TB", `--message-size-max: bad value "1TB": want bytes, or a size such as 128MiB`},
		{"--message-size-max 1GiB", `--message-size-max: bad value "1GiB": want 1024 to 536870912`},
		{"--message-size-max 99999999999GiB", `--message-size-max: bad value "99999999999GiB": want bytes, or a size such as 128MiB`},
		{"--cores 3-1", `--cores: bad value "3-1": want auto, or processor numbers such as 0-3,6`},
		{"--cores 0,0-1", `--cores: bad value "0,0-1": processor 0 is named twice`},
		{"--cores 0,", `--cores: bad value "0,": want auto, or processor numbers such as 0-3,6`},
		{"--cores 99999", `--cores: bad value "99999": want auto, or processor numbers such as 0-3,6`},
		{"--log-level loud", `--log-level: bad value "loud": want debug, info, warn or error`},
		{"--config /nonexistent", "--config /nonexistent: no such file or directory"},
	} {
		_, err := loadOptions(strings.Fields(c.args), noEnv)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.args, err, c.want)
		}
	}
	_, err := loadOptions(nil, envOf(map[string]string{"RINGMQ_IO": "x"}))
	if want := `RINGMQ_IO: bad value "x": want auto, uring or epoll`; err == nil || err.Error() != want {
		t.Errorf("environment: got %v, want %s", err, want)
	}
}

func TestBadConfigFiles(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"pin = true\nchannel-maxx = 3", "FILE:2: channel-maxx: unknown key; did you mean channel-max?"},
		{"check-config = true", "FILE:1: check-config: unknown key; did you mean check-config?"},
		{"\n[tls]\nlisten = \":1\"", `FILE:2: tls: unknown key; "ringmq serve --help" lists them`},
		{"pin = true\npin = false", "FILE:2: Key 'pin' has already been defined."},
		{"pin true", "FILE:1: expected '.' or '=', but got 't' instead"},
		{"heartbeat = 60", `FILE:1: heartbeat: bad value "60": want whole seconds such as 60s`},
		{"heartbeat = 6.5", "FILE:1: heartbeat: want whole seconds such as 60s"},
		{"io = [\"epoll\"]", "FILE:1: io: want auto, uring or epoll"},
		{"listen = []", "FILE:1: listen: want HOST:PORT"},
		{"listen = [5672]", "FILE:1: listen: want HOST:PORT in quotes"},
		{"# x\nlisten = [\":1\", \"x\"]", `FILE:2: listen: bad value ":1,x": want HOST:PORT`},
	} {
		path := writeConfig(t, c.text)
		_, err := loadOptions([]string{"--config", path}, noEnv)
		want := strings.ReplaceAll(c.want, "FILE", path)
		if err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", c.text, err, want)
		}
	}
}

// TestCheckConfig shows that what --check-config prints is itself a configuration file with the
// same settings.
func TestCheckConfig(t *testing.T) {
	args := []string{"--check-config", "--listen", ":1", "--listen", "[::1]:2", "--cores", "0",
		"--message-size-max", "1MiB", "--heartbeat", "2h", "--pin=false", "--http", "off"}
	var stdout, stderr bytes.Buffer
	if code := serve(args, noEnv, &stdout, &stderr); code != exitOK || stderr.Len() != 0 {
		t.Fatalf("exit %d, %s", code, &stderr)
	}
	path := writeConfig(t, stdout.String())
	got, err := loadOptions([]string{"--config", path}, noEnv)
	if err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	want, err := loadOptions(args, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	got.sources, want.sources, got.Config, want.CheckConfig = nil, nil, "", false
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
}

func TestCoreListText(t *testing.T) {
	for _, text := range []string{"auto", "0", "0-3,6", "1,3,5", "0-1023"} {
		list, err := parseCores(text)
		if err != nil || list.String() != text {
			t.Errorf("%s: %s, %v", text, list, err)
		}
	}
}

// TestTags holds the tags to their own rules: every default parses, every help is a sentence.
func TestTags(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings(&serveOptions{}) {
		if seen[s.name] {
			t.Errorf("%s: the name is used twice", s.name)
		}
		seen[s.name] = true
		if err := s.set([]string{s.field.Tag.Get("default")}); err != nil {
			t.Errorf("%s: default: %v", s.name, err)
		}
		if help := s.field.Tag.Get("help"); !strings.HasSuffix(help, ".") {
			t.Errorf("%s: help is not a sentence: %q", s.name, help)
		}
	}
}

// TestConfigurationPage proves that docs/configuration.md shows the settings as they are;
// "go test ./cmd/ringmq -rewrite" renews it.
func TestConfigurationPage(t *testing.T) {
	const page, begin, end = "../../docs/configuration.md", "<!-- settings: begin -->\n", "<!-- settings: end -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s: the marks around the table are missing", page)
	}
	want := configurationTable()
	if table == want {
		return
	}
	if !*rewrite {
		t.Fatalf("%s is out of date; run: go test ./cmd/ringmq -rewrite", page)
	}
	if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
