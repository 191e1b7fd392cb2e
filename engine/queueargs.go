package engine

import (
	"strings"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// queueArgument is one known argument of queue.declare (spec C.1). check
// validates the value and puts its meaning into the settings; its text is what
// RabbitMQ says, empty for fine. planned arguments are refused by name rather
// than accepted and not honoured.
type queueArgument struct {
	name    string
	integer bool
	boolean bool
	planned bool
	check   func(v core.Value, s *queue.Settings) string
}

var queueArguments = []queueArgument{
	{name: "x-message-ttl", integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.TTL = v.Int
		return bounds(v, 0, core.TTLMillisMax)
	}},
	{name: "x-expires", integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.Expires = v.Int
		if v.Int == 0 {
			return "{value_zero,0}"
		}
		return bounds(v, 1, core.TTLMillisMax)
	}},
	{name: "x-max-length", integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.MaxLength = v.Int
		return bounds(v, 0, 1<<62)
	}},
	{name: "x-max-length-bytes", integer: true, check: func(v core.Value, s *queue.Settings) string {
		s.MaxBytes = v.Int
		return bounds(v, 0, 1<<62)
	}},
	{name: "x-overflow", check: func(v core.Value, s *queue.Settings) string {
		switch v.Str {
		case "drop-head":
			s.Overflow = queue.DropHead
		case "reject-publish":
			s.Overflow = queue.RejectPublish
		case "reject-publish-dlx":
			s.Overflow = queue.RejectPublishDLX
		default:
			return "invalid_overflow"
		}
		return ""
	}},
	{name: "x-dead-letter-exchange", check: func(v core.Value, s *queue.Settings) string {
		s.DeadLetter, s.DeadExchange = true, v.Str
		return ""
	}},
	{name: "x-dead-letter-routing-key", check: func(v core.Value, s *queue.Settings) string {
		s.DeadKey, s.DeadKeySet = v.Str, true
		if _, ok := s.Args["x-dead-letter-exchange"]; !ok {
			return "routing_key_but_no_dlx_defined"
		}
		return ""
	}},
	{name: "x-queue-type", check: func(v core.Value, _ *queue.Settings) string {
		switch v.Str {
		case "classic":
			return ""
		case "quorum", "stream":
			return `"queue type '` + v.Str + `' is not available in this version"`
		}
		return `"unsupported queue type '` + v.Str + `'"`
	}},
	{name: "x-queue-mode", check: func(v core.Value, _ *queue.Settings) string {
		if v.Str != "default" && v.Str != "lazy" {
			return `"unsupported queue mode '` + v.Str + `'"`
		}
		return ""
	}},
	{name: "x-queue-version", integer: true, check: func(v core.Value, _ *queue.Settings) string {
		return bounds(v, 1, 2)
	}},
	{name: "x-max-priority", integer: true, check: func(v core.Value, s *queue.Settings) string {
		if v.Int > 255 || v.Kind == core.KindUint && v.Int < 0 {
			return "{max_value_exceeded," + v.String() + "}"
		}
		s.MaxPriority = int16(max(v.Int, 0))
		return bounds(v, 0, 255)
	}},
	{name: "x-single-active-consumer", boolean: true, check: func(v core.Value, s *queue.Settings) string {
		s.SingleActive = v.Int != 0
		return ""
	}},
	{name: "x-queue-master-locator", check: func(core.Value, *queue.Settings) string { return "" }},
	{name: "x-delivery-limit", planned: true},
	{name: "x-dead-letter-strategy", planned: true},
	{name: "x-consumer-timeout", planned: true},
	{name: "x-max-age", planned: true},
	{name: "x-stream-max-segment-size-bytes", planned: true},
	{name: "x-stream-filter-size-bytes", planned: true},
	{name: "x-quorum-initial-group-size", planned: true},
	{name: "x-initial-cluster-size", planned: true},
	{name: "x-max-in-memory-length", planned: true},
	{name: "x-max-in-memory-bytes", planned: true},
	{name: "x-queue-leader-locator", planned: true},
}

// parseQueueArgs validates the arguments and fills in the settings.
func parseQueueArgs(vh *VHost, name string, s *queue.Settings) *core.Error {
	s.Rules = queue.NoRules()
	for i := range queueArguments {
		a := &queueArguments[i]
		v, ok := s.Args[a.name]
		if !ok {
			continue
		}
		if text := a.problem(v, s); text != "" {
			return core.Refuse(core.PreconditionFailed, "invalid arg '%s' for queue '%s' in vhost '%s': %s",
				a.name, name, vh.Name, text)
		}
	}
	for key := range s.Args {
		if strings.HasPrefix(key, "qpid.") || strings.HasPrefix(key, "x-qpid-") {
			return core.Refuse(core.PreconditionFailed,
				"invalid arg '%s' for queue '%s' in vhost '%s': not known to this version", key, name, vh.Name)
		}
	}
	return nil
}

func (a *queueArgument) problem(v core.Value, s *queue.Settings) string {
	switch {
	case a.planned:
		return `"not available in this version"`
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
	case v.Int < low:
		return "{value_too_small," + v.String() + "}"
	}
	return ""
}
