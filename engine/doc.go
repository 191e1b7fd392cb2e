// Package engine is the broker: what a message broker means, without any
// protocol. Vhosts, exchanges, bindings and queues; shards that own queues;
// the hand-off between loops.
//
// What lives here: the catalog (what exists), routing, and the shards (what
// happens). What may not: codecs, sessions, sockets, clocks. The adaptor file
// shard_ring.go alone knows package ring.
//
// # Who owns what
//
//	catalog   vhosts, exchanges, bindings, queue names. Changed under the
//	          vhost's lock, read through immutable snapshots without one.
//	shard     one per loop: its queues, its mailboxes, its route cache.
//	          Nothing of it is touched from another loop.
//
// # One way in
//
// Every change to a queue is a method of Shard, called on the loop of whoever
// asks. If the queue belongs to that shard it happens at once, else it becomes
// a Command in the mailbox to the owner, which calls the same function. The
// commands of one loop to one queue therefore take effect in the order in
// which they were given.
//
// # What operators ask for
//
// Policies, vhosts, limits, parameters and definitions from a file come by the
// functions of the files admin*.go, on goroutines that are no loop's. A change is
// recorded, seen by every declare from then on, and carried to the queues that
// exist batch by batch, each on its loop. No loop waits for any of it.
package engine
