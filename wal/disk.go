package wal

// FileInfo is one entry of a log's folder.
type FileInfo struct {
	Name string
	Size int64 // bytes
}

// Disk is the one folder that a log lives in. The log tells files apart by
// their names only, so that a simulated disk is a map.
//
// All methods may block. The log calls them while it opens, and later only in
// jobs that it hands to Device.Run, with two exceptions that touch no data:
// Create for a record larger than a segment, and Open for a sealed segment.
type Disk interface {
	// List returns the files of the folder in any order.
	List() ([]FileInfo, error)
	// Create makes a new file of size bytes and reserves its space: ENOSPC is
	// reported here and not by a later write. A file of that name is an error.
	Create(name string, size int64) (File, error)
	// Open opens a file for reading and writing.
	Open(name string) (File, error)
	// Rename gives a file a new name; a file that has it already is replaced.
	Rename(from, to string) error
	// Remove deletes a file.
	Remove(name string) error
	// SyncDir makes all creations, renames and removals so far durable.
	SyncDir() error
}

// File is one file of a Disk. Its methods may block. ReadAt may be called on
// several goroutines, and while another one writes elsewhere in the file.
type File interface {
	// ReadAt and WriteAt transfer all of p or return an error (io.EOF included).
	ReadAt(p []byte, offset int64) (int, error)
	WriteAt(p []byte, offset int64) (int, error)
	// Sync makes everything that was written durable (fdatasync). After an
	// error nothing is known of what was written since the last success; it is
	// never called again in the hope of a better answer.
	Sync() error
	// DropCache makes the next ReadAt ask the disk and not a cache. Recovery
	// calls it so that it believes what a power cut would have left.
	DropCache() error
	// Size is the size in bytes when the file was opened or created.
	Size() int64
	// Fd is the descriptor to give to a ring, -1 when there is none. It takes
	// writes whose buffer, offset and length are multiples of 4096.
	Fd() int
	Close() error
}

// Device carries out the I/O of one running log without blocking its loop.
//
// done is always called on the loop's thread, exactly once for each call,
// and never before the call that it belongs to has returned. An
// implementation on a ring submits a write and, when it has ended, an fdatasync, and
// must count anything but the full length as an error.
type Device interface {
	// Write writes buf at offset and, with sync, makes it durable before done:
	// data and whatever metadata is needed to read it, and what earlier Writes
	// to this file wrote without a sync. RWF_DSYNC alone promises its own bytes
	// only. buf may be empty, then only the sync is done. At most one Write is in flight at a time. buf lies outside the
	// Go heap, is aligned to 4096 bytes in address and length, as is offset, and
	// stays as it is until done.
	Write(f File, offset int64, buf []byte, sync bool, done func(error))
	// Read fills buf from offset. Several reads may be in flight, next to a
	// write. Nothing is aligned, and f may be open past the page cache, where the
	// kernel refuses that: File.ReadAt finds a way. n may be less than len(buf) only
	// with an error.
	Read(f File, offset int64, buf []byte, done func(n int, err error))
	// Run runs a job that may block for tens of milliseconds (prepare a
	// segment, rename, sync the folder) on another thread. The log has one in
	// flight, and one more for each segment of a record larger than a segment.
	Run(job func() error, done func(error))
}

// SyncWriter is what a File implements if it can write and sync in one call.
type SyncWriter interface {
	// WriteSyncAt writes all of p and returns after it is durable. It says nothing
	// of earlier writes: on a disk with FUA its cache is not flushed.
	WriteSyncAt(p []byte, offset int64) (int, error)
}
