package bench

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	line := "123 (a (odd) name) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 99"
	if got, err := parseStat(line); err != nil || got != 3*time.Second {
		t.Errorf("got %v, %v, want 3s", got, err)
	}
	for _, bad := range []string{"", "1 (x) S 1 2", "1 (x) S 1 2 3 4 5 6 7 8 9 10 x 1"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestListenInodes(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1628 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 x
   1: 0100007F:1628 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 x
   2: 0100007F:1629 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 x
`
	got := listenInodes(table, 0x1628)
	if len(got) != 1 || got[0] != "4711" {
		t.Errorf("inodes %v, want only 4711", got)
	}
}

func TestListenerPID(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if pid, err := listenerPID(procRoot, addr); err != nil || pid != os.Getpid() {
		t.Errorf("pid %d, %v, want %d", pid, err, os.Getpid())
	}
	l.Close()
	if pid, err := listenerPID(procRoot, addr); err == nil {
		t.Errorf("found process %d on a closed port", pid)
	}
	if _, err := listenerPID(procRoot, "192.0.2.1:5672"); err == nil {
		t.Error("another machine's process was looked for here")
	}
}

func TestProcTimesSince(t *testing.T) {
	times := func(stat time.Duration, threads map[int64]time.Duration) procTimes { return procTimes{stat, threads} }
	was := times(time.Second, map[int64]time.Duration{1: 10, 2: 20})
	cases := []struct {
		name string
		now  procTimes
		want time.Duration
	}{
		{"same threads: the fine clock", times(2*time.Second, map[int64]time.Duration{1: 15, 2: 40}), 25},
		{"a new thread counts whole", times(2*time.Second, map[int64]time.Duration{1: 15, 2: 40, 3: 7}), 32},
		{"an ended thread: the coarse clock", times(2*time.Second, map[int64]time.Duration{1: 15}), time.Second},
		{"no threads visible", times(3*time.Second, nil), 2 * time.Second},
	}
	for _, c := range cases {
		if got := c.now.since(was); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestOwnProcessIsReadable(t *testing.T) {
	times, err := readProcTimes(procRoot, os.Getpid())
	if err != nil || len(times.threads) == 0 {
		t.Errorf("%d threads, %v", len(times.threads), err)
	}
	if rss, err := residentKiB(procRoot, os.Getpid()); err != nil || rss < 100 {
		t.Errorf("resident %d KiB, %v", rss, err)
	}
	if ownCPU() <= 0 {
		t.Error("no CPU time of our own")
	}
}

func TestParseMetrics(t *testing.T) {
	m, err := parseMetrics(strings.NewReader(`# HELP x y
ringmq_loop_enters_total{loop="0"} 5
ringmq_loop_enters_total{loop="1",note="a } b \" c"} 7 1700000000
ringmq_info{version="1.2",sync="always"} 1
go_info{version="go9"} 1
plain 1e3
broken{x="1" 4
`))
	if err != nil {
		t.Fatal(err)
	}
	if m.values[entersCounter] != 12 || m.values["plain"] != 1000 {
		t.Errorf("values %v", m.values)
	}
	if m.info["version"] != "1.2" || m.info["sync"] != "always" {
		t.Errorf("info %v", m.info)
	}
}
