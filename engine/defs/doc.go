// Package defs keeps the durable definitions, vhosts, exchanges, queues and
// bindings, in one transactional file (bbolt). It implements
// engine.Definitions.
//
// What lives here: the file, its transactions, who waits for them, and what a
// failed write means. What may not: what a record says. Package engine makes and
// reads the records (engine/definitions_record.go); here they are bytes.
//
// # The file
//
//	vhosts, exchanges, queues, bindings   a bucket each: quoted names -> JSON
//	policies, limits, parameters          the same; a file may lack them
//	meta                                  counters of the engine, and "format",
//	                                      the version of this layout
//
// Each value begins with the CRC32C of key and record in hexadecimal digits and
// a space; "format" alone is bare.
//
// # Laws
//
//   - Changes become durable in the order of their numbers, and those of one
//     Apply together: all that is pending goes into one transaction.
//   - One goroutine writes. While it waits for the disk the next changes gather,
//     so that a burst of ten thousand declares costs a few commits.
//   - Durable is told only after the commit that covers it has returned.
//   - No room on the disk: those who wait are told, the changes stay pending and
//     are tried again. Any other failure to write is fatal: after a failed sync
//     nobody knows what the disk holds, so it is never tried again.
//   - The package has no clock: who opens the store brings one.
package defs
