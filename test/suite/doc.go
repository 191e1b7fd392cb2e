// Command suite runs the test suite inside the Go client module github.com/rabbitmq/amqp091-go, unchanged, against the
// broker that this tree builds:
//
//	go run ./test/suite [-io uring|epoll] [-run PATTERN] [-v]
//
// What lives here: the network namespace, the copy of the client module and the counting. What may not: any change to
// the client's tests. Eighteen of them (recovery) insist on ports 5672 and 15672 of localhost, which may be taken on the
// machine, so broker and tests run in a network namespace of their own: that needs root and the ip command.
//
// Laws:
//   - The namespace, the broker and the copy are gone when the command ends, also after a failure or an interrupt.
//   - Exit status 0 only when the suite ran and no test failed. One test is left out by name: it drives rabbitmqctl.
package main
