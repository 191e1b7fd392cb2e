package main

import "sort"

// How a setting is spelled where it is set; "" where it cannot be set there.

func flagName(s *setting) string { return "--" + s.name }

func envName(s *setting) string { return s.env }

func keyName(s *setting) string {
	if !s.key {
		return ""
	}
	return s.name
}

// suggest names the setting closest to a mistyped name (without dashes or prefix), spelled for
// the place where it was mistyped; or where to look when none is close.
func suggest(name string, list []setting, spell func(*setting) string) string {
	type candidate struct {
		text     string
		distance int
	}
	var near []candidate
	for i := range list {
		s := &list[i]
		text := spell(s)
		if d := editDistance(name, s.name); text != "" && d <= 2 && d < len(s.name) {
			near = append(near, candidate{text, d})
		}
	}
	if len(near) == 0 {
		return `; "ringmq serve --help" lists them`
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].distance < near[j].distance })
	return "; did you mean " + near[0].text + "?"
}

// editDistance counts the insertions, deletions and replacements of bytes between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
