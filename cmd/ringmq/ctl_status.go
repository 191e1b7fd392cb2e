package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"ringmq/admin"
)

// ctlStatus prints the broker at a glance.
func ctlStatus(c *ctlCall) int {
	var s admin.Status
	if code, done := c.getInto("/api/ringmq/status", &s); done {
		return code
	}
	printStatus(c.stdout, &s)
	return exitOK
}

func printStatus(w io.Writer, s *admin.Status) {
	fmt.Fprintf(w, "%s %s, %s, process %d, up %s\n", s.Product, s.Version, s.State, s.PID, seconds(s.Uptime).Round(time.Second))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if s.Unready != "" {
		row("not ready", "%s", s.Unready)
	}
	row("data", "%s", s.Data)
	row("sync", "%s: a power cut loses %s", s.Sync, s.SyncLoses)
	row("loops", "%d on %s", s.Loops, s.IO)
	if s.State == stateNames[phaseStarting] {
		table.Flush()
		return
	}
	row("listening", "amqp %s, http %s", strings.Join(s.AMQP, " "), s.HTTP)
	row("alarms", "%s", orNone(s.Alarms))
	row("memory", "%s of %s", byteText(s.MemoryUsed), byteText(s.MemoryLimit))
	if s.DiskFreeLimit > 0 {
		row("disk", "%s free, publishers are blocked under %s", byteText(s.DiskFree), byteText(s.DiskFreeLimit))
	} else {
		row("disk", "%s free, no limit", byteText(s.DiskFree))
	}
	row("clients", "%d connections, %d channels, %d consumers", s.Connections, s.Channels, s.Consumers)
	row("queues", "%d, with %d messages ready and %d unacknowledged", s.Queues, s.Ready, s.Unacked)
	table.Flush()
	printLogs(w, s.Logs)
}

func printLogs(w io.Writer, logs []admin.LogStatus) {
	if len(logs) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "log\tsize\tlive\tsegments\tsyncs\tmean sync\tlongest sync\tpaged out\tstate")
	for i := range logs {
		l := &logs[i]
		state := "ok"
		if l.SpaceError != "" {
			state = "refuses persistent messages: " + l.SpaceError
		} else if l.InFlight > stallWarn.Seconds() {
			state = "a write takes " + seconds(l.InFlight).Round(time.Millisecond).String()
		}
		fmt.Fprintf(table, "%03d\t%s\t%s\t%d\t%d\t%s\t%s\t%d\t%s\n", l.Loop, byteText(l.Size), byteText(l.Live), l.Segments,
			l.Syncs, seconds(l.SyncMean).Round(time.Microsecond), seconds(l.SyncMax).Round(time.Microsecond), l.PagedOut, state)
	}
	table.Flush()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// ctlQueueList prints the queues.
func ctlQueueList(c *ctlCall) int {
	var list []struct {
		Name      string `json:"name"`
		VHost     string `json:"vhost"`
		Messages  int    `json:"messages"`
		Ready     int    `json:"messages_ready"`
		Unacked   int    `json:"messages_unacknowledged"`
		Consumers int    `json:"consumers"`
		Type      string `json:"type"`
		Policy    string `json:"policy"`
		Operator  string `json:"operator_policy"`
	}
	page := "/api/queues"
	if v := c.flagSet("vhost"); v != nil {
		page += "/" + url.PathEscape(*v)
	}
	if code, done := c.getInto(page, &list); done {
		return code
	}
	table := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "vhost\tname\tmessages\tready\tunacked\tconsumers\ttype\tpolicy\toperator policy")
	for _, q := range list {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", q.VHost, q.Name, q.Messages, q.Ready, q.Unacked, q.Consumers, q.Type,
			cmp.Or(q.Policy, "-"), cmp.Or(q.Operator, "-"))
	}
	table.Flush()
	return exitOK
}
