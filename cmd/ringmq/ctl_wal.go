package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"ringmq/wal"
)

func ctlWALCheck(c *ctlCall) int {
	return c.eachLog(lockToRead, func(dir string) (damaged bool, err error) {
		report, err := wal.Check(dir)
		return c.report(dir, report, err)
	}, "damage was found; \"ringmq ctl wal repair --data %s\" goes on without what is lost")
}

func ctlWALRepair(c *ctlCall) int {
	return c.eachLog(lockData, func(dir string) (damaged bool, err error) {
		report, err := wal.Repair(dir)
		giveToOwner(c.data, dir)
		return c.report(dir, report, err)
	}, "damage is left that could not be accepted in %s")
}

func ctlWALDump(c *ctlCall) int {
	out := bufio.NewWriterSize(c.stdout, 1<<16)
	code := c.eachLog(lockToRead, func(dir string) (damaged bool, err error) {
		fmt.Fprintf(out, "%s:\n", dir)
		return false, wal.Dump(dir, out)
	}, "")
	if err := out.Flush(); err != nil {
		return c.fail("the records cannot be written: %v", err)
	}
	return code
}

// report prints what reading a log found. Damage that was accepted before is none.
func (c *ctlCall) report(dir string, r *wal.Report, err error) (damaged bool, _ error) {
	if err != nil {
		return false, err
	}
	for _, d := range r.Damage {
		damaged = damaged || !d.Accepted
	}
	fmt.Fprintf(c.stdout, "%s:\n", dir)
	return damaged, r.Write(c.stdout)
}

// eachLog calls f for the log of each event loop while the data folder is locked. A torn tail is not
// damage: it is how a log ends whose broker was killed.
func (c *ctlCall) eachLog(take func(path string) (*dataLock, error), f func(dir string) (damaged bool, err error), ifDamaged string) int {
	if _, err := os.Stat(c.data); err != nil {
		return c.fail("there is no data folder %s: %v; name the broker's with --data", c.data, plainErr(err))
	}
	lock, err := take(c.data)
	if err != nil {
		return c.fail("the broker must be stopped for this: %v", err)
	}
	defer lock.release()
	logs, err := logFolders(filepath.Join(c.data, logFolder))
	if err != nil {
		return c.fail("%v; name the broker's data folder with --data", err)
	}
	damaged := false
	for _, dir := range logs {
		if dir.empty {
			fmt.Fprintf(c.stdout, "%s: empty\n", dir.path)
			continue // the broker was killed before the first segment was made
		}
		bad, err := f(dir.path)
		if err != nil {
			return c.fail("%s: %v", dir.path, err)
		}
		damaged = damaged || bad
	}
	if damaged {
		return c.fail(ifDamaged, c.data)
	}
	return exitOK
}

// giveToOwner gives what root has made to whoever the folders belong to, who could not read it
// otherwise. Anybody else may not and need not.
func giveToOwner(folders ...string) {
	for _, folder := range folders {
		var owner unix.Stat_t
		if os.Geteuid() != 0 || unix.Stat(folder, &owner) != nil {
			continue
		}
		entries, _ := os.ReadDir(folder) //nolint:errcheck // what cannot be listed is left as it is
		for _, e := range entries {
			if !e.IsDir() {
				os.Lchown(filepath.Join(folder, e.Name()), int(owner.Uid), int(owner.Gid)) //nolint:errcheck // as above
			}
		}
	}
}

// logDir is the folder of one event loop's log.
type logDir struct {
	path  string
	empty bool
}

// logFolders lists the logs below a folder in the order of the loops.
func logFolders(root string) ([]logDir, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("there is no message log in %s: %w", root, plainErr(err))
	}
	var list []logDir
	for _, e := range entries {
		if _, err := strconv.ParseUint(e.Name(), 10, 16); err != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(root, e.Name())
		files, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", path, plainErr(err))
		}
		list = append(list, logDir{path, len(files) == 0})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no message log in %s", root)
	}
	return list, nil
}
