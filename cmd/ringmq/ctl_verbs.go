package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"ringmq/admin/control"
	"ringmq/admin/definitions"
)

// verbExport is the verb whose answer is a file.
const verbExport = "export_definitions"

// remoteVerbs are those that RabbitMQ has too.
func remoteVerbs() []ctlVerb {
	vhost, oneVHost := []remoteFlag{flagVHost}, []remoteFlag{flagOneVHost}
	policy := []remoteFlag{flagVHost, flagPriority, flagApplyTo}
	definition := []string{"NAME", "PATTERN", "DEFINITION"}
	name := []string{"NAME"}
	verb := func(name, help string, remote remoteVerb) ctlVerb {
		return ctlVerb{name: name, help: help, json: true, remote: &remote}
	}
	return []ctlVerb{
		verb("set_policy", "make a policy, or change the one of that name; DEFINITION is JSON, as in {\"max-length\": 1000}",
			remoteVerb{definition, policy, requestPolicy, nil}),
		verb("clear_policy", "take a policy away", remoteVerb{name, vhost, requestName, nil}),
		verb("list_policies", "policies", remoteVerb{nil, oneVHost, nil, printPolicies}),
		verb("set_operator_policy", "make a policy that only tightens what arguments and other policies say",
			remoteVerb{definition, policy, requestPolicy, nil}),
		verb("clear_operator_policy", "take an operator policy away", remoteVerb{name, vhost, requestName, nil}),
		verb("list_operator_policies", "operator policies", remoteVerb{nil, oneVHost, nil, printPolicies}),
		verb("add_vhost", "make a virtual host, or change what is given of the one of that name",
			remoteVerb{name, []remoteFlag{flagDescribe, flagTags, flagQueueType}, requestVHost, nil}),
		verb("delete_vhost", "delete a virtual host with its connections, queues and messages", remoteVerb{name, nil, requestName, nil}),
		verb("list_vhosts", "virtual hosts", remoteVerb{nil, nil, nil, printVHosts}),
		verb("set_vhost_limits", "bound a virtual host, as in {\"max-connections\": 100, \"max-queues\": 50}; what is not named is not bounded",
			remoteVerb{[]string{"LIMITS"}, vhost, requestValue(0), nil}),
		verb("clear_vhost_limits", "lift the limits of a virtual host", remoteVerb{nil, vhost, nil, nil}),
		verb("list_vhost_limits", "limits of virtual hosts", remoteVerb{nil, oneVHost, nil, printVHostLimits}),
		verb("set_user_limits", "bound a user, as in {\"max-connections\": 10, \"max-channels\": 100}; what is not named stays as it is",
			remoteVerb{[]string{"USER", "LIMITS"}, nil, requestNameValue, nil}),
		verb("clear_user_limits", "lift a limit of a user: max-connections, max-channels or all",
			remoteVerb{[]string{"USER", "[LIMIT]"}, nil, requestNameValue, nil}),
		verb("list_user_limits", "limits of users", remoteVerb{[]string{"[USER]"}, nil, requestName, printUserLimits}),
		verb("set_parameter", "set a parameter of a component", remoteVerb{[]string{"COMPONENT", "NAME", "VALUE"}, vhost, requestParameter, nil}),
		verb("clear_parameter", "take a parameter away", remoteVerb{[]string{"COMPONENT", "NAME"}, vhost, requestParameter, nil}),
		verb("list_parameters", "parameters; policies and limits have lists of their own", remoteVerb{nil, oneVHost, nil, printParameters}),
		verb("set_global_parameter", "set a parameter of the whole broker", remoteVerb{[]string{"NAME", "VALUE"}, nil, requestNameValue, nil}),
		verb("clear_global_parameter", "take a parameter of the whole broker away", remoteVerb{name, nil, requestName, nil}),
		verb("list_global_parameters", "parameters of the whole broker", remoteVerb{nil, nil, nil, printGlobal}),
		verb(verbExport, "write virtual hosts, policies, limits, parameters, exchanges, queues and bindings to a file; - is standard output",
			remoteVerb{[]string{"FILE"}, oneVHost, nil, printExport}),
		verb("import_definitions", "add what is in such a file; what exists already stays as it is; - is standard input",
			remoteVerb{[]string{"FILE"}, []remoteFlag{{"vhost", "p", "VHOST", "put all of it into this virtual host"}}, requestImport, printImport}),
	}
}

func requestName(c *ctlCall, r *control.Request) error {
	r.Name = c.operand(0)
	return nil
}

func requestNameValue(c *ctlCall, r *control.Request) error {
	r.Name, r.Value = c.operand(0), c.operand(1)
	return nil
}

func requestValue(i int) func(c *ctlCall, r *control.Request) error {
	return func(c *ctlCall, r *control.Request) error {
		r.Value = c.operand(i)
		return nil
	}
}

func requestParameter(c *ctlCall, r *control.Request) error {
	r.Component, r.Name, r.Value = c.operand(0), c.operand(1), c.operand(2)
	return nil
}

func requestPolicy(c *ctlCall, r *control.Request) error {
	r.Name, r.Pattern, r.Value = c.operand(0), c.operand(1), c.operand(2)
	r.ApplyTo = c.flags[flagApplyTo.name]
	if text := c.flagSet(flagPriority.name); text != nil {
		n, err := strconv.ParseInt(*text, 10, 32)
		if err != nil {
			return &remoteError{exitRemoteUsage, fmt.Errorf("--priority: bad value %q: want a whole number", *text)}
		}
		r.Priority = int(n)
	}
	return nil
}

func requestVHost(c *ctlCall, r *control.Request) error {
	r.Name = c.operand(0)
	r.Description, r.Tags, r.DefaultType = c.flagSet(flagDescribe.name), c.flagSet(flagTags.name), c.flagSet(flagQueueType.name)
	return nil
}

func printExport(c *ctlCall, answer []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, answer, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	path := c.operand(0)
	if path == "-" {
		_, err := c.stdout.Write(out.Bytes())
		return err
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		return &remoteError{exitWorld, err}
	}
	return nil
}

func requestImport(c *ctlCall, r *control.Request) error {
	var data []byte
	var err error
	if path := c.operand(0); path == "-" {
		data, err = io.ReadAll(os.Stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return &remoteError{exitWorld, err}
	}
	if !utf8.Valid(data) {
		return errors.New("the file is not UTF-8")
	}
	r.Value = string(data)
	return nil
}

func printImport(c *ctlCall, answer []byte) error {
	var n definitions.Counts
	if err := json.Unmarshal(answer, &n); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "imported, or there already: %s\n", n)
	if len(n.Unsupported) > 0 {
		fmt.Fprintf(c.stderr, "ringmq: not imported: %s; accounts come in a later version\n", strings.Join(n.Unsupported, ", "))
	}
	return nil
}

// printTable prints a list of answers as a table.
func printTable[T any](c *ctlCall, answer []byte, head string, row func(T) []any) error {
	var list []T
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("the broker's answer cannot be read: %w", err)
	}
	table := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, head)
	for _, item := range list {
		for i, cell := range row(item) {
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
			fmt.Fprintf(table, "%v", cell)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// jsonText is a value as JSON in one line.
func jsonText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func printPolicies(c *ctlCall, answer []byte) error {
	return printTable(c, answer, "vhost\tname\tpattern\tapply-to\tdefinition\tpriority", func(p struct {
		control.PolicyInfo
		Definition json.RawMessage `json:"definition"` // as it was sent, numbers with all their digits
	}) []any {
		return []any{p.VHost, p.Name, p.Pattern, p.ApplyTo, string(p.Definition), p.Priority}
	})
}

func printVHosts(c *ctlCall, answer []byte) error {
	return printTable(c, answer, "name\tdescription\ttags\tdefault_queue_type\tqueues", func(v control.VHostInfo) []any {
		return []any{v.Name, v.Description, strings.Join(v.Tags, ","), v.DefaultType, v.Queues}
	})
}

func printVHostLimits(c *ctlCall, answer []byte) error {
	return printTable(c, answer, "vhost\tlimits", func(l control.VHostLimitsInfo) []any { return []any{l.VHost, jsonText(l.Limits)} })
}

func printUserLimits(c *ctlCall, answer []byte) error {
	return printTable(c, answer, "user\tlimits", func(l control.UserLimitsInfo) []any { return []any{l.User, jsonText(l.Limits)} })
}

func printParameters(c *ctlCall, answer []byte) error {
	return printTable(c, answer, "vhost\tcomponent\tname\tvalue", func(p control.ParameterInfo) []any {
		return []any{p.VHost, p.Component, p.Name, string(p.Value)}
	})
}

func printGlobal(c *ctlCall, answer []byte) error {
	return printTable(c, answer, "name\tvalue", func(p control.GlobalInfo) []any { return []any{p.Name, string(p.Value)} })
}
