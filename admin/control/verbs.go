package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ringmq/admin/definitions"
	"ringmq/engine"
)

// verb does one thing. The answer is encoded as JSON; nil is nothing to tell.
type verb func(o *Options, r *Request) (any, error)

// verbs are all there are, under RabbitMQ's names. The map is never changed.
var verbs = map[string]verb{
	"set_policy":             func(o *Options, r *Request) (any, error) { return nil, setPolicy(o.Broker, r, false) },
	"set_operator_policy":    func(o *Options, r *Request) (any, error) { return nil, setPolicy(o.Broker, r, true) },
	"clear_policy":           func(o *Options, r *Request) (any, error) { return nil, o.Broker.ClearPolicy(r.VHost, r.Name, false) },
	"clear_operator_policy":  func(o *Options, r *Request) (any, error) { return nil, o.Broker.ClearPolicy(r.VHost, r.Name, true) },
	"list_policies":          func(o *Options, r *Request) (any, error) { return listPolicies(o.Broker, r, false) },
	"list_operator_policies": func(o *Options, r *Request) (any, error) { return listPolicies(o.Broker, r, true) },

	"add_vhost":          func(o *Options, r *Request) (any, error) { return nil, addVHost(o.Broker, r) },
	"delete_vhost":       func(o *Options, r *Request) (any, error) { return nil, o.Broker.DeleteVHost(r.Name) },
	"list_vhosts":        func(o *Options, _ *Request) (any, error) { return listVHosts(o.Broker), nil },
	"set_vhost_limits":   func(o *Options, r *Request) (any, error) { return nil, setVHostLimits(o.Broker, r) },
	"clear_vhost_limits": func(o *Options, r *Request) (any, error) { return nil, o.Broker.ClearVHostLimits(r.VHost) },
	"list_vhost_limits":  func(o *Options, r *Request) (any, error) { return listVHostLimits(o.Broker, r) },
	"set_user_limits":    func(o *Options, r *Request) (any, error) { return nil, setUserLimits(o.Broker, r) },
	"clear_user_limits":  func(o *Options, r *Request) (any, error) { return nil, clearUserLimits(o.Broker, r) },
	"list_user_limits":   func(o *Options, r *Request) (any, error) { return listUserLimits(o.Broker, r), nil },

	"set_parameter": func(o *Options, r *Request) (any, error) {
		return nil, o.Broker.SetParameter(r.Component, r.VHost, r.Name, json.RawMessage(r.Value))
	},
	"clear_parameter": func(o *Options, r *Request) (any, error) {
		return nil, o.Broker.ClearParameter(r.Component, r.VHost, r.Name)
	},
	"list_parameters": func(o *Options, r *Request) (any, error) { return listParameters(o.Broker, r) },
	"set_global_parameter": func(o *Options, r *Request) (any, error) {
		return nil, o.Broker.SetGlobalParameter(r.Name, json.RawMessage(r.Value))
	},
	"clear_global_parameter": func(o *Options, r *Request) (any, error) { return nil, o.Broker.ClearGlobalParameter(r.Name) },
	"list_global_parameters": func(o *Options, _ *Request) (any, error) { return listGlobal(o.Broker), nil },

	"export_definitions": func(o *Options, r *Request) (any, error) {
		file, err := definitions.Export(o.Broker, r.VHost, o.Codec, o.About)
		return json.RawMessage(file), err
	},
	"import_definitions": importDefinitions,
}

func setPolicy(b *engine.Broker, r *Request, operator bool) error {
	d := json.NewDecoder(bytes.NewReader([]byte(r.Value)))
	d.UseNumber()
	var definition map[string]any
	err := d.Decode(&definition)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err != nil || definition == nil {
		return fmt.Errorf("the definition should be a JSON object, as in {\"max-length\": 1000}: %s", problem(err))
	}
	return b.SetPolicy(engine.Policy{
		VHost: r.VHost, Name: r.Name, Pattern: r.Pattern, ApplyTo: r.ApplyTo, Priority: r.Priority,
		Definition: definition, Operator: operator,
	})
}

// problem is what is wrong with a JSON object, null included, which is none.
func problem(err error) string {
	if err == nil {
		return "it is null"
	}
	return err.Error()
}

// PolicyInfo is an entry of list_policies.
type PolicyInfo struct {
	VHost      string         `json:"vhost"`
	Name       string         `json:"name"`
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Definition map[string]any `json:"definition"`
	Priority   int            `json:"priority"`
}

// in reports whether an entry of a virtual host is asked for: "" asks for those of all.
func (r *Request) in(vhost string) bool { return r.VHost == "" || r.VHost == vhost }

func listPolicies(b *engine.Broker, r *Request, operator bool) (any, error) {
	list := []PolicyInfo{}
	for _, p := range b.Policies(operator) {
		if r.in(p.VHost) {
			list = append(list, PolicyInfo{p.VHost, p.Name, p.Pattern, p.ApplyTo, p.Definition, p.Priority})
		}
	}
	return list, nil
}

func addVHost(b *engine.Broker, r *Request) error {
	s, _ := b.VHostSettings(r.Name) // what is not named stays
	if r.Description != nil {
		s.Description = *r.Description
	}
	if r.DefaultType != nil {
		s.DefaultQueueType = *r.DefaultType
	}
	if r.Tags != nil {
		s.Tags = nil
		for tag := range strings.SplitSeq(*r.Tags, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				s.Tags = append(s.Tags, tag)
			}
		}
	}
	return b.AddVHost(r.Name, s)
}

// VHostInfo is an entry of list_vhosts.
type VHostInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	DefaultType string   `json:"default_queue_type"`
	Tracing     bool     `json:"tracing"`
	Queues      int64    `json:"queues"`
}

func listVHosts(b *engine.Broker) []VHostInfo {
	list := []VHostInfo{}
	for _, name := range b.VHostNames() {
		v := b.VHost(name)
		s, ok := b.VHostSettings(name)
		if v == nil || !ok {
			continue // deleted meanwhile
		}
		if s.DefaultQueueType == "" {
			s.DefaultQueueType = "classic"
		}
		list = append(list, VHostInfo{name, s.Description, append([]string{}, s.Tags...), s.DefaultQueueType, s.Tracing, v.QueueCount()})
	}
	return list
}

func setVHostLimits(b *engine.Broker, r *Request) error {
	l, err := engine.ReadVHostLimits(json.RawMessage(r.Value))
	if err != nil {
		return err
	}
	return b.SetVHostLimits(r.VHost, l)
}

// VHostLimitsInfo is an entry of list_vhost_limits.
type VHostLimitsInfo struct {
	VHost  string           `json:"vhost"`
	Limits map[string]int64 `json:"limits"`
}

func listVHostLimits(b *engine.Broker, r *Request) (any, error) {
	list := []VHostLimitsInfo{}
	for _, name := range b.VHostNames() {
		if l := b.VHostLimits(name); r.in(name) && l != engine.NoLimits() {
			list = append(list, VHostLimitsInfo{name, definitions.VHostLimitsJSON(l)})
		}
	}
	return list, nil
}

// setUserLimits changes those limits that are named; the others stay, as with RabbitMQ.
func setUserLimits(b *engine.Broker, r *Request) error {
	l, err := engine.ReadUserLimits(json.RawMessage(r.Value))
	if err != nil {
		return err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.Value), &given); err != nil {
		return err
	}
	now := b.UserLimits(r.Name)
	if _, named := given["max-connections"]; !named {
		l.MaxConnections = now.MaxConnections
	}
	if _, named := given["max-channels"]; !named {
		l.MaxChannels = now.MaxChannels
	}
	return b.SetUserLimits(r.Name, l)
}

// clearUserLimits lifts the limit that the request's value names, or "all".
func clearUserLimits(b *engine.Broker, r *Request) error {
	l := b.UserLimits(r.Name)
	switch r.Value {
	case "max-connections":
		l.MaxConnections = -1
	case "max-channels":
		l.MaxChannels = -1
	case "all", "":
		return b.ClearUserLimits(r.Name)
	default:
		return fmt.Errorf("unrecognised limit %q: known are max-connections, max-channels and all", r.Value)
	}
	return b.SetUserLimits(r.Name, l)
}

// UserLimitsInfo is an entry of list_user_limits.
type UserLimitsInfo struct {
	User   string           `json:"user"`
	Limits map[string]int64 `json:"limits"`
}

func listUserLimits(b *engine.Broker, r *Request) []UserLimitsInfo {
	list := []UserLimitsInfo{}
	all := b.AllUserLimits()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if r.Name == "" || r.Name == name {
			list = append(list, UserLimitsInfo{name, definitions.UserLimitsJSON(all[name])})
		}
	}
	return list
}

// ParameterInfo is an entry of list_parameters.
type ParameterInfo struct {
	VHost     string          `json:"vhost"`
	Component string          `json:"component"`
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
}

func listParameters(b *engine.Broker, r *Request) (any, error) {
	list := []ParameterInfo{}
	for _, p := range b.Parameters() {
		if r.in(p.VHost) {
			list = append(list, ParameterInfo{p.VHost, p.Component, p.Name, p.Value})
		}
	}
	return list, nil
}

// GlobalInfo is an entry of list_global_parameters.
type GlobalInfo struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

func listGlobal(b *engine.Broker) []GlobalInfo {
	list := []GlobalInfo{}
	for _, p := range b.GlobalParameters() {
		list = append(list, GlobalInfo{p.Name, p.Value})
	}
	return list
}

// importDefinitions imports the file in the request's value, into the virtual host that the
// request names, if it names one.
func importDefinitions(o *Options, r *Request) (any, error) {
	if r.VHost != "" && o.Broker.VHost(r.VHost) == nil {
		return nil, fmt.Errorf("there is no virtual host '%s': %w", r.VHost, engine.ErrNoSuchObject)
	}
	f, err := definitions.Parse([]byte(r.Value), r.VHost, o.Codec)
	if err == nil {
		err = f.Import(o.Broker)
	}
	if err != nil {
		return nil, err
	}
	return f.Counts(), nil
}
