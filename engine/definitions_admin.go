package engine

import (
	"encoding/json"
	"fmt"
	"strconv"

	"ringmq/engine/policy"
)

// The records of what operators ask for: see definitions_record.go for their form.

type policyRecord struct {
	V          int             `json:"v"`
	VHost      jsonText        `json:"vhost"`
	Name       jsonText        `json:"name"`
	Operator   bool            `json:"operator,omitempty"`
	Pattern    jsonText        `json:"pattern"`
	ApplyTo    string          `json:"apply_to"`
	Priority   int             `json:"priority"`
	Definition json.RawMessage `json:"definition"`
}

// limitsRecord is of a vhost, or of a user when User is set.
type limitsRecord struct {
	V              int      `json:"v"`
	VHost          jsonText `json:"vhost,omitempty"`
	User           jsonText `json:"user,omitempty"`
	MaxConnections int64    `json:"max_connections"`
	MaxQueues      int64    `json:"max_queues"`
	MaxChannels    int64    `json:"max_channels"`
}

// parameterRecord is of a global parameter when Component is empty.
type parameterRecord struct {
	V         int             `json:"v"`
	Component jsonText        `json:"component,omitempty"`
	VHost     jsonText        `json:"vhost,omitempty"`
	Name      jsonText        `json:"name"`
	Value     json.RawMessage `json:"value"`
}

func policyKey(vhost, name string, operator bool) []byte {
	return recordKey(vhost, name, strconv.FormatBool(operator))
}

func (v *VHost) notePolicy(p *policy.Policy) {
	if !v.broker.catalog.records() {
		return
	}
	definition, err := json.Marshal(p.Definition)
	if err != nil {
		panic("engine: a definition that was read as JSON cannot be written: " + err.Error())
	}
	v.note(Change{Kind: KindPolicy, Key: policyKey(v.Name, p.Name, p.Operator), Value: writeRecord(policyRecord{
		V: recordVersion, VHost: jsonText(v.Name), Name: jsonText(p.Name), Operator: p.Operator,
		Pattern: jsonText(p.Pattern), ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: definition,
	})})
}

func (v *VHost) notePolicyGone(name string, operator bool) {
	if v.broker.catalog.records() {
		v.note(Change{Kind: KindPolicy, Delete: true, Key: policyKey(v.Name, name, operator)})
	}
}

// noteLimits notes the limits of the vhost; nil takes them away.
func (v *VHost) noteLimits(l *Limits) {
	if v.broker.catalog.records() {
		v.note(limitsChange(recordKey("vhost", v.Name), limitsRecord{VHost: jsonText(v.Name)}, l))
	}
}

func userLimitsChange(name string, l *Limits) Change {
	return limitsChange(recordKey("user", name), limitsRecord{User: jsonText(name)}, l)
}

func limitsChange(key []byte, r limitsRecord, l *Limits) Change {
	if l == nil {
		return Change{Kind: KindLimits, Delete: true, Key: key}
	}
	r.V = recordVersion
	r.MaxConnections, r.MaxQueues, r.MaxChannels = l.MaxConnections, l.MaxQueues, l.MaxChannels
	return Change{Kind: KindLimits, Key: key, Value: writeRecord(r)}
}

// parameterChange puts a parameter, or takes it away when value is nil.
func parameterChange(id parameterID, value json.RawMessage) Change {
	key := recordKey(id.component, id.vhost, id.name)
	if value == nil {
		return Change{Kind: KindParameter, Delete: true, Key: key}
	}
	return Change{Kind: KindParameter, Key: key, Value: writeRecord(parameterRecord{
		V: recordVersion, Component: jsonText(id.component), VHost: jsonText(id.vhost), Name: jsonText(id.name), Value: value,
	})}
}

func (v *VHost) noteParametersGone() {
	if !v.broker.catalog.records() {
		return
	}
	for _, p := range v.broker.Parameters() {
		if p.VHost == v.Name {
			v.note(parameterChange(parameterID{p.Component, p.VHost, p.Name}, nil))
		}
	}
}

func (v *VHost) noteVHostGone() {
	if v.broker.catalog.records() {
		v.note(Change{Kind: KindVHost, Delete: true, Key: recordKey(v.Name)})
	}
}

// restorePolicy puts a policy in its vhost; Restore applies it when all are there.
func (r *restoring) restorePolicy(value []byte) error {
	var rec policyRecord
	if err := readRecord(value, &rec); err != nil {
		return err
	}
	v, err := r.space(rec.VHost)
	if err != nil {
		return err
	}
	definition, err := readDefinition(rec.Definition)
	if err != nil {
		return err
	}
	p, err := policy.Parse(policy.Spec{
		Name: string(rec.Name), Pattern: string(rec.Pattern), ApplyTo: rec.ApplyTo, Priority: rec.Priority,
		Definition: definition, Operator: rec.Operator,
	})
	if err != nil {
		return err
	}
	next := *v.policies.Load()
	set := next.sort(p.Operator)
	*set = set.With(p)
	v.policies.Store(&next)
	return nil
}

func (r *restoring) restoreLimits(value []byte) error {
	var rec limitsRecord
	if err := readRecord(value, &rec); err != nil {
		return err
	}
	l := &Limits{rec.MaxConnections, rec.MaxQueues, rec.MaxChannels}
	if rec.User != "" {
		r.b.user(string(rec.User)).setLimits(l)
		return nil
	}
	v, err := r.space(rec.VHost)
	if err != nil {
		return err
	}
	v.putLimits(l)
	return nil
}

func (r *restoring) restoreParameter(value []byte) error {
	var rec parameterRecord
	if err := readRecord(value, &rec); err != nil {
		return err
	}
	if len(rec.Value) == 0 {
		return fmt.Errorf("it has no value")
	}
	r.b.storeParameter(parameterID{string(rec.Component), string(rec.VHost), string(rec.Name)}, rec.Value)
	return nil
}
