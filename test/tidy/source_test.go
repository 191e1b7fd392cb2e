package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fault is one place where a rule is broken. Line 0 means the file as a whole.
type fault struct {
	path string
	line int
	text string
}

func (f fault) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text) }

// source is one parsed Go file. path is relative to the module's root, with slashes.
type source struct {
	path      string
	text      string
	fset      *token.FileSet
	file      *ast.File
	generated bool
}

func parseSource(name, text string) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{name, text, fset, file, ast.IsGenerated(file)}, nil
}

func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

func (s *source) fault(pos token.Pos, format string, args ...any) fault {
	return fault{s.path, s.line(pos), fmt.Sprintf(format, args...)}
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// imports maps the names by which the file knows its imports to their paths.
func (s *source) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(imported)
		if version.MatchString(name) {
			name = path.Base(path.Dir(imported))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported
	}
	return names
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// imported resolves an expression like time.Now to "time" and "Now".
func imported(names map[string]string, n ast.Node) (pkg, name string, ok bool) {
	sel, isSel := n.(*ast.SelectorExpr)
	if !isSel {
		return "", "", false
	}
	id, isID := sel.X.(*ast.Ident)
	if !isID || names[id.Name] == "" {
		return "", "", false
	}
	return names[id.Name], sel.Sel.Name, true
}

// moduleRoot is the nearest folder above with a go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above this package")
		}
		dir = filepath.Dir(dir)
	}
}

// skippedFolder reports folders that the go tool does not look into either.
func skippedFolder(name string) bool {
	return name == "testdata" || name == "vendor" || len(name) > 1 && (name[0] == '.' || name[0] == '_')
}

// tree parses every Go file of the module.
func tree(t *testing.T) []*source {
	t.Helper()
	root := moduleRoot(t)
	var sources []*source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && skippedFolder(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		s, err := parseSource(filepath.ToSlash(name), string(text))
		if err == nil {
			sources = append(sources, s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) == 0 {
		t.Fatal("the module has no Go file: the walk is broken")
	}
	return sources
}

// trackedFiles returns the paths of all files that are, or are about to be, under
// version control; in an unpacked release without history, of all files.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	root := moduleRoot(t)
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	if out, err := list.Output(); err == nil {
		files := strings.Split(strings.Trim(string(out), "\x00"), "\x00")
		slices.Sort(files)
		return slices.Compact(files)
	}
	var files []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(root, p)
			files = append(files, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// report fails the test with each fault on a line.
func report(t *testing.T, faults []fault) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}

// checkTree runs one check over the whole tree.
func checkTree(t *testing.T, check func(*source) []fault) {
	t.Helper()
	for _, s := range tree(t) {
		report(t, check(s))
	}
}

// sample is a source that breaks a rule, with a part of the fault's text, or
// keeps it, with no text.
type sample struct {
	name string
	path string
	text string
	want string
}

// checkSamples proves that a check finds what it is there for and nothing else.
func checkSamples(t *testing.T, check func(*source) []fault, samples []sample) {
	t.Helper()
	for _, c := range samples {
		t.Run(c.name, func(t *testing.T) {
			s, err := parseSource(c.path, c.text)
			if err != nil {
				t.Fatal(err)
			}
			requireFault(t, check(s), c.want)
		})
	}
}

func requireFault(t *testing.T, faults []fault, want string) {
	t.Helper()
	if want == "" {
		if len(faults) != 0 {
			t.Errorf("a source that keeps the rule has faults: %v", faults)
		}
		return
	}
	if len(faults) != 1 || !strings.Contains(faults[0].text, want) {
		t.Errorf("faults %v, want one with %q", faults, want)
	}
}
