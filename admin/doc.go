// Package admin is the broker's HTTP listener: health, the management API in RabbitMQ's
// JSON shapes, and metrics in the Prometheus text format.
//
// What lives here: one listener, a router over escaped paths, basic authentication, and the
// JSON and text writers. What may not: anything of a protocol session, of the event loops or
// of the log. The package states what it needs in the interface Source, and the command wires
// the engine to it, so that admin can be read, tested and replaced without a broker.
//
// The laws:
//
//   - admin reads snapshots and asks for effects (close this connection). It owns no broker
//     state and holds no lock that a loop could wait for.
//   - Every name in a path is one percent-encoded segment. Routing is done on the escaped path:
//     a name may hold '/', ' ', '>', ':' or '%', and a decoded path could not be split again.
//   - Whatever is answered under /api is JSON, refusals included: tools parse it, and an HTML
//     or plain text page in its place reads as a broken broker.
//   - Every wait has a limit: see the constants in server.go. A peer that dribbles its request
//     loses its connection and costs at most one goroutine until then.
package admin
