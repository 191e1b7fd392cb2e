// Command specs compares the checklist of the protocol with the tests: it lists
// the rules that no test names.
//
// What lives here: the list itself (amqp091.txt: an id and a short title for each
// rule, in parts), the search for ids in all _test.go files of the module, and a
// test that holds the parts that are declared complete. What may not: tests of
// the broker.
//
// # Laws
//
//   - A rule counts as covered when a test file names its id. "X-01 to X-09"
//     names two ids: a range proves nothing about what stands between.
//   - An id that a test names and the list lacks is a typing error.
//   - A rule that is marked as coming later is listed apart; once a test names it the
//     mark has to go.
package main
