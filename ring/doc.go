// Package ring is the event loop: one locked thread per core with its connections, timers, mailboxes
// and memory, over io_uring or, where that is refused, epoll.
//
// What lives here: descriptors, bytes, buffers, time, threads. What may not: any protocol, anything
// with a meaning. The package imports golang.org/x/sys/unix, the standard library and its own uapi.
//
//	           ┌────────────── one Loop (one thread, one core) ──────────────┐
//	sockets ─▶ Backend.Poll ─▶ Handler.Data ─▶ App.Turn ─▶ App.BeforeSleep ─▶ flush ─▶ sockets
//	           │  (uring | epoll | sim)          ▲   │                        │
//	           │   timers, posted functions ─────┘   └─▶ Mailbox ─▶ other loops, Wake
//	           └─────────────────────────────────────────────────────────────┘
//
// Memory: received bytes lie in buffers of the loop and are lent to Handler.Data for the call. Output
// lies in 32 KiB chunks (bufpool.go) or is shared by reference (Conn.WriteShared); a connection without
// output holds no memory. Messages lie in the Slab. All of it is outside the Go heap, because the
// kernel is given addresses that the garbage collector cannot see.
//
// Files: over io_uring a loop writes and syncs files without blocking (Loop.WriteFile); over epoll other
// threads do it and report by Loop.Post.
//
// Laws:
//   - What a loop owns is touched on its thread only. The exceptions are named: Post, Wake, Stats,
//     Slab.Stats, the two ends of a Mailbox, and the methods of Group.
//   - Completions are copied out before handlers run; no handler runs inside another, and none inside a
//     method that it calls.
//   - Work per turn is bounded: completions, reads per connection, bytes per send.
//   - A loop blocks only after a turn that found nothing and began with the sleeping word set.
//   - One send per connection at a time, one per connection and turn; what is written meanwhile gathers.
//   - A loop that has file operations in flight, its own or others' (Loop.HoldSpin), does not spin, and it
//     does not end before its own have come back. Their results are told before a turn's input.
//   - A connection's bytes, tokens and descriptor are released when the kernel refers to none of them,
//     each exactly once. Closed is called exactly once.
package ring
