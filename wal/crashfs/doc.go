// Package crashfs is a disk in memory that lies the ways real ones do. It stands in
// for wal.Disk and wal.Device in tests.
//
// What lives here: the disk, its faults, the device that carries out a log's calls
// one by one. What may not: anything that knows what a record is; the checkers live
// with the tests.
//
// The liars:
//
//   - It forgets: after Crash, of what was written and not synced each sector of 512
//     bytes holds its old content, its new content, or one in between when it was
//     written more than once. Names that were not made durable by SyncDir come and go.
//   - It takes a sync at its word: a write with FUA (WriteSyncAt) makes its own bytes durable
//     and no others.
//   - It fails: the nth call returns an error of the script's choice, a write after
//     half of its bytes. A sync that fails drops what it should have made durable, and
//     the next one succeeds all the same, as on Linux.
//   - It is full: Create beyond the capacity is ENOSPC.
//   - It lies outright, to test the checkers: the nth sync says yes and does nothing.
//
// Laws: everything is a function of the seed and of the calls. The disk may be used by
// several goroutines, the device by one.
package crashfs
