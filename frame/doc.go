// Package frame is the root of the codecs: bytes in, views out; values in,
// bytes appended.
//
// What lives here: one subpackage per wire protocol (amqp091, amqp10) and the
// conversion between their messages (convert). The root holds only what several
// of them really share.
//
// What may not live here: input or output, goroutines, locks, clocks, logging,
// reflection, and any import of another package of this module.
//
// Laws of every codec:
//
//  1. A decoder returns views into its input. Whoever keeps a view keeps the
//     buffer; whoever needs the bytes after the buffer went back copies them.
//  2. Nothing a peer sends panics, reads outside the input, recurses without a
//     bound, or sizes an allocation by a length that was not checked against
//     the bytes that are really there.
//  3. What was decoded and is appended again gives the same bytes.
//  4. Files that start with the hot mark allocate nothing; tests beside the
//     code prove it.
package frame
