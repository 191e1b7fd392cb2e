// Package uapi is the io_uring part of the Linux kernel's user ABI: the layouts, the numbers, the
// helpers that fill a submission entry, and a ring that is set up, mapped and entered by hand.
//
// What lives here: nothing but the ABI. What may not: policy, connections, buffers with an owner,
// anything that decides. The package imports golang.org/x/sys/unix and the standard library only.
//
// The picture of one ring's memory:
//
//	offset 0            SQ head, tail, flags | CQ head, tail | CQEs (16 B each)      one mapping
//	offset 0x10000000   SQEs (64 B each)                                            one mapping
//	own mapping         provided-buffer ring: entries of 16 B, tail in bytes 14-15 of entry 0
//
// Laws:
//   - A Ring belongs to one thread (SINGLE_ISSUER): only the thread that made it may prepare or enter.
//   - A submission entry is zeroed before it is filled; no field of an earlier use may survive.
//   - Addresses are integers the garbage collector cannot see: the kernel is given mapped memory only.
//   - Completions are copied out (Reap) before anybody acts on them, so nothing re-enters the ring.
package uapi
