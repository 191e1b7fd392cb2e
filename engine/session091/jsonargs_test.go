package session091

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"ringmq/engine/core"
	"ringmq/frame/amqp091"
)

func jsonObject(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Arguments of a file mean what a client's mean, and are written as they were read.
func TestJSONArgs(t *testing.T) {
	text := `{"a":[1,"b",true,null,{"z":-1.5,"c":[]}],"f":2.5,"l":-9223372036854775808,"s":"text","t":false,"v":null}`
	args, err := JSONArgs{}.Args(jsonObject(t, text))
	if err != nil {
		t.Fatal(err)
	}
	table := amqp091.AppendInt64(nil, "l", math.MinInt64)
	table = amqp091.AppendString(table, "s", "text")
	table = amqp091.AppendBool(table, "t", false)
	for name, want := range toArgs(table) {
		if got := args[name]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	back, err := json.Marshal(JSONArgs{}.JSON(args))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(jsonObject(t, string(back)), jsonObject(t, text)) {
		t.Errorf("%s, want %s", back, text)
	}
	// Reading the same twice gives the same bytes: they are part of a binding's identity.
	for range 20 {
		again, err := JSONArgs{}.Args(jsonObject(t, text))
		if err != nil || again.Canonical() != args.Canonical() {
			t.Fatal("the order of a nested table is not fixed", err)
		}
	}
}

func TestJSONArgsOdd(t *testing.T) {
	out := JSONArgs{}.JSON(core.Args{
		"nan": {Kind: core.KindFloat, Float: math.NaN()}, "time": {Kind: core.KindTime, Int: 5},
		"big": {Kind: core.KindUint, Int: -1}, "odd": {Kind: core.KindOther, Type: "none such", Str: "x"},
	})
	want := map[string]any{"nan": "NaN", "time": int64(5), "big": uint64(math.MaxUint64), "odd": "x"}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("%v, want %v", out, want)
	}
	for text, want := range map[string]string{
		`{"n":1e999}`:                            "the number 1e999 is out of range",
		`{"` + strings.Repeat("n", 256) + `":1}`: "too long",
		`{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}`: "nest deeper than 16",
	} {
		if _, err := (JSONArgs{}).Args(jsonObject(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
