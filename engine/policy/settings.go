package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ringmq/engine/core"
)

// Settings is what a definition, or two joined, asks for. A number that is absent
// is Absent, a text is nil.
type Settings struct {
	TTL             int64 // ms
	Expires         int64 // ms
	MaxLength       int64 // messages
	MaxBytes        int64
	DeliveryLimit   int64 // below 0 and not Absent: no limit
	ConsumerTimeout int64 // ms, 0 = none
	MaxAge          int64 // ms
	Overflow        *string
	DeadExchange    *string
	DeadKey         *string
	DeadStrategy    *string
	Alternate       *string // of an exchange
}

// Absent is the number that a definition does not have.
const Absent = -1 << 63

// None are the settings of nothing.
func None() Settings {
	return Settings{
		TTL: Absent, Expires: Absent, MaxLength: Absent, MaxBytes: Absent,
		DeliveryLimit: Absent, ConsumerTimeout: Absent, MaxAge: Absent,
	}
}

// key is one known key of a definition (POL-02).
type key struct {
	// problem names what a bad value is not: `X is not a valid PROBLEM`.
	problem  string
	operator bool // operators may use it
	// read puts a value into the settings; false for a bad one. The key is accepted
	// without effect when there is nothing to put.
	read func(v any, s *Settings) bool
}

var keys = map[string]key{
	"message-ttl":      {"message TTL", true, integer(0, core.TTLMillisMax, func(s *Settings) *int64 { return &s.TTL })},
	"expires":          {"queue expiry", true, integer(1, core.TTLMillisMax, func(s *Settings) *int64 { return &s.Expires })},
	"max-length":       {"maximum length", true, integer(0, maxInteger, func(s *Settings) *int64 { return &s.MaxLength })},
	"max-length-bytes": {"maximum length in bytes", true, integer(0, maxInteger, func(s *Settings) *int64 { return &s.MaxBytes })},
	"delivery-limit":   {"delivery limit", true, integer(-1, maxInteger, func(s *Settings) *int64 { return &s.DeliveryLimit })},
	"consumer-timeout": {"consumer timeout", false, integer(0, core.TTLMillisMax, func(s *Settings) *int64 { return &s.ConsumerTimeout })},
	"max-age":          {"max age", false, readMaxAge},

	"overflow": {"overflow value", false, oneOf(func(s *Settings) **string { return &s.Overflow },
		"drop-head", "reject-publish", "reject-publish-dlx")},
	"dead-letter-strategy": {"dead letter strategy", false, oneOf(func(s *Settings) **string { return &s.DeadStrategy },
		"at-most-once", "at-least-once")},
	"dead-letter-exchange":    {"dead letter exchange name", false, text(func(s *Settings) **string { return &s.DeadExchange })},
	"dead-letter-routing-key": {"dead letter routing key", false, text(func(s *Settings) **string { return &s.DeadKey })},
	"alternate-exchange":      {"alternate exchange name", false, text(func(s *Settings) **string { return &s.Alternate })},

	// Accepted, checked, and without effect here.
	"queue-mode":                    {"queue-mode value", false, oneOf(nil, "default", "lazy")},
	"queue-version":                 {"queue version", false, integer(1, 2, nil)},
	"queue-master-locator":          {"master locator", false, text(nil)},
	"queue-leader-locator":          {"queue leader locator value", false, oneOf(nil, "client-local", "balanced", "random", "least-leaders")},
	"initial-cluster-size":          {"cluster size", false, integer(1, maxInteger, nil)},
	"target-group-size":             {"target group size", true, integer(1, maxInteger, nil)},
	"max-in-memory-length":          {"maximum memory in bytes", true, integer(0, maxInteger, nil)},
	"max-in-memory-bytes":           {"maximum memory in bytes", true, integer(0, maxInteger, nil)},
	"stream-max-segment-size-bytes": {"segment size", false, integer(0, 3_000_000_000, nil)},
	"stream-filter-size-bytes":      {"filter size. Valid range is 16-255", false, integer(16, 255, nil)},
	"ha-mode":                       {"ha-mode value", false, anything},
	"ha-params":                     {"ha-params value", false, anything},
	"ha-sync-mode":                  {"ha-sync-mode value", false, anything},
	"ha-sync-batch-size":            {"ha-sync-batch-size value", false, anything},
	"ha-promote-on-shutdown":        {"ha-promote-on-shutdown value", false, anything},
	"ha-promote-on-failure":         {"ha-promote-on-failure value", false, anything},
	"federation-upstream":           {"federation upstream", false, anything},
	"federation-upstream-set":       {"federation upstream set", false, anything},
	"federation-upstream-pattern":   {"federation upstream pattern", false, anything},
}

const maxInteger = 1<<63 - 1

func anything(any, *Settings) bool { return true }

func integer(low, high int64, field func(*Settings) *int64) func(any, *Settings) bool {
	return func(v any, s *Settings) bool {
		n, ok := number(v)
		if !ok || n < low || n > high {
			return false
		}
		if field != nil {
			*field(s) = n
		}
		return true
	}
}

func text(field func(*Settings) **string) func(any, *Settings) bool {
	return func(v any, s *Settings) bool {
		t, ok := v.(string)
		if ok && field != nil {
			*field(s) = &t
		}
		return ok
	}
}

func oneOf(field func(*Settings) **string, values ...string) func(any, *Settings) bool {
	read := text(field)
	return func(v any, s *Settings) bool {
		t, ok := v.(string)
		return ok && slices.Contains(values, t) && read(v, s)
	}
}

func readMaxAge(v any, s *Settings) bool {
	t, ok := v.(string)
	if !ok {
		return false
	}
	s.MaxAge, ok = core.ParseInterval(t)
	return ok
}

// readSettings checks a definition. A bad value is told before an unknown key.
func readSettings(d map[string]any, operator bool) (Settings, error) {
	s := None()
	if len(d) == 0 {
		return s, errors.New("no policy provided")
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		k, ok := keys[name]
		if !ok || operator && !k.operator {
			unknown = append(unknown, "{"+term(name)+","+term(d[name])+"}")
			continue
		}
		if !k.read(d[name], &s) {
			return s, fmt.Errorf("%s is not a valid %s", term(d[name]), k.problem)
		}
	}
	if unknown != nil {
		return s, fmt.Errorf("[%s] are not recognised policy settings", strings.Join(unknown, ","))
	}
	return s, nil
}

// term is a JSON value as refusals show it.
func term(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "<<" + strconv.Quote(v) + ">>"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case []any:
		list := make([]string, len(v))
		for i, item := range v {
			list[i] = term(item)
		}
		return "[" + strings.Join(list, ",") + "]"
	case map[string]any:
		var list []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, "{"+term(name)+","+term(v[name])+"}")
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return fmt.Sprint(v)
}
