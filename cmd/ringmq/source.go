package main

import (
	"net/netip"
	"os"
	"strconv"
	"time"

	"ringmq/admin"
	"ringmq/ring"
)

// source shows the broker to the HTTP listener.
type source struct{ b *broker }

var _ admin.Source = source{}

// Unready implements admin.Source.
func (s source) Unready() string {
	switch {
	case s.b.is(phaseStarting):
		return "the broker is starting"
	case s.b.is(phaseDraining):
		return "the broker is draining"
	case s.b.watch.stalled.Load():
		return "the disk does not answer"
	}
	return ""
}

// CheckLogin implements admin.Source: the API's accounts are the broker's.
func (s source) CheckLogin(user, password string, remote netip.Addr) bool {
	return s.b.server.CheckLogin(user, password, remote)
}

// CloseConnection implements admin.Source.
func (s source) CloseConnection(name, reason string) bool {
	return !s.b.is(phaseStarting) && s.b.server.CloseConnection(name, reason)
}

// Connections implements admin.Source.
func (s source) Connections() []admin.ConnInfo {
	if s.b.is(phaseStarting) {
		return nil
	}
	list := s.b.server.Connections()
	out := make([]admin.ConnInfo, len(list))
	for i := range list {
		c := &list[i]
		out[i] = admin.ConnInfo{
			Name: c.Name, User: c.User, VHost: c.VHost, State: c.State,
			Protocol: "AMQP 0-9-1", AuthMechanism: c.Mechanism,
			Local: c.Local, Peer: c.Peer,
			Channels: c.Channels, ChannelMax: c.ChannelMax, FrameMax: c.FrameMax,
			Heartbeat: time.Duration(c.Heartbeat) * time.Second, ConnectedAt: c.ConnectedAt,
			BytesReceived: c.BytesIn, BytesSent: c.BytesOut,
			ClientProperties: c.ClientProperties,
		}
	}
	return out
}

// Overview implements admin.Source. The counts of objects are the gauges of the metrics page:
// one place counts them.
func (s source) Overview() admin.Overview {
	gauge := s.gauges()
	out := admin.Overview{
		Product: "ringmq", Version: version, CompatVersion: compatVersion, Node: nodeName(),
		Uptime:      time.Since(s.b.started),
		Connections: int(gauge["ringmq_connections"]),
		Channels:    int(gauge["ringmq_channels"]),
		Exchanges:   int(gauge["ringmq_exchanges"]),
		Queues:      int(gauge["ringmq_queues"]),
		Consumers:   int(gauge["ringmq_consumers"]),
		Ready:       int64(gauge["ringmq_messages_ready"]),
		Unacked:     int64(gauge["ringmq_messages_unacknowledged"]),
		Published:   uint64(gauge["ringmq_messages_published_total"]),
		Delivered:   uint64(gauge["ringmq_messages_delivered_total"]),
		Acked:       uint64(gauge["ringmq_messages_acknowledged_total"]),
	}
	for _, a := range s.listening() {
		out.Listeners = append(out.Listeners, admin.Listener{Protocol: "amqp", Addr: a})
	}
	if s.b.httpBind != nil {
		if a, err := netip.ParseAddrPort(s.b.httpBind.Addr().String()); err == nil {
			out.Listeners = append(out.Listeners, admin.Listener{Protocol: "http", Addr: a})
		}
	}
	return out
}

// gauges are the engine's counters by name; none while the loops that have them do not run.
func (s source) gauges() map[string]float64 {
	gauge := map[string]float64{}
	if !s.b.is(phaseStarting) {
		for _, c := range s.b.server.Counters() {
			gauge[c.Name] = c.Value
		}
	}
	return gauge
}

// listening are the AMQP addresses, none before they are listened on.
func (s source) listening() []netip.AddrPort {
	if s.b.is(phaseStarting) {
		return nil // another goroutine is making the list
	}
	return s.b.amqp
}

// Counters implements admin.Source: the engine's counters, the loops' with their number as a
// label, and the process's.
func (s source) Counters() []admin.Counter {
	var out []admin.Counter
	if s.b.is(phaseStarting) {
		return appendProcessCounters(out, s.b.group.Backend(), s.b.o.Sync, s.b.started)
	}
	for _, c := range s.b.server.Counters() {
		out = append(out, admin.Counter{Name: c.Name, Help: c.Help, Kind: c.Kind, Value: c.Value})
	}
	for _, l := range s.b.group.Loops() {
		out = appendLoopCounters(out, l)
	}
	out = s.appendStorageCounters(out)
	return appendProcessCounters(out, s.b.group.Backend(), s.b.o.Sync, s.b.started)
}

func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return "ringmq@" + host
}

// appendLoopCounters appends what one event loop counts.
func appendLoopCounters(out []admin.Counter, l *ring.Loop) []admin.Counter {
	labels := []admin.Label{{Name: "loop", Value: strconv.Itoa(l.Index())}}
	add := func(name, kind, help string, v float64) {
		out = append(out, admin.Counter{Name: name, Help: help, Kind: kind, Labels: labels, Value: v})
	}
	s, m := l.Stats(), l.Slab().Stats()
	add("ringmq_loop_turns_total", "counter", "Turns of the event loop.", float64(s.Turns))
	add("ringmq_loop_enters_total", "counter", "System calls that the event loop made for the network and to wait.", float64(s.Syscalls))
	add("ringmq_loop_sleeps_total", "counter", "Times that the event loop was about to sleep.", float64(s.Sleeps))
	add("ringmq_loop_wakeups_total", "counter", "Times that another thread woke the event loop.", float64(s.Bells))
	add("ringmq_loop_connections", "gauge", "Client connections that the event loop owns, those that are closing included.", float64(s.Connections))
	add("ringmq_loop_accepted_total", "counter", "Client connections that the event loop took.", float64(s.Accepted))
	add("ringmq_loop_refused_total", "counter", "Client connections turned away by the broker or by the system's limits.", float64(s.Refused))
	add("ringmq_loop_received_bytes_total", "counter", "Bytes received from clients.", float64(s.BytesIn))
	add("ringmq_loop_sent_bytes_total", "counter", "Bytes sent to clients.", float64(s.BytesOut))
	add("ringmq_loop_out_chunks", "gauge", "Output buffers of 32 KiB in use.", float64(s.OutChunksLive))
	add("ringmq_loop_receive_buffers", "gauge", "Receive buffers that hold bytes not yet handled.", float64(s.RecvBuffersLive))
	add("ringmq_loop_receive_starved_total", "counter", "Times that the kernel found no receive buffer.", float64(s.RecvStarved))
	add("ringmq_loop_shared_buffers", "gauge", "Message bodies that are being sent by reference.", float64(s.SharedLive))
	add("ringmq_loop_busy_seconds_total", "counter", "Seconds that the event loop was not waiting.", float64(s.BusyNS)/1e9)
	add("ringmq_loop_longest_turn_seconds", "gauge", "Longest turn of the event loop since the start in seconds, waiting excluded.", float64(s.LongestTurnNS)/1e9)
	add("ringmq_loop_slab_blocks", "gauge", "Blocks of message memory in use.", float64(m.LiveBlocks))
	add("ringmq_loop_slab_bytes", "gauge", "Bytes of message memory in use.", float64(m.LiveBytes))
	add("ringmq_loop_slab_mapped_bytes", "gauge", "Bytes of message memory taken from the operating system.", float64(m.MappedBytes))
	return out
}
