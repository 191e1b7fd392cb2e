// Package queue holds the queues: their order, consumers, limits and expiry.
//
// What lives here: everything a queue decides on its own. What may not:
// protocols, sockets, clocks, locks, goroutines, routing. Time comes in as an
// argument (nanoseconds of a monotonic clock); effects leave through the two
// small interfaces Host (the shard) and Sink (a consumer's connection).
//
// # Ownership
//
// A queue belongs to one shard, and so to one loop, for its whole life. Nobody
// else touches it; other loops send commands to the shard.
//
// # Order
//
// Each message gets a sequence number when it is enqueued. Entries stand in
// fixed-size, pointer-free records in chunks of off-heap memory, found by
// sequence number:
//
//	base                       head            tail
//	 │ chunk 0 │ chunk 1 │ (gone) │ chunk 3 │ chunk 4 │
//	 └ unacked entries stay ┘     └ never delivered ──┘
//
// Delivery moves head forward; an entry that comes back keeps its number and
// waits in a heap that is served before head, so that it returns to its
// original place (BAS-13, BAS-16).
//
// # Streams
//
// A stream is the same chunks, whose entries stay when they are delivered: each
// consumer has a cursor, and the sequence number is the offset. Entries leave at the
// oldest end only, as the rules of retention say. Bodies are in the log; the newest
// stay in memory as well, others while somebody reads them:
//
//	oldest           cursor A          hotFrom     cursor B   tail
//	 │ in the log only │ read back │ ... │ in memory too │ ... │
//
// Nothing is delivered before it is safe in the log, so that no offset that was seen
// means another message after a crash.
//
// # Laws
//
//   - ready + unacked = live entries, always. Nothing of a stream is ever unacked.
//   - Settle is called before anything observes the queue: deliver, expire,
//     trim. Publishing only appends.
//   - A queue that was deleted holds nothing and accepts nothing.
package queue
