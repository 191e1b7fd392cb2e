package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// op is what a Command asks for.
type op uint8

const (
	opPublish   op = iota // q, m, origin, seq = token
	opConfirm             // origin, seq = token, ok, n = 1 if the log took it not
	opDeliver             // sub, seq, m, flags, n
	opCredit              // sub, n = bytes
	opAck                 // q, seq, sub, n = consecutive entries
	opRequeue             // q, seq, sub, ok = it never reached the consumer
	opDiscard             // q, seq, sub
	opResume              // sub
	opCancelled           // sub
	opCall                // fn
)

// Command is one slot of a mailbox between two loops.
type Command struct {
	op     op
	ok     bool
	flags  uint8 // of opDeliver, the lowest octet of its flags; n has the rest
	n      uint32
	seq    uint64
	q      *queue.Queue
	m      *core.Message
	sub    *Subscription
	origin Origin
	fn     func(*Shard)
}

// Origin is the publisher's side of a message whose fate is asked about. It is
// called on the loop that published.
type Origin interface {
	// Settled tells that one queue accepted the message or turned it away.
	Settled(token uint64, accepted bool)
}

// Outcome of a publish to one queue.
type Outcome uint8

const (
	// Accepted: the queue has the message.
	Accepted Outcome = iota
	// Refused: the queue's overflow policy turned it away.
	Refused
	// Pending: the origin will be told.
	Pending
	// NoSpace: the disk has no room for the message.
	NoSpace
)
