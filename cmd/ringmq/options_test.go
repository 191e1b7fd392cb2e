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

var noEnv []string

// envOf is an environment in the form of os.Environ.
func envOf(m map[string]string) []string {
	var out []string
	for name, value := range m {
		out = append(out, name+"="+value)
	}
	return out
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
		ConsumerTimeout: 30 * time.Minute,
		Sync:            "always", SyncInterval: 100 * time.Millisecond, MemoryLimit: -60, DiskFreeLimit: 1 << 30,
		WALSegmentSize: 64 << 20, WALCompress: "none",
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
		"RINGMQ_HTTP_PORT":   "tcp://10.0.0.1:80", // Kubernetes sets it for a service called ringmq-http
		"RINGMQ_TEST_IO":     "epoll",
		"PATH":               "/bin",
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
	o, err = loadOptions([]string{"--listen", ":1", "--listen=:2", "--config", "nowhere", "--config", path, "--pin"}, noEnv)
	if err != nil || !o.Pin || !reflect.DeepEqual(o.Listen, []address{":1", ":2"}) {
		t.Fatalf("%+v, %v", o, err)
	}
}

func TestBadFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--nothing-like-it", `unknown flag --nothing-like-it; "ringmq serve --help" lists them`},
		{"--lisen :1", "unknown flag --lisen; did you mean --listen?"},
		{"--tls-listen :1", `unknown flag --tls-listen; "ringmq serve --help" lists them`},
		{"--sync sometimes", `--sync: bad value "sometimes": want always, interval or off`},
		{"--sync-interval 0s", `--sync-interval: bad value "0s": want 1ms to 60s`},
		{"--sync-interval 61s", `--sync-interval: bad value "61s": want 1ms to 60s`},
		{"--memory-limit 0%", `--memory-limit: bad value "0%": want a size such as 4GiB, or a share of the memory such as 60%`},
		{"--memory-limit 101%", `--memory-limit: bad value "101%": want a size such as 4GiB, or a share of the memory such as 60%`},
		{"--memory-limit 6.5%", `--memory-limit: bad value "6.5%": want a size such as 4GiB, or a share of the memory such as 60%`},
		{"--memory-limit -1", `--memory-limit: bad value "-1": want a size such as 4GiB, or a share of the memory such as 60%`},
		{"--memory-limit 63MiB", `--memory-limit: bad value "63MiB": want at least 64MiB`},
		{"--disk-free-limit -1", `--disk-free-limit: bad value "-1": want bytes, or a size such as 1GiB or 500MB`},
		{"--disk-free-limit 5%", `--disk-free-limit: bad value "5%": want bytes, or a size such as 1GiB or 500MB`},
		{"--wal-segment-size 16KiB", `--wal-segment-size: bad value "16KiB": want 32KiB to 1GiB`},
		{"--wal-segment-size 2GiB", `--wal-segment-size: bad value "2GiB": want 32KiB to 1GiB`},
		{"--wal-segment-size 33KiB", `--wal-segment-size: bad value "33KiB": want a multiple of 4KiB`},
		{"--wal-compress gzip", `--wal-compress: bad value "gzip": want none, s2 or zstd`},
		{"extra", `unexpected argument "extra"; settings are given as --name value`},
		{"--pin no", `unexpected argument "no"; settings are given as --name value`},
		{"--pin false false", `unexpected argument "false"; settings are given as --name value`},
		{"--listen", "--listen: a value is missing: want HOST:PORT"},
		{"--io", "--io: a value is missing: want auto, uring or epoll"},
		{"--listen localhost", `--listen: bad value "localhost": want HOST:PORT`},
		{"--listen :65536", `--listen: bad value ":65536": port 65536 is out of range, want 0 to 65535`},
		{"--http :99999999999999999999", `--http: bad value ":99999999999999999999": port 99999999999999999999 is out of range, want 0 to 65535`},
		{"--listen :amqp", `--listen: bad value ":amqp": want HOST:PORT`},
		{"--listen :-1", `--listen: bad value ":-1": want HOST:PORT`},
		{"--listen :1 --listen [::]:01", "--listen :1 and --listen [::]:01 are the same address; give each only once"},
		{"--listen localhost:7 --http 127.0.0.1:7", "--listen localhost:7 and --http 127.0.0.1:7 are the same address; give each only once"},
		{"--http 127.0.0.1:5672", "the default of --listen 127.0.0.1:5672 and --http 127.0.0.1:5672 are the same address; give each only once"},
		{"--http on", `--http: bad value "on": want HOST:PORT or off`},
		{"--pin=maybe", `--pin: bad value "maybe": want true or false`},
		{"--io kqueue", `--io: bad value "kqueue": want auto, uring or epoll`},
		{"--spin 50", `--spin: bad value "50": want a duration such as 50us`},
		{"--spin 1s", `--spin: bad value "1s": want 0s to 10ms`},
		{"--spin -1us", `--spin: bad value "-1us": want 0s to 10ms`},
		{"--heartbeat 65536", `--heartbeat: bad value "65536": want 0s to 65535s`},
		{"--heartbeat -1", `--heartbeat: bad value "-1": want 0s to 65535s`},
		{"--heartbeat 6.5", `--heartbeat: bad value "6.5": want whole seconds such as 60s`},
		{"--heartbeat 1500ms", `--heartbeat: bad value "1500ms": want whole seconds such as 60s`},
		{"--consumer-timeout 1500us", `--consumer-timeout: bad value "1500us": want a duration in whole milliseconds such as 30m`},
		{"--consumer-timeout -1s", `--consumer-timeout: bad value "-1s": want 0s to 87600h`},
		{"--heartbeat 65536s", `--heartbeat: bad value "65536s": want 0s to 65535s`},
		{"--channel-max 0", `--channel-max: bad value "0": want 1 to 65535`},
		{"--channel-max x", `--channel-max: bad value "x": want a number from 1 to 65535`},
		{"--frame-max 4095", `--frame-max: bad value "4095": want 4096 to 16777216`},
		{"--message-size-max 1TB", `--message-size-max: bad value "1TB": want bytes, or a size such as 128MiB or 100MB`},
		{"--message-size-max 1GiB", `--message-size-max: bad value "1GiB": want 1KiB to 512MiB`},
		{"--message-size-max 99999999999GiB", `--message-size-max: bad value "99999999999GiB": want bytes, or a size such as 128MiB or 100MB`},
		{"--message-size-max 1kB", `--message-size-max: bad value "1kB": want 1KiB to 512MiB`},
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
}

func TestBadEnvironment(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"RINGMQ_IO", `RINGMQ_IO: bad value "x": want auto, uring or epoll`},
		{"RINGMQ_LISEN", "RINGMQ_LISEN: unknown environment variable; did you mean RINGMQ_LISTEN?"},
		{"RINGMQ_FRAME_MAXX", "RINGMQ_FRAME_MAXX: unknown environment variable; did you mean RINGMQ_FRAME_MAX?"},
		{"RINGMQ_NOTHING_LIKE_IT", `RINGMQ_NOTHING_LIKE_IT: unknown environment variable; "ringmq serve --help" lists them`},
		{"RINGMQ_", `RINGMQ_: unknown environment variable; "ringmq serve --help" lists them`},
		{"RINGMQ_CHECK_CONFIG", "RINGMQ_CHECK_CONFIG: can only be given as the flag --check-config"},
		{"RINGMQ_listen", "RINGMQ_listen: is spelled RINGMQ_LISTEN in the environment"},
	} {
		_, err := loadOptions(nil, []string{c.name + "=x"})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.name, err, c.want)
		}
	}
	for _, name := range []string{"RINGMQ_TEST_IO", "RINGMQ_SOAK", "RINGMQ_BENCH_X", "RINGMQ_PORT", "RINGMQ_SERVICE_HOST",
		"RINGMQ_SERVICE_PORT_AMQP", "RINGMQ_PORT_5672_TCP_ADDR", "RINGMQ_HTTP_SERVICE_PORT", "XRINGMQ_IO"} {
		if _, err := loadOptions(nil, []string{name + "=x"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForms shows the ways in which one value can be written.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		args  string
		check func(o *serveOptions) bool
	}{
		{"--pin false --check-config true", func(o *serveOptions) bool { return !o.Pin && o.CheckConfig }},
		{"--check-config false --pin", func(o *serveOptions) bool { return o.Pin && !o.CheckConfig }},
		{"--pin=false --pin true", func(o *serveOptions) bool { return o.Pin }},
		{"--heartbeat 30", func(o *serveOptions) bool { return o.Heartbeat == 30*time.Second }},
		{"--heartbeat 0", func(o *serveOptions) bool { return o.Heartbeat == 0 }},
		{"--heartbeat 1m", func(o *serveOptions) bool { return o.Heartbeat == time.Minute }},
		{"--consumer-timeout 1800000", func(o *serveOptions) bool { return o.ConsumerTimeout == 30*time.Minute }},
		{"--consumer-timeout 0", func(o *serveOptions) bool { return o.ConsumerTimeout == 0 }},
		{"--message-size-max 2MB", func(o *serveOptions) bool { return o.MessageSizeMax == 2e6 }},
		{"--message-size-max 2kB", func(o *serveOptions) bool { return o.MessageSizeMax == 2e3 }},
		{"--message-size-max 2KiB", func(o *serveOptions) bool { return o.MessageSizeMax == 2048 }},
		{"--memory-limit 64MiB", func(o *serveOptions) bool { return o.MemoryLimit == 64<<20 }},
		{"--memory-limit 100%", func(o *serveOptions) bool { return o.MemoryLimit == -100 }},
		{"--disk-free-limit 0", func(o *serveOptions) bool { return o.DiskFreeLimit == 0 }},
		{"--wal-segment-size 36KiB", func(o *serveOptions) bool { return o.WALSegmentSize == 36<<10 }},
		{"--message-size-max 4096", func(o *serveOptions) bool { return o.MessageSizeMax == 4096 }},
		{"--listen 127.0.0.1:0 --listen 127.0.0.1:0 --http 127.0.0.1:0", func(o *serveOptions) bool { return len(o.Listen) == 2 }},
	} {
		o, err := loadOptions(strings.Fields(c.args), noEnv)
		if err != nil || !c.check(o) {
			t.Errorf("%s: %+v, %v", c.args, o, err)
		}
	}
	for text, want := range map[byteSize]string{0: "0", 1000: "1000", 1024: "1KiB", 1 << 20: "1MiB", 3 << 30: "3GiB", 1025: "1025"} {
		if text.String() != want {
			t.Errorf("%d bytes print as %s, want %s", int64(text), text, want)
		}
	}
	o, err := loadOptions([]string{"--config", writeConfig(t, "heartbeat = 60\nmessage-size-max = \"100MB\"")}, noEnv)
	if err != nil || o.Heartbeat != time.Minute || o.MessageSizeMax != 100e6 {
		t.Errorf("file: %+v, %v", o, err)
	}
}

func TestBadConfigFiles(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"pin = true\nchannel-maxx = 3", "FILE:2: channel-maxx: unknown key; did you mean channel-max?"},
		{"check-confi = true", `FILE:1: check-confi: unknown key; "ringmq serve --help" lists them`},
		{"check-config = true", "FILE:1: check-config: can only be given as the flag --check-config"},
		{"config = \"a\"", "FILE:1: config: can only be given as the flag --config or the environment variable RINGMQ_CONFIG"},
		{"io = \"auto\"\nheartbeat = 60s", `FILE:2: expected a top-level item to end with a newline, comment, or EOF, but got 's' instead; text belongs in quotes: heartbeat = "60s"`},
		{"pin = true\nlog-level = debug # loud", `FILE:2: expected value but found "debug" instead; text belongs in quotes: log-level = "debug"`},
		{"listen = \":1\"\nhttp = \"[::]:1\"", "FILE:1: listen :1 and FILE:2: http [::]:1 are the same address; give each only once"},
		{"\n[tls]\nlisten = \":1\"", `FILE:2: tls: unknown key; "ringmq serve --help" lists them`},
		{"pin = true\npin = false", "FILE:2: Key 'pin' has already been defined."},
		{"pin true", "FILE:1: expected '.' or '=', but got 't' instead"},
		{"heartbeat = 70000", `FILE:1: heartbeat: bad value "70000": want 0s to 65535s`},
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
		"--memory-limit", "33%", "--disk-free-limit", "0", "--sync", "interval",
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
