package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The last letter of each word stands in brackets so that this file, which is
// checked as well, does not break the rule itself.
var (
	neverLands = regexp.MustCompile(`\bFIXM[E]\b`)
	openEnd    = regexp.MustCompile(`\bTOD[O]\b`)
	withIssue  = regexp.MustCompile(`\bTOD[O]\b[ (:]*#[0-9]+`)

	// machinePlaces are folders and hosts of whoever built the tree.
	machinePlaces = []*regexp.Regexp{
		regexp.MustCompile(`(^|[^\w.*/-])/wor[k]/`),
		regexp.MustCompile(`(^|[^\w.*/-])/(hom[e]|User[s])/[a-z]`),
		regexp.MustCompile(`(^|[^\w.*/-])/roo[t]/`),
		regexp.MustCompile(`/tmp/(c[t]|bash_job[s]|go-buil[d])\b`),
		regexp.MustCompile(`(?i)\b(prox[y]|su[m])\.golang\.or[g]\b`),
		regexp.MustCompile(`(?i)\bGO(PROXY|SUMDB|NOSUMDB|PRIVATE)[ ]*=`),
		regexp.MustCompile(`(?i)\b(artifactor[y]|jfro[g]|nexus-repositor[y]|pypi\.or[g]|registry\.npmj[s])\b`),
	}
)

func checkLeftovers(name, text string) []fault {
	return checkLines(name, text, func(line string) string {
		switch {
		case neverLands.MatchString(line):
			return "a leftover that must not land"
		case len(openEnd.FindAllString(line, -1)) > len(withIssue.FindAllString(line, -1)):
			return "an open end without an issue number (#123)"
		}
		return ""
	})
}

func checkMachinePlaces(name, text string) []fault {
	return checkLines(name, text, func(line string) string {
		line = strings.ReplaceAll(line, "/hom"+"e/you/", "~/") // the reader's, in examples
		for _, place := range machinePlaces {
			if place.MatchString(line) {
				return fmt.Sprintf("names a machine's own place: %s", strings.TrimSpace(place.FindString(line)))
			}
		}
		return ""
	})
}

func checkLines(name, text string, check func(line string) string) []fault {
	if !utf8.ValidString(text) {
		return nil // an image, an archive, a fuzz corpus
	}
	var faults []fault
	for i, line := range strings.Split(text, "\n") {
		if found := check(line); found != "" {
			faults = append(faults, fault{name, i + 1, found})
		}
	}
	return faults
}

func TestTrackedTexts(t *testing.T) {
	root := moduleRoot(t)
	files := trackedFiles(t)
	if len(files) < 2 {
		t.Fatalf("%d files: the list is broken", len(files))
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted and not yet committed, or a link to nowhere
		}
		report(t, checkLeftovers(name, string(text)))
		report(t, checkMachinePlaces(name, string(text)))
	}
}

func TestLeftoversSelf(t *testing.T) {
	mark, open := "FIX"+"ME", "TO"+"DO"
	for _, c := range []struct{ text, want string }{
		{"// " + mark + ": broken", "must not land"},
		{"# " + mark, "must not land"},
		{"// " + open + ": later", "without an issue"},
		{"// " + open + "(somebody): later", "without an issue"},
		{"// " + open + "(#12): later", ""},
		{"// " + open + " #12 later", ""},
		{"// " + open + " #12, " + open + " and this", "without an issue"},
		{"// METHO" + "DS and PREFIX" + mark, ""},
		{"\xff\xfe" + mark, ""},
	} {
		t.Run(c.text, func(t *testing.T) { requireFault(t, checkLeftovers("a", c.text), c.want) })
	}
}

func TestMachinePlacesSelf(t *testing.T) {
	const found = "machine's own place"
	for _, c := range []struct{ text, want string }{
		{"see /wor" + "k/shared/a.md", found},
		{"\"/wor" + "k/main\"", found},
		{"/tmp/c" + "t/common.md", found},
		{"cd /hom" + "e/joe/src", found},
		{"data=\"/hom" + "e/you/data\"", ""},
		{"/roo" + "t/.cache", found},
		{"https://prox" + "y.golang.or" + "g", found},
		{"export GOPROXY" + "=direct", found},
		{"https://artifactor" + "y.example.com/go", found},
		{"bench/wor" + "k/queue.go", ""},
		{"a work/life balance", ""},
		{"/var/lib/ringmq, /tmp/data, ./data", ""},
		{"GET /home", ""},
		{"github.com/rabbitmq/amqp091-go", ""},
	} {
		t.Run(c.text, func(t *testing.T) { requireFault(t, checkMachinePlaces("a", c.text), c.want) })
	}
}
