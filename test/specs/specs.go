package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed amqp091.txt
var checklist string

// part is a section of the checklist.
type part struct {
	name     string
	complete bool // an uncovered line is a fault
	rules    []rule
}

// rule is one line of the checklist.
type rule struct {
	id, title string
	later     string   // why no test can name it yet; "" is a rule that holds now
	files     []string // that name it
}

// laterMark stands between the title of a rule and the reason why it comes later.
const laterMark = "; later:"

// result is the checklist with what was found.
type result struct {
	parts   []part
	unknown map[string][]string // ids that tests name and the list lacks -> files
}

var idForm = regexp.MustCompile(`^[A-Z0-9]+-[0-9]{2,3}[a-z]?$`)

// parseList reads a checklist.
func parseList(text string) ([]part, error) {
	var parts []part
	seen := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case first == "part":
			name, complete := strings.CutSuffix(rest, " complete")
			parts = append(parts, part{name: name, complete: complete})
		case !idForm.MatchString(first) || rest == "":
			return nil, fmt.Errorf("line %d is neither a part nor an id with a title: %s", n+1, line)
		case len(parts) == 0:
			return nil, fmt.Errorf("line %d stands before the first part", n+1)
		case seen[first]:
			return nil, fmt.Errorf("line %d has %s again", n+1, first)
		default:
			seen[first] = true
			title, later, marked := strings.Cut(rest, laterMark)
			later = strings.TrimSpace(later)
			if title == "" || marked && later == "" {
				return nil, fmt.Errorf("line %d lacks its title or the reason why it comes later: %s", n+1, line)
			}
			p := &parts[len(parts)-1]
			p.rules = append(p.rules, rule{id: first, title: title, later: later})
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("the list is empty")
	}
	return parts, nil
}

// matcher finds ids with the prefixes of the list, also as they stand in names of
// tests: BAS-08 and BAS_08.
func matcher(parts []part) *regexp.Regexp {
	prefixes := map[string]bool{}
	for _, p := range parts {
		for _, r := range p.rules {
			prefixes[r.id[:strings.IndexByte(r.id, '-')]] = true
		}
	}
	list := slices.Sorted(maps.Keys(prefixes))
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9-]|Test)(` + strings.Join(list, "|") + `)[-_]([0-9]{2,3}[a-z]?)(?:[^0-9A-Za-z]|$)`)
}

// idsIn lists the ids that a text names.
func idsIn(ids *regexp.Regexp, text string) []string {
	var found []string
	for at := 0; at < len(text); {
		m := ids.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		id := text[at+m[2]:at+m[3]] + "-" + text[at+m[4]:at+m[5]]
		if !slices.Contains(found, id) {
			found = append(found, id)
		}
		at += m[5] // the next may begin with the character behind this one
	}
	return found
}

// survey holds the checklist against the tests below root.
func survey(root string) (*result, error) {
	parts, err := parseList(checklist)
	if err != nil {
		return nil, err
	}
	r := &result{parts: parts, unknown: map[string][]string{}}
	known := map[string]*rule{}
	for i := range parts {
		for j := range parts[i].rules {
			known[parts[i].rules[j].id] = &parts[i].rules[j]
		}
	}
	ids, files := matcher(parts), 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") || filepath.Base(filepath.Dir(path)) == "specs":
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		for _, id := range idsIn(ids, string(text)) {
			if k := known[id]; k != nil {
				k.files = append(k.files, name)
			} else {
				r.unknown[id] = append(r.unknown[id], name)
			}
		}
		return nil
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("no tests below %s", root)
	}
	return r, err
}

// faults are what the test fails on.
func (r *result) faults() []string {
	var faults []string
	for _, p := range r.parts {
		for _, rule := range p.rules {
			switch {
			case rule.later == "" && p.complete && len(rule.files) == 0:
				faults = append(faults, fmt.Sprintf("part %s is declared complete and no test names %s (%s)", p.name, rule.id, rule.title))
			case rule.later != "" && len(rule.files) > 0:
				// A mark that outlives its reason would hide the next test that is lost.
				faults = append(faults, fmt.Sprintf("%s is marked as coming later, and %s names it", rule.id, rule.files[0]))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.unknown)) {
		faults = append(faults, fmt.Sprintf("%s names %s, which is not in the list", r.unknown[id][0], id))
	}
	return faults
}

// print writes the uncovered lines, part by part, then those that come later, and
// the sums.
func (r *result) print(w io.Writer, all bool) {
	covered, total := 0, 0
	var later []rule
	for _, p := range r.parts {
		n, due := 0, 0
		for _, rule := range p.rules {
			if rule.later != "" {
				later = append(later, rule)
				continue
			}
			due++
			if len(rule.files) > 0 {
				n++
			}
		}
		covered, total = covered+n, total+due
		if n < due || all {
			fmt.Fprintf(w, "%s: %d of %d covered\n", p.name, n, due)
			p.print(w, all)
		}
	}
	if len(later) > 0 {
		fmt.Fprintf(w, "%d lines come later and are not counted\n", len(later))
	}
	for _, rule := range later {
		fmt.Fprintf(w, "  %-8s %s: %s\n", rule.id, rule.title, rule.later)
	}
	fmt.Fprintf(w, "%d of %d lines are named by a test\n", covered, total)
	for _, f := range r.faults() {
		fmt.Fprintln(w, "fault:", f)
	}
}

// print writes the rules of a part that are due: the uncovered ones, or all.
func (p part) print(w io.Writer, all bool) {
	for _, rule := range p.rules {
		switch {
		case rule.later != "":
		case len(rule.files) == 0:
			fmt.Fprintf(w, "  %-8s %s\n", rule.id, rule.title)
		case all:
			fmt.Fprintf(w, "  %-8s %s: %s\n", rule.id, rule.title, strings.Join(rule.files, " "))
		}
	}
}
