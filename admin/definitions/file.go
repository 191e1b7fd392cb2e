package definitions

import (
	"encoding/json"
	"fmt"

	"ringmq/engine"
	"ringmq/engine/core"
)

// Codec reads and writes arguments. The sessions of a protocol provide it.
type Codec interface {
	// Args reads what encoding/json with UseNumber made of an object.
	Args(object map[string]any) (core.Args, error)
	// JSON is the way back.
	JSON(args core.Args) map[string]any
}

// File is what a file of definitions asks for. Every entry knows its place in the file.
type File struct {
	vhosts      []vhost
	users       []user
	parameters  []parameter
	global      []parameter
	policies    []policy
	exchanges   []exchange
	queues      []queue
	bindings    []binding
	unsupported []string // keys whose entries are passed over
}

type vhost struct {
	path     string
	name     string
	settings engine.VHostSettings
	limits   *engine.Limits
}

type user struct {
	path, name string
	limits     engine.Limits
}

type parameter struct {
	path string
	engine.Parameter
}

type policy struct {
	path string
	engine.Policy
}

type exchange struct {
	path, vhost, name, kind       string
	durable, autoDelete, internal bool
	args                          core.Args
}

type queue struct {
	path, vhost, name   string
	durable, autoDelete bool
	args                core.Args
}

type binding struct {
	path, vhost, source, destType, dest, key string
	args                                     core.Args
}

// defaultVHost is where entries without one belong.
const defaultVHost = "/"

// Parse reads a file and checks its form. target names the virtual host that everything in it
// belongs to, whatever the file says; empty, everything belongs where the file says, and to
// "/" where it says nothing. The error begins with the place of the mistake.
func Parse(data []byte, target string, codec Codec) (*File, error) {
	object, err := readJSON(data)
	if err != nil {
		return nil, err
	}
	p := parser{target: target, codec: codec}
	p.top = node{"", object, &p.reader}
	p.read()
	if p.err != nil {
		return nil, p.err
	}
	return &p.file, nil
}

// parser is one Parse.
type parser struct {
	reader
	top    node
	target string
	codec  Codec
	file   File
}

func (p *parser) read() {
	if p.target == "" {
		p.readVHosts()
		p.readUsers()
		for _, n := range p.top.at("global_parameters").items() {
			p.file.global = append(p.file.global, parameter{n.path, engine.Parameter{Name: n.at("name").filled(), Value: p.value(n)}})
		}
	}
	p.readParameters()
	for _, n := range p.top.at("policies").items() {
		p.policy(n, n, p.vhost(n), n.at("name").name(), false)
	}
	for _, n := range p.top.at("exchanges").items() {
		p.file.exchanges = append(p.file.exchanges, exchange{
			path: n.path, vhost: p.vhost(n), name: n.at("name").name(), kind: n.at("type").need(),
			durable: n.at("durable").flag(true), autoDelete: n.at("auto_delete").flag(false),
			internal: n.at("internal").flag(false), args: p.args(n),
		})
	}
	for _, n := range p.top.at("queues").items() {
		p.file.queues = append(p.file.queues, queue{
			path: n.path, vhost: p.vhost(n), name: n.at("name").name(),
			durable: n.at("durable").flag(true), autoDelete: n.at("auto_delete").flag(false), args: p.queueArgs(n),
		})
	}
	for _, n := range p.top.at("bindings").items() {
		b := binding{
			path: n.path, vhost: p.vhost(n), source: n.at("source").name(), destType: n.at("destination_type").text(),
			dest: n.at("destination").name(), key: n.at("routing_key").text(), args: p.args(n),
		}
		if b.destType == "" {
			b.destType = destQueue
		}
		if b.destType != destQueue && b.destType != destExchange {
			n.at("destination_type").fail("queue or exchange is expected, not the text %q", b.destType)
		}
		if len(b.key) > nameMax {
			n.at("routing_key").fail("a routing key has at most %d bytes, this one has %d", nameMax, len(b.key))
		}
		p.file.bindings = append(p.file.bindings, b)
	}
}

const (
	destQueue    = "queue"
	destExchange = "exchange"
)

// vhost is the virtual host that an entry belongs to.
func (p *parser) vhost(n node) string {
	if p.target != "" {
		return p.target
	}
	if n.at("vhost").value == nil {
		return defaultVHost
	}
	return n.at("vhost").text()
}

// args are the arguments of an entry.
func (p *parser) args(n node) core.Args {
	a := n.at("arguments")
	object := a.object()
	if len(object) == 0 {
		return nil
	}
	args, err := p.codec.Args(object)
	if err != nil {
		a.fail("%w", err)
	}
	return args
}

// queueArgs are the arguments of a queue, with its type: a file may name it beside them.
func (p *parser) queueArgs(n node) core.Args {
	args, kind := p.args(n), n.at("type").text()
	if _, has := args[argQueueType]; has || kind == "" || kind == "classic" {
		return args
	}
	if args == nil {
		args = core.Args{}
	}
	args[argQueueType] = core.Value{Kind: core.KindString, Str: kind, Type: "longstr"}
	return args
}

const argQueueType = "x-queue-type"

// value is the value of a parameter.
func (p *parser) value(n node) json.RawMessage {
	if n.at("value").value == nil {
		n.at("value").fail("it is missing")
	}
	return n.at("value").raw()
}

func (p *parser) readVHosts() {
	for _, n := range p.top.at("vhosts").items() {
		v := vhost{path: n.path, name: n.at("name").name()}
		if v.name == "" {
			n.at("name").fail("it is empty")
		}
		// Newer brokers write the settings twice, older ones in one of the two places.
		s, m := &v.settings, n.at("metadata")
		m.object()
		s.Description = first(n, m, "description").text()
		s.Tags = first(n, m, "tags").tags()
		s.DefaultQueueType = first(n, m, "default_queue_type").text()
		s.Tracing = first(n, m, "tracing").flag(false)
		switch s.DefaultQueueType {
		case "undefined":
			s.DefaultQueueType = ""
		case "", "classic", "quorum", "stream":
		default:
			first(n, m, "default_queue_type").fail("classic, quorum or stream is expected, not the text %q", s.DefaultQueueType)
		}
		if l := n.at("limits"); len(l.object()) > 0 {
			limits, err := engine.ReadVHostLimits(l.raw())
			if err != nil {
				l.fail("%w", err)
			}
			v.limits = &limits
		}
		p.file.vhosts = append(p.file.vhosts, v)
	}
}

// first is a key of the first object that has it.
func first(a, b node, key string) node {
	if a.at(key).value != nil {
		return a.at(key)
	}
	return b.at(key)
}

// readUsers takes the limits of users; the rest of them waits for accounts.
func (p *parser) readUsers() {
	accounts := false
	for _, n := range p.top.at("users").items() {
		u := user{path: n.path, name: n.at("name").filled()}
		if n.at("password_hash").value != nil || n.at("tags").value != nil {
			accounts = true
		}
		if l := n.at("limits"); len(l.object()) > 0 {
			var err error
			if u.limits, err = engine.ReadUserLimits(l.raw()); err != nil {
				l.fail("%w", err)
			}
			p.file.users = append(p.file.users, u)
		}
	}
	if accounts {
		p.file.unsupported = append(p.file.unsupported, "users")
	}
	for _, key := range []string{"permissions", "topic_permissions"} {
		if len(p.top.at(key).items()) > 0 {
			p.file.unsupported = append(p.file.unsupported, key)
		}
	}
}

// readParameters sorts parameters out: operator policies travel among them (DEF-01).
func (p *parser) readParameters() {
	for _, n := range p.top.at("parameters").items() {
		component, name, value := n.at("component").need(), n.at("name").need(), n.at("value")
		switch err := engine.CheckComponent(component); {
		case err != nil:
			n.at("component").fail("%w", err)
		case component == "operator_policy":
			value.object()
			p.policy(n, value, p.vhost(n), name, true)
			continue
		case component == "vhost-limits":
			if _, err := engine.ReadVHostLimits(value.raw()); err != nil {
				value.fail("%w", err)
			}
		}
		p.file.parameters = append(p.file.parameters, parameter{n.path, engine.Parameter{
			Component: component, VHost: p.vhost(n), Name: n.at("name").filled(), Value: p.value(n),
		}})
	}
}

// policy takes a policy whose body is at another node than its entry when it is a parameter.
func (p *parser) policy(entry, body node, vhost, name string, operator bool) {
	definition := body.at("definition").object()
	if definition == nil {
		definition = map[string]any{}
	}
	out := engine.Policy{
		VHost: vhost, Name: name, Pattern: body.at("pattern").need(), ApplyTo: body.at("apply-to").text(),
		Priority: body.at("priority").number(), Definition: definition, Operator: operator,
	}
	if p.err != nil {
		return
	}
	if err := engine.CheckPolicy(out); err != nil {
		entry.fail("%w", fmt.Errorf("policy '%s': %w", name, err))
		return
	}
	p.file.policies = append(p.file.policies, policy{entry.path, out})
}
