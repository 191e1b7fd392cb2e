// Package session091 is AMQP 0-9-1, with RabbitMQ's extensions, on top of the
// engine: connections, channels, and every method.
//
// What lives here: the protocol's states, its error codes and texts, its
// framing of what the engine decides. What may not: queues, routing, storage.
//
// # A connection's way
//
//	bytes ── parse ──┬─ method ── channel ── engine (same loop or mailbox)
//	                 ├─ header ── channel ── message allocated
//	                 └─ body   ── copied once into the message, also in parts
//
// Frames are parsed in place in the receive buffer. Only a frame that is cut
// off by the end of a buffer is gathered in carry; bodies never are: their
// parts go straight into the message.
//
// # Waiting
//
// A command whose queue lives on another loop stops the connection's parsing
// until the answer is there; what the client pipelined meanwhile is kept in
// stash. Publishes and acknowledgements never wait.
//
// # Laws
//
//   - A connection, its channels and its consumers belong to one loop.
//   - Whatever a client sends, the answer is the protocol's error at the right
//     scope; nothing is lost, leaked or disturbed elsewhere.
//   - After a connection ended, nothing of it is written or allocated any
//     more, and everything it held went back to its queues.
package session091
