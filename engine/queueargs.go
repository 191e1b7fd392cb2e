package engine

import (
	"maps"
	"slices"
	"strings"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// types is a set of queue types.
type types uint8

const (
	onClassic types = 1 << queue.Classic
	onQuorum  types = 1 << queue.Quorum
	onStream  types = 1 << queue.Stream
	onAll           = onClassic | onQuorum | onStream
)

// queueArgument is one known argument of queue.declare (spec C.1) and the types that
// know it. check validates the value and puts its meaning into the settings; its text
// is what RabbitMQ says, empty for fine.
type queueArgument struct {
	name    string
	on      types
	integer bool
	boolean bool
	check   func(v core.Value, s *queue.Settings) string
}

// argQueueType is the argument that names a queue's type.
const argQueueType = "x-queue-type"

// deliveryLimitDefault is how often a message of a quorum queue may come back.
const deliveryLimitDefault = 20

var queueArguments = []queueArgument{
	{name: "x-message-ttl", on: onClassic | onQuorum, integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.TTL = v.Int
		return bounds(v, 0, core.TTLMillisMax)
	}},
	{name: "x-expires", on: onClassic | onQuorum, integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.Expires = v.Int
		return bounds(v, 1, core.TTLMillisMax)
	}},
	{name: "x-max-length", on: onClassic | onQuorum, integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.MaxLength = v.Int
		return bounds(v, 0, 1<<62)
	}},
	{name: "x-max-length-bytes", on: onAll, integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.MaxBytes = v.Int
		return bounds(v, 0, 1<<62)
	}},
	{name: "x-overflow", on: onClassic | onQuorum, check: checkOverflow},
	{name: "x-dead-letter-exchange", on: onClassic | onQuorum, check: func(v core.Value, s *queue.Settings) string {
		s.DeadLetter, s.DeadExchange = true, v.Str
		return ""
	}},
	{name: "x-dead-letter-routing-key", on: onClassic | onQuorum, check: func(v core.Value, s *queue.Settings) string {
		s.DeadKey, s.DeadKeySet = v.Str, true
		if _, ok := s.Args["x-dead-letter-exchange"]; !ok {
			return "routing_key_but_no_dlx_defined"
		}
		return ""
	}},
	{name: "x-dead-letter-strategy", on: onQuorum, check: func(v core.Value, s *queue.Settings) string {
		s.AtLeastOnce = v.Str == "at-least-once"
		return oneOf(v, "invalid_dlx_strategy", "at-most-once", "at-least-once")
	}},
	{name: argQueueType, on: onAll, check: func(v core.Value, _ *queue.Settings) string {
		return oneOf(v, `"unsupported queue type '`+v.Str+`'"`, "classic", "quorum", "stream")
	}},
	{name: "x-queue-mode", on: onClassic, check: func(v core.Value, _ *queue.Settings) string {
		return oneOf(v, `"unsupported queue mode '`+v.Str+`'"`, "default", "lazy")
	}},
	{name: "x-queue-version", on: onClassic, integer: true, check: func(v core.Value, _ *queue.Settings) string {
		return bounds(v, 1, 2)
	}},
	{name: "x-max-priority", on: onClassic, integer: true, check: func(v core.Value, s *queue.Settings) string {
		if v.Int > 255 || v.Kind == core.KindUint && v.Int < 0 {
			return "{max_value_exceeded," + v.String() + "}"
		}
		s.MaxPriority = int16(max(v.Int, 0))
		return bounds(v, 0, 255)
	}},
	{name: "x-single-active-consumer", on: onClassic | onQuorum, boolean: true, check: func(v core.Value, s *queue.Settings) string {
		s.SingleActive = v.Int != 0
		return ""
	}},
	{name: "x-queue-master-locator", on: onClassic, check: accepted},
	{name: "x-queue-leader-locator", on: onQuorum | onStream, check: func(v core.Value, _ *queue.Settings) string {
		return oneOf(v, "invalid_queue_locator_arg", "client-local", "balanced", "random", "least-leaders")
	}},
	{name: "x-delivery-limit", on: onQuorum, integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.DeliveryLimit = v.Int
		if v.Int == -1 && v.Kind == core.KindInt {
			return ""
		}
		return bounds(v, 0, 1<<62)
	}},
	{name: "x-consumer-timeout", on: onClassic | onQuorum, integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.ConsumerTimeout = v.Int
		return bounds(v, 0, 1<<50)
	}},
	{name: "x-max-age", on: onStream, check: func(v core.Value, s *queue.Settings) string {
		ms, ok := core.ParseInterval(v.Str)
		if !ok {
			return "invalid_max_age"
		}
		s.MaxAge = ms
		return ""
	}},
	{name: "x-stream-max-segment-size-bytes", on: onStream, integer: true, check: func(v core.Value, _ *queue.Settings) string {
		return bounds(v, 0, 3_000_000_000)
	}},
	{name: "x-stream-filter-size-bytes", on: onStream, integer: true, check: func(v core.Value, _ *queue.Settings) string {
		return bounds(v, 16, 255)
	}},
	{name: "x-quorum-initial-group-size", on: onQuorum, integer: true, check: positive},
	{name: "x-initial-cluster-size", on: onStream, integer: true, check: positive},
	{name: "x-max-in-memory-length", on: onQuorum, integer: true, check: natural},
	{name: "x-max-in-memory-bytes", on: onQuorum, integer: true, check: natural},
}

func checkOverflow(v core.Value, s *queue.Settings) string {
	switch v.Str {
	case "drop-head":
		s.Overflow = queue.DropHead
	case "reject-publish":
		s.Overflow = queue.RejectPublish
	case "reject-publish-dlx":
		s.Overflow = queue.RejectPublishDLX
		if s.Type == queue.Quorum {
			s.Overflow = queue.DropHead // it does not know this one, and says nothing
		}
	default:
		return "invalid_overflow"
	}
	return ""
}

func accepted(core.Value, *queue.Settings) string { return "" }

func positive(v core.Value, _ *queue.Settings) string { return bounds(v, 1, 1<<31) }

func natural(v core.Value, _ *queue.Settings) string { return bounds(v, 0, 1<<62) }

func oneOf(v core.Value, problem string, known ...string) string {
	if slices.Contains(known, v.Str) {
		return ""
	}
	return problem
}

// parseQueueArgs validates the arguments and fills in the settings.
func parseQueueArgs(v *VHost, name string, s *queue.Settings) *core.Error {
	s.Rules, s.Type = queue.NoRules(), typeNamed(s.Args[argQueueType].Str)
	if s.Type == queue.Quorum {
		s.DeliveryLimit = deliveryLimitDefault
	}
	refuse := func(format string, args ...any) *core.Error {
		return core.Refuse(core.PreconditionFailed, "invalid arg "+format, args...)
	}
	for i := range queueArguments {
		a := &queueArguments[i]
		value, ok := s.Args[a.name]
		if !ok {
			continue
		}
		if text := a.problem(value, s); text != "" {
			return refuse("'%s' for queue '%s' in vhost '%s': %s", a.name, name, v.Name, text)
		}
	}
	for i := range queueArguments {
		a := &queueArguments[i]
		if _, ok := s.Args[a.name]; ok && a.on>>s.Type&1 == 0 {
			return refuse("'%s' for queue '%s' in vhost '%s' of queue type rabbit_%s_queue", a.name, name, v.Name, s.Type)
		}
	}
	for key := range s.Args {
		if strings.HasPrefix(key, "qpid.") || strings.HasPrefix(key, "x-qpid-") {
			return refuse("'%s' for queue '%s' in vhost '%s': not known to this version", key, name, v.Name)
		}
	}
	// Without a refusal of publishes such a queue has no bound: at most once then.
	s.AtLeastOnce = s.AtLeastOnce && s.DeadLetter && s.Overflow == queue.RejectPublish
	return v.checkProperties(name, s)
}

// typeNamed is the type of a name, classic for any other.
func typeNamed(name string) queue.Type {
	switch name {
	case "quorum":
		return queue.Quorum
	case "stream":
		return queue.Stream
	}
	return queue.Classic
}

// applyDefaultType finds out the type of a queue. One that comes from the vhost is
// written into the arguments: it stays, whatever becomes of the default (TYP-01). A
// queue that the default type cannot be keeps to classic: a server-named, exclusive,
// auto-delete or transient one.
func (v *VHost) applyDefaultType(s *queue.Settings, generated bool) {
	t := v.DefaultQueueType()
	if _, ok := s.Args[argQueueType]; ok || t == queue.Classic || generated || s.Exclusive || s.AutoDelete || !s.Durable {
		return
	}
	args := maps.Clone(s.Args)
	if args == nil {
		args = core.Args{}
	}
	args[argQueueType] = core.Value{Kind: core.KindString, Str: t.String(), Type: "longstr"}
	s.Args = args
}

// checkProperties refuses what quorum and stream queues cannot be (TYP-02).
func (v *VHost) checkProperties(name string, s *queue.Settings) *core.Error {
	if s.Type == queue.Classic {
		return nil
	}
	property := ""
	switch {
	case s.AutoDelete:
		property = "auto-delete"
	case s.Exclusive:
		property = "exclusive-owner"
	case !s.Durable:
		property = "non-durable"
	default:
		return nil
	}
	return core.Refuse(core.PreconditionFailed, "invalid property '%s' for queue '%s' in vhost '%s'", property, name, v.Name)
}

func (a *queueArgument) problem(v core.Value, s *queue.Settings) string {
	switch {
	case a.integer:
		if !v.IsInteger() {
			return `"expected integer, got ` + v.Type + `"`
		}
	case a.boolean:
		if v.Kind != core.KindBool {
			return "{unacceptable_type," + v.Type + "}"
		}
	case v.Kind != core.KindString:
		return "{unacceptable_type," + v.Type + "}"
	}
	return a.check(v, s)
}

func bounds(v core.Value, low, high int64) string {
	switch {
	case v.Kind == core.KindUint && v.Int < 0, v.Int > high:
		return "{value_too_large," + v.String() + "}"
	case v.Int < 0:
		return "{value_negative," + v.String() + "}"
	case v.Int == 0 && low > 0:
		return "{value_zero,0}"
	case v.Int < low:
		return "{value_too_small," + v.String() + "}"
	}
	return ""
}
