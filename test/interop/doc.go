// Package interop runs other languages' clients, and applications built on them, against a freshly started broker.
//
// What lives here, behind the build tag interop:
//   - The list of scenarios (scenarios_test.go): what a client can see of the protocol's core and of each extension.
//     The same scenario under the same name is in each language's folder: python (pika and py-amqp), node (amqplib),
//     java, rust (lapin).
//   - Applications that run to their end with checked results: celery (a worker with all that its users do to it),
//     spring (listener containers, confirms, returns, retries), and the topologies that MassTransit
//     (node/masstransit.js) and Symfony Messenger (python/symfony_run.py) declare.
//   - The tests that install a client into a scratch folder and run its program on both I/O backends.
//
// What may not: knowledge of the broker beyond its address. What a scenario needs done to the broker (an alarm) it
// asks of the test by a line `ask WHAT`, and waits for a line.
//
// Laws:
//   - A client that cannot be installed is reported as not run (a skipped test). A client that runs and fails fails
//     the test, and so does a scenario that is neither passed, nor failed, nor excused by what the client cannot do.
//   - Versions are pinned in the language's own file: requirements.txt, package.json, pom.xml, Cargo.lock.
//   - The programs use nothing that is not common to all brokers of the protocol, so that they can be held against
//     another one (RINGMQ_TEST_ADDR) when in doubt about who is wrong.
//   - Nothing that a program started outlives it, and nothing is left in the tree.
package interop
