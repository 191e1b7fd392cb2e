package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The generated files in the tree must be what the table gives.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	text, err := os.ReadFile("methods.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(string(text))
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := filepath.Glob("../*_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(onDisk) != len(files) {
		t.Errorf("the table gives %d files, the tree has %d", len(files), len(onDisk))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate ./frame/...", name)
		}
		if !bytes.HasPrefix(got, []byte("// Code generated")) {
			t.Errorf("%s does not say that it is generated", name)
		}
	}
}

func TestTableErrorsNameTheirLine(t *testing.T) {
	for line, want := range map[string]string{
		"10.10 connection.start":                  "want id, name and sender",
		"10 connection.start S":                   "bad method id",
		"10.70000 connection.start S":             "bad method id",
		"10.10 start S":                           "bad method name",
		"10.10 connection.start X":                "bad sender",
		"10.10 connection.start S version":        "bad field",
		"10.10 connection.start S a:float":        "unknown type",
		"10.10 connection.start S a:short=1":      "only reserved numbers",
		"10.10 connection.start S reserved:bit=1": "only reserved numbers",
		"1.1 a.b C": "stands twice",
	} {
		_, err := parse("# comment\n1.1 a.b C\n" + line + "\n")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%q: got %v, want line 3 and %q", line, err, want)
		}
	}
}

// More than eight bits in a row take a second octet, and any other field ends a run.
func TestStepsPackBits(t *testing.T) {
	var fields []field
	for range 9 {
		fields = append(fields, field{name: "b", kind: "bit"})
	}
	fields = append(fields, field{name: "o", kind: "octet"}, field{name: "b", kind: "bit"}, field{name: "s", kind: "shortstr"})
	got := steps(fields)
	if len(got) != 1 || got[0].size != 5 || len(got[0].fixed) != 4 || len(got[0].fixed[0].fields) != 8 ||
		got[0].fixed[3].offset != 3 || got[0].variable == nil {
		t.Errorf("%+v", got)
	}
}
