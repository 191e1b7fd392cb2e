// Package definitions reads and writes files of definitions in RabbitMQ's JSON form: virtual
// hosts, policies, limits, parameters, exchanges, queues and bindings.
//
// What lives here: the reader, which names the place of a mistake; the check against a broker;
// the import and the export. What may not: anything that opens a file or a socket, and any
// knowledge of how arguments are encoded, which comes in as a Codec.
//
// The laws:
//
//   - A file is imported whole or not at all: Parse checks its form, Check all that it asks of
//     the broker, and only then Apply changes something.
//   - A mistake is one line that begins with the place of it, as in
//     queues[3].arguments.x-max-length.
//   - Import adds (DEF-03): what exists stays as it is. Only settings of virtual hosts,
//     policies, limits and parameters are replaced. Importing twice changes nothing.
//   - Keys that are not known are passed over: files come from brokers of all versions.
package definitions
