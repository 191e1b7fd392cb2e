package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// ctlVerb is one thing that "ringmq ctl" can do.
type ctlVerb struct {
	name    string // noun and verb, as they are typed
	aliases []string
	help    string
	json    bool // --json makes sense
	folder  bool // the data folder may follow without its flag
	vhost   bool // it takes -p
	run     func(c *ctlCall) int
	// remote: RabbitMQ's verb of the same name, which the running broker does. Its operands
	// follow it, its flags are RabbitMQ's, and so are its exit codes.
	remote *remoteVerb
}

// ctlVerbs lists them in the order of the help text. It is a function because the verbs' own help
// refers to it.
func ctlVerbs() []ctlVerb {
	list := []ctlVerb{
		{name: "status", help: "state, limits, alarms, counts and logs of the running broker", json: true, run: ctlStatus},
		{name: "queue list", aliases: []string{"list_queues"}, help: "queues with their messages and consumers", json: true, vhost: true, run: ctlQueueList},
		{name: "wal check", help: "read the message logs of a stopped broker and report what is damaged; nothing is changed", folder: true, run: ctlWALCheck},
		{name: "wal dump", help: "print every record of the message logs of a stopped broker; nothing is changed", folder: true, run: ctlWALDump},
		{name: "wal repair", help: "accept the damage in the message logs of a stopped broker, so that it starts with what is readable; nothing is deleted", folder: true, run: ctlWALRepair},
	}
	return append(list, remoteVerbs()...)
}

// ctlCall is one call of a verb.
type ctlCall struct {
	data           string // absolute path of the data folder
	json           bool
	stdout, stderr io.Writer
	// Of a remote verb: what follows it, and its flags by their long names.
	operands []string
	flags    map[string]string
}

// fail prints the line that the operator reads and returns the code for it.
func (c *ctlCall) fail(format string, args ...any) int {
	fmt.Fprintf(c.stderr, "ringmq: "+format+"\n", args...)
	return exitWorld
}

// ctl runs "ringmq ctl" and returns the exit code.
func ctl(args, environ []string, stdout, stderr io.Writer) int {
	verb, rest, err := findVerb(args)
	if errors.Is(err, errHelp) {
		printCtlHelp(stdout)
		return exitOK
	}
	c := &ctlCall{stdout: stdout, stderr: stderr}
	if err == nil {
		err = c.parse(verb, rest, environ)
	}
	if errors.Is(err, errHelp) {
		printVerbHelp(stdout, verb)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "ringmq: %v\n", err)
		if verb != nil && verb.remote != nil {
			return exitRemoteUsage
		}
		return exitUsage
	}
	if verb.remote != nil {
		return c.remote(verb)
	}
	return verb.run(c)
}

// findVerb reads the noun and the verb; rest are the flags. Flags may stand before them.
func findVerb(args []string) (verb *ctlVerb, rest []string, err error) {
	var words []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && len(words) < 2 {
		words, args = append(words, args[0]), args[1:]
		if v := verbNamed(strings.Join(words, " ")); v != nil {
			return v, args, nil
		}
	}
	if len(words) == 0 && (len(args) == 0 || isHelp(args[0])) || len(words) == 1 && (words[0] == "help" || len(args) > 0 && isHelp(args[0])) {
		return nil, nil, errHelp
	}
	if len(words) == 0 {
		return nil, nil, fmt.Errorf("flags come after the verb: ringmq ctl VERB %s", args[0])
	}
	return nil, nil, unknownVerb(words)
}

func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

func verbNamed(name string) *ctlVerb {
	for _, v := range ctlVerbs() {
		if v.name == name {
			return &v
		}
		for _, alias := range v.aliases {
			if alias == name {
				return &v
			}
		}
	}
	return nil
}

// unknownVerb names the verbs that were meant: those of the noun, or the closest ones.
func unknownVerb(words []string) error {
	typed := strings.Join(words, " ")
	var near []string
	for _, v := range ctlVerbs() {
		noun, _, _ := strings.Cut(v.name, " ")
		for _, name := range append([]string{v.name}, v.aliases...) {
			if noun == words[0] || editDistance(typed, name) <= 2 || len(words) == 2 && editDistance(words[0], name) <= 2 {
				near = append(near, v.name)
				break
			}
		}
	}
	if len(near) == 0 {
		return fmt.Errorf("unknown verb %q; \"ringmq ctl --help\" lists them", typed)
	}
	last := len(near) - 1
	list := near[last]
	if last > 0 {
		list = strings.Join(near[:last], ", ") + " or " + list
	}
	return fmt.Errorf("unknown verb %q; did you mean %s?", typed, list)
}

// parse reads the flags of a verb. The data folder is found as "ringmq serve" finds it.
func (c *ctlCall) parse(verb *ctlVerb, args, environ []string) error {
	if verb.remote != nil {
		return c.parseRemote(verb, args, environ)
	}
	var passed []string // to the reader of the settings
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, text, hasText := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		switch {
		case isHelp(arg):
			return errHelp
		case !strings.HasPrefix(arg, "-") && verb.folder:
			passed = append(passed, "--data", arg)
		case !strings.HasPrefix(arg, "-"):
			return fmt.Errorf("what does %q mean? ringmq ctl %s takes no words; the data folder is named by --data", arg, verb.name)
		case name == "json" && verb.json && !hasText:
			c.json = true
		case (name == "q" || name == "quiet") && !hasText: // nothing is said beside the answer anyway
		case verb.vhost && (name == "p" || name == "vhost") && (hasText || len(args) > 0):
			if !hasText {
				text, args = args[0], args[1:]
			}
			c.flags = map[string]string{"vhost": text}
		case name != "data" && name != "config":
			return fmt.Errorf("unknown flag %s; \"ringmq ctl %s --help\" lists them", arg, verb.name)
		case !hasText && len(args) == 0:
			return fmt.Errorf("--%s: a value is missing", name)
		case !hasText:
			text, args = args[0], args[1:]
			fallthrough
		default:
			passed = append(passed, "--"+name, text)
		}
	}
	return c.findData(passed, environ)
}

// findData finds the data folder by the settings of "ringmq serve".
func (c *ctlCall) findData(passed, environ []string) error {
	o, err := loadOptions(passed, environ)
	if err == nil {
		c.data, err = filepath.Abs(o.Data)
	}
	return err
}

func printCtlHelp(w io.Writer) {
	fmt.Fprint(w, "ringmq ctl asks and repairs the broker whose data folder it is given. It needs no password: who may\n"+
		"open the folder's socket may do everything.\n\n")
	for _, v := range ctlVerbs() {
		names := strings.Join(append([]string{v.name}, v.aliases...), ", ")
		fmt.Fprintf(w, "  ringmq ctl %s\n        %s\n", names+v.remote.usage(), v.help)
	}
	fmt.Fprint(w, "\nThe data folder is --data DIR, else RINGMQ_DATA, else that of --config FILE, else ./data.\n"+
		"Exit codes: 0 done, 1 it cannot be done or damage was found, 2 wrong command line. Of the verbs\n"+
		"with '_' in their names, which RabbitMQ has too, list_queues excepted: 0 done, 64 wrong command line, 65 the broker refuses what was\n"+
		"given, 69 the broker does not answer or is not ready, 70 what is named is not there.\n")
}

func printVerbHelp(w io.Writer, v *ctlVerb) {
	fmt.Fprintf(w, "ringmq ctl %s: %s\n\n", v.name+v.remote.usage(), v.help)
	v.remote.printFlags(w)
	fmt.Fprint(w, "  --data DIR     data folder of the broker; default RINGMQ_DATA, else ./data\n"+
		"  --config FILE  configuration file of the broker, for its data folder\n")
	if v.vhost {
		fmt.Fprint(w, "  -p, --vhost VHOST\n        only this virtual host; default all\n")
	}
	if v.json {
		fmt.Fprint(w, "  --json         print JSON; names never change their meaning\n")
	}
}
