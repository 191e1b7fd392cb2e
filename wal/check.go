package wal

import (
	"errors"
	"fmt"
	"io"
)

// Check reads a stopped log and reports what it finds. It changes nothing.
func Check(dir string) (*Report, error) {
	disk, err := existingDir(dir)
	if err != nil {
		return nil, err
	}
	return CheckDisk(disk)
}

// CheckDisk is Check for any disk.
func CheckDisk(disk Disk) (*Report, error) {
	return readDisk(disk, nil)
}

func readDisk(disk Disk, visit func(*Record) error) (*Report, error) {
	set, err := loadFiles(disk)
	if err != nil {
		return nil, err
	}
	defer set.free()
	in := &reading{fileSet: set, visit: visit}
	err = in.read()
	return set.report, err
}

// Dump writes one line for each record of a stopped log, and then what Check would
// report. It changes nothing.
func Dump(dir string, w io.Writer) error {
	disk, err := existingDir(dir)
	if err != nil {
		return err
	}
	return DumpDisk(disk, w)
}

// DumpDisk is Dump for any disk.
func DumpDisk(disk Disk, w io.Writer) error {
	report, err := readDisk(disk, func(r *Record) error { return dumpRecord(w, r) })
	if err != nil {
		return err
	}
	return report.Write(w)
}

func dumpRecord(w io.Writer, r *Record) error {
	text := fmt.Sprintf("%v seq %d size %d %s", r.Position, r.Seq, r.size, kindText(r))
	for _, ref := range r.Refs {
		text += fmt.Sprintf(" queue %d/%d", ref.Queue, ref.Seq)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// kindText names a record's kind and what is known of its payload.
func kindText(r *Record) string {
	p := r.payload
	switch {
	case r.Kind == kindAck && len(p) == ackPayloadSize:
		return fmt.Sprintf("ack queue %d from %d to %d", le64(p), le64(p[8:]), le64(p[16:]))
	case r.Kind == kindState && len(p) >= 8:
		return fmt.Sprintf("checkpoint %d: state, %d bytes", le64(p), len(p)-8)
	case r.Kind == kindAckSet && len(p) >= 16:
		if set, err := DecodeAckSet(p[16:]); err == nil {
			return fmt.Sprintf("checkpoint %d: queue %d done below %d and %d above", le64(p), le64(p[8:]), set.Floor(), set.CountAbove())
		}
	case r.Kind == kindCheckpoint:
		if end, ok := parseCheckpointEnd(p); ok {
			return fmt.Sprintf("checkpoint %d: ends, stands for %v, %d pieces", end.id, end.from, end.pieces)
		}
	case r.Kind == kindRetire && len(p) == 4:
		return fmt.Sprintf("segment %08x retired", le32(p))
	case r.Kind == kindClose:
		return "closed"
	case r.Kind >= KindMessageMin && r.Kind <= KindMessageMax:
		text := fmt.Sprintf("message kind %#02x", r.Kind)
		if r.Moved {
			text += " moved"
		}
		if r.Compressed() {
			text += " compressed"
		}
		return text
	case r.Kind >= KindEventMin && r.Kind <= KindEventMax:
		return fmt.Sprintf("event kind %#02x", r.Kind)
	}
	return fmt.Sprintf("kind %#02x", r.Kind)
}

// Write writes the report for people.
func (r *Report) Write(w io.Writer) error {
	text := fmt.Sprintf("log %016x: %d segments, %d spare files, %d records, %d bytes, last sequence %d, end %v\n",
		r.LogID, r.Segments, r.Spare, r.Records, r.Bytes, r.LastSeq, r.End)
	if r.Checkpoint != 0 {
		text += fmt.Sprintf("checkpoint at %v, stands for %v\n", r.Checkpoint, r.CheckpointFrom)
	} else {
		text += "no checkpoint\n"
	}
	if r.Clean {
		text += "closed in order\n"
	}
	if r.Cut != nil {
		text += r.Cut.String() + "\n"
	}
	for _, name := range r.Foreign {
		text += name + ": of another log, left alone\n"
	}
	for _, d := range r.Damage {
		text += d.Error() + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// Repair makes a damaged log usable: it notes all damage that it finds as
// accepted. Everything readable stays, nothing is deleted or changed: segments
// with damage are kept even when nothing in them is live, under another name. The
// log must be stopped.
func Repair(dir string) (*Report, error) {
	disk, err := existingDir(dir)
	if err != nil {
		return nil, err
	}
	// The note is text of any length, which does not go past the page cache.
	return repair(disk, &osDisk{dir, false})
}

// RepairDisk is Repair for any disk.
func RepairDisk(disk Disk) (*Report, error) { return repair(disk, disk) }

// repair reads the log from one disk and writes its note to the other, which is the same
// folder.
func repair(disk, notes Disk) (*Report, error) {
	report, err := CheckDisk(disk)
	if err != nil || len(report.unaccepted()) == 0 {
		return report, err
	}
	for _, d := range report.Damage {
		d.Accepted = true
	}
	return report, writeAccepted(notes, report.Damage)
}

var errNoLog = errors.New("wal: no log in this folder")

// existingDir is OpenDir for a folder that must be there, read past the cache.
func existingDir(dir string) (Disk, error) {
	disk := &osDisk{dir, true}
	files, err := disk.List()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if _, ok := segmentID(file.Name); ok {
			return disk, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", errNoLog, dir)
}
