//go:build interop

package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pythonDir installs what the folder's requirements.txt names into a new virtual environment.
func pythonDir(t *testing.T, folder string) string {
	t.Helper()
	dir := t.TempDir()
	install(t, dir, "python3", "-m", "venv", dir)
	install(t, dir, filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		"-r", abs(t, filepath.Join(folder, "requirements.txt")))
	return dir
}

// python is a script of ours in an environment. -B: it must not leave compiled files in the tree.
func python(t *testing.T, dir, script string) program {
	t.Helper()
	return program{dir, []string{filepath.Join(dir, "bin", "python"), "-B", abs(t, script)}}
}

// nodeDir installs what package.json names and copies our scripts to it: they must stand beside node_modules for
// their require to be found.
func nodeDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyInto(t, dir, "node")
	install(t, dir, "npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock")
	return dir
}

// java fetches what the folder's pom.xml names and compiles the folder's classes.
func java(t *testing.T, folder, main string) program {
	t.Helper()
	dir := t.TempDir()
	install(t, dir, "mvn", "--quiet", "--batch-mode", "-f", abs(t, filepath.Join(folder, "pom.xml")),
		"dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(dir, "lib"))
	classes, path := filepath.Join(dir, "classes"), filepath.Join(dir, "lib", "*")
	sources, err := filepath.Glob(abs(t, filepath.Join(folder, "*.java")))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources in %s: %v", folder, err)
	}
	build(t, dir, "javac", append([]string{"-d", classes, "-cp", path}, sources...)...)
	// The first compiler alone: programs that run for seconds are not worth the second.
	return program{dir, []string{"java", "-XX:TieredStopAtLevel=1", "-cp",
		strings.Join([]string{classes, path}, string(os.PathListSeparator)), main}}
}

// rust fetches what Cargo.lock names, apart from the build so that a registry out of reach is told from a broken
// source, and builds our program with it.
func rust(t *testing.T) program {
	t.Helper()
	dir := t.TempDir()
	manifest := abs(t, "rust/Cargo.toml")
	install(t, dir, "cargo", "fetch", "--quiet", "--locked", "--manifest-path", manifest)
	build(t, dir, "cargo", "build", "--quiet", "--locked", "--offline", "--target-dir", dir,
		"--manifest-path", manifest)
	return program{dir, []string{filepath.Join(dir, "debug", "interop")}}
}

// copyInto copies the files of a folder of this package into another folder.
func copyInto(t *testing.T, dir, folder string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f.Name()), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
