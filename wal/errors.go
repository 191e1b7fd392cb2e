package wal

import (
	"errors"
	"fmt"
	"syscall"
)

// Refusals of a running log. The first four are the caller's to translate; none
// of them has promised anything.
var (
	// ErrNoSpace: no room could be prepared on the disk. Records with bodies are
	// refused; acknowledgements and events still fit, until the ballast is full
	// too. SpaceError carries the cause; RetrySpace looks again.
	ErrNoSpace = errors.New("wal: no space for another segment")
	// ErrBusy: the disk is behind by more than Options.BacklogMax, or the next
	// segment is not ready. It passes by itself.
	ErrBusy = errors.New("wal: the disk is behind")
	// ErrTooLarge: the record exceeds RecordBytesMax.
	ErrTooLarge = errors.New("wal: record too large")
	// ErrKind: the kind is not one of the user's, or has too many references.
	ErrKind = errors.New("wal: not a kind of record that users may append")
	// ErrFailed: a write or sync failed, and the log is over. See Log.Err.
	ErrFailed = errors.New("wal: log failed")
	// ErrClosed: the log was shut down.
	ErrClosed = errors.New("wal: log closed")
	// ErrGone: the position does not lie in a segment that still exists.
	ErrGone = errors.New("wal: position is not in the log")
	// ErrShortBuffer: the buffer does not hold the first record. Chunk.Need says
	// how many bytes would.
	ErrShortBuffer = errors.New("wal: buffer is smaller than the record")
	// ErrCheckpoint: a checkpoint is open already, or none is.
	ErrCheckpoint = errors.New("wal: checkpoint calls out of order")
	// ErrDamaged is what Open returns when it met damage that nobody accepted:
	// run Check, restore or Repair. The report has the places.
	ErrDamaged = errors.New("wal: log is damaged")
)

// CorruptionError is damage in a part of the log that had been synced: not what a
// crash leaves behind. The rest of the log stays readable.
type CorruptionError struct {
	File     string
	Segment  uint32
	From, To int64  // the damaged bytes of the file
	Records  uint64 // how many records are lost, by the sequence numbers; 0 if none
	Cause    string // what did not hold
	Err      error  // the read error below, or nil
	Accepted bool   // an operator accepted this damage by Repair
}

// Error names the file, the bytes, the cause and what is lost.
func (e *CorruptionError) Error() string {
	text := fmt.Sprintf("wal: %s: damaged from offset %d to %d: %s", e.File, e.From, e.To, e.Cause)
	if e.Records > 0 {
		text += fmt.Sprintf(", %d records lost", e.Records)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Accepted {
		text += " (accepted by repair)"
	}
	return text
}

// Unwrap gives the read error, if there was one.
func (e *CorruptionError) Unwrap() error { return e.Err }

// IOError is the write or sync that ended a log.
type IOError struct {
	Op     string // "write", "sync", "sync folder"
	File   string
	Offset int64
	Err    error
}

// Error names the operation, the file and the place.
func (e *IOError) Error() string {
	return fmt.Sprintf("wal: %s %s at offset %d: %v; nothing after it is durable", e.Op, e.File, e.Offset, e.Err)
}

// Unwrap gives the error of the disk.
func (e *IOError) Unwrap() error { return e.Err }

// SpaceError is why the next segment could not be prepared. It is ErrNoSpace to
// errors.Is, whatever the cause: a log that cannot get its next segment can only
// wait for one.
type SpaceError struct{ Err error }

// Error gives the cause.
func (e *SpaceError) Error() string { return "wal: cannot prepare the next segment: " + e.Err.Error() }

// Unwrap gives the error of the disk.
func (e *SpaceError) Unwrap() error { return e.Err }

// Is makes every SpaceError an ErrNoSpace.
func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace }

// Full reports whether the cause is a full disk or quota, and not something
// stranger that deserves a louder line in the log.
func (e *SpaceError) Full() bool {
	return errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT)
}
