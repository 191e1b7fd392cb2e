// Package tidy holds the house rules of the source tree, as tests.
//
// What lives here: checks of layout and habit that a compiler does not make:
// who may import whom, how long files and functions get, which files may use
// unsafe, what the files of the message path must not do, that everything
// exported is documented, and that nothing of the machine it was written on is
// left in the tree. What may not: checks of behaviour.
//
// # How it is built
//
// A check is a function from one parsed file (or package) to faults. Each is run
// over the tree, and each is run over small sources, held in the test, that break
// the rule or just keep it: a check that finds nothing because it looks at nothing
// fails there.
//
// # Laws
//
//   - Generated files (by the standard mark) are exempt from length and comment
//     rules, never from import, unsafe and message-path rules.
//   - A rule is relaxed here, with its reason, or not at all: there are no
//     comments in the source that switch a check off.
//
// Files that appear later are not inputs that the test cache knows of: run it
// with -count=1 where it has to hold.
package tidy
