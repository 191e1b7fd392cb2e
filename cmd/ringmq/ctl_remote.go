package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"ringmq/admin/control"
)

// Exit codes of RabbitMQ's verbs, which scripts know (spec CLI-02).
const (
	exitRemoteUsage = 64 // wrong command line
	exitRemoteData  = 65 // the broker refuses what was given
	exitRemoteGone  = 69 // no broker answers, or it is not ready
	exitRemoteNone  = 70 // what is named is not there
)

// remoteWait bounds a change: a virtual host of many thousand queues takes its time to go.
const remoteWait = 10 * time.Minute

// remoteVerb is what a verb has that RabbitMQ has too.
type remoteVerb struct {
	operands []string // names of what follows it; one that begins with '[' may be missing
	flags    []remoteFlag
	// request makes the question; nil sends what the flags say.
	request func(c *ctlCall, r *control.Request) error
	// print shows the answer; nil when there is none.
	print func(c *ctlCall, answer []byte) error
}

// remoteFlag is a flag of a remote verb, which always has a value.
type remoteFlag struct {
	name, short string // without dashes; short may be ""
	value, help string
}

var (
	flagVHost     = remoteFlag{"vhost", "p", "VHOST", "virtual host; default /"}
	flagOneVHost  = remoteFlag{"vhost", "p", "VHOST", "only this virtual host; default all"}
	flagPriority  = remoteFlag{"priority", "", "N", "of the policies that match, the one with the highest applies; default 0"}
	flagApplyTo   = remoteFlag{"apply-to", "", "WHAT", "all, queues, classic_queues, quorum_queues, streams or exchanges; default all, of operator policies queues"}
	flagDescribe  = remoteFlag{"description", "", "TEXT", "what the virtual host is for"}
	flagTags      = remoteFlag{"tags", "", "TAG,TAG", "tags of the virtual host"}
	flagQueueType = remoteFlag{"default-queue-type", "", "TYPE", "type of queues that are declared without one: classic, quorum or stream"}
)

// usage is what follows the verb on the command line; v may be nil.
func (v *remoteVerb) usage() string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	for _, f := range v.flags {
		dashed := "--" + f.name
		if f.short != "" {
			dashed = "-" + f.short
		}
		fmt.Fprintf(&b, " [%s %s]", dashed, f.value)
	}
	for _, o := range v.operands {
		b.WriteString(" " + o)
	}
	return b.String()
}

// printFlags prints the verb's own flags; v may be nil.
func (v *remoteVerb) printFlags(w io.Writer) {
	if v == nil {
		return
	}
	for _, f := range v.flags {
		name := "--" + f.name
		if f.short != "" {
			name = "-" + f.short + ", " + name
		}
		fmt.Fprintf(w, "  %s %s\n        %s\n", name, f.value, f.help)
	}
}

// least is how many operands there have to be.
func (v *remoteVerb) least() int {
	n := 0
	for _, o := range v.operands {
		if !strings.HasPrefix(o, "[") {
			n++
		}
	}
	return n
}

// flag finds a flag as it was typed.
func (v *remoteVerb) flag(name string) (remoteFlag, bool) {
	for _, f := range v.flags {
		if name == f.name || name == f.short && name != "" || strings.ReplaceAll(name, "_", "-") == f.name {
			return f, true
		}
	}
	return remoteFlag{}, false
}

// parseRemote reads flags and operands, in any order; "--" ends the flags.
func (c *ctlCall) parseRemote(verb *ctlVerb, args, environ []string) error {
	c.flags = map[string]string{}
	var passed []string
	for flags := true; len(args) > 0; {
		arg := args[0]
		args = args[1:]
		body := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		name, text, hasText := strings.Cut(body, "=")
		own, isOwn := verb.remote.flag(name)
		switch {
		case !flags || !strings.HasPrefix(arg, "-") || arg == "-":
			c.operands = append(c.operands, arg)
			continue
		case arg == "--":
			flags = false
			continue
		case isHelp(arg):
			return errHelp
		case name == "json" && !hasText:
			c.json = true
			continue
		case (name == "q" || name == "quiet") && !hasText:
			continue // nothing is said beside the answer anyway
		case !isOwn && name != "data" && name != "config":
			return fmt.Errorf("unknown flag %s; \"ringmq ctl %s --help\" lists them", arg, verb.name)
		case !hasText && len(args) == 0:
			return fmt.Errorf("--%s: a value is missing", name)
		case !hasText:
			text, args = args[0], args[1:]
		}
		if isOwn {
			c.flags[own.name] = text
		} else {
			passed = append(passed, "--"+name, text)
		}
	}
	if n := len(c.operands); n < verb.remote.least() || n > len(verb.remote.operands) {
		return fmt.Errorf("too %s operands; it is: ringmq ctl %s%s", map[bool]string{true: "few", false: "many"}[n < verb.remote.least()],
			verb.name, verb.remote.usage())
	}
	return c.findData(passed, environ)
}

// operand is one of those that were given, "" if it was not.
func (c *ctlCall) operand(i int) string {
	if i < len(c.operands) {
		return c.operands[i]
	}
	return ""
}

// flagSet is the value of a flag, nil when it was not given.
func (c *ctlCall) flagSet(name string) *string {
	if v, ok := c.flags[name]; ok {
		return &v
	}
	return nil
}

// remoteError is a refusal with its exit code.
type remoteError struct {
	code int
	err  error
}

func (e *remoteError) Error() string { return e.err.Error() }

// remote runs a remote verb.
func (c *ctlCall) remote(verb *ctlVerb) int {
	if err := c.runRemote(verb); err != nil {
		c.fail("%v", err)
		var refused *remoteError
		if errors.As(err, &refused) {
			return refused.code
		}
		return exitRemoteData
	}
	return exitOK
}

func (c *ctlCall) runRemote(verb *ctlVerb) error {
	r := control.Request{VHost: c.flags["vhost"]}
	if f, has := verb.remote.flag("vhost"); has && f == flagVHost && r.VHost == "" {
		r.VHost = "/"
	}
	if verb.remote.request != nil {
		if err := verb.remote.request(c, &r); err != nil {
			return err
		}
	}
	answer, err := c.ask(verb.name, &r)
	switch {
	case err != nil:
		return err
	case c.json && verb.name != verbExport: // it has a form of its own
		fmt.Fprintf(c.stdout, "%s\n", answer)
		return nil
	case verb.remote.print != nil:
		return verb.remote.print(c, answer)
	}
	return nil
}

// ask has the broker do it.
func (c *ctlCall) ask(verb string, r *control.Request) ([]byte, error) {
	question, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	resp, err := c.client(remoteWait).Post("http://ringmq"+control.Prefix+verb, "application/json", bytes.NewReader(question))
	if err != nil {
		return nil, &remoteError{exitRemoteGone, c.unreachable(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return nil, &remoteError{exitRemoteGone, fmt.Errorf("the broker's answer breaks off: %w", err)}
	}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	var refused control.Refusal
	if err := json.Unmarshal(body, &refused); err != nil || refused.Reason == "" {
		refused.Reason = fmt.Sprintf("the broker answers %s: %s", resp.Status, body)
	}
	code := exitRemoteData
	switch resp.StatusCode {
	case http.StatusNotFound:
		code = exitRemoteNone
	case http.StatusServiceUnavailable:
		code = exitRemoteGone
	}
	return nil, &remoteError{code, errors.New(refused.Reason)}
}
