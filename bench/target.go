package bench

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

const procRoot = "/proc"

// target is one broker under load.
type target struct {
	name     string // product and version, as it presents itself
	endpoint endpoint
	pid      int    // 0: unknown
	counters string // metrics page, empty: none
	sync     string // its durability mode, if it tells
	settings []string
	server   *server // its process, when the bench has started it
	stop     func() error
}

// connectTarget looks a broker over: who it is, which process, which counters.
func connectTarget(ctx context.Context, url string, pid int, counters string) (*target, error) {
	e, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	t := &target{endpoint: e, pid: pid, counters: counters, stop: func() error { return nil }}
	c, err := dial(ctx, e, nil)
	if err != nil {
		return nil, err
	}
	t.name = c.product
	if c.version != "" {
		t.name += " " + c.version
	}
	if t.name == "" {
		t.name = e.addr
	}
	if err := c.bye(); err != nil {
		return nil, fmt.Errorf("closing the first connection: %w", err)
	}
	if t.pid == 0 {
		// Not finding it costs only the CPU figures, which then say n/a.
		t.pid, _ = listenerPID(procRoot, e.addr)
	}
	if t.counters == "" {
		t.counters = defaultCounters(e.addr, t.pid)
	}
	if t.counters == "" {
		return t, nil
	}
	m, err := readMetrics(t.counters)
	if err != nil {
		t.counters = ""
		return t, nil
	}
	t.sync = m.info["sync"]
	if version := m.info["version"]; version != "" {
		// Towards clients it may present itself under a name that they know.
		t.name = strings.TrimSpace("ringmq " + version + " " + m.info["io"])
	}
	return t, nil
}

// defaultCounters is the metrics page on the usual port of the broker's host.
// On this machine it must be the same process's: another broker's counters
// would be worse than none.
func defaultCounters(addr string, pid int) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	page := net.JoinHostPort(host, "15672")
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		if holder, err := listenerPID(procRoot, page); err != nil || holder != pid {
			return ""
		}
	}
	return "http://" + page + "/metrics"
}

// open makes a connection with channel 1 open.
func (t *target) open(ctx context.Context) (*conn, error) {
	c, err := dial(ctx, t.endpoint, nil)
	if err != nil {
		return nil, err
	}
	if err := c.openChannel(1); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// usage reads all meters. Meters that fail are marked, not zero.
func (t *target) usage() usage {
	u := usage{at: time.Now(), client: ownCPU()}
	if t.pid != 0 {
		times, err := readProcTimes(procRoot, t.pid)
		u.server, u.serverOK = times, err == nil
	}
	if t.counters != "" {
		if m, err := readMetrics(t.counters); err == nil {
			u.enters, u.entersOK = m.values[entersCounter]
		}
	}
	return u
}
