package wal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
)

// acceptedName is the file in which Repair notes the damage that an operator has
// seen: one line for each, "segment from to cause". The log's own files stay as
// they are.
const (
	acceptedName    = "accepted-damage"
	acceptedNewName = "accepted-damage.new"
	acceptedMax     = 16 << 20 // bytes; nobody reads more
)

// acceptedDamage is one line of it.
type acceptedDamage struct {
	segment  uint32
	from, to int64
	cause    string
}

// readAccepted reads the accepted damage of a log.
func readAccepted(disk Disk, infos []FileInfo) ([]acceptedDamage, error) {
	for _, info := range infos {
		if info.Name != acceptedName {
			continue
		}
		if info.Size > acceptedMax {
			return nil, fmt.Errorf("wal: %s has %d bytes, at most %d make sense", acceptedName, info.Size, acceptedMax)
		}
		f, err := disk.Open(acceptedName)
		if err != nil {
			return nil, err
		}
		text := make([]byte, info.Size)
		if len(text) > 0 {
			_, err = f.ReadAt(text, 0)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		return parseAccepted(text)
	}
	return nil, nil
}

func parseAccepted(text []byte) ([]acceptedDamage, error) {
	var list []acceptedDamage
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimRight(text, "\x00")))
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		var a acceptedDamage
		if _, err := fmt.Sscanf(lines.Text(), "%x %d %d %q", &a.segment, &a.from, &a.to, &a.cause); err != nil {
			return nil, fmt.Errorf("wal: %s: line %q: %w", acceptedName, lines.Text(), err)
		}
		list = append(list, a)
	}
	return list, lines.Err()
}

// isAccepted reports whether damage lies within what was accepted.
func isAccepted(list []acceptedDamage, e *CorruptionError) bool {
	for _, a := range list {
		if a.segment == e.Segment && a.cause == e.Cause && a.from <= e.From && e.To <= a.to {
			return true
		}
	}
	return false
}

// writeAccepted replaces the file, durably.
func writeAccepted(disk Disk, damage []*CorruptionError) error {
	var text bytes.Buffer
	for _, e := range damage {
		fmt.Fprintf(&text, "%08x %d %d %q\n", e.Segment, e.From, e.To, e.Cause)
	}
	// A file of that name is of an earlier try.
	_ = disk.Remove(acceptedNewName)
	f, err := disk.Create(acceptedNewName, int64(text.Len()))
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text.Bytes(), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(acceptedNewName, acceptedName); err != nil {
		return err
	}
	return disk.SyncDir()
}
