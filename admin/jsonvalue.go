package admin

import (
	"fmt"
	"math"
	"time"
)

// jsonDepthMax bounds the nesting of what a client sent about itself. Field tables may nest as
// deep as a frame allows, and the encoder recurses.
const jsonDepthMax = 16

// jsonValue turns a value of a client's field table into one that encoding/json accepts. One
// client that sends a NaN or an odd type about itself must not turn the listing of all
// connections into an error.
func jsonValue(v any, depth int) any {
	switch v := v.(type) {
	case nil, bool, string, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return v
	case float32:
		return jsonValue(float64(v), depth)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
		return v
	case []byte:
		return string(v)
	case time.Time:
		return v.Unix() // RabbitMQ shows timestamps as seconds
	case map[string]any:
		if depth == jsonDepthMax {
			return "..."
		}
		return jsonObject(v, depth+1)
	case []any:
		if depth == jsonDepthMax {
			return "..."
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonValue(v[i], depth+1)
		}
		return out
	default:
		return fmt.Sprint(v)
	}
}

// jsonObject is jsonValue for a table. It is never nil: clients index into the object.
func jsonObject(m map[string]any, depth int) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = jsonValue(v, depth)
	}
	return out
}
