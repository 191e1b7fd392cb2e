package policy

import "maps"

// Join is what the policy of an object and that of the operator ask for together:
// the operator's, and of numbers that both have the lower one. Either may be nil.
func Join(user, operator *Policy) Settings {
	s := None()
	if user != nil {
		s = user.Settings
	}
	if operator == nil {
		return s
	}
	o := &operator.Settings
	s.TTL = lower(s.TTL, o.TTL)
	s.Expires = lower(s.Expires, o.Expires)
	s.MaxLength = lower(s.MaxLength, o.MaxLength)
	s.MaxBytes = lower(s.MaxBytes, o.MaxBytes)
	s.DeliveryLimit = LowerLimit(s.DeliveryLimit, o.DeliveryLimit)
	return s
}

// lower is the lower of two numbers, of those that are there.
func lower(a, b int64) int64 {
	if a == Absent || b != Absent && b < a {
		return b
	}
	return a
}

// LowerLimit is the lower of two delivery limits, of which those below 0 are none.
func LowerLimit(a, b int64) int64 {
	switch {
	case a == Absent:
		return b
	case b == Absent:
		return a
	case a < 0 || b < 0:
		return max(a, b)
	}
	return min(a, b)
}

// Effective is the definition that Join amounts to, for listings. Either may be nil;
// the values are those of the definitions.
func Effective(user, operator *Policy) map[string]any {
	out := map[string]any{}
	if user != nil {
		maps.Copy(out, user.Definition)
	}
	if operator == nil {
		return out
	}
	for name, v := range operator.Definition {
		if old, ok := out[name]; ok {
			if a, aok := number(old); aok {
				if b, bok := number(v); bok && !operatorWins(name, a, b) {
					continue
				}
			}
		}
		out[name] = v
	}
	return out
}

func operatorWins(name string, user, operator int64) bool {
	if name == "delivery-limit" {
		return LowerLimit(user, operator) == operator
	}
	return operator < user
}
