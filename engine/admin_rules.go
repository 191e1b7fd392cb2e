package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/policy"
	"ringmq/engine/queue"
)

// policies are those of a vhost. The struct never changes.
type policies struct{ user, operator policy.Set }

// sort is the set of one of the two sorts.
func (p *policies) sort(operator bool) *policy.Set {
	if operator {
		return &p.operator
	}
	return &p.user
}

// objectOf is what a queue is to a policy.
func objectOf(t queue.Type) policy.Object {
	switch t {
	case queue.Quorum:
		return policy.QuorumQueue
	case queue.Stream:
		return policy.StreamQueue
	}
	return policy.ClassicQueue
}

// of finds the policy and the operator policy of a queue; either may be nil.
func (p *policies) of(q *queue.Queue) (user, operator *policy.Policy) {
	kind := objectOf(q.Settings.Type)
	return p.user.Of(kind, q.Name), p.operator.Of(kind, q.Name)
}

// rulesOf is what a queue's arguments and the policies of now ask for together. Any
// goroutine.
func (v *VHost) rulesOf(q *queue.Queue) queue.Rules {
	user, operator := v.policies.Load().of(q)
	if user == nil && operator == nil {
		return q.Settings.Rules
	}
	return effectiveRules(&q.Settings, policy.Join(user, operator))
}

// effectiveRules joins arguments and policies: of numbers the lower one counts, of the
// rest the argument (TYP-06).
func effectiveRules(s *queue.Settings, p policy.Settings) queue.Rules {
	r := s.Rules
	has := func(arg string) bool { _, ok := s.Args[arg]; return ok }
	r.TTL = lowerOf(r.TTL, p.TTL, 0)
	r.Expires = lowerOf(r.Expires, p.Expires, 1)
	r.MaxLength = lowerOf(r.MaxLength, p.MaxLength, 0)
	r.MaxBytes = lowerOf(r.MaxBytes, p.MaxBytes, 0)
	if p.ConsumerTimeout != policy.Absent && (r.ConsumerTimeout <= 0 || p.ConsumerTimeout > 0) {
		if r.ConsumerTimeout <= 0 || p.ConsumerTimeout < r.ConsumerTimeout {
			r.ConsumerTimeout = p.ConsumerTimeout
		}
	}
	if s.Type == queue.Stream {
		r.MaxAge = lowerOf(r.MaxAge, p.MaxAge, 1)
	}
	if s.Type == queue.Quorum && p.DeliveryLimit != policy.Absent {
		// Without the argument the rules hold a default, which a policy replaces.
		limit := p.DeliveryLimit
		if has("x-delivery-limit") {
			limit = policy.LowerLimit(r.DeliveryLimit, limit)
		}
		r.DeliveryLimit = max(limit, -1)
	}
	if p.Overflow != nil && !has("x-overflow") {
		r.Overflow = overflowNamed(*p.Overflow)
	}
	if p.DeadExchange != nil && !has("x-dead-letter-exchange") {
		r.DeadLetter, r.DeadExchange = true, *p.DeadExchange
	}
	if p.DeadKey != nil && !has("x-dead-letter-routing-key") {
		r.DeadKeySet, r.DeadKey = true, *p.DeadKey
	}
	strategy := s.Args["x-dead-letter-strategy"].Str
	if p.DeadStrategy != nil && strategy == "" {
		strategy = *p.DeadStrategy
	}
	// Without a refusal of publishes the queue has no bound: at most once then.
	r.AtLeastOnce = strategy == "at-least-once" && s.Type == queue.Quorum && r.DeadLetter &&
		r.Overflow == queue.RejectPublish
	return r
}

// lowerOf is the lower of a rule and a policy's number; a rule below least is none.
func lowerOf(rule, number, least int64) int64 {
	if number == policy.Absent || rule >= least && rule < number {
		return rule
	}
	return number
}

func overflowNamed(name string) queue.Overflow {
	switch name {
	case "reject-publish":
		return queue.RejectPublish
	case "reject-publish-dlx":
		return queue.RejectPublishDLX
	}
	return queue.DropHead
}

// setAlternate puts an exchange's alternate exchange in force: the argument's, else the
// policy's (ALT-01). It reports whether that is another one than before. Any goroutine;
// changes of policies are one at a time.
func (v *VHost) setAlternate(x *Exchange) (changed bool) {
	name := x.Alternate
	if _, ok := x.Args[alternateArg]; !ok {
		if p := v.policies.Load().user.Of(policy.Exchange, x.Name); p != nil && p.Settings.Alternate != nil {
			name = *p.Settings.Alternate
		}
	}
	old := x.alternate.Load()
	if old == nil && name == "" || old != nil && *old == name {
		return false
	}
	if name == "" {
		x.alternate.Store(nil)
	} else {
		x.alternate.Store(&name)
	}
	return true
}

const alternateArg = "alternate-exchange"

// overQueues is the refusal of one queue more than the vhost may have, nil when there is
// room (QUE-15). The vhost's lock is held.
func (v *VHost) overQueues(name string) *core.Error {
	l := v.limits.Load()
	if l == nil || l.MaxQueues < 0 || int64(v.queues.Load().Len()) < l.MaxQueues {
		return nil
	}
	return core.Refuse(core.PreconditionFailed, "cannot declare queue '%s': queue limit in vhost '%s' (%d) is reached",
		name, v.Name, l.MaxQueues)
}
