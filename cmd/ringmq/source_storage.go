package main

import (
	"os"
	"strconv"
	"time"

	"ringmq/admin"
	"ringmq/engine"
	"ringmq/engine/queue"
)

// Queues implements admin.Source.
func (s source) Queues() []admin.QueueInfo {
	if s.b.is(phaseStarting) {
		return nil
	}
	list := s.b.server.Queues()
	out := make([]admin.QueueInfo, len(list))
	for i := range list {
		q := &list[i]
		out[i] = admin.QueueInfo{
			Name: q.Name, VHost: q.VHost, Durable: q.Durable, Exclusive: q.Exclusive, AutoDelete: q.AutoDelete,
			Ready: q.Ready, Unacked: q.Unacked, Consumers: q.Consumers, Type: queue.Classic.String(),
		}
		if v := s.b.server.Broker.VHost(q.VHost); v != nil {
			if q := v.Queue([]byte(q.Name)); q != nil { // not deleted meanwhile
				out[i].Type = q.Settings.Type.String()
				out[i].Policy, out[i].Operator, _ = s.b.server.Broker.PolicyOf(q)
			}
		}
	}
	return out
}

// stateNames are the words for the phases, in their order.
var stateNames = [...]string{"recovering", "running", "draining"}

// Status implements admin.Source.
func (s source) Status() admin.Status {
	b := s.b
	out := admin.Status{
		Product: "ringmq", Version: version, State: stateNames[b.phase.Load()], Unready: s.Unready(),
		PID: os.Getpid(), Uptime: time.Since(b.started).Seconds(), Data: b.dataPath,
		HTTP: "off", IO: b.group.Backend(), Loops: len(b.group.Loops()),
		Sync: b.o.Sync, SyncLoses: syncLoses[b.o.Sync],
	}
	if b.httpBind != nil {
		out.HTTP = b.httpBind.Addr().String()
	}
	if b.is(phaseStarting) {
		return out // the rest is being made by another goroutine
	}
	for _, a := range b.amqp {
		out.AMQP = append(out.AMQP, a.String())
	}
	lim := b.watch.limits.Load()
	out.Alarms = b.watch.names()
	out.MemoryUsed, out.MemoryLimit = b.watch.used.Load(), lim.memory
	out.DiskFree, out.DiskFreeLimit = b.watch.room.Load(), lim.disk
	gauge := s.gauges()
	out.Connections = int(gauge["ringmq_connections"])
	out.Channels = int(gauge["ringmq_channels"])
	out.Consumers = int(gauge["ringmq_consumers"])
	out.Queues = int(gauge["ringmq_queues"])
	out.Ready = int64(gauge["ringmq_messages_ready"])
	out.Unacked = int64(gauge["ringmq_messages_unacknowledged"])
	for _, l := range b.server.Broker.StorageStats() {
		out.Logs = append(out.Logs, logStatus(&l))
	}
	return out
}

func logStatus(l *engine.StorageStats) admin.LogStatus {
	return admin.LogStatus{
		Loop: l.Loop, Size: l.DiskBytes, Live: l.LiveBytes, Segments: l.Segments + l.Ready,
		Syncs: l.Syncs, SyncMean: syncMean(l).Seconds(), SyncMax: l.SyncTimeMax.Seconds(),
		InFlight: l.InFlight.Seconds(), Backlog: l.Backlog, PagedOut: l.Absent, Refused: l.Unstored, Lost: l.Lost, SpaceError: l.Space,
	}
}

func syncMean(l *engine.StorageStats) time.Duration {
	if l.Syncs == 0 {
		return 0
	}
	return l.SyncTimeSum / time.Duration(l.Syncs)
}

// heldBytes is the memory that the loops have in use for messages. What lies free between it
// counts against the limit like everything else that is not a message.
func (b *broker) heldBytes() int64 {
	sum := int64(0)
	for _, l := range b.group.Loops() {
		sum += l.Slab().Stats().LiveBytes
	}
	return sum
}

// appendStorageCounters appends alarms, limits, and what the logs count.
func (s source) appendStorageCounters(out []admin.Counter) []admin.Counter {
	w := s.b.watch
	lim := w.limits.Load()
	up := map[string]float64{}
	for _, name := range w.names() {
		up[name] = 1
	}
	for _, kind := range []string{"memory", "disk", "sync"} {
		out = append(out, admin.Counter{Name: "ringmq_alarm", Kind: "gauge", Value: up[kind],
			Help:   "1 while the alarm is up. memory and disk block publishers; sync: the disk does not answer.",
			Labels: []admin.Label{{Name: "kind", Value: kind}}})
	}
	gauge := func(name, help string, v int64) {
		out = append(out, admin.Counter{Name: name, Help: help, Kind: "gauge", Value: float64(v)})
	}
	gauge("ringmq_memory_limit_bytes", "Resident memory in bytes above which publishers are blocked.", lim.memory)
	gauge("ringmq_disk_free_bytes", "Free room on the disk of the data folder in bytes.", w.room.Load())
	gauge("ringmq_disk_free_limit_bytes", "Free room in bytes under which publishers are blocked; 0 is off.", lim.disk)
	for _, l := range s.b.server.Broker.StorageStats() {
		out = appendLogCounters(out, &l)
	}
	return out
}

// appendLogCounters appends what the message log of one loop counts.
func appendLogCounters(out []admin.Counter, l *engine.StorageStats) []admin.Counter {
	labels := []admin.Label{{Name: "loop", Value: strconv.Itoa(l.Loop)}}
	add := func(name, kind, help string, v float64) {
		out = append(out, admin.Counter{Name: "ringmq_wal_" + name, Help: help, Kind: kind, Labels: labels, Value: v})
	}
	full := 0.0
	if l.Space != "" {
		full = 1
	}
	add("size_bytes", "gauge", "Size of the log's files on disk in bytes, prepared ones included.", float64(l.DiskBytes))
	add("live_bytes", "gauge", "Bytes of records that are still needed.", float64(l.LiveBytes))
	add("live_records", "gauge", "Records that are still needed.", float64(l.LiveCount))
	add("segments", "gauge", "Segments that hold the log.", float64(l.Segments))
	add("segments_ready", "gauge", "Segments that are prepared and empty.", float64(l.Ready))
	add("records_total", "counter", "Records appended.", float64(l.Records))
	add("record_bytes_total", "counter", "Bytes of records appended.", float64(l.RecordBytes))
	add("written_bytes_total", "counter", "Bytes written to disk, padding included.", float64(l.WrittenBytes))
	add("writes_total", "counter", "Writes; each holds what had gathered.", float64(l.Groups))
	add("syncs_total", "counter", "Writes and calls that ended in a sync.", float64(l.Syncs))
	add("sync_seconds_total", "counter", "Seconds that syncs took in sum.", l.SyncTimeSum.Seconds())
	add("sync_seconds_max", "gauge", "Longest sync since the start in seconds.", l.SyncTimeMax.Seconds())
	add("sync_running_seconds", "gauge", "Seconds that the write under way takes so far.", l.InFlight.Seconds())
	add("backlog_bytes", "gauge", "Bytes that wait to be written.", float64(l.Backlog))
	add("full", "gauge", "1 while persistent messages are refused because the disk has no room.", full)
	add("checkpoints_total", "counter", "Checkpoints written.", float64(l.Checkpoints))
	add("segments_recycled_total", "counter", "Dead segments that were used again.", float64(l.Recycled))
	add("segments_removed_total", "counter", "Dead segments that were deleted.", float64(l.Removed))
	add("records_moved_total", "counter", "Records that compaction copied.", float64(l.Moved))
	add("bodies_read_total", "counter", "Message bodies that had left memory and were read back.", float64(l.PagedIn))
	add("bodies_absent", "gauge", "Messages waiting whose body is on disk only.", float64(l.Absent))
	add("messages_refused_total", "counter", "Persistent messages refused because the disk had no room.", float64(l.Unstored))
	add("bodies_lost_total", "counter", "Message bodies that could not be read back from a damaged disk.", float64(l.Lost))
	return out
}
