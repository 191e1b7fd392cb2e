package session091

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ringmq/engine/core"
	"ringmq/frame/amqp091"
)

// JSONArgs turns arguments into JSON's types and back, for files of definitions. A whole
// number is a long-long-int, any other a double, a string a long string.
type JSONArgs struct{}

// jsonDepthMax bounds the nesting of arguments in a file.
const jsonDepthMax = 16

// Args reads what encoding/json with UseNumber made of an object. The result is the
// caller's.
func (JSONArgs) Args(object map[string]any) (core.Args, error) {
	t, err := appendJSONTable(nil, object, 0)
	if err != nil {
		return nil, err
	}
	return toArgs(t), nil
}

// JSON is the way back. The result is the caller's and never nil.
func (JSONArgs) JSON(args core.Args) map[string]any {
	out := make(map[string]any, len(args))
	for name, v := range args {
		switch v.Kind {
		case core.KindVoid:
			out[name] = nil
		case core.KindBool:
			out[name] = v.Int != 0
		case core.KindInt, core.KindTime:
			out[name] = v.Int
		case core.KindUint:
			out[name] = uint64(v.Int)
		case core.KindFloat:
			out[name] = finite(v.Float)
		case core.KindOther:
			out[name] = otherJSON(v)
		default:
			out[name] = v.Str
		}
	}
	return out
}

// finite is the number, or its text where JSON has no number for it.
func finite(f float64) any {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return fmt.Sprint(f)
	}
	return f
}

// otherJSON is a table, an array or a decimal: of these the engine keeps the type's name
// and the encoded form.
func otherJSON(v core.Value) any {
	for _, tag := range []byte{'F', 'A', 'D'} {
		if raw := (amqp091.Value{Tag: tag, Data: []byte(v.Str)}); raw.TypeName() == v.Type {
			return valueAny(raw, 0)
		}
	}
	return v.Str
}

func appendJSONTable(dst []byte, object map[string]any, depth int) ([]byte, error) {
	// In order: the encoded form of a nested table is part of a binding's identity.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		v := object[name]
		if len(name) > math.MaxUint8 {
			return nil, fmt.Errorf("a name of %d bytes is too long: %d are allowed", len(name), math.MaxUint8)
		}
		value, err := jsonValue(v, depth)
		if err != nil {
			return nil, err
		}
		dst = amqp091.AppendRaw(dst, name, value)
	}
	return dst, nil
}

// jsonValue encodes one value.
func jsonValue(v any, depth int) (amqp091.Value, error) {
	if depth > jsonDepthMax {
		return amqp091.Value{}, fmt.Errorf("arguments nest deeper than %d", jsonDepthMax)
	}
	switch v := v.(type) {
	case nil:
		return amqp091.Value{Tag: 'V'}, nil
	case bool:
		if v {
			return amqp091.Value{Tag: 't', Data: []byte{1}}, nil
		}
		return amqp091.Value{Tag: 't', Data: []byte{0}}, nil
	case string:
		return amqp091.Value{Tag: 'S', Data: []byte(v)}, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return amqp091.Value{Tag: 'l', Data: binary.BigEndian.AppendUint64(nil, uint64(n))}, nil
		}
		f, err := v.Float64()
		if err != nil {
			return amqp091.Value{}, fmt.Errorf("the number %s is out of range", v)
		}
		return amqp091.Value{Tag: 'd', Data: binary.BigEndian.AppendUint64(nil, math.Float64bits(f))}, nil
	case map[string]any:
		t, err := appendJSONTable(nil, v, depth+1)
		return amqp091.Value{Tag: 'F', Data: t}, err
	case []any:
		var items []byte
		for _, item := range v {
			value, err := jsonValue(item, depth+1)
			if err != nil {
				return amqp091.Value{}, err
			}
			items = value.Append(items)
		}
		return amqp091.Value{Tag: 'A', Data: items}, nil
	}
	return amqp091.Value{}, errors.New("not a value of JSON")
}
