package tidy

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// hotMark stands before the package clause of each file of the message path.
var hotMark = regexp.MustCompile(`(?m)^//ringmq:hot$`)

func (s *source) hot() bool {
	return hotMark.MatchString(s.text[:s.fset.Position(s.file.Package).Offset])
}

// hotForbidden maps an import to the names that the message path must not use;
// nil means all.
var hotForbidden = map[string]map[string]bool{
	"fmt":      nil,
	"log":      nil,
	"log/slog": nil,
	"time":     clocks,
	"sync":     {"Mutex": true, "RWMutex": true, "Cond": true, "Map": true},
}

// checkHot holds a marked file against the rules of the message path. A misplaced
// mark is a fault as well: it would protect nothing.
func checkHot(s *source) []fault {
	if !s.hot() {
		return checkMarkPlace(s)
	}
	names := s.imports()
	var faults []fault
	ast.Inspect(s.file, func(n ast.Node) bool {
		if text := hotFault(names, n); text != "" {
			faults = append(faults, s.fault(n.Pos(), "%s on the message path", text))
		}
		return true
	})
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			faults = append(faults, checkHotErrors(s, names, f.Body)...)
		}
	}
	return faults
}

func hotFault(names map[string]string, n ast.Node) string {
	switch e := n.(type) {
	case *ast.DeferStmt:
		return "defer"
	case *ast.FuncLit:
		return "a function literal"
	case *ast.CompositeLit:
		if _, ok := e.Type.(*ast.MapType); ok {
			return "a map literal"
		}
	case *ast.CallExpr:
		// A logger in a field is a log call as well.
		if sel, ok := e.Fun.(*ast.SelectorExpr); ok && isLogger(sel.X) {
			if _, _, direct := imported(names, sel); !direct {
				return "a log call"
			}
		}
	case *ast.SelectorExpr:
		pkg, name, ok := imported(names, e)
		if !ok {
			return ""
		}
		if forbidden, listed := hotForbidden[pkg]; listed && (forbidden == nil || forbidden[name]) {
			return pkg + "." + name
		}
	}
	return ""
}

func isLogger(x ast.Expr) bool {
	var name string
	switch e := x.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	return name == "log" || name == "logger" || name == "slog"
}

// checkHotErrors: errors of the message path are package-level variables.
func checkHotErrors(s *source, names map[string]string, body *ast.BlockStmt) []fault {
	var faults []fault
	ast.Inspect(body, func(n ast.Node) bool {
		if pkg, name, ok := imported(names, n); ok && pkg == "errors" && name == "New" {
			faults = append(faults, s.fault(n.Pos(), "errors.New on the message path: make it a package-level variable"))
		}
		return true
	})
	return faults
}

func checkMarkPlace(s *source) []fault {
	var faults []fault
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(strings.TrimLeft(c.Text, "/ "), "ringmq:hot") {
				faults = append(faults, s.fault(c.Pos(), "a mark that has no effect: it goes on a line of its own before the package clause"))
			}
		}
	}
	return faults
}

func TestHot(t *testing.T) {
	marked := 0
	for _, s := range tree(t) {
		report(t, checkHot(s))
		if s.hot() {
			marked++
		}
	}
	if marked == 0 {
		t.Error("no file is marked: the mark has changed its form")
	}
}

func TestHotSelf(t *testing.T) {
	const head = "//ringmq:hot\n\npackage p\n"
	var samples []sample
	for _, c := range []struct{ code, want string }{
		{"import \"fmt\"\nfunc f() { fmt.Println() }", "fmt.Println"},
		{"import p \"fmt\"\nfunc f() { p.Println() }", "fmt.Println"},
		{"func f() { defer g() }", "defer"},
		{"func f() { g(func() {}) }", "function literal"},
		{"var f = func() {}", "function literal"},
		{"func f() { g(map[int]int{}) }", "map literal"},
		{"func f() { g([]int{}) }", ""},
		{"import \"time\"\nfunc f() { time.Now() }", "time.Now"},
		{"import \"time\"\nconst d = time.Second", ""},
		{"import \"sync\"\ntype t struct { mu sync.Mutex }", "sync.Mutex"},
		{"import \"sync\"\ntype t struct { mu *sync.RWMutex }", "sync.RWMutex"},
		{"import \"sync\"\nvar p sync.Pool", ""},
		{"import \"log\"\nfunc f() { log.Print() }", "log.Print"},
		{"import \"log/slog\"\nfunc f() { slog.Info(\"\") }", "log/slog.Info"},
		{"func (s *t) f() { s.log.Warn(\"\") }", "a log call"},
		{"func f() { s.dialog.Warn() }", ""},
		{"import \"errors\"\nfunc f() { g(errors.New(\"\")) }", "errors.New"},
		{"import \"errors\"\nvar errFull = errors.New(\"full\")", ""},
	} {
		samples = append(samples, sample{c.code, "p/a.go", head + c.code + "\n", c.want})
	}
	const breaks = "package p\nfunc f() { defer g() }\n"
	samples = append(samples,
		sample{"not marked", "p/a.go", breaks, ""},
		sample{"behind build lines", "p/a.go", "//go:build linux\n\n//ringmq:hot\n\n" + breaks, "defer"},
		sample{"generated", "p/a.go", generatedMark + "//ringmq:hot\n\n" + breaks, "defer"},
		sample{"with a space", "p/a.go", "// ringmq:hot\n\n" + breaks, "no effect"},
		sample{"behind the package clause", "p/a.go", "package p\n\n//ringmq:hot\n\nvar x int\n", "no effect"},
	)
	checkSamples(t, checkHot, samples)
}
