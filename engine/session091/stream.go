package session091

import (
	"bytes"
	"strconv"

	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

// The names of what streams know (STR-02, STR-03).
const (
	argStreamOffset     = "x-stream-offset"
	argStreamFilter     = "x-stream-filter"
	argStreamUnfiltered = "x-stream-match-unfiltered"
	headerFilterValue   = "x-stream-filter-value"
	// filtersMax bounds the values that one consumer asks for.
	filtersMax = 256
)

// isStream reports a stream.
func isStream(q *queue.Queue) bool { return q.Settings.Type == queue.Stream }

// notOfStreams refuses a method that streams do not have (STR-03).
func (ch *channel) notOfStreams(q *queue.Queue, what string, id amqp091.MethodID) {
	ch.c.fail(amqp091.NotImplemented, id, what+" not supported by stream queues "+ch.nameOf(q))
}

// nameOf is how texts name a queue.
func (ch *channel) nameOf(q *queue.Queue) string {
	return "queue '" + q.Name + "' in vhost '" + ch.c.vhost.Name + "'"
}

// streamCursor is where a consumer of a stream begins, and what it wants. It answers
// and returns false if a stream does not serve such a consumer (STR-01).
func (ch *channel) streamCursor(m *amqp091.BasicConsume, q *queue.Queue) (*queue.Cursor, bool) {
	id := amqp091.MethodBasicConsume
	if m.NoAck {
		ch.notOfStreams(q, "automatic acknowledgement", id)
		return nil, false
	}
	if ch.prefetch == 0 {
		ch.fail(amqp091.PreconditionFailed, id, "consumer prefetch count is not set for '"+ch.nameOf(q)+"'")
		return nil, false
	}
	k := &queue.Cursor{}
	if problem := ch.startOf(m.Arguments, &k.Start); problem != "" {
		ch.badArgument(argStreamOffset, q, problem)
		return nil, false
	}
	name, problem := filterOf(m.Arguments, k)
	if problem != "" {
		ch.badArgument(name, q, problem)
		return nil, false
	}
	return k, true
}

// badArgument refuses an argument of basic.consume.
func (ch *channel) badArgument(name string, q *queue.Queue, problem string) {
	ch.fail(amqp091.PreconditionFailed, amqp091.MethodBasicConsume, "invalid arg '"+name+"' for "+ch.nameOf(q)+": "+problem)
}

// startOf reads x-stream-offset and returns what is wrong with it, empty for
// nothing.
func (ch *channel) startOf(args amqp091.Table, at *queue.Start) (problem string) {
	v, ok := args.Lookup(argStreamOffset)
	if !ok {
		return ""
	}
	if n, ok := v.Int(); ok {
		*at = queue.Start{Kind: queue.StartOffset, Value: n}
		return ""
	}
	if t, ok := v.Time(); ok {
		*at = queue.Start{Kind: queue.StartTime, Value: int64(min(t, 1<<53)) * 1000}
		return ""
	}
	text, ok := v.Str()
	if !ok {
		return "{unacceptable_type," + v.TypeName() + "}"
	}
	switch string(text) {
	case "first":
		at.Kind = queue.StartFirst
	case "last":
		at.Kind = queue.StartLast
	case "next":
		at.Kind = queue.StartNext
	default:
		ms, ok := core.ParseInterval(string(text))
		if !ok {
			return "{invalid_offset," + strconv.Quote(string(text[:min(len(text), 64)])) + "}"
		}
		*at = queue.Start{Kind: queue.StartTime, Value: ch.c.shard.WallMillis() - ms}
	}
	return ""
}

// filterOf reads x-stream-filter and x-stream-match-unfiltered and returns what is
// wrong with one of them.
func filterOf(args amqp091.Table, k *queue.Cursor) (name, problem string) {
	f := &streamFilter{}
	if v, ok := args.Lookup(argStreamUnfiltered); ok {
		if f.unfiltered, ok = v.Bool(); !ok {
			return argStreamUnfiltered, "{unacceptable_type," + v.TypeName() + "}"
		}
	}
	v, ok := args.Lookup(argStreamFilter)
	if !ok {
		return "", ""
	}
	if v.Tag != 'A' {
		if !f.add(v) {
			return argStreamFilter, "{unacceptable_type," + v.TypeName() + "}"
		}
	} else {
		for item := range v.Array() {
			if !f.add(item) {
				return argStreamFilter, "{unacceptable_type," + item.TypeName() + "}"
			}
			if len(f.values) > filtersMax {
				return argStreamFilter, "{too_many_values," + strconv.Itoa(filtersMax) + "}"
			}
		}
	}
	k.Match = f.match
	return "", ""
}

// streamFilter is what one consumer wants of a stream. It does not change once the
// consumer is subscribed.
type streamFilter struct {
	values     [][]byte
	unfiltered bool // messages without a value as well
}

func (f *streamFilter) add(v amqp091.Value) bool {
	text, ok := v.Str()
	if ok {
		f.values = append(f.values, bytes.Clone(text))
	}
	return ok
}

// match reports whether the consumer gets a message. It is called on the loop of the
// stream.
func (f *streamFilter) match(m *core.Message) bool {
	var p amqp091.Properties
	if p.Decode(m.Head()[headFixed:]) != nil {
		return f.unfiltered
	}
	v, ok := p.Headers.Lookup(headerFilterValue)
	value, isText := v.Str()
	if !ok || !isText {
		return f.unfiltered
	}
	for _, want := range f.values {
		if bytes.Equal(want, value) {
			return true
		}
	}
	return false
}
