// Package sim is a third backend for package ring, for tests: no sockets, no threads, no clock.
//
// A World holds loops whose I/O is in memory. The test is everything outside: it dials connections,
// writes and reads as the peer, steps the loops and moves the clock. All that a real kernel leaves open
// is decided by one seeded source, and differently each time it is asked: which loop goes first, in
// which order events arrive, how long a completion takes, how much of what was sent or asked for is
// taken at once, where a read ends. The same seed and the same calls give the same run, byte for byte
// and callback for callback.
//
// What lives here: the fake backend, its pipes and peers, the world that steps them. What may not:
// anything that a protocol knows of, and anything that a product binary imports.
//
// One connection, and who holds which bytes:
//
//	Peer.Write -> link.inbox -> Port.Received          (cut at random, late by a few polls)
//	Conn.Write -> output queue -> Backend.Send -> link.flight -> Port.Sent, Peer.Read
//
// Laws:
//   - One goroutine calls everything: the world, its peers, and through them the app.
//   - Bytes in flight are copied when the completion is reported, not when the send is begun, as the
//     kernel may: output memory that is reused too early shows as damaged bytes at the peer.
//   - Nothing waits. A Poll that would sleep returns; World.Advance is the only thing that moves time.
package sim
