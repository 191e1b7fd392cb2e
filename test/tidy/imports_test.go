package tidy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// importRule says what a package may import of ours, and what else it must not,
// by itself or through packages of ours. Patterns are paths below the module;
// "a/..." means a and everything below.
type importRule struct {
	packages []string
	ours     []string
	never    []string
}

// importRules is the table of who may know whom, most special first. Imports
// point down: cmd, admin and bench, sessions, engine, frame and wal, ring.
var importRules = []importRule{
	{[]string{"ring/..."}, []string{"ring/..."}, []string{"net/http"}},
	{[]string{"frame/amqp091/gen", "frame/amqp10/gen"}, []string{"frame/..."}, nil},
	{[]string{"frame/..."}, []string{"frame/..."}, []string{"net/...", "os/...", "time", "sync", "reflect"}},
	{[]string{"wal/..."}, []string{"ring", "wal/..."}, []string{"net/..."}},
	{[]string{"engine/core"}, []string{"frame"}, []string{"net/...", "os/...", "math/rand/..."}},
	{[]string{"engine/queue"}, []string{"engine/core", "engine/selector", "frame"},
		[]string{"net", "net/http", "math/rand/..."}},
	{[]string{"engine/exchange", "engine/selector", "engine/txn", "engine/policy", "engine/auth"},
		[]string{"engine/core", "frame"}, []string{"net", "net/http", "math/rand/..."}},
	{[]string{"engine/session091"}, join(protocolNeutral, "engine", "frame/amqp091", "frame/convert", "ring"),
		[]string{"net/http"}},
	{[]string{"engine/session10"}, join(protocolNeutral, "engine", "frame/amqp10", "frame/convert", "ring"),
		[]string{"net/http"}},
	{[]string{"engine/simtest/..."}, []string{"engine/...", "frame/...", "wal/...", "ring/..."}, []string{"net/http"}},
	{[]string{"engine/defs"}, join(protocolNeutral, "engine"), []string{"net/http"}},
	{[]string{"engine"}, join(protocolNeutral, "ring", "wal"), []string{"net/http"}},
	{[]string{"admin/..."}, []string{"admin/...", "engine", "engine/core", "engine/auth", "engine/policy", "engine/defs"}, nil},
	{[]string{"cmd/..."}, []string{"..."}, nil},
	{[]string{"bench/..."}, []string{"bench/...", "frame/..."}, nil},
	{[]string{"test/..."}, []string{"test/...", "frame/..."}, nil},
}

// protocolNeutral are the parts of the engine that know no protocol, and the
// views that they read messages through.
var protocolNeutral = []string{"engine/core", "engine/exchange", "engine/queue", "engine/selector",
	"engine/txn", "engine/policy", "engine/auth", "frame"}

// testHelpers may be imported by any package's own tests: the liars that stand in
// for kernel and disk.
var testHelpers = []string{"ring/sim", "wal/crashfs"}

// adaptors are the only files of the engine's root that may see the package
// below: with a fake in their place the engine runs in a simulator.
var adaptors = map[string]string{"ring": "engine/shard_ring.go", "wal": "engine/shard_wal.go"}

func isAdaptor(file string) bool {
	for _, adaptor := range adaptors {
		if file == adaptor {
			return true
		}
	}
	return false
}

func join(list []string, more ...string) []string { return slices.Concat(list, more) }

// listed is what `go list` says about one package.
type listed struct {
	ImportPath   string
	Name         string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if below, ok := strings.CutSuffix(p, "..."); ok {
			return strings.HasPrefix(name+"/", below)
		}
		return p == name
	})
}

// checkImports holds all packages of a module against the table.
func checkImports(module string, packages []listed) []fault {
	byName := map[string]listed{}
	for _, p := range packages {
		byName[below(module, p.ImportPath)] = p
	}
	var faults []fault
	for name, p := range byName {
		at := slices.IndexFunc(importRules, func(r importRule) bool { return matches(r.packages, name) })
		if at < 0 {
			faults = append(faults, fault{name, 0, "no import rule for this package: give it one"})
			continue
		}
		rule := importRules[at]
		for _, imported := range p.Imports {
			if ours := below(module, imported); ours != "" && !matches(rule.ours, ours) {
				faults = append(faults, fault{name, 0, "must not import " + ours})
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			ours := below(module, imported)
			if ours != "" && ours != name && !matches(rule.ours, ours) && !matches(testHelpers, ours) {
				faults = append(faults, fault{name, 0, "its tests must not import " + ours})
			}
		}
		faults = append(faults, checkNever(module, name, rule.never, byName)...)
	}
	return faults
}

// checkNever follows a package's imports of ours down to those of others.
func checkNever(module, name string, never []string, byName map[string]listed) []fault {
	var faults []fault
	reached := map[string]bool{name: true}
	for todo := []string{name}; len(todo) > 0; todo = todo[1:] {
		for _, imported := range byName[todo[0]].Imports {
			ours := below(module, imported)
			if ours == "" && matches(never, imported) {
				faults = append(faults, fault{name, 0, fmt.Sprintf("must not reach %s (imported by %s)", imported, todo[0])})
			}
			if ours != "" && !reached[ours] {
				reached[ours] = true
				todo = append(todo, ours)
			}
		}
	}
	return faults
}

// below returns the path of a package below the module, "" for others' packages.
func below(module, imported string) string {
	name, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return ""
	}
	return name
}

// checkAdaptors keeps ring and wal out of the engine's root but for one file each.
func checkAdaptors(module string) func(*source) []fault {
	return func(s *source) []fault {
		var faults []fault
		if path.Dir(s.path) != "engine" || s.isTest() {
			return nil
		}
		for _, spec := range s.file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if only, ok := adaptors[below(module, imported)]; ok && s.path != only {
				faults = append(faults, s.fault(spec.Pos(), "imports %s, which only %s may", imported, only))
			}
		}
		return faults
	}
}

func goList(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = moduleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return out
}

func moduleName(t *testing.T) string { return strings.TrimSpace(string(goList(t, "-m"))) }

func TestImports(t *testing.T) {
	module := moduleName(t)
	var packages []listed
	decoder := json.NewDecoder(strings.NewReader(string(
		goList(t, "-e", "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./..."))))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 2 {
		t.Fatalf("go list knows %d packages: the list is broken", len(packages))
	}
	report(t, checkImports(module, packages))
}

func TestAdaptors(t *testing.T) { checkTree(t, checkAdaptors(moduleName(t))) }

func TestImportsSelf(t *testing.T) {
	pkg := func(name string, imports ...string) listed { return listed{ImportPath: "m/" + name, Imports: imports} }
	core := pkg("engine/core", "strings")
	for _, c := range []struct {
		name     string
		packages []listed
		want     string
	}{
		{"down", []listed{pkg("engine/exchange", "m/engine/core"), core}, ""},
		{"up", []listed{pkg("ring", "m/frame")}, "must not import frame"},
		{"sideways", []listed{pkg("engine/exchange", "m/engine/queue")}, "must not import engine/queue"},
		{"the allowed way sideways", []listed{pkg("engine/queue", "m/engine/selector")}, ""},
		{"the other session", []listed{pkg("engine/session10", "m/engine/session091")}, "must not import engine/session091"},
		{"the other codec", []listed{pkg("engine/session10", "m/frame/amqp091")}, "must not import frame/amqp091"},
		{"a codec in the engine", []listed{pkg("engine", "m/frame/amqp091")}, "must not import frame/amqp091"},
		{"a session in admin", []listed{pkg("admin", "m/engine/session091")}, "must not import engine/session091"},
		{"black box", []listed{{ImportPath: "m/test/crash", TestImports: []string{"m/engine"}}}, "its tests must not import engine"},
		{"black box, outside tests", []listed{{ImportPath: "m/test/crash", XTestImports: []string{"m/wal"}}}, "its tests must not import wal"},
		{"crafted bytes", []listed{{ImportPath: "m/test/crash", TestImports: []string{"m/frame/amqp091"}}}, ""},
		{"bench", []listed{pkg("bench", "m/engine/core")}, "must not import engine/core"},
		{"fakes in tests", []listed{{ImportPath: "m/engine", TestImports: []string{"m/ring/sim"}}}, ""},
		{"fakes elsewhere", []listed{pkg("engine", "m/ring/sim")}, "must not import ring/sim"},
		{"clock in a codec", []listed{pkg("frame/amqp10", "time")}, "must not reach time"},
		{"files in a codec", []listed{pkg("frame", "os/exec")}, "must not reach os/exec"},
		{"generator", []listed{pkg("frame/amqp091/gen", "os")}, ""},
		{"by a detour", []listed{pkg("engine/exchange", "m/engine/core"), pkg("engine/core", "math/rand/v2")}, "must not reach math/rand/v2 (imported by engine/core)"},
		{"net/netip is no net", []listed{pkg("engine/auth", "net/netip")}, ""},
		{"cmd", []listed{pkg("cmd/ringmq", "m/wal", "m/engine/session10", "net/http")}, ""},
		{"unknown", []listed{pkg("util")}, "no import rule"},
		{"a name that starts alike", []listed{pkg("ringlike")}, "no import rule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := checkImports("m", c.packages)
			if c.name == "by a detour" {
				// Both packages break the rule; the one above is the point here.
				faults = slices.DeleteFunc(faults, func(f fault) bool { return f.path == "engine/core" })
			}
			requireFault(t, faults, c.want)
		})
	}
}

func TestAdaptorsSelf(t *testing.T) {
	const text = "package engine\nimport \"m/ring\"\nvar _ ring.Loop\n"
	checkSamples(t, checkAdaptors("m"), []sample{
		{"adaptor", "engine/shard_ring.go", text, ""},
		{"elsewhere", "engine/route.go", text, "only engine/shard_ring.go may"},
		{"wal", "engine/shard_ring.go", "package engine\nimport \"m/wal\"\n", "only engine/shard_wal.go may"},
		{"test", "engine/a_test.go", text, ""},
		{"session", "engine/session091/conn.go", text, ""},
	})
}
