package exchange

import (
	"sort"
	"strings"

	"ringmq/engine/core"
)

// headerRule is what the bindings with one argument list ask of a message.
type headerRule struct {
	any      bool
	criteria []criterion // sorted by name; never empty once filed
	home     int         // the criterion under which an `all` rule is filed
	dests    destSet
}

// criterion wants a header to have a value or, with present, to be there.
type criterion struct {
	name    string
	value   core.Value
	present bool
}

// compileHeaders reads binding arguments. REQUIRES: ValidateBinding accepted
// them; an x-match that it would refuse counts as all.
func compileHeaders(args core.Args) *headerRule {
	rule := &headerRule{}
	mode := matchAll
	if v, ok := args[matchArg]; ok {
		mode = v.Str
	}
	rule.any = mode == matchAny || mode == matchAnyWithX
	withX := mode == matchAllWithX || mode == matchAnyWithX
	for name, value := range args {
		if name == matchArg || !withX && strings.HasPrefix(name, "x-") {
			continue
		}
		rule.criteria = append(rule.criteria, criterion{name, value, value.Kind == core.KindVoid})
	}
	sort.Slice(rule.criteria, func(i, j int) bool { return rule.criteria[i].name < rule.criteria[j].name })
	return rule
}
