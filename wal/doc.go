// Package wal is a segmented append-only log: what makes a message survive its broker. One
// log belongs to one loop.
//
// What lives here: records, positions, group commit, recovery, checkpoints, space. What may
// not: any protocol, any socket, any clock, anything that knows what a record means.
// Nothing of ours is imported. There are no goroutines but those of Threads, the device
// for loops whose ring cannot write files.
//
// # How it works
//
//	Append ─copy→ open group ─Flush→ one write+sync in flight ─done→ Committed(position)
//	              (gathers while the write before it is in flight)
//
//	segment 1  [header|group|group|....]  sealed ── dead, covered by a checkpoint ──▶ reused
//	segment 2  [header|group|group|g....]  current
//	segment 3  [zeros]                     ready
//	segment 4  [zeros]                     the ballast: for all but messages on a full disk
//
// The bytes are described in docs/wal-format.md. A record has a position: segment and
// offset, growing for ever. Everything that a record promises hangs on one comparison: a
// record at p may be answered for when p < Committed().
//
// # What the owner does
//
//   - Open with a Recoverer: it gets the last checkpoint's state, the messages that may
//     still be live, and the events and acknowledgements since, in the order of the log.
//   - Append and AppendAck on the way, Flush once at the end of a turn. Answers wait for
//     Events.Committed.
//   - Retain each place where a message is live, Release it when it is done.
//   - Checkpoint when CheckpointDue says so: BeginCheckpoint, the pieces over as many turns
//     as it likes, EndCheckpoint. Only then dead segments come back. Applying an event or an
//     acknowledgement twice must change nothing, because a checkpoint takes time.
//   - Compact on a timer: sparse segments are copied out, piece by piece, at its pace.
//   - RetrySpace on a timer while Space says that the disk is full; Sync on a timer with
//     SyncInterval.
//   - Fetch bodies that left memory, many at a time.
//
// Messages name their places by queue and sequence number, so that a copy made by
// compaction is the same message, and one record serves many queues. Acknowledgements are
// ranges of a queue's sequence numbers. Queue ids are never used again.
//
// # Laws
//
//   - Nothing is committed before the sync that covers it has succeeded (SyncAlways). After
//     a failed write or sync nothing is committed any more, and nothing is tried again.
//   - At most one write is in flight, and it begins on a block that was never written
//     before. A sector that was synced is not written again, with one exception that has
//     its reason where it stands (resumeTail).
//   - A segment's first write starts after everything before is durable, in every mode. So
//     damage before the last segment is damage, and only the last one can have a torn tail.
//   - What was synced and cannot be read is reported, with file and offset, and never
//     deleted or overwritten. What was never synced is cut, and never comes back.
//   - A file is renamed or deleted only after a durable record says that its segment is
//     dead. Ids of segments are never used again.
//   - No space is told before anything is promised: a segment is prepared, named and durable
//     before a record may go there.
//   - Append, AppendAck, Flush, Retain and Release allocate nothing.
package wal
