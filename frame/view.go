package frame

import "unsafe"

// String is a view of b as a string: no copy. It is valid as long as b is, and
// b must not change meanwhile. Use it for look-ups, never for what is kept.
func String(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}
