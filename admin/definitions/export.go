package definitions

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringmq/engine"
)

// About is what a file says of who wrote it.
type About struct{ Product, Version, CompatVersion string }

// document is the file in the order in which it is written. The lists of things that a
// virtual host has are never nil: they encode as [].
type document struct {
	CompatVersion  string         `json:"rabbit_version"`
	CompatVersion2 string         `json:"rabbitmq_version"`
	Product        string         `json:"product_name"`
	Version        string         `json:"product_version"`
	Users          []userOut      `json:"users,omitempty"`
	VHosts         []vhostOut     `json:"vhosts,omitempty"`
	Global         []globalOut    `json:"global_parameters,omitempty"`
	Parameters     []parameterOut `json:"parameters"`
	Policies       []policyOut    `json:"policies"`
	Queues         []queueOut     `json:"queues"`
	Exchanges      []exchangeOut  `json:"exchanges"`
	Bindings       []bindingOut   `json:"bindings"`
}

type userOut struct {
	Name   string           `json:"name"`
	Limits map[string]int64 `json:"limits"`
}

type vhostOut struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	DefaultType string   `json:"default_queue_type,omitempty"`
	Tracing     bool     `json:"tracing,omitempty"`
	Metadata    metadata `json:"metadata"`
}

type metadata struct {
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	DefaultType string   `json:"default_queue_type,omitempty"`
}

type globalOut struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

type parameterOut struct {
	Component string `json:"component"`
	VHost     string `json:"vhost,omitempty"`
	Name      string `json:"name"`
	Value     any    `json:"value"`
}

type policyOut struct {
	VHost string `json:"vhost,omitempty"`
	Name  string `json:"name"`
	policyBody
}

type policyBody struct {
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Definition map[string]any `json:"definition"`
	Priority   int            `json:"priority"`
}

type queueOut struct {
	Name       string         `json:"name"`
	VHost      string         `json:"vhost,omitempty"`
	Type       string         `json:"type"`
	Durable    bool           `json:"durable"`
	AutoDelete bool           `json:"auto_delete"`
	Args       map[string]any `json:"arguments"`
}

type exchangeOut struct {
	Name       string         `json:"name"`
	VHost      string         `json:"vhost,omitempty"`
	Type       string         `json:"type"`
	Durable    bool           `json:"durable"`
	AutoDelete bool           `json:"auto_delete"`
	Internal   bool           `json:"internal"`
	Args       map[string]any `json:"arguments"`
}

type bindingOut struct {
	Source   string         `json:"source"`
	VHost    string         `json:"vhost,omitempty"`
	Dest     string         `json:"destination"`
	DestType string         `json:"destination_type"`
	Key      string         `json:"routing_key"`
	Args     map[string]any `json:"arguments"`
}

// Export writes what Parse reads: everything, or with vhost what one virtual host has, without
// the name of it in its entries (DEF-02). Exclusive queues, the default exchange and those
// whose names begin with "amq." are left out. Any goroutine but a loop's.
func Export(b *engine.Broker, vhost string, codec Codec, about About) ([]byte, error) {
	d := document{
		CompatVersion: about.CompatVersion, CompatVersion2: about.CompatVersion, Product: about.Product, Version: about.Version,
		Parameters: []parameterOut{}, Policies: []policyOut{}, Queues: []queueOut{}, Exchanges: []exchangeOut{}, Bindings: []bindingOut{},
	}
	names := []string{vhost}
	if vhost == "" {
		names = b.VHostNames()
		d.addWhole(b)
	} else if b.VHost(vhost) == nil {
		return nil, fmt.Errorf("there is no virtual host '%s': %w", vhost, engine.ErrNoSuchObject)
	}
	for _, name := range names {
		if v := b.VHost(name); v != nil {
			d.addVHost(b, v, vhost != "", codec)
		}
	}
	out, err := json.MarshalIndent(d, "", "  ")
	return append(out, '\n'), err
}

// addWhole adds what belongs to no virtual host, and the virtual hosts themselves.
func (d *document) addWhole(b *engine.Broker) {
	for _, name := range b.VHostNames() {
		s, ok := b.VHostSettings(name)
		if !ok {
			continue
		}
		tags := append([]string{}, s.Tags...)
		d.VHosts = append(d.VHosts, vhostOut{name, s.Description, tags, s.DefaultQueueType, s.Tracing,
			metadata{s.Description, tags, s.DefaultQueueType}})
	}
	limits := b.AllUserLimits()
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		d.Users = append(d.Users, userOut{name, UserLimitsJSON(l)})
	}
	for _, p := range b.GlobalParameters() {
		d.Global = append(d.Global, globalOut{p.Name, p.Value})
	}
}

// UserLimitsJSON are the limits of a user by their names, those that are set.
func UserLimitsJSON(l engine.Limits) map[string]int64 {
	return setLimits(map[string]int64{"max-connections": l.MaxConnections, "max-channels": l.MaxChannels})
}

// VHostLimitsJSON are the limits of a virtual host by their names, those that are set.
func VHostLimitsJSON(l engine.Limits) map[string]int64 {
	return setLimits(map[string]int64{"max-connections": l.MaxConnections, "max-queues": l.MaxQueues})
}

func setLimits(all map[string]int64) map[string]int64 {
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n < 0 })
	return all
}

func (d *document) addVHost(b *engine.Broker, v *engine.VHost, alone bool, codec Codec) {
	named := v.Name
	if alone {
		named = ""
	}
	d.addSettings(b, v.Name, named)
	kept := map[[2]string]bool{} // what may be a destination
	v.Exchanges(func(x *engine.Exchange) {
		kept[[2]string{destExchange, x.Name}] = true
		if x.Name != "" && !strings.HasPrefix(x.Name, "amq.") {
			d.Exchanges = append(d.Exchanges, exchangeOut{x.Name, named, x.Kind.String(), x.Durable, x.AutoDelete, x.Internal, codec.JSON(x.Args)})
		}
	})
	for _, q := range v.QueueDefinitions() {
		kept[[2]string{destQueue, q.Name}] = true
		d.Queues = append(d.Queues, queueOut{q.Name, named, q.Type, q.Durable, q.AutoDelete, codec.JSON(q.Args)})
	}
	for _, n := range v.Bindings() {
		kind, name := n.DestName()
		if kept[[2]string{kind, name}] {
			d.Bindings = append(d.Bindings, bindingOut{n.Source.Name, named, name, kind, n.Key, codec.JSON(n.Args)})
		}
	}
}

// addSettings adds policies, limits and parameters. Operator policies and limits travel as
// parameters (DEF-01).
func (d *document) addSettings(b *engine.Broker, vhost, named string) {
	for _, operator := range []bool{false, true} {
		for _, p := range b.Policies(operator) {
			body := policyBody{p.Pattern, p.ApplyTo, p.Definition, p.Priority}
			switch {
			case p.VHost != vhost:
			case operator:
				d.Parameters = append(d.Parameters, parameterOut{"operator_policy", named, p.Name, body})
			default:
				d.Policies = append(d.Policies, policyOut{named, p.Name, body})
			}
		}
	}
	if l := b.VHostLimits(vhost); l != engine.NoLimits() {
		d.Parameters = append(d.Parameters, parameterOut{componentLimits, named, "limits", VHostLimitsJSON(l)})
	}
	for _, p := range b.Parameters() {
		if p.VHost == vhost {
			d.Parameters = append(d.Parameters, parameterOut{p.Component, named, p.Name, p.Value})
		}
	}
}

// IsUnknown reports an error that says that something named is not there.
func IsUnknown(err error) bool {
	return errors.Is(err, engine.ErrNoSuchObject) || engine.IsNoSuchVHost(err)
}
