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
// Laws:
//   - What a loop owns is touched on its thread only. The exceptions are named: Post, Wake, Stats,
//     Slab.Stats, the two ends of a Mailbox, and the methods of Group.
//   - Completions are copied out before handlers run; no handler runs inside another, and none inside a
//     method that it calls.
//   - Work per turn is bounded: completions, reads per connection, bytes per send.
//   - A loop blocks only after a turn that found nothing and began with the sleeping word set.
//   - One send per connection at a time, one per connection and turn; what is written meanwhile gathers.
//   - A connection's bytes, tokens and descriptor are released when the kernel refers to none of them,
//     each exactly once. Closed is called exactly once.
package ring
