package ring

import "sync/atomic"

// LoopStats is a loop's figures at the moment of asking.
type LoopStats struct {
	Turns           int64 // iterations
	Syscalls        int64 // calls into the kernel by the backend (enters, waits, sends, receives)
	Sleeps          int64 // times it was about to block
	Spins           int64 // times it watched for events before it blocked
	Bells           int64 // times somebody woke it
	Connections     int64 // open or closing
	Accepted        int64 // connections taken so far
	Refused         int64 // connections turned away by the application or by the kernel's limits
	BytesIn         int64 // received
	BytesOut        int64 // taken by the kernel
	OutChunksLive   int64 // output chunks of 32 KiB in use
	RecvBuffersLive int64 // receive buffers kept beyond a turn: 0, handlers only borrow them
	RecvStarved     int64 // times the kernel found no receive buffer
	FileWrites      int64 // calls of WriteFile with bytes
	FileSyncs       int64 // calls of WriteFile with sync
	SharedLive      int64 // WriteShared tokens not yet released
	LongestTurnNS   int64 // since the start, its system calls included, waiting excluded
	BusyNS          int64 // time not spent waiting
}

// loopStats is written by the loop and read by anybody.
type loopStats struct {
	turns, syscalls, sleeps, connections, accepted, refused ownerCounter
	bytesIn, bytesOut, recvBuffersLive, recvStarved         ownerCounter
	sharedLive, longestTurnNS, busyNS                       ownerCounter
	spins, fileWrites, fileSyncs                            ownerCounter

	_     cacheLinePad
	bells atomic.Int64 // written by the ringers
}

// ran accounts for time spent working.
func (s *loopStats) ran(ns int64) {
	s.busyNS.add(ns)
	if longest := s.longestTurnNS.value; ns > longest {
		s.longestTurnNS.add(ns - longest)
	}
}

// Stats returns the loop's figures. Any goroutine; they are read one after the other.
func (l *Loop) Stats() LoopStats {
	s := &l.stats
	return LoopStats{
		Turns: s.turns.get(), Syscalls: s.syscalls.get(), Sleeps: s.sleeps.get(), Spins: s.spins.get(),
		Bells:       s.bells.Load(),
		Connections: s.connections.get(), Accepted: s.accepted.get(), Refused: s.refused.get(),
		BytesIn: s.bytesIn.get(), BytesOut: s.bytesOut.get(),
		OutChunksLive: l.pool.live.get(), RecvBuffersLive: s.recvBuffersLive.get(),
		FileWrites: s.fileWrites.get(), FileSyncs: s.fileSyncs.get(), RecvStarved: s.recvStarved.get(), SharedLive: s.sharedLive.get(),
		LongestTurnNS: s.longestTurnNS.get(), BusyNS: s.busyNS.get(),
	}
}
