// Package amqp091 is the codec of AMQP 0-9-1 in RabbitMQ's dialect.
//
// What lives here: frames, methods, content headers, basic properties, field
// tables, reply codes. What may not: meaning. Whether a method is allowed now,
// whether a name is valid UTF-8, which reply code an error gets, are matters of
// the session.
//
// # A frame
//
//	 0      1         3                7                7+size
//	+------+---------+----------------+----------------+------+
//	| type | channel | size           | payload        | 0xCE |
//	+------+---------+----------------+----------------+------+
//
//	method (1)     class:2 method:2 arguments
//	header (2)     class:2 weight:2 body-size:8 property-flags:2 property-list
//	body (3)       octets of the message
//	heartbeat (8)  nothing
//
// A field table is a 4-octet length and then entries of name (one length octet),
// tag octet and value. Table holds the entries alone, without the length.
//
// # Laws
//
//  1. Decoded strings and tables are views into the input, cut to their own
//     capacity: appending to one never overwrites its neighbour. They live as
//     long as the input buffer does; the caller copies what must live longer.
//  2. Decode consumes exactly its input, or returns ErrTruncated, ErrTrailing,
//     ErrTable or ErrContinuation. Those are values, so errors allocate nothing.
//  3. Tables are validated once, when they are decoded, to a bounded depth and
//     without recursion. Reading an unvalidated Table is safe as well: it ends at
//     the first damaged entry.
//  4. Append writes whole frames and never a wrong length. A short string of
//     more than 255 octets cannot be expressed: it is cut at a character
//     boundary. Only texts may be that long here; the session refuses such names.
//  5. The method structs come from gen/methods.txt, see gen. Reserved fields are
//     skipped whatever they hold, and written as zero.
//
// Everything is a plain function of its arguments, so any loop may call it.
package amqp091

//go:generate go run ./gen
