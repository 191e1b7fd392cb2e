package core

import "strconv"

// intervalUnits are the units of ParseInterval in ms.
var intervalUnits = map[byte]int64{
	'Y': 365 * 86400e3, 'M': 30 * 86400e3, 'D': 86400e3, 'h': 3600e3, 'm': 60e3, 's': 1e3,
}

// intervalMax is the longest interval, ms: about 290 years, which is what fits into
// nanoseconds.
const intervalMax = int64(1<<63-1) / 1e6

// ParseInterval reads a number and one of the units Y, M, D, h, m and s, as streams
// have it, where a year has 365 days and a month 30. It returns ms. It is for any
// goroutine.
func ParseInterval(text string) (ms int64, ok bool) {
	last := len(text) - 1
	if last < 1 || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	unit := intervalUnits[text[last]]
	n, err := strconv.ParseInt(text[:last], 10, 64)
	if unit == 0 || err != nil || n > intervalMax/unit {
		return 0, false
	}
	return n * unit, true
}
