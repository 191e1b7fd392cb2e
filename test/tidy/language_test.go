package tidy

import (
	"fmt"
	"go/ast"
	"strconv"
	"strings"
	"testing"
)

// unsafePlaces are the files, or folders with a slash at the end, where memory is
// handled by hand, each for a reason that its own comment gives.
var unsafePlaces = []string{"ring/", "frame/view.go", "engine/core/message.go", "engine/queue/entry.go"}

func checkUnsafe(s *source) []fault {
	for _, place := range unsafePlaces {
		if s.path == place || strings.HasSuffix(place, "/") && strings.HasPrefix(s.path, place) {
			return nil
		}
	}
	for _, spec := range s.file.Imports {
		if name, _ := strconv.Unquote(spec.Path.Value); name == "unsafe" {
			return []fault{s.fault(spec.Pos(), "unsafe outside %s", strings.Join(unsafePlaces, ", "))}
		}
	}
	return nil
}

// checkHiddenCode finds what runs or links without anybody calling it.
func checkHiddenCode(s *source) []fault {
	var faults []fault
	for _, spec := range s.file.Imports {
		if name, _ := strconv.Unquote(spec.Path.Value); name == "C" {
			faults = append(faults, s.fault(spec.Pos(), "cgo"))
		}
	}
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			faults = append(faults, s.fault(f.Pos(), "an init function: let the caller say when"))
		}
	}
	names := s.imports()
	ast.Inspect(s.file, func(n ast.Node) bool {
		if pkg, name, ok := imported(names, n); ok && pkg == "runtime" && (name == "SetFinalizer" || name == "AddCleanup") {
			faults = append(faults, s.fault(n.Pos(), "runtime.%s: owners free what they own", name))
		}
		return true
	})
	return faults
}

// clocks are the functions by which a package would look at the time, or wait,
// by itself.
var clocks = map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true,
	"AfterFunc": true, "NewTimer": true, "NewTicker": true, "Tick": true}

// checkClock: time and randomness come into the engine as arguments, so that it
// can be simulated; codecs have no use for either. The adaptors are where the
// real clock comes in, and sessions have a loop to ask (their files of the message
// path are held by checkHot).
func checkClock(s *source) []fault {
	bound := strings.HasPrefix(s.path, "engine/") || strings.HasPrefix(s.path, "frame/")
	above := strings.HasPrefix(s.path, "engine/session") || strings.HasPrefix(s.path, "engine/simtest/")
	if !bound || above || s.isTest() || isAdaptor(s.path) {
		return nil
	}
	var faults []fault
	names := s.imports()
	ast.Inspect(s.file, func(n ast.Node) bool {
		if pkg, name, ok := imported(names, n); ok {
			switch {
			case pkg == "time" && clocks[name]:
				faults = append(faults, s.fault(n.Pos(), "time.%s: take the time as an argument", name))
			case (pkg == "math/rand" || pkg == "math/rand/v2") && !strings.HasPrefix(name, "New"):
				faults = append(faults, s.fault(n.Pos(), "%s.%s: take the random source as an argument", pkg, name))
			}
		}
		return true
	})
	return faults
}

func TestUnsafe(t *testing.T)     { checkTree(t, checkUnsafe) }
func TestHiddenCode(t *testing.T) { checkTree(t, checkHiddenCode) }
func TestClock(t *testing.T)      { checkTree(t, checkClock) }

func TestUnsafeSelf(t *testing.T) {
	const text = "package p\nimport \"unsafe\"\nvar _ unsafe.Pointer\n"
	checkSamples(t, checkUnsafe, []sample{
		{"ring", "ring/slab.go", text, ""},
		{"below ring", "ring/uapi/ring.go", text, ""},
		{"a folder that starts like ring", "ringlike/a.go", text, "unsafe outside"},
		{"message.go", "engine/core/message.go", text, ""},
		{"its neighbour", "engine/core/value.go", text, "unsafe outside"},
		{"renamed", "engine/a.go", "package p\nimport u \"unsafe\"\nvar _ u.Pointer\n", "unsafe outside"},
		{"a test", "wal/a_test.go", text, "unsafe outside"},
		{"none", "wal/a.go", "package p\n", ""},
	})
}

func TestHiddenCodeSelf(t *testing.T) {
	checkSamples(t, checkHiddenCode, []sample{
		{"cgo", "p/a.go", "package p\nimport \"C\"\n", "cgo"},
		{"init", "p/a.go", "package p\nfunc init() {}\n", "init function"},
		{"a method called init", "p/a.go", "package p\ntype t int\nfunc (t) init() {}\n", ""},
		{"finalizer", "p/a.go", "package p\nimport \"runtime\"\nfunc f() { runtime.SetFinalizer(nil, nil) }\n", "SetFinalizer"},
		{"renamed", "p/a.go", "package p\nimport r \"runtime\"\nvar f = r.SetFinalizer\n", "SetFinalizer"},
		{"other runtime", "p/a.go", "package p\nimport \"runtime\"\nvar f = runtime.GC\n", ""},
	})
}

func TestClockSelf(t *testing.T) {
	use := func(pkg, expr string) string {
		return fmt.Sprintf("package p\nimport %q\nvar x = %s\n", pkg, expr)
	}
	checkSamples(t, checkClock, []sample{
		{"now", "engine/a.go", use("time", "time.Now()"), "time.Now"},
		{"timer", "engine/queue/a.go", use("time", "time.NewTimer(1)"), "time.NewTimer"},
		{"rand", "engine/queue/a.go", use("math/rand/v2", "rand.IntN(3)"), "rand/v2.IntN"},
		{"seeded rand", "engine/queue/a.go", use("math/rand/v2", "rand.New(nil)"), ""},
		{"duration", "engine/a.go", use("time", "time.Second"), ""},
		{"session", "engine/session10/a.go", use("time", "time.Now()"), ""},
		{"adaptor", "engine/shard_ring.go", use("time", "time.Now()"), ""},
		{"outside", "admin/a.go", use("time", "time.Now()"), ""},
		{"test", "engine/a_test.go", use("time", "time.Now()"), ""},
	})
}
