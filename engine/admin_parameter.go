package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Parameter is a piece of configuration that is kept for the component that reads it
// (POL-05). A global parameter has a name and a value only.
type Parameter struct {
	Component, VHost, Name string
	Value                  json.RawMessage
}

type parameterID struct{ component, vhost, name string }

// The components whose parameters are things of their own here.
const (
	componentPolicy         = "policy"
	componentOperatorPolicy = "operator_policy"
	componentVHostLimits    = "vhost-limits"
)

// keptComponents are those whose parameters are kept and have no effect in this
// version.
var keptComponents = []string{"federation", "federation-upstream", "federation-upstream-set", "shovel", "mqtt", "prometheus"}

// SetParameter sets a parameter. Policies are not set that way; the limits of a vhost
// may be.
func (b *Broker) SetParameter(component, vhost, name string, value json.RawMessage) error {
	switch {
	case component == componentPolicy:
		return errors.New("policies may not be set using this method")
	case component == componentOperatorPolicy:
		return b.setOperatorParameter(vhost, name, value)
	case component == componentVHostLimits:
		l, err := ReadVHostLimits(value)
		if err != nil {
			return err
		}
		return b.SetVHostLimits(vhost, l)
	case !slices.Contains(keptComponents, component):
		return fmt.Errorf("component %s not found", component)
	case name == "":
		return errors.New("the name of a parameter must not be empty")
	}
	value, err := compactJSON(value)
	if err != nil {
		return err
	}
	return b.putParameter(parameterID{component, vhost, name}, value)
}

// setOperatorParameter sets the operator policy that a parameter describes.
func (b *Broker) setOperatorParameter(vhost, name string, value json.RawMessage) error {
	var p struct {
		Pattern    string         `json:"pattern"`
		ApplyTo    string         `json:"apply-to"`
		Priority   int            `json:"priority"`
		Definition map[string]any `json:"definition"`
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("the value of operator policy '%s' cannot be read: %w", name, err)
	}
	return b.SetPolicy(Policy{
		VHost: vhost, Name: name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority,
		Definition: p.Definition, Operator: true,
	})
}

// ReadVHostLimits reads the limits of a vhost from JSON: an object with max-connections
// and max-queues, where a negative number or an absent one is no limit.
func ReadVHostLimits(value json.RawMessage) (Limits, error) {
	return readLimits(value, "max-connections", "max-queues")
}

// ReadUserLimits reads the limits of a user from JSON, with max-connections and
// max-channels.
func ReadUserLimits(value json.RawMessage) (Limits, error) {
	return readLimits(value, "max-connections", "max-channels")
}

func readLimits(value json.RawMessage, known ...string) (Limits, error) {
	l := NoLimits()
	var given map[string]json.RawMessage
	if err := json.Unmarshal(value, &given); err != nil || given == nil {
		return l, errors.New("limits should be a JSON object, as in {\"max-connections\": 100}")
	}
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return l, fmt.Errorf("unrecognised limit %q: known are %s", name, strings.Join(known, " and "))
		}
		var n int64
		if err := json.Unmarshal(given[name], &n); err != nil || string(given[name]) == "null" {
			return l, fmt.Errorf("%s should be a number, actually was %s", name, given[name])
		}
		n = max(n, -1)
		switch name {
		case "max-connections":
			l.MaxConnections = n
		case "max-queues":
			l.MaxQueues = n
		case "max-channels":
			l.MaxChannels = n
		}
	}
	return l, nil
}

// SetGlobalParameter sets a parameter of the whole broker.
func (b *Broker) SetGlobalParameter(name string, value json.RawMessage) error {
	if name == "" {
		return errors.New("the name of a parameter must not be empty")
	}
	value, err := compactJSON(value)
	if err != nil {
		return err
	}
	return b.putParameter(parameterID{name: name}, value)
}

// ClearParameter takes a parameter away.
func (b *Broker) ClearParameter(component, vhost, name string) error {
	switch component {
	case componentPolicy:
		return errors.New("policies may not be cleared using this method")
	case componentOperatorPolicy:
		return b.ClearPolicy(vhost, name, true)
	case componentVHostLimits:
		return b.ClearVHostLimits(vhost)
	}
	return b.putParameter(parameterID{component, vhost, name}, nil)
}

// ClearGlobalParameter takes a parameter of the whole broker away.
func (b *Broker) ClearGlobalParameter(name string) error {
	return b.putParameter(parameterID{name: name}, nil)
}

// putParameter keeps a value, or takes it away when it is nil. An id without a component
// is that of a global parameter.
func (b *Broker) putParameter(id parameterID, value json.RawMessage) error {
	b.admin.mu.Lock()
	defer b.admin.mu.Unlock()
	if id.component != "" {
		if _, err := b.adminVHost(id.vhost); err != nil {
			return err
		}
	}
	if !b.storeParameter(id, value) {
		return fmt.Errorf("parameter '%s': %w", id.name, ErrNoSuchObject)
	}
	if b.catalog.records() {
		b.catalog.record([]Change{parameterChange(id, value)})
	}
	return b.settled()
}

// storeParameter has a value in force; it reports false when there is nothing to take
// away.
func (b *Broker) storeParameter(id parameterID, value json.RawMessage) bool {
	b.admin.paramMu.Lock()
	defer b.admin.paramMu.Unlock()
	if b.admin.params == nil {
		b.admin.params = map[parameterID]json.RawMessage{}
	}
	_, found := b.admin.params[id]
	if value == nil {
		delete(b.admin.params, id)
		return found
	}
	b.admin.params[id] = value
	return true
}

// Parameters lists the parameters by component, vhost and name. Operator policies and
// the limits of vhosts are not among them.
func (b *Broker) Parameters() []Parameter {
	return b.listParameters(func(id parameterID) bool { return id.component != "" })
}

// GlobalParameters lists the parameters of the whole broker by name.
func (b *Broker) GlobalParameters() []Parameter {
	return b.listParameters(func(id parameterID) bool { return id.component == "" })
}

func (b *Broker) listParameters(which func(parameterID) bool) []Parameter {
	b.admin.paramMu.Lock()
	defer b.admin.paramMu.Unlock()
	var list []Parameter
	for id, value := range b.admin.params {
		if which(id) {
			list = append(list, Parameter{id.component, id.vhost, id.name, bytes.Clone(value)})
		}
	}
	slices.SortFunc(list, func(x, y Parameter) int {
		for _, c := range []int{
			strings.Compare(x.Component, y.Component), strings.Compare(x.VHost, y.VHost), strings.Compare(x.Name, y.Name),
		} {
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return list
}

// compactJSON checks a value and takes a copy of it without white space.
func compactJSON(value json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, value); err != nil {
		return nil, fmt.Errorf("the value of the parameter is not JSON: %w", err)
	}
	return out.Bytes(), nil
}
