// Package core is the leaf that every part of the engine shares: the message
// in its stored form, argument values, refusals, and limits.
//
// What lives here: plain data and its laws, without any protocol. What may
// not: sockets, clocks, goroutines, locks, codecs. It imports nothing of the
// product, so that exchanges, queues and sessions can all use it without
// import cycles.
//
// # A message in memory
//
// A message is one block of off-heap memory, allocated by the loop that read
// it and freed by whichever loop drops the last reference:
//
//	┌────────────┬──────────────────┬───────────────┬────────────┬──────┐
//	│ header 56B │ exchange shortstr│ key shortstr  │ protocol   │ body │
//	│ (Message)  │ len+bytes        │ len+bytes     │ header     │      │
//	└────────────┴──────────────────┴───────────────┴────────────┴──────┘
//
// Exchange and key stand in the length-prefixed form in which AMQP 0-9-1 puts
// them on the wire, next to each other, so that a delivery copies both at
// once; the protocol header is the payload of the content header frame.
//
// # Laws
//
//   - A message is immutable once its body is complete.
//   - Nothing that is counted in messages holds a Go heap pointer.
//   - Every reference is released exactly once, on any loop, with the arena of
//     the loop that runs.
package core
