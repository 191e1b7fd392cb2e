package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ringmq/engine/policy"
	"ringmq/engine/queue"
)

// Policy is what queues or exchanges do by the order of an operator, beside what their
// arguments say (spec C.14).
type Policy struct {
	VHost, Name string
	// Pattern is a regular expression in Go's syntax (RE2), found anywhere in a name.
	Pattern string
	// ApplyTo is all, queues, classic_queues, quorum_queues, streams or exchanges; ""
	// is all, and queues of an operator policy.
	ApplyTo string
	// Priority: of the policies that match an object the one with the highest applies,
	// and among equals the one whose name sorts first.
	Priority int
	// Definition has what encoding/json makes of a JSON object with UseNumber.
	Definition map[string]any
	// Operator: an operator policy, which only ever tightens (POL-01).
	Operator bool
}

func (p *Policy) spec() policy.Spec {
	return policy.Spec{
		Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority,
		Definition: p.Definition, Operator: p.Operator,
	}
}

func fromParsed(vhost string, p *policy.Policy) Policy {
	return Policy{
		VHost: vhost, Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority,
		Definition: p.Definition, Operator: p.Operator,
	}
}

// CheckPolicy says what is wrong with a policy, without its vhost (POL-03).
func CheckPolicy(p Policy) error {
	_, err := parsePolicy(p)
	return err
}

// parsePolicy checks a policy and takes a copy of its definition.
func parsePolicy(p Policy) (*policy.Policy, error) {
	raw, err := json.Marshal(p.Definition)
	if err == nil {
		p.Definition, err = readDefinition(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("the definition of policy '%s' is not JSON: %w", p.Name, err)
	}
	return policy.Parse(p.spec())
}

func readDefinition(raw []byte) (d map[string]any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&d)
	return d, err
}

// SetPolicy makes a policy, or changes the one of that name, and has all that it
// matches follow it, what is queued included (POL-04).
func (b *Broker) SetPolicy(p Policy) error {
	parsed, err := parsePolicy(p)
	if err != nil {
		return err
	}
	b.admin.mu.Lock()
	defer b.admin.mu.Unlock()
	v, err := b.adminVHost(p.VHost)
	if err != nil {
		return err
	}
	v.mu.Lock()
	next := *v.policies.Load()
	set := next.sort(p.Operator)
	*set = set.With(parsed)
	v.notePolicy(parsed)
	v.record()
	v.policies.Store(&next)
	v.mu.Unlock()
	return b.enforce(v)
}

// ClearPolicy takes a policy away; what it governed does again what its arguments, or
// the next policy, say.
func (b *Broker) ClearPolicy(vhost, name string, operator bool) error {
	b.admin.mu.Lock()
	defer b.admin.mu.Unlock()
	v, err := b.adminVHost(vhost)
	if err != nil {
		return err
	}
	v.mu.Lock()
	next := *v.policies.Load()
	set := next.sort(operator)
	if set.Find(name) == nil {
		v.mu.Unlock()
		return fmt.Errorf("policy '%s' in virtual host '%s': %w", name, vhost, ErrNoSuchObject)
	}
	*set = set.Without(name)
	v.notePolicyGone(name, operator)
	v.record()
	v.policies.Store(&next)
	v.mu.Unlock()
	return b.enforce(v)
}

// enforce brings everything in a vhost in line with its policies, and waits for the
// disk. Whatever is declared meanwhile looks at them itself: both it and the change of
// the policies hold the vhost's lock. admin.mu is held.
func (b *Broker) enforce(v *VHost) error {
	changed := false
	v.Exchanges(func(x *Exchange) { changed = v.setAlternate(x) || changed })
	if changed {
		v.epoch.Add(1)
	}
	var queues []*queue.Queue
	v.Queues(func(q *queue.Queue) { queues = append(queues, q) })
	err := b.onQueues(queues, func(s *Shard, q *queue.Queue) {
		if q.Deleted() {
			return
		}
		r := v.rulesOf(q)
		if r == q.Rules {
			return
		}
		if r.Expires != q.Rules.Expires {
			q.Touch(s.now) // what it did before the policy does not count against it
		}
		q.SetRules(r, s.now)
	})
	return errors.Join(err, b.settled())
}

// Policies lists the policies, or the operator policies, by vhost and name.
func (b *Broker) Policies(operator bool) []Policy {
	var list []Policy
	b.VHosts(func(v *VHost) {
		for _, p := range v.policies.Load().sort(operator).All() {
			list = append(list, fromParsed(v.Name, p))
		}
	})
	slices.SortFunc(list, func(x, y Policy) int {
		if x.VHost != y.VHost {
			return strings.Compare(x.VHost, y.VHost)
		}
		return strings.Compare(x.Name, y.Name)
	})
	return list
}

// PolicyOf names the policy and the operator policy that govern a queue, "" for none,
// and what the two together ask for. Any goroutine, loops included.
func (b *Broker) PolicyOf(q *queue.Queue) (user, operator string, effective map[string]any) {
	v, ok := q.Space.(*VHost)
	if !ok {
		return "", "", map[string]any{}
	}
	u, o := v.policies.Load().of(q)
	if u != nil {
		user = u.Name
	}
	if o != nil {
		operator = o.Name
	}
	return user, operator, policy.Effective(u, o)
}

// PolicyOfExchange names the policy that governs an exchange, "" for none.
func (b *Broker) PolicyOfExchange(v *VHost, x *Exchange) string {
	if p := v.policies.Load().user.Of(policy.Exchange, x.Name); p != nil {
		return p.Name
	}
	return ""
}
