package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"testing"
)

// checkPackageDoc wants a doc.go with a package comment in each package. A code
// generator may carry its comment in any of its files: it is one page long itself.
func checkPackageDoc(dir string, sources []*source) []fault {
	for _, s := range sources {
		if s.isTest() || s.file.Doc == nil {
			continue
		}
		if path.Base(s.path) == "doc.go" || path.Base(dir) == "gen" {
			return nil
		}
	}
	return []fault{{dir, 0, "no doc.go with a package comment"}}
}

// checkExportedDocs wants a comment on everything exported: functions, methods of
// exported types, types, and constants and variables, where one comment may speak
// for a parenthesised group.
func checkExportedDocs(s *source) []fault {
	if s.isTest() || s.generated {
		return nil
	}
	var faults []fault
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && receiverExported(d) {
				faults = append(faults, s.fault(d.Pos(), "%s has no comment", d.Name.Name))
			}
		case *ast.GenDecl:
			faults = append(faults, checkSpecs(s, d)...)
		}
	}
	return faults
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}

func checkSpecs(s *source, d *ast.GenDecl) []fault {
	var faults []fault
	for _, spec := range d.Specs {
		var names []*ast.Ident
		documented := d.Doc != nil
		switch sp := spec.(type) {
		case *ast.TypeSpec:
			names = []*ast.Ident{sp.Name}
			// A comment on a group of types says nothing about each.
			documented = sp.Doc != nil || d.Doc != nil && !d.Lparen.IsValid()
		case *ast.ValueSpec:
			names = sp.Names
			documented = documented || sp.Doc != nil || sp.Comment != nil
		}
		at := slices.IndexFunc(names, (*ast.Ident).IsExported)
		if at >= 0 && !documented {
			faults = append(faults, s.fault(spec.Pos(), "%s has no comment", names[at].Name))
		}
	}
	return faults
}

func TestPackageDoc(t *testing.T) {
	byFolder := map[string][]*source{}
	for _, s := range tree(t) {
		byFolder[path.Dir(s.path)] = append(byFolder[path.Dir(s.path)], s)
	}
	for dir, sources := range byFolder {
		report(t, checkPackageDoc(dir, sources))
	}
}

func TestExportedDocs(t *testing.T) { checkTree(t, checkExportedDocs) }

func TestPackageDocSelf(t *testing.T) {
	const commented, bare = "// Package p is there.\npackage p\n", "package p\n"
	for _, c := range []struct{ name, dir, file, text, want string }{
		{"doc.go", "p", "doc.go", commented, ""},
		{"doc.go without a comment", "p", "doc.go", bare, "no doc.go"},
		{"comment elsewhere", "p", "p.go", commented, "no doc.go"},
		{"comment in a test", "p", "p_test.go", commented, "no doc.go"},
		{"generator", "p/gen", "main.go", commented, ""},
		{"generator without a comment", "p/gen", "main.go", bare, "no doc.go"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := parseSource(c.dir+"/"+c.file, c.text)
			if err != nil {
				t.Fatal(err)
			}
			requireFault(t, checkPackageDoc(c.dir, []*source{s}), c.want)
		})
	}
}

func TestExportedDocsSelf(t *testing.T) {
	var samples []sample
	for i, c := range []struct{ code, want string }{
		{"func F() {}", "F has no comment"},
		{"// F is.\nfunc F() {}", ""},
		{"func f() {}", ""},
		{"type T int", "T has no comment"},
		{"// T is.\ntype T int\nfunc (T) M() {}", "M has no comment"},
		{"// T is.\ntype T[V any] struct{}\nfunc (*T[V]) M() {}", "M has no comment"},
		{"type t int\nfunc (t) M() {}", ""},
		{"// Types are.\ntype (\nT int\n)", "T has no comment"},
		{"const C = 1", "C has no comment"},
		{"// Group.\nconst (\nC = 1\nD = 2\n)", ""},
		{"const (\nC = 1 // one\n// D is.\nD = 2\n)", ""},
		{"const (\nc, D = 1, 2\n)", "D has no comment"},
		{"var V int", "V has no comment"},
	} {
		samples = append(samples, sample{fmt.Sprint(i), "p/a.go", "package p\n" + c.code + "\n", c.want})
	}
	samples = append(samples,
		sample{"test file", "p/a_test.go", "package p\nfunc F() {}\n", ""},
		sample{"generated", "p/a.go", generatedMark + "package p\nfunc F() {}\n", ""})
	checkSamples(t, checkExportedDocs, samples)
}
