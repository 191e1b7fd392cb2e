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
// # Laws
//
//   - ready + unacked = live entries, always.
//   - Settle is called before anything observes the queue: deliver, expire,
//     trim. Publishing only appends.
//   - A queue that was deleted holds nothing and accepts nothing.
package queue
