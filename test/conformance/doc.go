// Package conformance proves, from outside and on both I/O backends, that the broker speaks AMQP 0-9-1 as RabbitMQ's
// clients expect it.
//
// What lives here: tests only. Each names the line of the specification file that it proves (CON-06, QUE-08, ...)
// in its own name or in the name of its subtest; ids that begin with "F" and a number are field cases, faults that people met
// in brokers of this kind. What may not: any import of the broker's packages. The raw client in wire_test.go
// has its own encoder on purpose, so that a mistake of the broker's codec cannot cancel itself out.
//
// Laws:
//   - Every wait is for an event, bounded by waitMax; a test that proves the absence of something first makes
//     the broker answer a later command on the same path.
//   - Names of queues and exchanges come from unique(), because the broker is shared by all tests of the process.
//   - What RabbitMQ 3.10 does differently on purpose is marked with SkipRabbitMQ, so that everything else can be checked
//     against a RabbitMQ by RINGMQ_TEST_ADDR.
package conformance
