package main

import (
	"slices"
	"strings"
	"testing"
)

// TestSpecs prints the uncovered lines and fails on those of complete parts.
func TestSpecs(t *testing.T) {
	r, err := survey("../..")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.print(&b, false)
	t.Log("\n" + b.String())
	for _, f := range r.faults() {
		t.Error(f)
	}
}

const sampleList = "# comment\npart X one complete\nBAS-08 return\nDLX-03 death\nDLX-03b other death\npart Y two\nA-001 methods\n"

func TestParseList(t *testing.T) {
	parts, err := parseList(sampleList)
	if err != nil || len(parts) != 2 || !parts[0].complete || parts[0].name != "X one" || parts[1].complete || len(parts[0].rules) != 3 {
		t.Errorf("%+v, %v", parts, err)
	}
	for text, want := range map[string]string{
		"": "empty", "BAS-01 x": "before the first part", "part A\nBAS-01": "neither", "part A\nbas-01 x": "neither",
		"part A\nBAS-01 x\nBAS-01 y": "again", "part A\nBAS-01 x; later: ": "lacks", "part A\nBAS-01 ; later: y": "lacks",
	} {
		if _, err := parseList(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestIDsIn(t *testing.T) {
	parts, err := parseList(sampleList)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"func TestBAS_08_Return(t": "BAS-08", "// BAS-08, DLX-03b and A-001": "BAS-08 DLX-03b A-001", `{id: "DLX-03", x}`: "DLX-03",
		"BAS-08 BAS-08": "BAS-08", "BAS-08 DLX-03": "BAS-08 DLX-03", "BAS-09": "BAS-09", "(BAS-08 to BAS-20)": "BAS-08 BAS-20",
		"XBAS-08": "", "BAS-8": "", "BAS-0899": "", "UTF-001": "", "MA-001": "", "DLX-03bc": "", "": "",
	} {
		if got := idsIn(matcher(parts), text); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	parts, err := parseList(sampleList)
	if err != nil {
		t.Fatal(err)
	}
	r := &result{parts: parts, unknown: map[string][]string{"BAS-99": {"a_test.go"}}}
	parts[0].rules[0].files = []string{"b_test.go"}
	got := strings.Join(r.faults(), "\n")
	for _, want := range []string{"names DLX-03 ", "names DLX-03b ", "a_test.go names BAS-99"} {
		if !strings.Contains(got, want) {
			t.Errorf("no fault about %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "BAS-08") || strings.Contains(got, "A-001") {
		t.Errorf("a covered line or one of an open part is a fault:\n%s", got)
	}
	var b strings.Builder
	r.print(&b, true)
	for _, want := range []string{"X one: 1 of 3", "Y two: 0 of 1", "b_test.go", "1 of 4 lines", "fault: "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestLater: a line that comes later is no fault and not counted, until a test names it.
func TestLater(t *testing.T) {
	parts, err := parseList("part X complete\nBAS-08 return; later: no publishers\nDLX-03 death\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := parts[0].rules[0]; got.title != "return" || got.later != "no publishers" {
		t.Errorf("read as %+v", got)
	}
	parts[0].rules[1].files = []string{"b_test.go"}
	r := &result{parts: parts}
	if got := r.faults(); len(got) > 0 {
		t.Errorf("faults %q", got)
	}
	var b strings.Builder
	r.print(&b, false)
	if want := "1 lines come later and are not counted\n  BAS-08   return: no publishers\n1 of 1 lines are named by a test\n"; b.String() != want {
		t.Errorf("printed\n%s, want\n%s", b.String(), want)
	}
	parts[0].rules[0].files = []string{"c_test.go"}
	if got := strings.Join(r.faults(), "\n"); got != "BAS-08 is marked as coming later, and c_test.go names it" {
		t.Errorf("a mark that is out of date: faults %q", got)
	}
}
