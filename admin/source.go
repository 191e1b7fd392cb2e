package admin

import (
	"net/netip"
	"time"
)

// Source is what the HTTP listener needs from the broker. Every method may be called from any
// goroutine, several at a time, and answers from snapshots: none may wait for a peer.
type Source interface {
	// Connections lists the client connections in any order. The caller owns the slice.
	Connections() []ConnInfo
	// CloseConnection asks for the connection of that name to be closed and reports whether
	// there was one. The reason is shown to the client. It does not wait for the client.
	CloseConnection(name, reason string) bool
	// Counters lists everything that /metrics shows, in any order. Counters of one name must
	// agree in Help and Kind.
	Counters() []Counter
	// Unready says why clients are not served or not served well, in a few words: before the
	// listeners accept, from the moment that a drain begins, while the disk does not answer.
	// Empty means that they are.
	Unready() string
	// CheckLogin reports whether the user may use the API with that password from that address.
	CheckLogin(user, password string, remote netip.Addr) bool
	// Overview sums the broker up.
	Overview() Overview
	// Queues lists the queues of all virtual hosts in any order. The caller owns the slice.
	Queues() []QueueInfo
	// Status is what an operator wants to know first.
	Status() Status
}

// ConnInfo describes one client connection at the moment of the snapshot.
type ConnInfo struct {
	Name             string         // unique; RabbitMQ's form "peer:port -> host:port"
	User             string         // who logged in; empty during the handshake
	VHost            string         // virtual host; empty until it is opened
	State            string         // "starting", "running", "blocked", "closing"
	Protocol         string         // "AMQP 0-9-1", "AMQP 1.0"
	AuthMechanism    string         // SASL mechanism used
	Local            netip.AddrPort // our end
	Peer             netip.AddrPort // the client's end
	TLS              bool           // the transport is encrypted
	Channels         int            // open channels or sessions
	ChannelMax       int            // negotiated limit, channels
	FrameMax         int            // negotiated limit, bytes
	Heartbeat        time.Duration  // negotiated; 0 = none
	ConnectedAt      time.Time      // when it was accepted
	BytesReceived    uint64         // octets from the client
	BytesSent        uint64         // octets to the client
	ClientProperties map[string]any // as the client sent them, in JSON's types
}

// QueueInfo describes one queue at the moment of the snapshot.
type QueueInfo struct {
	Name       string
	VHost      string
	Durable    bool // it survives a restart
	Exclusive  bool // it belongs to one connection
	AutoDelete bool // it goes with its last consumer
	Ready      int  // messages waiting
	Unacked    int  // messages delivered and not yet settled
	Consumers  int
	Type       string // classic, quorum or stream
	Policy     string // name of the policy that governs it, empty for none
	Operator   string // as Policy, of the operator's
}

// Counter is one sample of /metrics.
type Counter struct {
	Name   string  // full metric name, ringmq_..., with its unit and, for counters, _total last
	Help   string  // a sentence with the unit
	Kind   string  // "counter" or "gauge"
	Labels []Label // in the order to print; may be nil
	Value  float64
}

// Label is one name and value of a Counter.
type Label struct{ Name, Value string }

// Overview is what GET /api/overview sums up.
type Overview struct {
	Product string // product name
	Version string // product version
	// CompatVersion is the RabbitMQ version that clients see; tools switch features on by it.
	CompatVersion string
	Node          string        // name of this broker in listings
	Uptime        time.Duration // since the start of the process
	Connections   int
	Channels      int
	Exchanges     int
	Queues        int
	Consumers     int
	Ready         int64 // messages waiting in queues
	Unacked       int64 // messages delivered and not yet settled

	// Messages since the start; Delivered and Acked are sums over the queues that exist.
	Published uint64
	Delivered uint64
	Acked     uint64

	Listeners []Listener
}

// Listener is an address that the broker accepts connections on.
type Listener struct {
	Protocol string // "amqp", "http"
	Addr     netip.AddrPort
}
