// Command ringmq is the broker and its tools: serve, ctl, bench, version.
//
// What lives here: the options (one struct, whose tags are the flags, the configuration keys,
// the environment names, the defaults and the documentation), the wiring of the event loops,
// the sessions and the HTTP listener, signals, and exit codes. What may not: anything that
// knows what a frame, a queue or a record is.
//
// The laws:
//
//   - Standard output carries the one "ready" line and what a tool was asked to print; the log
//     goes to standard error.
//   - A mistake of the operator is one line that names what to change. Exit codes: 0 for a
//     clean end, 1 for the world's refusal (a busy port, a locked folder), 2 for a wrong
//     command line, environment or configuration file. The verbs of "ringmq ctl" that RabbitMQ
//     has too exit as there: see ctl_remote.go.
package main
