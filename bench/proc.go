package bench

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of /proc/PID/stat times; Linux fixes it for user space.
const clockTick = time.Second / 100

// usage is what the server and this process have consumed so far.
type usage struct {
	at       time.Time
	server   procTimes
	serverOK bool
	client   time.Duration
	enters   float64 // ringmq_loop_enters_total
	entersOK bool
}

// procTimes is the CPU time of one process by two clocks.
type procTimes struct {
	stat    time.Duration           // user + system, whole process, 10 ms steps, exited threads included
	threads map[int64]time.Duration // per living thread, ns steps
}

// since is the CPU time between two readings: by the fine clock when the same
// threads live at both ends, else by the coarse one.
func (p procTimes) since(earlier procTimes) time.Duration {
	var fine time.Duration
	for tid, was := range earlier.threads {
		now, ok := p.threads[tid]
		if !ok {
			return p.stat - earlier.stat
		}
		fine += now - was
	}
	for tid, now := range p.threads {
		if _, ok := earlier.threads[tid]; !ok {
			fine += now // started in between
		}
	}
	if len(p.threads) == 0 {
		return p.stat - earlier.stat
	}
	return fine
}

// readProcTimes reads both clocks of pid.
func readProcTimes(root string, pid int) (procTimes, error) {
	dir := filepath.Join(root, strconv.Itoa(pid))
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return procTimes{}, err
	}
	stat, err := parseStat(string(raw))
	if err != nil {
		return procTimes{}, err
	}
	p := procTimes{stat: stat, threads: map[int64]time.Duration{}}
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return p, nil // the coarse clock alone will do
	}
	for _, task := range tasks {
		tid, err := strconv.ParseInt(task.Name(), 10, 64)
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, "task", task.Name(), "schedstat"))
		if err != nil {
			continue // it ended between the two reads
		}
		if first, _, ok := strings.Cut(string(raw), " "); ok {
			ns, err := strconv.ParseInt(first, 10, 64)
			if err == nil {
				p.threads[tid] = time.Duration(ns)
			}
		}
	}
	return p, nil
}

// parseStat returns utime + stime, fields 14 and 15, from a stat line. The
// second field is a name in parentheses that may itself hold spaces.
func parseStat(line string) (time.Duration, error) {
	at := strings.LastIndexByte(line, ')')
	if at < 0 {
		return 0, errors.New("proc stat: no command name")
	}
	fields := strings.Fields(line[at+1:])
	if len(fields) < 13 {
		return 0, errors.New("proc stat: too few fields")
	}
	utime, err1 := strconv.ParseInt(fields[11], 10, 64)
	stime, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("proc stat: %w", err)
	}
	return time.Duration(utime+stime) * clockTick, nil
}

// residentKiB returns VmRSS of pid.
func residentKiB(root string, pid int) (int64, error) { return statusKiB(root, pid, "VmRSS:") }

// peakKiB returns VmHWM of pid: the most that was ever resident, or since
// resetPeak.
func peakKiB(root string, pid int) (int64, error) { return statusKiB(root, pid, "VmHWM:") }

// resetPeak makes the kernel forget pid's peak.
func resetPeak(root string, pid int) error {
	const forgetPeak = "5"
	return os.WriteFile(filepath.Join(root, strconv.Itoa(pid), "clear_refs"), []byte(forgetPeak), 0)
}

func statusKiB(root string, pid int, field string) (int64, error) {
	f, err := os.Open(filepath.Join(root, strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), field); ok {
			return strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("no line %s", field))
}

// ownCPU is the CPU time of this process.
func ownCPU() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// listenerPID finds the process that listens on addr, which must be of this
// machine: socket inode from /proc/net/tcp*, then the process that holds it.
func listenerPID(root, addr string) (int, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return 0, fmt.Errorf("%s is not a loopback address", host)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return 0, err
	}
	inodes := map[string]bool{}
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		raw, err := os.ReadFile(filepath.Join(root, table))
		if err != nil {
			continue // no IPv6 here
		}
		for _, inode := range listenInodes(string(raw), uint16(port)) {
			inodes["socket:["+inode+"]"] = true
		}
	}
	if len(inodes) == 0 {
		return 0, fmt.Errorf("nothing listens on port %d", port)
	}
	return socketHolder(root, inodes)
}

// listenInodes returns the inodes of sockets in state LISTEN on port.
func listenInodes(table string, port uint16) []string {
	const stateListen = "0A"
	var inodes []string
	for _, line := range strings.Split(table, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != stateListen {
			continue
		}
		_, portHex, ok := strings.Cut(fields[1], ":")
		raw, err := hex.DecodeString(portHex)
		if ok && err == nil && len(raw) == 2 && be.Uint16(raw) == port {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

func socketHolder(root string, links map[string]bool) (int, error) {
	fds, err := filepath.Glob(filepath.Join(root, "[0-9]*", "fd", "*"))
	if err != nil {
		return 0, err
	}
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && links[link] {
			return strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(fd))))
		}
	}
	return 0, errors.New("the listening process is not visible (run as the same user, or pass --pid)")
}
