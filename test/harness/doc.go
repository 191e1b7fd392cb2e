// Package harness starts the real broker binary for the black-box suites under test/.
//
// What lives here: building cmd/ringmq once per test process, starting it on free ports, waiting for its
// ready line, stopping it by process id, keeping its output, reading its counters over HTTP, and running one test
// body on both I/O backends. What may not: any import of the broker's own packages (black box means black box), and
// any knowledge of AMQP beyond an address.
//
// Laws:
//   - A broker that ends while a test uses it fails that test, with the tail of its output.
//   - Nothing is killed by name: only process ids started here.
//   - The io_uring backend is skipped only when the kernel itself refuses the ring that the broker needs (asked here
//     independently of the broker), so that a broken backend cannot skip its own tests.
//
// Environment:
//
//	RINGMQ_TEST_ADDR   host:port of a broker that already runs: nothing is built or started, tests that need to
//	                   start their own process are skipped. A RabbitMQ there is recognised, and tests of behaviour where
//	                   ringmq deliberately differs from it are skipped.
//	RINGMQ_TEST_HTTP   host:port of that broker's HTTP listener, if it has one.
//	RINGMQ_TEST_BIN    path of a broker binary to use instead of building one.
//	RINGMQ_TEST_IO     "uring" or "epoll": only that backend.
//	RINGMQ_TEST_RACE   non-empty: build the broker with the race detector.
package harness
