// Package control is what "ringmq ctl" asks of a running broker over its socket, beside the
// listings of package admin: policies, virtual hosts, limits, parameters and definitions.
//
// What lives here: one HTTP handler, POST /api/ringmq/ctl/VERB with a Request in JSON, and
// what each verb does with the engine. What may not: the command line, which is the command's,
// and logins: who can open the socket may do everything.
//
// The laws:
//
//   - A verb is answered when its change is durable and in force on every loop.
//   - An answer is JSON. A refusal has status 400, or 404 when what it names is not there, or
//     503 while the broker starts, and its reason is a line for the operator.
package control
