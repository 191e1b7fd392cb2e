package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ringmq/frame/amqp091"
	"ringmq/test/rawamqp"
)

// step is one call of a verb and what comes of it.
type step struct {
	line   string // words with blanks between them
	code   int
	stdout string // what is in it
	stderr string // all of it, without the program's name
}

func (s step) run(t *testing.T, dir string) {
	t.Helper()
	words := strings.Fields(s.line)
	code, stdout, stderr := runCtl([]string{"RINGMQ_DATA=" + dir}, words...)
	want := s.stderr
	if want != "" {
		want = "ringmq: " + want + "\n"
	}
	if code != s.code || stderr != want || !strings.Contains(stdout, s.stdout) || s.stdout == "" && stdout != "" {
		t.Errorf("%s: exit %d, want %d\nstdout %s\n  want %s\nstderr %s\n  want %s", s.line, code, s.code, stdout, s.stdout, stderr, want)
	}
}

// POL-03, CLI-01, CLI-02: the verbs, their refusals and their exit codes.
func TestCtlVerbs(t *testing.T) {
	p := startProcess(t)
	dir := dataOf(p)
	c := rawamqp.New(t, p.amqp, rawamqp.Options{})
	c.OpenChannel(1)
	rawamqp.Call[amqp091.QueueDeclareOk](c, 1, &amqp091.QueueDeclare{Queue: []byte("q")})
	for _, s := range []step{
		{`set_policy --priority 3 --apply-to queues p ^q {"max-length":7}`, 0, "", ""},
		{`set_policy p2 x {"odd":1}`, 65, "", `[{<<"odd">>,1}] are not recognised policy settings`},
		{`set_policy p2 ( {"max-length":7}`, 65, "", "pattern should be regular expression but is invalid: missing closing ): `(`"},
		{`set_policy p2 x null`, 65, "", `the definition should be a JSON object, as in {"max-length": 1000}: it is null`},
		{`set_policy p2 x {}{}`, 65, "", `the definition should be a JSON object, as in {"max-length": 1000}: something follows the object`},
		{`set_policy -p none p2 x {"max-length":7}`, 70, "", "virtual host 'none': no such virtual host"},
		{`set_policy --priority high p2 x {"max-length":7}`, 64, "", `--priority: bad value "high": want a whole number`},
		{`set_policy p2`, 64, "", "too few operands; it is: ringmq ctl set_policy [-p VHOST] [--priority N] [--apply-to WHAT] NAME PATTERN DEFINITION"},
		{`set_policy --tags a p2 x {}`, 64, "", `unknown flag --tags; "ringmq ctl set_policy --help" lists them`},
		{`set_policy p2 x {} --vhost`, 64, "", "--vhost: a value is missing"},
		{`list_policies`, 0, "/      p     ^q       queues    {\"max-length\":7}  3\n", ""},
		{`list_policies --json`, 0, `[{"vhost":"/","name":"p","pattern":"^q","apply-to":"queues","definition":{"max-length":7},"priority":3}]`, ""},
		{`list_policies -p none`, 0, "vhost  name", ""},
		{`set_operator_policy o . {"expires":1000000}`, 0, "", ""},
		{`list_operator_policies`, 0, "/      o     .        queues    {\"expires\":1000000}  0\n", ""},
		{`queue list`, 0, "/      q     0         0      0        0          classic  p       o\n", ""},
		{`queue list --json`, 0, `"policy":"p","operator_policy":"o"`, ""},
		{`clear_policy p`, 0, "", ""},
		{`clear_policy p`, 70, "", "policy 'p' in virtual host '/': not found"},
		{`clear_operator_policy o`, 0, "", ""},
		{`queue list`, 0, "classic  -       -\n", ""},

		{`add_vhost --description text --tags a,b --default-queue-type quorum v`, 0, "", ""},
		{`add_vhost --default-queue-type odd v2`, 65, "", "unsupported default queue type 'odd': it is classic, quorum or stream"},
		{`add_vhost v --description other`, 0, "", ""},
		{`list_vhosts`, 0, "v     other        a,b   quorum              0\n", ""},
		{`set_vhost_limits -p v {"max-connections":5,"max-queues":2}`, 0, "", ""},
		{`set_vhost_limits {"max-cats":5}`, 65, "", `unrecognised limit "max-cats": known are max-connections and max-queues`},
		{`list_vhost_limits`, 0, `v      {"max-connections":5,"max-queues":2}`, ""},
		{`clear_vhost_limits -p v`, 0, "", ""},
		{`list_vhost_limits --json`, 0, "[]\n", ""},
		{`set_user_limits guest {"max-connections":5}`, 0, "", ""},
		{`set_user_limits guest {"max-channels":6}`, 0, "", ""},
		{`list_user_limits guest`, 0, `guest  {"max-channels":6,"max-connections":5}`, ""},
		{`clear_user_limits guest odd`, 65, "", `unrecognised limit "odd": known are max-connections, max-channels and all`},
		{`clear_user_limits guest max-channels`, 0, "", ""},
		{`list_user_limits`, 0, `guest  {"max-connections":5}`, ""},
		{`clear_user_limits guest all`, 0, "", ""},
		{`list_user_limits --json`, 0, "[]\n", ""},

		{`set_parameter -p v shovel s {"a":1}`, 0, "", ""},
		{`set_parameter odd s 1`, 65, "", "component odd not found"},
		{`list_parameters`, 0, `v      shovel     s     {"a":1}`, ""},
		{`clear_parameter -p v shovel s`, 0, "", ""},
		{`clear_parameter -p v shovel s`, 70, "", "parameter 's': not found"},
		{`set_global_parameter g "x"`, 0, "", ""},
		{`set_global_parameter g x`, 65, "", "the value of the parameter is not JSON: invalid character 'x' looking for beginning of value"},
		{`list_global_parameters`, 0, `g     "x"`, ""},
		{`clear_global_parameter g`, 0, "", ""},
		{`delete_vhost v`, 0, "", ""},
		{`delete_vhost v`, 70, "", "virtual host 'v': no such virtual host"},
		{`delete_vhost -- -v`, 70, "", "virtual host '-v': no such virtual host"},
		{`set_polic p x {}`, 2, "", `unknown verb "set_polic p"; did you mean set_policy?`},
	} {
		s.run(t, dir)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.ExpectConnectionClose(320, "broker forced connection closure with reason 'shutdown'")
	p.wait(t, exitOK)
	step{"list_vhosts", 69, "", "no broker runs on the data folder " + dir + "; name the broker's folder with --data"}.run(t, dir)
}

// DEF-01, DEF-02, DEF-03: export and import over the socket, and arguments of all types.
func TestCtlDefinitions(t *testing.T) {
	p := startProcess(t)
	dir := dataOf(p)
	file := filepath.Join(t.TempDir(), "all.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"vhosts":[{"name":"w"}],"queues":[{"name":"q","vhost":"w","arguments":{"x-a":{"b":[1,"c",true,null,{"d":1.5}]},"x-max-length":5}}],
		"bindings":[{"source":"amq.topic","vhost":"w","destination":"q","routing_key":"#"}]}`)
	step{"import_definitions " + file, 0, "imported, or there already: 1 virtual hosts, 0 policies, 0 parameters, 0 limits, 0 exchanges, 1 queues, 1 bindings\n", ""}.run(t, dir)
	step{"export_definitions " + file, 0, "", ""}.run(t, dir)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"x-max-length": 5`, `"d": 1.5`, `null`, `"source": "amq.topic"`, `"rabbit_version": "` + compatVersion} {
		if !strings.Contains(string(first), want) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
	step{"import_definitions " + file, 0, "2 virtual hosts", ""}.run(t, dir)
	step{"export_definitions -", 0, string(first), ""}.run(t, dir)
	step{"export_definitions - -p none", 70, "", "there is no virtual host 'none': not found"}.run(t, dir)
	step{"export_definitions " + file + " -p w", 0, "", ""}.run(t, dir)
	step{"add_vhost copy", 0, "", ""}.run(t, dir)
	step{"import_definitions -p copy " + file, 0, "1 queues, 1 bindings", ""}.run(t, dir)
	step{"list_queues", 0, "copy   q", ""}.run(t, dir)
	step{"import_definitions -p none " + file, 70, "", "there is no virtual host 'none': not found"}.run(t, dir)
	write(`{"queues":[{"name":"new"},{"name":"q","arguments":{"x-expires":-1}}]}`)
	code, _, stderr := runCtl(noEnv, "import_definitions", file, "--data", dir)
	if want := "ringmq: queues[1].arguments.x-expires: invalid arg 'x-expires'"; code != exitRemoteData || !strings.HasPrefix(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, stdout, _ := runCtl(noEnv, "list_queues", "--data", dir); strings.Contains(stdout, "new") {
		t.Errorf("half of it was imported:\n%s", stdout)
	}
	write(`{"users":[{"name":"u","password_hash":"x"}]}`)
	step{"import_definitions " + file, 0, "imported, or there already: ", "not imported: users; accounts come in a later version"}.run(t, dir)
	step{"import_definitions " + file + ".none", 1, "", "open " + file + ".none: no such file or directory"}.run(t, dir)
}

// DEF-04, field case 91: the file of --load-definitions is in force before clients are let in, again at the next start,
// and a bad one is one line that names the place.
func TestLoadDefinitions(t *testing.T) {
	folder, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(folder, "d.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"users":[{"name":"guest","password_hash":"x","tags":""}],"permissions":[{"user":"guest"}],
		"policies":[{"name":"p","pattern":".","definition":{"max-length":3}}],"queues":[{"name":"q"}],
		"bindings":[{"source":"amq.fanout","destination":"q"}]}`)
	for range 2 {
		p := startProcess(t, "--data", dir, "--load-definitions", file)
		c := rawamqp.New(t, p.amqp, rawamqp.Options{})
		c.OpenChannel(1)
		ok := rawamqp.Call[amqp091.QueueDeclareOk](c, 1, &amqp091.QueueDeclare{Queue: []byte("q"), Durable: true})
		if ok.MessageCount > 3 {
			t.Errorf("%d messages, the policy allows 3", ok.MessageCount)
		}
		for range 5 {
			c.Publish(1, "amq.fanout", "", nil, "x")
		}
		c.Sync(1)
		step{"list_queues", 0, "/      q     3         3      0        0          classic  p       -\n", ""}.run(t, dir)
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		c.ExpectConnectionClose(320, "broker forced connection closure with reason 'shutdown'")
		p.wait(t, exitOK)
		if n := strings.Count(p.stderr.String(), "keys=users,permissions"); n != 1 {
			t.Errorf("%d warnings of accounts:\n%s", n, p.stderr)
		}
	}
	for _, bad := range []struct {
		text, want string
		code       int
		form       bool // --check-config finds it
	}{
		{"{", "not JSON: line 1, column 1: the file ends in the middle", exitUsage, true},
		{`{"queues":{}}`, "queues: an array is expected, not an object", exitUsage, true},
		{`{"policies":[{"name":"p","pattern":"("}]}`, "policies[0]: policy 'p': pattern should be regular expression but is invalid: missing closing ): `(`", exitUsage, true},
		{`{"exchanges":[{"name":"new","type":"fanout"}],"queues":[{"name":"r","vhost":"none"}]}`,
			"queues[0].vhost: there is no virtual host 'none', neither here nor in the file", exitWorld, false},
	} {
		write(bad.text)
		want := fmt.Sprintf("ringmq: --load-definitions %s: %s", file, bad.want)
		args := []string{"serve", "--listen", "127.0.0.1:0", "--http", "off", "--data", dir, "--wal-segment-size", "1MiB", "--log-level", "error", "--load-definitions", file}
		code, stdout, stderr := runOnce(t, args...)
		if code != bad.code || stdout != "" || stderr != want+"\n" {
			t.Errorf("%s: exit %d %q\n got %s\nwant %s", bad.text, code, stdout, stderr, want)
		}
		code, _, stderr = runOnce(t, append(args, "--check-config")...)
		if bad.form != (code == exitUsage && stderr == want+"\n") || !bad.form && code != exitOK {
			t.Errorf("%s: --check-config: exit %d %s", bad.text, code, stderr)
		}
	}
	p := startProcess(t, "--data", dir)
	if _, stdout, _ := runCtl(noEnv, "export_definitions", "-", "--data", dir); strings.Contains(stdout, "new") {
		t.Errorf("half of a bad file was imported:\n%s", stdout)
	}
	p.cmd.Process.Kill()
	code, _, stderr := runOnce(t, "serve", "--data", dir, "--load-definitions", file+".none")
	if want := "ringmq: --load-definitions: open " + file + ".none: no such file or directory\n"; code != exitUsage || stderr != want {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestRemoteHelp(t *testing.T) {
	code, stdout, _ := runCtl(noEnv, "--help")
	for _, v := range remoteVerbs() {
		if !strings.Contains(stdout, "  ringmq ctl "+v.name) {
			t.Errorf("the help does not list %s", v.name)
		}
		if code, stdout, stderr := runCtl(noEnv, v.name, "--help"); code != exitOK || stderr != "" || !strings.HasPrefix(stdout, "ringmq ctl "+v.name) {
			t.Errorf("%s --help: exit %d %s%s", v.name, code, stdout, stderr)
		}
	}
	if code != exitOK || !strings.Contains(stdout, "set_policy [-p VHOST] [--priority N] [--apply-to WHAT] NAME PATTERN DEFINITION") {
		t.Errorf("exit %d\n%s", code, stdout)
	}
}
