package wal

import "fmt"

// Report is what reading a whole log found.
type Report struct {
	LogID    uint64
	Segments int // segments that hold the log
	Spare    int // prepared files that hold nothing
	Records  uint64
	Bytes    int64 // of records
	LastSeq  uint64
	End      Position // just behind the last record
	// Checkpoint is the position of the checkpoint's end record, 0 if there is
	// none; CheckpointFrom is the moment that it stands for.
	Checkpoint     Position
	CheckpointFrom Position
	// Clean says that the log was closed in order.
	Clean bool
	// Cut is the torn tail, nil if there is none: what had been written but never
	// synced when the log ended. Nothing in it was promised with SyncAlways.
	Cut *Cut
	// Damage is what was synced once and cannot be read.
	Damage []*CorruptionError
	// Foreign are files that are not this log's. They are left alone.
	Foreign []string
}

// Cut is the end of a log that a crash left behind.
type Cut struct {
	File    string
	Offset  int64  // the log ends here
	Records uint64 // whole records that stand behind the first torn one
	Cause   string
}

// String names the file and the place.
func (c *Cut) String() string {
	return fmt.Sprintf("%s: torn tail cut at offset %d (%s), %d whole records behind it", c.File, c.Offset, c.Cause, c.Records)
}

// unaccepted returns the damage that no operator accepted.
func (r *Report) unaccepted() []*CorruptionError {
	var list []*CorruptionError
	for _, d := range r.Damage {
		if !d.Accepted {
			list = append(list, d)
		}
	}
	return list
}
