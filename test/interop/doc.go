// Package interop runs other languages' clients against a freshly started broker.
//
// What lives here: one folder per language with a script of scenarios (publish, confirm,
// consume, ack, nack, return, get, topic and headers routing, exchange bindings, cancel
// notification, prefetch, large bodies, channel errors, transactions, dead letters), and the test, behind the build tag
// interop, that installs the client into a scratch folder and runs the script on both I/O
// backends. What may not: knowledge of the broker beyond its address.
//
// Laws:
//   - A client that cannot be installed is reported as not run (a skipped test). A client that
//     runs and fails fails the test.
//   - Versions of the clients are pinned in the language's own file: requirements.txt,
//     package.json, pom.xml.
//   - The scripts use nothing that is not common to all brokers of the protocol, so that they
//     can be held against another one (RINGMQ_TEST_ADDR) when in doubt about who is wrong.
package interop
